//! Rules as formulas: objects for which an old rule is true, and objects for which a new one is not. A formula here
//! accepts at least those objects, so if it is unsatisfiable, there are none.
//!
//! A claim about a field of a plain type becomes a constraint on the field. Any other term is identified by its text:
//! within one object, equal texts have equal values, so two constraints on the same text may contradict each other.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::bounded::Linear;
use super::formula::{Formula, Role, Unique};
use super::logic::{Logic, Range, Test, at};
use super::types::Types;
use crate::schema::cel::{Arithmetic, Claim, FieldPath, ItemOf, Order, Term};
use crate::schema::model::{Limit, Schema, Type, Window};

/// The required truth value of a claim; an error may be allowed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    True,
    False,
    NotTrue,
    NotFalse,
}

impl Asked {
    fn negated(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::NotTrue => Self::NotFalse,
            Self::NotFalse => Self::NotTrue,
        }
    }

    /// Whether an error is allowed.
    fn or_error(self) -> bool {
        matches!(self, Self::NotTrue | Self::NotFalse)
    }

    /// Whether the claim is required to hold, errors aside.
    fn positive(self) -> bool {
        matches!(self, Self::True | Self::NotFalse)
    }
}

/// A claim of an old rule about the value at a path, and the subjects of that claim.
#[derive(Debug)]
pub(super) struct KnownClaim {
    pub(super) path: FieldPath,
    pub(super) claim: Claim,
    pub(super) subjects: BTreeSet<String>,
}

/// The value that claims concern, as described by the schemas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'s> {
    /// The node whose rules are translated.
    pub(super) schema: &'s Schema,
    /// The same node in the other schema: a default in only one of them makes the values of a field differ.
    pub(super) other: &'s Schema,
    /// Whether a term has the same value under both schemas.
    pub(super) stable: bool,
    /// The same node in the old schema, whose bounds hold for every old value; `None` if it is not known.
    pub(super) old: Option<&'s Schema>,
    /// Whether the value is the resource itself, with the type and metadata that the server gives it.
    pub(super) is_resource: bool,
}

/// Maximum [`weight`] of one comparison of truth values, or of one conditional.
const MOST_WEIGHT: usize = 1_000;

/// The number of claims in the constraints of a claim. Each operand of a comparison of truth values, and each condition,
/// occurs in them twice, so that nested ones grow exponentially.
pub(super) fn weight(claim: &Claim) -> usize {
    let sum = |claims: &[Claim]| claims.iter().map(weight).fold(1, usize::saturating_add);
    match claim {
        Claim::All(claims) | Claim::Any(claims) => sum(claims),
        Claim::Not(inner) => weight(inner),
        Claim::Each { body, .. } | Claim::Tallied { body, .. } => weight(body).saturating_add(1),
        Claim::Same(parts) => sum(&**parts).saturating_mul(2),
        Claim::If(parts) => {
            let [condition, then, otherwise] = parts.each_ref().map(weight);
            condition.saturating_mul(2).saturating_add(then).saturating_add(otherwise)
        }
        Claim::OfString(_, ways) => sum(&**ways),
        _ => 1,
    }
}

/// What the server sees to in every resource: the search knows more about these fields.
static RESOURCE: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of(&json!({
        "properties": {"kind": {"type": "string"}, "metadata": {"properties": {"name": {"type": "string"}}}},
    }))
});

impl<'s> Scene<'s> {
    /// The constraints on an object for which the claim is as required.
    pub(super) fn logic<'f>(&self, claim: &'f Claim, asked: Asked) -> Logic<'f> {
        let each = |claims: &'f [Claim]| claims.iter().map(|claim| self.logic(claim, asked)).collect();
        match (claim, asked) {
            (Claim::Constant(value), _) => {
                if *value == asked.positive() {
                    Logic::anything()
                } else {
                    Logic::nothing()
                }
            }
            (Claim::Not(inner), _) => self.logic(inner, asked.negated()),
            (Claim::All(claims), Asked::True | Asked::NotFalse)
            | (Claim::Any(claims), Asked::False | Asked::NotTrue) => Logic::All(each(claims)),
            (Claim::All(claims), _) | (Claim::Any(claims), _) => Logic::Any(each(claims)),
            (Claim::Same(_) | Claim::If(_), _) if weight(claim) > MOST_WEIGHT => Logic::anything(),
            (Claim::Same(parts), _) => {
                let both = |asked| parts.iter().map(|part| self.logic(part, asked)).collect();
                let (first, second) = (both(asked), both(asked.negated()));
                match asked {
                    Asked::True | Asked::NotFalse => Logic::Any(vec![Logic::All(first), Logic::All(second)]),
                    Asked::False | Asked::NotTrue => Logic::All(vec![Logic::Any(first), Logic::Any(second)]),
                }
            }
            (Claim::If(parts), _) => {
                let [condition, then, otherwise] = &**parts;
                let pair = |first: Logic<'f>, second| vec![first, self.logic(second, asked)];
                if asked.or_error() {
                    let first = pair(self.logic(condition, Asked::NotTrue), then);
                    let second = pair(self.logic(condition, Asked::NotFalse), otherwise);
                    Logic::All(vec![Logic::Any(first), Logic::Any(second)])
                } else {
                    let first = pair(self.logic(condition, Asked::True), then);
                    let second = pair(self.logic(condition, Asked::False), otherwise);
                    Logic::Any(vec![Logic::All(first), Logic::All(second)])
                }
            }
            (Claim::Present(path), _) => self.present(path, asked),
            (Claim::True(term), _) => self.of_item(term, asked, |scene, term| scene.is_true(term, asked)),
            (Claim::Compared(term, order, literal), _) => {
                self.of_item(term, asked, |scene, term| scene.compared(term, *order, literal, asked))
            }
            (Claim::Counted(term, order, count), _) => {
                self.of_item(term, asked, |scene, term| scene.counted(term, *order, *count, asked))
            }
            (Claim::Related(left, order, right), _) => self.related(left, *order, right, asked),
            (Claim::Matches(term, pattern), _) => {
                self.of_item(term, asked, |scene, term| scene.matches(term, pattern, asked))
            }
            (Claim::Each { range, all, body, text }, _) => self.each(range, *all, body, text, asked),
            (Claim::Tallied { range, body, order, count, text }, _) => {
                self.tallied(range, body, (*order, *count), text, asked)
            }
            (Claim::Contains(term, literal), _) => self.contains(term, literal, asked),
            (Claim::OfString(term, ways), _) => {
                let is_text = self.field(term).and_then(plain_type) == Some(Type::String);
                self.logic(&ways[usize::from(!is_text)], asked)
            }
            (Claim::Error, _) => {
                if asked.or_error() {
                    Logic::anything()
                } else {
                    Logic::nothing()
                }
            }
        }
    }

    /// The node at a path, if rules see the stored value there. A field with a default is excluded.
    fn node(&self, path: &[String]) -> Option<&'s Schema> {
        self.declared(path).or_else(|| {
            // A schema need not declare them, and cannot give them another type.
            let is_given = self.is_resource
                && matches!(
                    path.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
                    ["kind"] | ["metadata", "name"]
                );
            let field = |node: &'static Schema, name: &String| node.properties.get(name);
            is_given.then(|| path.iter().try_fold(&*RESOURCE, field)).flatten()
        })
    }

    /// The same without what the schema leaves out.
    fn declared(&self, path: &[String]) -> Option<&'s Schema> {
        let mut other = Some(self.other);
        path.iter().try_fold(self.schema, |node, name| {
            let field = node.properties.get(name)?;
            let same = |there: &Schema| there.default == field.default && there.nullable == field.nullable;
            let there = other.and_then(|other| other.properties.get(name));
            if field.default.is_some() && !there.is_some_and(same) {
                return None;
            }
            other = there;
            // It differs between versions of the same object.
            (name != "apiVersion").then_some(field)
        })
    }

    /// The node of a term, if the term is a field.
    fn field(&self, term: &'_ Term) -> Option<&'s Schema> {
        self.node(term.path.as_ref()?)
    }

    fn held<'f>(&self, text: &str, order: Order, number: f64, range: Range, asked: Asked) -> Logic<'f> {
        // Its value now says nothing about its value before.
        let text = if self.stable { text.to_owned() } else { format!("now: {text}") };
        Logic::Held(text, Test { order, number, holds: asked.positive(), or_error: asked.or_error(), range })
    }

    fn truth<'f>(&self, text: &str, asked: Asked) -> Logic<'f> {
        self.held(text, Order::Equal, 1.0, Range::Real, asked)
    }

    fn present<'f>(&self, path: &'f [String], asked: Asked) -> Logic<'f> {
        let Some((_, parents)) = path.split_last().filter(|_| self.node(path).is_some()) else {
            return self.truth(&format!("has {path:?}"), asked);
        };
        match asked {
            Asked::True => Logic::Plain(at(path, Formula::anything())),
            Asked::NotTrue => Logic::Plain(self.absent(path)),
            Asked::False => Logic::Plain(Formula::All(vec![at(parents, Formula::anything()), self.absent(path)])),
            Asked::NotFalse => {
                Logic::Any(vec![Logic::Plain(at(path, Formula::anything())), Logic::Plain(self.absent(parents))])
            }
        }
    }

    /// One of the fields of a path is absent, or null, which rules treat alike.
    pub(super) fn absent<'f>(&self, path: &[String]) -> Formula<'f> {
        let mut sides = [Some(self.schema), Some(self.other)];
        let mut ways = Vec::new();
        for (index, name) in path.iter().enumerate() {
            sides = sides.map(|side| side.and_then(|node| node.properties.get(name)));
            if let [Some(one), Some(other)] = sides
                && one.default.is_some()
                && one.default == other.default
                && !one.nullable
                && !other.nullable
                // The server drops it on creation after it has set defaults.
                && !(self.is_resource && index == 0 && name == "status")
            {
                // An object without it is one with the default before any rule sees it, and null counts as absent.
                continue;
            }
            ways.push(at(&path[..index], Formula::lacks(name)));
            if sides.iter().any(|side| side.is_none_or(|node| node.nullable)) {
                ways.push(at(&path[..index], Formula::has(name, Formula::Types(Types::NULL))));
            }
        }
        Formula::Any(ways)
    }

    /// A constraint on a present field or, if an error is allowed, its absence.
    fn plain<'f>(&self, path: &'f [String], [yes, no]: [Formula<'f>; 2], asked: Asked) -> Logic<'f> {
        let there = Logic::Plain(at(path, if asked.positive() { yes } else { no }));
        if asked.or_error() { Logic::Any(vec![there, Logic::Plain(self.absent(path))]) } else { there }
    }

    fn is_true<'f>(&self, term: &'f Term, asked: Asked) -> Logic<'f> {
        match (self.field(term), &term.path) {
            (Some(node), Some(path)) if plain_type(node) == Some(Type::Boolean) => {
                self.plain(path, [is(true.into()), is(false.into())], asked)
            }
            _ => self.truth(&term.text, asked),
        }
    }

    fn compared<'f>(&self, term: &'f Term, order: Order, literal: &'f Value, asked: Asked) -> Logic<'f> {
        let kind = self.field(term).and_then(plain_type);
        let range = match kind {
            Some(Type::Integer) => Range::Whole,
            Some(_) => Range::Real,
            None => Range::Any,
        };
        let is_number = matches!(kind, Some(Type::Integer | Type::Number));
        // Beyond this, floats cannot represent every integer.
        let number = literal.as_f64().filter(|number| number.abs() < 9e15 || literal.is_f64());
        let ways = match (kind, literal, number) {
            (Some(Type::String), Value::String(_), _) | (Some(Type::Boolean), Value::Bool(_), _) => {
                same(order, literal)
            }
            // The search truncates bounds with a fraction as the server does for schemas.
            (Some(_), _, Some(number)) if is_number && number.fract() == 0.0 && number.abs() < 9e15 => {
                Some([ordered(order, number), ordered(order.opposite(), number)])
            }
            _ => None,
        };
        match (ways, &term.path, number) {
            (Some(ways), Some(path), _) => self.plain(path, ways, asked),
            (_, _, Some(number)) => {
                let held = self.held(&term.text, order, number, range, asked);
                let number = literal.as_i64().map(Arithmetic::Number);
                number.and_then(|number| self.computed(term, order, &number, asked)).unwrap_or(held)
            }
            _ => match order {
                Order::Equal | Order::Unequal => {
                    let asked = if order == Order::Equal { asked } else { asked.negated() };
                    self.truth(&format!("{} == {literal}", term.text), asked)
                }
                _ => self.truth(&format!("{} {order:?} {literal}", term.text), asked),
            },
        }
    }

    fn counted<'f>(&self, term: &'f Term, order: Order, count: i64, asked: Asked) -> Logic<'f> {
        let node = self.field(term);
        let is_counted = match node.and_then(plain_type) {
            Some(Type::String | Type::Array) => true,
            Some(Type::Object) => node.is_some_and(|node| node.additional_schema().is_some()),
            _ => false,
        };
        match (node.and_then(plain_type), &term.path) {
            (Some(kind), Some(path)) if is_counted => {
                let ways = [sized(kind, order, count), sized(kind, order.opposite(), count)];
                self.plain(path, ways, asked)
            }
            #[expect(clippy::cast_precision_loss, reason = "only how counts compare matters, and none is so large")]
            _ => self.held(&format!("size {}", term.text), order, count as f64, Range::Whole, asked),
        }
    }

    fn related<'f>(&self, left: &'f Term, order: Order, right: &'f Term, asked: Asked) -> Logic<'f> {
        let ((left, right), order) =
            if left.text <= right.text { ((left, right), order) } else { ((right, left), order.flipped()) };
        let text = format!("{} against {}", left.text, right.text);
        if left.arithmetic.is_some() || right.arithmetic.is_some() {
            let other = match (&right.arithmetic, &right.path) {
                (Some(arithmetic), _) => Some((**arithmetic).clone()),
                (None, path) => path.clone().map(Arithmetic::Field),
            };
            let computed = other.and_then(|other| self.computed(left, order, &other, asked));
            return computed.unwrap_or_else(|| self.held(&text, order, 0.0, Range::Any, asked));
        }
        let fields = [left, right].map(|term| self.field(term).and_then(plain_type).and(term.path.as_deref()));
        let [Some(one), Some(other)] = fields else { return self.held(&text, order, 0.0, Range::Any, asked) };
        // Two present fields compare without an error: the server has checked their types.
        let certain = if asked.positive() { Asked::True } else { Asked::False };
        let both = [one, other].map(|path| Logic::Plain(at(path, Formula::anything())));
        let related = if asked.positive() { order } else { order.opposite() };
        let compared = both
            .into_iter()
            .chain([self.held(&text, order, 0.0, Range::Real, certain)])
            .chain(self.within_bounds(one, related, other))
            .chain(self.ordered(left, related, right));
        let compared = Logic::All(compared.collect());
        if asked.or_error() {
            Logic::Any(vec![compared, Logic::Plain(self.absent(one)), Logic::Plain(self.absent(other))])
        } else {
            compared
        }
    }

    /// Compares integers that a rule computes, by the bounds of their fields in old objects; `None` if these do not decide
    /// it. The rule only fails without one of the fields.
    fn computed<'f>(&self, left: &Term, order: Order, right: &Arithmetic, asked: Asked) -> Option<Logic<'f>> {
        let of_term = || Some(Arithmetic::Field(left.path.clone()?));
        let left = left.arithmetic.as_deref().cloned().or_else(of_term)?;
        let node = |path: &FieldPath| {
            let seen = self.node(path).filter(|node| plain_type(node).is_some())?;
            let old = path.iter().try_fold(self.old?, |node, name| node.properties.get(name))?;
            (seen.kind == old.kind).then_some(old)
        };
        let [left, right] = [Linear::read(&left, &node)?, Linear::read(right, &node)?];
        let is_true = left.compare(order, &right, &node)?;
        let paths: BTreeSet<&FieldPath> = left.paths().chain(right.paths()).collect();
        let present = || paths.iter().map(|path| Logic::Plain(at(path, Formula::anything())));
        let there = if is_true == asked.positive() { Logic::All(present().collect()) } else { Logic::nothing() };
        let absent = paths.iter().map(|path| Logic::Plain(self.absent(path)));
        Some(if asked.or_error() { Logic::Any([there].into_iter().chain(absent).collect()) } else { there })
    }

    /// Two numbers that are related like this, and the bounds of each: `a > b` is never true if `a` is at most what `b`
    /// is at least.
    fn within_bounds<'f>(&self, one: &'f [String], order: Order, other: &'f [String]) -> Vec<Logic<'f>> {
        let old = |path: &[String]| {
            let node = path.iter().try_fold(self.old?, |node, name| node.properties.get(name))?;
            matches!(plain_type(node), Some(Type::Integer | Type::Number)).then_some(node)
        };
        let (Some(first), Some(second)) = (old(one), old(other)) else { return Vec::new() };
        let is_exact = |limit: &Limit| limit.value.fract() == 0.0 && limit.value.abs() < 9e15;
        let limit = |limit: Option<Limit>, strict: bool| {
            limit.filter(is_exact).map(|limit| Limit { exclusive: limit.exclusive || strict, ..limit })
        };
        // The lesser is at most what the greater may be at most, and the other way round.
        let pairs = match order {
            Order::Less | Order::AtMost => vec![((one, first), (other, second))],
            Order::Greater | Order::AtLeast => vec![((other, second), (one, first))],
            Order::Equal => vec![((one, first), (other, second)), ((other, second), (one, first))],
            Order::Unequal => Vec::new(),
        };
        let strict = matches!(order, Order::Less | Order::Greater);
        let mut found = Vec::new();
        for ((lesser, below), (greater, above)) in pairs {
            let most = limit(above.maximum, strict).map(|limit| at(lesser, Formula::IsBelow(limit)));
            let least = limit(below.minimum, strict).map(|limit| at(greater, Formula::IsAbove(limit)));
            found.extend(most.into_iter().chain(least).map(Logic::Plain));
        }
        found
    }

    /// The order of two fields, for chains of them: `a < b` and `b < c` leave no `c <= a`.
    fn ordered<'f>(&self, left: &Term, order: Order, right: &Term) -> Vec<Logic<'f>> {
        // Floats are left out: what is close together may compare in no order.
        let kinds = [left, right].map(|term| self.field(term).and_then(plain_type));
        if !matches!(kinds, [Some(Type::Integer), Some(Type::Integer)] | [Some(Type::String), Some(Type::String)]) {
            return Vec::new();
        }
        let text = |term: &Term| if self.stable { term.text.clone() } else { format!("now: {}", term.text) };
        let edge = |lesser: &Term, greater: &Term, strict| Logic::Ordered(text(lesser), text(greater), strict);
        match order {
            Order::Less => vec![edge(left, right, true)],
            Order::AtMost => vec![edge(left, right, false)],
            Order::Greater => vec![edge(right, left, true)],
            Order::AtLeast => vec![edge(right, left, false)],
            Order::Equal => vec![edge(left, right, false), edge(right, left, false)],
            Order::Unequal => vec![Logic::Any(vec![edge(left, right, true), edge(right, left, true)])],
        }
    }

    fn matches<'f>(&self, term: &'f Term, pattern: &'f Schema, asked: Asked) -> Logic<'f> {
        let text = pattern.pattern.as_deref().unwrap_or_default();
        match (self.field(term).and_then(plain_type), &term.path) {
            (Some(Type::String), Some(path)) => {
                self.plain(path, [Formula::Satisfies(pattern, Role::Branch(None)), Formula::IsNoMatch(text)], asked)
            }
            _ => self.truth(&format!("{} ~ {text}", term.text), asked),
        }
    }

    fn each<'f>(&self, range: &'f Term, all: bool, body: &'f Claim, text: &str, asked: Asked) -> Logic<'f> {
        let (items, keys) = match (self.items(range), self.keys(range)) {
            (Some(items), _) => (items, false),
            (None, Some(keys)) => (keys, true),
            (None, None) => return self.truth(text, asked),
        };
        let Some(path) = &range.path else { return self.truth(text, asked) };
        // One false item makes `all` false, and one true item makes `exists` true, whatever the others are.
        let inner = Box::new(items.logic(body, asked));
        let some = Logic::Items { path, keys, some: all != asked.positive(), inner };
        let there = Logic::All(vec![Logic::Plain(at(path, Formula::anything())), some]);
        if asked.or_error() { Logic::Any(vec![there, Logic::Plain(self.absent(path))]) } else { there }
    }

    /// How many items match. If zero does not satisfy the comparison, some item matches or gives an error.
    #[expect(clippy::cast_precision_loss, reason = "only how counts compare matters, and none is so large")]
    fn tallied<'f>(
        &self,
        range: &'f Term,
        body: &'f Claim,
        (order, count): (Order, i64),
        text: &str,
        asked: Asked,
    ) -> Logic<'f> {
        let held = self.held(text, order, count as f64, Range::Whole, asked);
        let (Some(items), Some(path)) = (self.items(range), &range.path) else { return held };
        if order.holds(0.0, count as f64) == asked.positive() {
            return held;
        }
        let inner = Box::new(items.logic(body, Asked::NotFalse));
        let some = Logic::Items { path, keys: false, some: true, inner };
        let there = Logic::All(vec![held, some]);
        if asked.or_error() { Logic::Any(vec![there, Logic::Plain(self.absent(path))]) } else { there }
    }

    /// A claim about a term; of an item that is named by its index it is also one about some item, as long as the list
    /// has so many.
    fn of_item<'f>(&self, term: &'f Term, asked: Asked, claim: impl Fn(&Self, &'f Term) -> Logic<'f>) -> Logic<'f> {
        let plain = claim(self, term);
        let Some(ItemOf { list, index, item }) = term.item.as_deref() else { return plain };
        let (Some(items), Some(path)) = (self.items(list), &list.path) else { return plain };
        let inner = Box::new(claim(&items, item));
        let some = Logic::Items { path, keys: false, some: true, inner };
        let there = Logic::All(vec![Logic::Plain(at(path, Formula::anything())), some]);
        let there = if asked.or_error() {
            let short = Formula::HasCountOutside(Window { least: Some(index.saturating_add(1)), most: None });
            Logic::Any(vec![there, Logic::Plain(at(path, short)), Logic::Plain(self.absent(path))])
        } else {
            there
        };
        Logic::All(vec![plain, there])
    }

    /// The scope of the keys of a map.
    fn keys(&self, range: &Term) -> Option<Self> {
        static KEY: LazyLock<Schema> = LazyLock::new(|| Schema::of(&json!({"type": "string"})));
        let map = self.field(range).filter(|node| plain_type(node) == Some(Type::Object))?;
        map.additional_schema().is_some().then_some(Self {
            schema: &KEY,
            other: &KEY,
            stable: self.stable,
            old: None,
            is_resource: false,
        })
    }

    /// The scope of the items of a list.
    fn items(&self, range: &Term) -> Option<Self> {
        let schema = self.field(range).filter(|node| plain_type(node) == Some(Type::Array))?.items.as_deref()?;
        let list = range.path.as_ref()?.iter().try_fold(self.other, |node, name| node.properties.get(name));
        // If there is no list on the other side, it has no items either.
        let other = list.and_then(|list| list.items.as_deref()).unwrap_or(schema);
        // Rules see null there as a value of its own.
        let before = range.path.as_ref()?.iter().try_fold(self.old, |node, name| Some(node?.properties.get(name)));
        let old = before.flatten().and_then(|list| list.items.as_deref());
        let scene = Self { schema, other, stable: self.stable, old, is_resource: false };
        (!schema.nullable && schema.kind.is_some()).then_some(scene)
    }

    fn contains<'f>(&self, term: &'f Term, literal: &'f Value, asked: Asked) -> Logic<'f> {
        let node = self.field(term);
        if let (Some(items), Some(path)) = (self.items(term), &term.path) {
            let ways = match (plain_type(items.schema), literal) {
                (Some(Type::String), Value::String(_)) | (Some(Type::Boolean), Value::Bool(_)) => {
                    same(Order::Equal, literal)
                }
                (Some(Type::Integer), Value::Number(number)) if number.is_i64() => same(Order::Equal, literal),
                _ => None,
            };
            if let Some([yes, no]) = ways {
                let inner = Box::new(Logic::Plain(if asked.positive() { yes } else { no }));
                let items = Logic::Items { path, keys: false, some: asked.positive(), inner };
                let there = Logic::All(vec![Logic::Plain(at(path, Formula::anything())), items]);
                return if asked.or_error() { Logic::Any(vec![there, Logic::Plain(self.absent(path))]) } else { there };
            }
        }
        if let (Some(node), Some(path), Value::String(key)) = (node, &term.path, literal)
            && plain_type(node) == Some(Type::Object)
            && node.additional_schema().is_some_and(|values| !values.nullable)
        {
            return self.plain(path, [Formula::has(key, Formula::anything()), Formula::lacks(key)], asked);
        }
        self.truth(&format!("{literal} in {}", term.text), asked)
    }
}

/// The type of a node if rules see its values unconverted: not as times, as bytes or as one of several types.
pub(super) fn plain_type(node: &Schema) -> Option<Type> {
    let seen_as_other = node.kind == Some(Type::String) && node.format.as_deref().is_some_and(is_seen_as_other);
    if node.int_or_string || seen_as_other { None } else { node.kind }
}

fn is_seen_as_other(format: &str) -> bool {
    matches!(format.replace('-', "").as_str(), "byte" | "date" | "datetime" | "duration")
}

/// Whether every rule sees the same value under both nodes: the same types and no defaults.
pub(super) fn is_stable(old: &Schema, new: &Schema) -> bool {
    let seen = |schema: &Schema| {
        let format = schema.format.clone().filter(|format| is_seen_as_other(format));
        (schema.kind, schema.int_or_string, schema.preserve_unknown, schema.embedded_resource, schema.nullable, format)
    };
    if old.digest == new.digest {
        return true;
    }
    let fields = new.properties.iter().all(|(name, field)| match old.properties.get(name) {
        Some(before) => before.default == field.default && is_stable(before, field),
        None => field.default.is_none() && !old.keeps_unknown(),
    });
    let inner = |one: Option<&Schema>, other: Option<&Schema>| match (one, other) {
        (Some(one), Some(other)) => is_stable(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    fields
        && seen(old) == seen(new)
        && Unique::of(old) == Unique::of(new)
        && old.properties.keys().all(|name| new.properties.contains_key(name))
        && inner(old.items.as_deref(), new.items.as_deref())
        && old.additional.is_some() == new.additional.is_some()
        && inner(old.additional_schema(), new.additional_schema())
}

fn is<'f>(value: Value) -> Formula<'f> {
    Formula::Is(Rc::new(vec![value]))
}

/// The formulas of being equal to the literal and not, or vice versa.
fn same<'f>(order: Order, literal: &Value) -> Option<[Formula<'f>; 2]> {
    let not = Formula::IsNot(Rc::new(vec![literal.clone()]));
    match order {
        Order::Equal => Some([is(literal.clone()), not]),
        Order::Unequal => Some([not, is(literal.clone())]),
        _ => None,
    }
}

/// A number that satisfies the comparison.
fn ordered<'f>(order: Order, number: f64) -> Formula<'f> {
    let below = |exclusive| Formula::IsBelow(Limit { value: number, exclusive });
    let above = |exclusive| Formula::IsAbove(Limit { value: number, exclusive });
    match order {
        Order::Equal => Formula::All(vec![below(false), above(false)]),
        Order::Unequal => Formula::Any(vec![below(true), above(true)]),
        Order::Less => below(true),
        Order::AtMost => below(false),
        Order::Greater => above(true),
        Order::AtLeast => above(false),
    }
}

/// A string, list or map whose size satisfies the comparison.
fn sized<'f>(kind: Type, order: Order, count: i64) -> Formula<'f> {
    let least = |count: i64| match kind {
        _ if count <= 0 => Formula::anything(),
        Type::Object => Formula::HasAtLeast(count),
        Type::Array => Formula::HasCountOutside(Window { least: None, most: Some(count - 1) }),
        _ => Formula::IsOfLengthOutside(Window { least: None, most: Some(count - 1) }),
    };
    let most = |count: i64| match kind {
        _ if count < 0 => Formula::Any(Vec::new()),
        Type::Object => Formula::HasAtMost(count),
        Type::Array => Formula::HasCountOutside(Window { least: Some(count.saturating_add(1)), most: None }),
        _ => Formula::IsOfLengthOutside(Window { least: Some(count.saturating_add(1)), most: None }),
    };
    let (before, after) = (count.saturating_sub(1), count.saturating_add(1));
    match order {
        Order::Equal => Formula::All(vec![least(count), most(count)]),
        Order::Unequal => Formula::Any(vec![most(before), least(after)]),
        Order::Less => most(before),
        Order::AtMost => most(count),
        Order::Greater => least(after),
        Order::AtLeast => least(count),
    }
}
