//! Numbers: an interval in 64-bit floating point, multiples and non-multiples; finds an example or proves that there is
//! none.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Number, Value};

use super::outcome::Outcome;
use super::types::Types;
use super::values::ValueSet;
use crate::schema::model::{Limit, Schema, Type};
use crate::schema::pipeline;

/// Maximum number of candidates tried before the search gives up.
const CANDIDATES: usize = 4096;

/// The smallest positive integer that does not fit in 64 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// The constraints on a number.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    low: Option<Limit>,
    high: Option<Limit>,
    pub(super) multiples: Vec<f64>,
    pub(super) not_multiples: Vec<f64>,
    /// What a fraction truncates to: a member of each of these sets,
    pub(super) cut_to: Vec<Rc<BTreeSet<i64>>>,
    /// and of none of these.
    pub(super) never_cut_to: Vec<Rc<BTreeSet<i64>>>,
}

impl Numbers {
    pub(super) fn least(&mut self, limit: Limit) {
        let tighter =
            self.low.is_none_or(|known| limit.value > known.value || (limit.value == known.value && limit.exclusive));
        if tighter {
            self.low = Some(limit);
        }
    }

    pub(super) fn most(&mut self, limit: Limit) {
        let tighter =
            self.high.is_none_or(|known| limit.value < known.value || (limit.value == known.value && limit.exclusive));
        if tighter {
            self.high = Some(limit);
        }
    }

    /// Compares with the bounds, which the server truncates if the value is an integer.
    fn is_within(&self, number: &Number) -> bool {
        if let Some(whole) = number.as_i64() {
            let whole = i128::from(whole);
            return whole >= whole_low(self.low) && whole <= whole_high(self.high);
        }
        let Some(float) = number.as_f64() else { return false };
        let above = |limit: Limit| float > limit.value || (!limit.exclusive && float == limit.value);
        let below = |limit: Limit| float < limit.value || (!limit.exclusive && float == limit.value);
        self.low.is_none_or(above) && self.high.is_none_or(below)
    }

    /// Whether a number meets the constraints.
    pub(super) fn admits(&self, number: &Number) -> bool {
        self.is_within(number)
            && self.is_cut_well(number)
            && self.multiples.iter().all(|factor| is_multiple(number, *factor))
            && !self.not_multiples.iter().any(|factor| is_multiple(number, *factor))
    }

    fn is_cut_well(&self, number: &Number) -> bool {
        if number.is_i64() || (self.cut_to.is_empty() && self.never_cut_to.is_empty()) {
            return true;
        }
        let cut = number.as_f64().map(as_whole).and_then(|whole| i64::try_from(whole).ok());
        let is_in = |whole: &Rc<BTreeSet<i64>>| cut.is_some_and(|cut| whole.contains(&cut));
        self.cut_to.iter().all(is_in) && !self.never_cut_to.iter().any(is_in)
    }

    /// The integers that a fraction within the bounds may truncate to; `None` if there are too many to list.
    fn cuts(&self, low: f64, high: f64) -> Option<Vec<i64>> {
        // Whole bounds are not fractions themselves.
        let first = if low < 0.0 { (low + 1.0).floor() } else { low.floor() };
        let last = if high > 0.0 { (high - 1.0).ceil() } else { high.ceil() };
        let is_allowed = |cut: &i64| {
            let is_in = |whole: &Rc<BTreeSet<i64>>| whole.contains(cut);
            self.cut_to.iter().all(is_in) && !self.never_cut_to.iter().any(is_in)
        };
        let range = (as_whole(first), as_whole(last));
        if let Some(listed) = self.cut_to.first() {
            let within = |cut: &&i64| (range.0..=range.1).contains(&i128::from(**cut));
            return Some(listed.iter().filter(within).copied().filter(is_allowed).collect());
        }
        let listed: usize = self.never_cut_to.iter().map(|whole| whole.len()).sum();
        if listed == 0 || range.1 - range.0 >= listed as i128 {
            return None;
        }
        Some((range.0..=range.1).filter_map(|cut| i64::try_from(cut).ok()).filter(is_allowed).collect())
    }

    /// A number of the type that meets the constraints and is none of `except`.
    pub(super) fn example(&self, kind: Types, except: &ValueSet) -> Outcome {
        if kind == Types::WHOLE { self.whole(except) } else { self.fraction(except) }
    }

    fn whole(&self, except: &ValueSet) -> Outcome {
        let (low, high) = (whole_low(self.low), whole_high(self.high));
        if low > high {
            return Outcome::Empty;
        }
        // Factors are truncated too; nothing is a multiple of one that truncates to zero.
        let factors = |factors: &[f64]| factors.iter().map(|factor| as_whole(*factor)).collect::<Vec<_>>();
        let (multiples, not_multiples) = (factors(&self.multiples), factors(&self.not_multiples));
        if multiples.iter().any(|factor| *factor <= 0) {
            return Outcome::Empty;
        }
        let step = multiples.iter().fold(1, |step, factor| least_common(step, *factor));
        // The multiples of `step` in the interval, starting with the one nearest to zero.
        let (first, last) = (low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0), high.div_euclid(step));
        if first > last {
            return Outcome::Empty;
        }
        let admitted = |offset: i128| {
            let number = i64::try_from(offset * step).ok()?;
            self.admits(&Number::from(number)).then(|| Value::from(number))
        };
        let left = |offset: i128| admitted(offset).filter(|value| !except.contains(value));
        if let Some(value) = outwards(first, last).take(CANDIDATES).find_map(left) {
            return Outcome::Found(value);
        }
        if last - first < CANDIDATES as i128 {
            return Outcome::Empty;
        }
        // Non-multiples are periodic: each number in one period stands for all numbers that differ from it by whole
        // periods. If it is allowed, only excluded values can be missing, and those are counted.
        let period = not_multiples
            .iter()
            .filter(|factor| **factor > 0)
            .fold(step, |period, factor| least_common(period, *factor))
            / step;
        if period > CANDIDATES as i128 {
            return Outcome::Unknown("multipleOf".to_owned());
        }
        for offset in outwards(first, last).take(usize::try_from(period).unwrap_or(CANDIDATES)) {
            if admitted(offset).is_none() {
                continue;
            }
            let periods = outwards(-(offset - first).div_euclid(period), (last - offset).div_euclid(period));
            if let Some(value) = periods.take(except.len() + 1).find_map(|count| left(offset + count * period)) {
                return Outcome::Found(value);
            }
        }
        Outcome::Empty
    }

    /// The smallest fractions within the bounds that the server takes for integers. They lie just above a nonzero
    /// integer, so if these two are not such fractions or are too large, there are none.
    fn least_almost_whole(&self) -> Vec<f64> {
        let low = self.low.map_or(1.0, |low| if low.exclusive { low.value.next_up() } else { low.value }).max(1.0);
        let is_fraction = |float: &f64| float.fract() != 0.0 && pipeline::is_multiple(*float, 1.0);
        [low, low.ceil().next_up()].into_iter().filter(is_fraction).collect()
    }

    fn fraction(&self, except: &ValueSet) -> Outcome {
        let low = self.low.map_or(f64::MIN, |limit| limit.value);
        let high = self.high.map_or(f64::MAX, |limit| limit.value);
        // No number is both a multiple and a non-multiple of the same factor.
        let is_both = |factor: &f64| self.not_multiples.contains(factor);
        if low > high || self.multiples.iter().any(is_both) {
            return Outcome::Empty;
        }
        let middle = low / 2.0 + high / 2.0;
        let start = low.max(0.0).min(high);
        let mut candidates = vec![0.5, -0.5, 1.5, 0.25, start + 0.5, start - 0.5, low, high, middle];
        if let Some(cuts) = self.cuts(low, high) {
            if cuts.is_empty() {
                return Outcome::Empty;
            }
            #[expect(clippy::cast_precision_loss, reason = "a candidate; it is tried")]
            for cut in cuts.iter().take(CANDIDATES).map(|cut| *cut as f64) {
                let (from, to) = (if cut > 0.0 { cut } else { cut - 1.0 }, if cut < 0.0 { cut } else { cut + 1.0 });
                candidates.push(from.max(low) / 2.0 + to.min(high) / 2.0);
            }
        }
        if self.multiples.contains(&1.0) {
            let least = self.least_almost_whole();
            if least.iter().all(|float| *float > high) {
                return Outcome::Empty;
            }
            candidates.extend(least);
        }
        for factor in &self.multiples {
            let nearest = (start / factor).round();
            candidates.extend((-64..=64).map(|offset| (nearest + f64::from(offset)) * factor));
            // Multiples for the server, which ignores digits beyond the ninth.
            for quotient in [1.0, 2.0, nearest, nearest + 1.0, (high / factor).floor() - 1.0, 1e9, 1e12] {
                let multiple = quotient * factor;
                candidates.extend([multiple * (1.0 + 1e-9), multiple + 0.25, multiple + 0.5]);
            }
        }
        let mut width = high - low;
        for _ in 0..60 {
            width /= 2.0;
            candidates.extend([low + width, high - width]);
        }
        // Whole numbers that are too large for an integer.
        candidates.extend([1e300, -1e300, 1e17, -1e17]);
        for float in candidates {
            let Some(number) = Number::from_f64(float) else { continue };
            let value = Value::Number(number.clone());
            if Types::of(&value) == Types::FRACTION && self.admits(&number) && !except.contains(&value) {
                return Outcome::Found(value);
            }
        }
        // A fraction that the server takes for a multiple of an integer lies beyond the first multiple.
        let is_before = |factor: &f64| factor.fract() == 0.0 && high <= *factor;
        if low >= -9_007_199_254_740_991.0 && self.multiples.iter().any(is_before) {
            return Outcome::Empty;
        }
        if low == high {
            return Outcome::Empty;
        }
        Outcome::Unknown(if self.multiples.is_empty() { "maximum" } else { "multipleOf" }.to_owned())
    }
}

/// The lower and upper limits beyond which a number format rejects; `None` for a format that does not apply to numbers.
pub(super) fn range_of_format(format: &str, schema: &Schema) -> Option<(Limit, Limit)> {
    let range =
        |low: f64, high: f64| Some((Limit { value: low, exclusive: true }, Limit { value: high, exclusive: true }));
    // Halfway between the largest 32-bit float and the next. Its shortest decimal form is slightly less and rounds to
    // the largest float; anything greater becomes infinite.
    const FLOAT: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;
    match (schema.kind.filter(|_| !schema.int_or_string)?, format) {
        (Type::Integer, "int32") => range(f64::from(i32::MIN), f64::from(i32::MAX)),
        // The range of the type itself.
        (Type::Integer, "int64") => range(-BEYOND, BEYOND),
        (Type::Number, "float") => range(-FLOAT, FLOAT),
        (Type::Number, "double") => range(f64::MIN, f64::MAX),
        _ => None,
    }
}

/// How the server treats a bound or factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It compares values with it.
    Compared,
    /// The type of the schema cannot hold it: every number is rejected.
    Refusing,
    /// Integers are compared with its conversion to a 64-bit integer, which depends on the server's processor.
    Unsure,
}

/// Whether the type and format of the schema can hold a bound or factor.
pub(super) fn held(schema: &Schema, bound: f64) -> Held {
    let format = schema.format.as_deref();
    let is_held = match schema.kind.filter(|_| !schema.int_or_string) {
        // The server writes it with the fewest digits and parses that again: -2^63 becomes less.
        Some(Type::Integer) => {
            let is_small = format != Some("int32") || (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&bound);
            bound.fract() == 0.0 && bound.abs() < BEYOND && is_small
        }
        Some(Type::Number) if format == Some("float") => {
            range_of_format("float", schema).is_none_or(|(low, high)| bound >= low.value && bound <= high.value)
        }
        _ => true,
    };
    match is_held {
        false => Held::Refusing,
        true if bound >= BEYOND => Held::Unsure,
        true => Held::Compared,
    }
}

/// Computed as on the server: integers by the remainder of the truncated factor, other numbers by the quotient.
fn is_multiple(number: &Number, factor: f64) -> bool {
    match number.as_i64() {
        Some(whole) => as_whole(factor) > 0 && i128::from(whole) % as_whole(factor) == 0,
        None => number.as_f64().is_some_and(|float| pipeline::is_multiple(float, factor)),
    }
}

fn as_whole(float: f64) -> i128 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "cut where no integer of an object reaches, with room to count on"
    )]
    let whole = float.clamp(-1e30, 1e30) as i128;
    whole
}

/// The smallest integer within a lower bound, which is truncated first.
fn whole_low(limit: Option<Limit>) -> i128 {
    let least = i128::from(i64::MIN);
    limit.map_or(least, |limit| as_whole(limit.value).max(least) + i128::from(limit.exclusive))
}

fn whole_high(limit: Option<Limit>) -> i128 {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    limit.map_or(most, |limit| (as_whole(limit.value).max(least) - i128::from(limit.exclusive)).min(most))
}

fn least_common(one: i128, other: i128) -> i128 {
    let (mut a, mut b) = (one.abs().max(1), other.abs().max(1));
    let product = a.saturating_mul(b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    product / a
}

/// All integers from `first` to `last`, those near zero first, positive before negative.
fn outwards(first: i128, last: i128) -> impl Iterator<Item = i128> {
    let start = 0.clamp(first, last);
    (0..)
        .map_while(move |distance: i128| {
            let (up, down) = (start + distance, start - distance);
            let both = [(up <= last).then_some(up), (distance > 0 && down >= first).then_some(down)];
            both.iter().any(Option::is_some).then_some(both)
        })
        .flatten()
        .flatten()
}
