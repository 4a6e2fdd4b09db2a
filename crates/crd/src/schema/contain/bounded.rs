//! The values that an expression over integers can have, by the bounds of the fields in it.

use std::collections::BTreeMap;

use super::text::implied_length;
use crate::schema::cel::{Arithmetic, FieldPath, Order};
use crate::schema::model::{Limit, Schema, Type};

/// Maximum size of a value in a request.
const MOST_SIZE: i128 = 3 << 20;

/// An interval, both ends included.
type Interval = (i128, i128);

/// A field or, if true, its size.
type Part = (FieldPath, bool);

/// A linear combination of fields and sizes, and a constant.
#[derive(Clone, Debug, Default)]
pub(super) struct Linear {
    factors: BTreeMap<Part, i128>,
    constant: i128,
}

impl Linear {
    /// Reads an expression; `None` if it is not linear, if a part has no bounds, or if a result may be out of range, as
    /// the rule then fails. `node` returns the schema of a field.
    pub(super) fn read<'s>(arithmetic: &Arithmetic, node: &dyn Fn(&FieldPath) -> Option<&'s Schema>) -> Option<Self> {
        let read = |arithmetic: &Arithmetic| Self::read(arithmetic, node);
        let of_part = |path: &FieldPath, is_size: bool| Self {
            factors: BTreeMap::from([((path.clone(), is_size), 1)]),
            constant: 0,
        };
        let found = match arithmetic {
            Arithmetic::Number(number) => Self { constant: i128::from(*number), ..Self::default() },
            Arithmetic::Field(path) => of_part(path, false),
            Arithmetic::Size(path) => of_part(path, true),
            Arithmetic::Negative(inner) => read(inner)?.times(-1)?,
            Arithmetic::Sum(parts) => read(&parts[0])?.plus(&read(&parts[1])?)?,
            Arithmetic::Difference(parts) => read(&parts[0])?.plus(&read(&parts[1])?.times(-1)?)?,
            Arithmetic::Product(parts) => {
                let [one, other] = [read(&parts[0])?, read(&parts[1])?];
                match (one.factors.is_empty(), other.factors.is_empty()) {
                    (true, _) => other.times(one.constant)?,
                    (_, true) => one.times(other.constant)?,
                    _ => return None,
                }
            }
        };
        let (least, most) = found.interval(node)?;
        (least >= i128::from(i64::MIN) && most <= i128::from(i64::MAX)).then_some(found)
    }

    fn times(mut self, factor: i128) -> Option<Self> {
        for held in self.factors.values_mut().chain([&mut self.constant]) {
            *held = held.checked_mul(factor)?;
        }
        Some(self)
    }

    fn plus(mut self, other: &Self) -> Option<Self> {
        self.constant = self.constant.checked_add(other.constant)?;
        for (part, factor) in &other.factors {
            let held = self.factors.entry(part.clone()).or_default();
            *held = held.checked_add(*factor)?;
        }
        Some(self)
    }

    /// The fields in it.
    pub(super) fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        self.factors.keys().map(|(path, _)| path)
    }

    fn interval<'s>(&self, node: &dyn Fn(&FieldPath) -> Option<&'s Schema>) -> Option<Interval> {
        let mut interval = (self.constant, self.constant);
        for ((path, is_size), factor) in &self.factors {
            let (least, most) = if *is_size { sizes(node(path)?)? } else { integers(node(path)?)? };
            let ends = [least.checked_mul(*factor)?, most.checked_mul(*factor)?];
            interval.0 = interval.0.checked_add(ends[0].min(ends[1]))?;
            interval.1 = interval.1.checked_add(ends[0].max(ends[1]))?;
        }
        Some(interval)
    }

    /// Returns whether it compares like this with another one for all values, or for none; `None` if that depends.
    pub(super) fn compare<'s>(
        &self,
        order: Order,
        other: &Self,
        node: &dyn Fn(&FieldPath) -> Option<&'s Schema>,
    ) -> Option<bool> {
        let (least, most) = self.clone().plus(&other.clone().times(-1)?)?.interval(node)?;
        let always = match order {
            Order::Equal => least == 0 && most == 0,
            Order::Unequal => most < 0 || least > 0,
            Order::Less => most < 0,
            Order::AtMost => most <= 0,
            Order::Greater => least > 0,
            Order::AtLeast => least >= 0,
        };
        let never = match order {
            Order::Equal => most < 0 || least > 0,
            Order::Unequal => least == 0 && most == 0,
            Order::Less => least >= 0,
            Order::AtMost => least > 0,
            Order::Greater => most <= 0,
            Order::AtLeast => most < 0,
        };
        if always { Some(true) } else { never.then_some(false) }
    }
}

/// The integers that a node allows; `None` if rules may see other values.
fn integers(node: &Schema) -> Option<Interval> {
    if node.kind != Some(Type::Integer) || node.int_or_string {
        return None;
    }
    let is_exact = |limit: &Limit| limit.value.fract() == 0.0 && limit.value.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    let bound = |limit: Option<Limit>, step: i128| {
        limit.filter(is_exact).map(|limit| limit.value as i128 + if limit.exclusive { step } else { 0 })
    };
    let (mut least, mut most) = match node.format.as_deref() {
        Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    least = least.max(bound(node.minimum, 1).unwrap_or(least));
    most = most.min(bound(node.maximum, -1).unwrap_or(most));
    let listed: Option<Vec<i128>> =
        node.enumeration.as_ref().map(|values| values.iter().filter_map(|it| it.as_i64().map(i128::from)).collect());
    if let Some(values) = listed {
        least = least.max(values.iter().copied().min()?);
        most = most.min(values.iter().copied().max()?);
    }
    Some((least, most))
}

/// The sizes that a node allows; `None` if rules cannot measure its values.
fn sizes(node: &Schema) -> Option<Interval> {
    let window = match node.kind {
        Some(Type::String) => node.length,
        Some(Type::Array) => node.item_count,
        Some(Type::Object) if node.additional_schema().is_some() => node.property_count,
        _ => return None,
    };
    let implied = node.format.as_deref().map(implied_length).unwrap_or_default();
    let least = window.least.max(implied.least).unwrap_or_default().max(0);
    let most = [window.most, implied.most].into_iter().flatten().map(i128::from).fold(MOST_SIZE, i128::min);
    Some((i128::from(least), most.max(0)))
}
