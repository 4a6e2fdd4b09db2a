//! The effect of server-side apply on a list whose items are now merged, or correlated in another way: it fails for
//! duplicate items, and leaves behind items that a manager owned in the old way.

use std::rc::Rc;

use serde_json::Value;

use super::confirm::Damage;
use super::difference::SchemaProof;
use super::formula::{Formula, Unique};
use super::judge::Judge;
use super::outcome::Outcome;
use super::step::Step;
use super::step::lifted;
use super::step::node_at;
use super::types::Types;
use super::walk::Suspect;
use crate::schema::model::{ListType, MapType, Schema};
use crate::schema::pipeline;

/// The result of applying lists one after the other.
enum Applied {
    /// It is rejected, with this proof.
    Rejected(SchemaProof),
    /// Nothing is rejected.
    Nothing,
    /// The lists cannot be tried.
    Untried,
}

impl<'s> Judge<'s> {
    /// Whether an old list is rejected when it is written, when it is applied, or when another one is applied over it.
    pub(super) fn judge_merged(&mut self, suspect: &Suspect<'s>, unique: &Unique<'s>) -> SchemaProof {
        let repeated = self.exists(suspect, &suspect.steps, &Formula::HasRepeated(unique.clone()));
        if repeated != SchemaProof::Safe {
            return repeated;
        }
        if *unique == Unique::Items {
            let compound = Formula::HasItem(Box::new(Formula::Types(Types::OBJECT.or(Types::ARRAY))));
            let applied = self.exists(suspect, &suspect.steps, &compound);
            if applied != SchemaProof::Safe {
                return applied;
            }
        }
        self.left_behind(suspect, unique)
    }

    /// A manager that applied a list owns it in the old way, which names none of the new items: when it applies another
    /// list, omitted items stay, and together there can be too many.
    fn left_behind(&mut self, suspect: &Suspect<'s>, unique: &Unique<'s>) -> SchemaProof {
        let steps = &suspect.steps;
        let (Some(old), Some(new)) = (node_at(self.before, steps), node_at(self.after, steps)) else {
            return SchemaProof::unknown(suspect.keyword);
        };
        let (Some(before), Some(after)) = (&old.items, &new.items) else { return SchemaProof::Safe };
        if [self.before, self.after].into_iter().any(|root| is_replaced_with_another(root, steps)) {
            return SchemaProof::Safe;
        }
        let least = old.item_count.least.max(new.item_count.least).unwrap_or(0).max(1);
        // The length of each list: the longest that both schemas accept or, if the new one has no maximum, the
        // shortest.
        let (each, total) = match (old.item_count.most, new.item_count.most) {
            (None, Some(most)) => (most, most.saturating_add(1)),
            (Some(was), Some(most)) => (was.min(most), most.saturating_add(1)),
            (_, None) => (least, least.saturating_add(1)),
        };
        let has_most = new.item_count.most.is_some();
        if each < least || total > each.saturating_mul(2) {
            return SchemaProof::Safe;
        }
        let items = match self.solver.items_apart(&[before, after], unique, total) {
            Outcome::Found(Value::Array(items)) => items,
            Outcome::Empty => return SchemaProof::Safe,
            _ if has_most => return SchemaProof::unknown("maxItems"),
            _ => return SchemaProof::Safe,
        };
        let each = usize::try_from(each).unwrap_or(usize::MAX).min(items.len());
        let (first, second) = (&items[..each], &items[items.len() - each..]);
        match self.applied(suspect, first, second, &items) {
            Applied::Rejected(proof) => proof,
            Applied::Untried if has_most => SchemaProof::unknown("maxItems"),
            Applied::Nothing | Applied::Untried => SchemaProof::Safe,
        }
    }

    /// Applies the second list over an object with the first: both are valid by themselves, and `all` is the result.
    fn applied(&mut self, suspect: &Suspect<'s>, first: &[Value], second: &[Value], all: &[Value]) -> Applied {
        let [first, second, all] = [first, second, all].map(|items| Value::Array(items.to_vec()));
        let asked = Formula::Is(Rc::new(vec![first.clone()]));
        let Outcome::Found(object) = self.search(lifted(&suspect.steps, asked)) else { return Applied::Untried };
        let with = |list: &Value| {
            let mut object = object.clone();
            exchange(&mut object, &suspect.steps, &first, list);
            object
        };
        let taken = |list: &Value| self.is_taken(&with(list));
        if !taken(&first) || !taken(&second) {
            return Applied::Untried;
        }
        let Some(error) = pipeline::create(self.new, self.server, &with(&all)).errors.into_iter().next() else {
            return Applied::Nothing;
        };
        let left = pipeline::apply::left_behind(&first, &second);
        let message = format!("{} when {second} is applied, as {left} stays: {}", error.keyword, error.message);
        let damage = Damage { message, ..Damage::rejected(&error) };
        Applied::Rejected(SchemaProof::Breaking { witness: object, damage })
    }
}

/// Whether a list is never merged by itself because an ancestor is replaced as a whole.
pub(super) fn is_replaced_with_another<'s>(root: &'s Schema, steps: &[Step<'s>]) -> bool {
    steps.iter().enumerate().any(|(length, step)| {
        node_at(root, &steps[..length]).is_none_or(|node| match step {
            Step::Item => node.list_type != Some(ListType::Map),
            Step::Field(_) | Step::Other(_) => node.map_type == Some(MapType::Atomic),
        })
    })
}

/// Replaces the first list at the end of the steps that equals `from`.
fn exchange(value: &mut Value, steps: &[Step<'_>], from: &Value, to: &Value) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        let is_it = value == from;
        if is_it {
            *value = to.clone();
        }
        return is_it;
    };
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => {
            fields.get_mut(*name).is_some_and(|field| exchange(field, rest, from, to))
        }
        (Step::Other(_), Value::Object(fields)) => fields.values_mut().any(|field| exchange(field, rest, from, to)),
        (Step::Item, Value::Array(items)) => items.iter_mut().any(|item| exchange(item, rest, from, to)),
        _ => false,
    }
}
