//! What server-side apply makes of a list whose items are merged from now on, or told apart in another way: it fails for
//! items that cannot be told apart, and leaves behind what a manager owned by the old way.

use std::rc::Rc;

use serde_json::Value;

use super::confirm::Damage;
use super::confirm::Effect;
use super::difference::Proof;
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

/// What lists that are applied one after the other come to.
enum Left {
    /// This is refused.
    Refused(Proof),
    /// Nothing of it is refused.
    Nothing,
    /// They cannot be tried.
    Untried,
}

impl<'s> Judge<'s> {
    /// Whether an old list of this kind is refused: when it is written, when it is applied, or when another one is applied.
    pub(super) fn judge_merged(&mut self, suspect: &Suspect<'s>, unique: &Unique<'s>) -> Proof {
        let repeated = self.exists(suspect, &suspect.steps, &Formula::HasRepeated(unique.clone()));
        if repeated != Proof::Safe {
            return repeated;
        }
        if *unique == Unique::Items {
            let compound = Formula::HasItem(Box::new(Formula::Types(Types::OBJECT.or(Types::ARRAY))));
            let applied = self.exists(suspect, &suspect.steps, &compound);
            if applied != Proof::Safe {
                return applied;
            }
        }
        self.left_behind(suspect, unique)
    }

    /// A manager that applied a list owns it in the old way, which names none of the items of the new one: when it applies
    /// another list, the items that it leaves out stay, and both together can be too many.
    fn left_behind(&mut self, suspect: &Suspect<'s>, unique: &Unique<'s>) -> Proof {
        let steps = &suspect.steps;
        let (Some(old), Some(new)) = (node_at(self.before, steps), node_at(self.after, steps)) else {
            return Proof::unknown(suspect.keyword);
        };
        let (Some(before), Some(after)) = (&old.items, &new.items) else { return Proof::Safe };
        if [self.before, self.after].into_iter().any(|root| is_replaced_with_another(root, steps)) {
            return Proof::Safe;
        }
        let least = old.item_count.least.max(new.item_count.least).unwrap_or(0).max(1);
        // As long as either list may be: the longest that both take; where no length is too much, the shortest will do.
        let (each, total) = match (old.item_count.most, new.item_count.most) {
            (None, Some(most)) => (most, most.saturating_add(1)),
            (Some(was), Some(most)) => (was.min(most), most.saturating_add(1)),
            (_, None) => (least, least.saturating_add(1)),
        };
        let has_most = new.item_count.most.is_some();
        if each < least || total > each.saturating_mul(2) {
            return Proof::Safe;
        }
        let items = match self.solver.items_apart(&[before, after], unique, total) {
            Outcome::Found(Value::Array(items)) => items,
            Outcome::Empty => return Proof::Safe,
            _ if has_most => return Proof::unknown("maxItems"),
            _ => return Proof::Safe,
        };
        let each = usize::try_from(each).unwrap_or(usize::MAX).min(items.len());
        let (first, second) = (&items[..each], &items[items.len() - each..]);
        match self.applied(suspect, first, second, &items) {
            Left::Refused(proof) => proof,
            Left::Untried if has_most => Proof::unknown("maxItems"),
            Left::Nothing | Left::Untried => Proof::Safe,
        }
    }

    /// An object with the first list, to which the second is applied: both are taken by themselves, and `all` is left.
    fn applied(&mut self, suspect: &Suspect<'s>, first: &[Value], second: &[Value], all: &[Value]) -> Left {
        let [first, second, all] = [first, second, all].map(|items| Value::Array(items.to_vec()));
        let asked = Formula::Is(Rc::new(vec![first.clone()]));
        let Outcome::Found(object) = self.search(lifted(&suspect.steps, asked)) else { return Left::Untried };
        let with = |list: &Value| {
            let mut object = object.clone();
            exchange(&mut object, &suspect.steps, &first, list);
            object
        };
        let taken = |list: &Value| {
            [self.old, self.new].into_iter().all(|resource| {
                let admission = pipeline::create(resource, self.server, &with(list));
                admission.accepted() == Some(true) && !admission.loses()
            })
        };
        if !taken(&first) || !taken(&second) {
            return Left::Untried;
        }
        let Some(error) = pipeline::create(self.new, self.server, &with(&all)).errors.into_iter().next() else {
            return Left::Nothing;
        };
        let left = pipeline::apply::left_behind(&first, &second);
        let message = format!("{} when {second} is applied, as {left} stays: {}", error.keyword, error.message);
        let damage = Damage { effect: Effect::Rejected, path: error.path, keyword: error.keyword.to_owned(), message };
        Left::Refused(Proof::Breaking { witness: object, damage })
    }
}

/// Whether a list is never merged by itself, as something around it is replaced as a whole.
fn is_replaced_with_another<'s>(root: &'s Schema, steps: &[Step<'s>]) -> bool {
    steps.iter().enumerate().any(|(length, step)| {
        node_at(root, &steps[..length]).is_none_or(|node| match step {
            Step::Item => node.list_type != Some(ListType::Map),
            Step::Field(_) | Step::Other(_) => node.map_type == Some(MapType::Atomic),
        })
    })
}

/// Puts another list in the place of the first that is equal to this one at the end of the steps.
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
