//! A decomposed formula: the constraints on one value, sorted by the type they concern, and the open choices. Adding a
//! constraint is cheap and decides nothing; the solver does.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::embedded::is_resource;
use super::formula::{Formula, Level, Role, Unique, almost_whole, filled_in, flipped, free_values, types_of};
use super::listed::Listed;
use super::number::{Held, Numbers, held, range_of_format};
use super::range::Range;
use super::text::Texts;
use super::types::Types;
use super::values::{ValueSet, key, same};
use super::ways::{ways_to_damage, ways_to_violate};
use crate::schema::model::{Schema, Window};

/// The constraints on one value.
#[derive(Clone, Debug)]
pub(super) struct Constraints<'s> {
    pub(super) types: Types,
    /// It is one of these values.
    pub(super) values: Option<Rc<Vec<Value>>>,
    /// It is none of these values.
    pub(super) not_values: Vec<Rc<Vec<Value>>>,
    pub(super) number: Numbers,
    pub(super) text: Texts<'s>,
    pub(super) list: Lists<'s>,
    pub(super) object: Objects<'s>,
    /// Of each list, at least one formula must hold.
    pub(super) choices: Vec<Vec<Formula<'s>>>,
}

/// The constraints on a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists<'s> {
    pub(super) count: Range,
    /// Every item satisfies these schemas.
    pub(super) items: Vec<(&'s Schema, Role<'s>)>,
    /// For each formula, some item satisfies it.
    pub(super) has: Vec<Formula<'s>>,
    pub(super) unique: Vec<Unique<'s>>,
    /// Some two items are equal in this way.
    pub(super) repeated: Vec<Unique<'s>>,
}

/// The constraints on an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects<'s> {
    pub(super) count: Range,
    /// Its fields satisfy these schemas.
    pub(super) schemas: Vec<(&'s Schema, Role<'s>)>,
    pub(super) has: BTreeMap<Rc<str>, Vec<Formula<'s>>>,
    pub(super) lacks: BTreeSet<Rc<str>>,
    /// Some field that none of the schemas names satisfies the formula.
    pub(super) has_other: Vec<(Vec<&'s Schema>, Formula<'s>)>,
}

impl<'s> Constraints<'s> {
    pub(super) fn new() -> Self {
        Self {
            types: Types::ANY,
            values: None,
            not_values: Vec::new(),
            number: Numbers::default(),
            text: Texts::default(),
            list: Lists::default(),
            object: Objects::default(),
            choices: Vec::new(),
        }
    }

    /// Whether the constraints obviously contradict each other.
    pub(super) fn are_contradictory(&self) -> bool {
        self.types == Types::NONE
    }

    fn must_be(&mut self, types: Types) {
        self.types = self.types.and(types);
    }

    fn contradict(&mut self) {
        self.types = Types::NONE;
    }

    fn choose(&mut self, mut ways: Vec<Formula<'s>>) {
        match ways.len() {
            0 => self.contradict(),
            1 => self.add(ways.remove(0)),
            _ => self.choices.push(ways),
        }
    }

    /// Adds the constraints of a formula.
    pub(super) fn add(&mut self, formula: Formula<'s>) {
        match formula {
            Formula::All(formulas) => formulas.into_iter().for_each(|formula| self.add(formula)),
            Formula::Any(ways) => self.choose(ways),
            Formula::Satisfies(schema, role) => self.satisfy(schema, role),
            Formula::Violates(schema, role) => {
                let may_meet = |formula: &Formula<'s>, default: &Value| default_meets(formula, default) != Some(false);
                self.choose(ways_to_violate(schema, role, may_meet));
            }
            Formula::SatisfiesOne(branches, chosen, role) => {
                for (index, branch) in branches.iter().enumerate() {
                    self.add(if index == chosen {
                        Formula::Satisfies(branch, role)
                    } else {
                        Formula::Violates(branch, role)
                    });
                }
            }
            Formula::SatisfiesTwo(branches, first, role) => {
                self.satisfy(&branches[first], role);
                self.choose(branches[first + 1..].iter().map(|branch| Formula::Satisfies(branch, role)).collect());
            }
            Formula::Damaged(schema, place) => self.choose(ways_to_damage(schema, place)),
            Formula::Types(types) => self.must_be(types),
            Formula::Is(values) => self.be_one_of(&values),
            Formula::IsNot(values) => self.not_values.push(values),
            Formula::IsUnlisted(listed) => {
                self.not_values.push(listed.values);
                self.number.never_cut_to.push(listed.whole);
            }
            Formula::IsCutTo(whole) => {
                self.must_be(Types::FRACTION);
                self.number.cut_to.push(whole);
            }
            Formula::IsBelow(limit) => {
                self.must_be(Types::NUMBER);
                self.number.most(limit);
            }
            Formula::IsAbove(limit) => {
                self.must_be(Types::NUMBER);
                self.number.least(limit);
            }
            Formula::IsNoMultiple(factor) => {
                self.must_be(Types::NUMBER);
                self.number.not_multiples.push(factor);
            }
            Formula::IsNoMatch(pattern) => {
                self.must_be(Types::STRING);
                self.text.avoiding.push(pattern);
            }
            Formula::IsOfLengthOutside(window) => {
                self.must_be(Types::STRING);
                self.outside(window, Formula::IsOfLengthOutside, |constraints| &mut constraints.text.length);
            }
            Formula::IsAgainstFormat(format, schema) => self.be_against_format(format, schema),
            Formula::HasCountOutside(window) => {
                self.must_be(Types::ARRAY);
                self.outside(window, Formula::HasCountOutside, |constraints| &mut constraints.list.count);
            }
            Formula::HasItem(inner) => {
                self.must_be(Types::ARRAY);
                self.list.has.push(*inner);
            }
            Formula::HasRepeated(unique) => {
                self.must_be(Types::ARRAY);
                self.list.repeated.push(unique);
            }
            // Detected at once, before the open choices are tried one by one.
            Formula::Has(name, _) if self.object.lacks.contains(&name) => self.contradict(),
            Formula::Lacks(name) if self.object.has.contains_key(&name) => self.contradict(),
            Formula::Has(name, inner) => {
                self.must_be(Types::OBJECT);
                self.object.has.entry(name).or_default().push(*inner);
            }
            Formula::Lacks(name) => {
                self.must_be(Types::OBJECT);
                self.object.lacks.insert(name);
            }
            Formula::HasOther(schemas, inner) => {
                self.must_be(Types::OBJECT);
                self.object.has_other.push((schemas, *inner));
            }
            Formula::HasAtLeast(least) => {
                self.must_be(Types::OBJECT);
                self.object.count.narrow(Window { least: Some(least), most: None });
            }
            Formula::HasAtMost(most) => {
                self.must_be(Types::OBJECT);
                self.object.count.narrow(Window { least: None, most: Some(most) });
            }
        }
    }

    /// Constrains a size to be below the minimum or above the maximum.
    fn outside(&mut self, window: Window, formula: fn(Window) -> Formula<'s>, range: fn(&mut Self) -> &mut Range) {
        match (window.least, window.most) {
            (None, None) => self.contradict(),
            (Some(least), None) => range(self).narrow(Window { least: None, most: Some(least.saturating_sub(1)) }),
            (None, Some(most)) => range(self).narrow(Window { least: Some(most.saturating_add(1)), most: None }),
            (least, most) => {
                self.choose(vec![formula(Window { least, most: None }), formula(Window { least: None, most })]);
            }
        }
    }

    /// Constrains the value to an element of an enum.
    fn be_listed(&mut self, listed: Listed) {
        if self.types.has(Types::FRACTION) && !listed.whole.is_empty() {
            self.choose(vec![Formula::Is(listed.values), Formula::IsCutTo(listed.whole)]);
        } else {
            self.be_one_of(&listed.values);
        }
    }

    fn be_one_of(&mut self, values: &Rc<Vec<Value>>) {
        let known = self.values.as_ref().map(|known| ValueSet::of(known.iter()));
        let both = |value: &&Value| known.as_ref().is_none_or(|known| known.contains(value));
        self.values = Some(Rc::new(values.iter().filter(both).cloned().collect()));
    }

    fn be_against_format(&mut self, format: &'s str, schema: &'s Schema) {
        if let Some((least, most)) = range_of_format(format, schema) {
            self.must_be(Types::NUMBER);
            self.choose(vec![Formula::IsBelow(least), Formula::IsAbove(most)]);
        } else {
            self.must_be(Types::STRING);
            self.text.not_formats.push(format);
        }
    }

    /// Adds the constraints of a schema.
    fn satisfy(&mut self, schema: &'s Schema, role: Role<'s>) {
        self.must_be(types_of(schema, role));
        if let Some(values) = &schema.enumeration {
            self.be_listed(Listed::of(values));
        }
        let bounds = [schema.minimum.map(|it| it.value), schema.maximum.map(|it| it.value), schema.multiple_of];
        if bounds.into_iter().flatten().any(|bound| held(schema, bound) == Held::Refusing) {
            self.must_be(Types::NUMBER.not());
        }
        let is_compared = |bound: f64| held(schema, bound) == Held::Compared;
        if let Some(minimum) = schema.minimum.filter(|it| is_compared(it.value)) {
            self.number.least(minimum);
        }
        if let Some(maximum) = schema.maximum.filter(|it| is_compared(it.value)) {
            self.number.most(maximum);
        }
        self.number.multiples.extend(schema.multiple_of.filter(|it| is_compared(*it)));
        self.number.multiples.extend(almost_whole(schema));
        self.text.matching.extend(schema.pattern.as_deref());
        if let Some(format) = &schema.format {
            match range_of_format(format, schema) {
                Some((below, above)) => {
                    self.number.least(flipped(below));
                    self.number.most(flipped(above));
                }
                None => self.text.formats.push(format),
            }
        }
        self.text.length.narrow(schema.length);
        self.list.count.narrow(schema.item_count);
        // Defaults of absent fields count too.
        let count = schema.property_count;
        let least = count.least.map(|least| least.saturating_sub(filled_in(role)));
        self.object.count.narrow(Window { least, ..count });
        self.list.unique.extend(Unique::of(schema));
        if schema.unique_items {
            self.list.unique.push(Unique::Items);
        }
        let branch = match role {
            // A stored object has its defaults already.
            Role::Stored(_) => Role::Branch(None),
            Role::Branch(_) => role,
        };
        if let Some(items) = &schema.items {
            let role = match role {
                Role::Stored(_) => Role::Stored(Level::Item),
                Role::Branch(node) => Role::Branch(node.and_then(|node| node.items.as_deref())),
            };
            self.list.items.push((items, role));
        }
        self.satisfy_fields(schema, role);
        if schema.embedded_resource && matches!(role, Role::Stored(_)) {
            self.choose(is_resource());
        }
        for inner in &schema.all_of {
            self.combined(Formula::Satisfies(inner, branch));
        }
        if !schema.any_of.is_empty() {
            self.combined(Formula::Any(schema.any_of.iter().map(|inner| Formula::Satisfies(inner, branch)).collect()));
        }
        if !schema.one_of.is_empty() {
            let exactly = |chosen| Formula::SatisfiesOne(&schema.one_of, chosen, branch);
            self.combined(Formula::Any((0..schema.one_of.len()).map(exactly).collect()));
        }
        if let Some(not) = &schema.not {
            self.combined(Formula::Violates(not, branch));
        }
    }

    /// Adds the constraints of a combinator; the server does not apply them to null.
    fn combined(&mut self, formula: Formula<'s>) {
        if self.types.has(Types::NULL) {
            self.choose(vec![formula, Formula::Types(Types::NULL)]);
        } else {
            self.add(formula);
        }
    }

    fn satisfy_fields(&mut self, schema: &'s Schema, role: Role<'s>) {
        let names_fields = !schema.properties.is_empty() || schema.additional.is_some();
        if names_fields || matches!(role, Role::Stored(_)) {
            self.object.schemas.push((schema, role));
        }
        let node = match role {
            Role::Stored(_) => Some(schema),
            Role::Branch(node) => node,
        };
        let default_of = |name: &str| node?.properties.get(name)?.default.as_ref();
        for name in schema.required.iter().filter(|name| default_of(name).is_none()) {
            self.object.required(name);
        }
        if matches!(role, Role::Branch(_)) {
            // If the field is absent, its default must satisfy the schema.
            for (name, field) in &schema.properties {
                let Some(default) = default_of(name) else { continue };
                let satisfied =
                    Formula::Satisfies(field, Role::Branch(node.and_then(|node| node.properties.get(name))));
                if default_meets(&satisfied, default) == Some(false) {
                    self.object.required(name);
                }
            }
        }
    }
}

impl<'s> Objects<'s> {
    fn required(&mut self, name: &str) {
        // This applies only to objects; the constraint is added to those of the field.
        self.has.entry(name.into()).or_default();
    }

    /// The constraints on a field of this name; `None` if it must be absent.
    pub(super) fn constraints_on(&self, name: &str) -> Option<Vec<Formula<'s>>> {
        if self.lacks.contains(name) {
            return None;
        }
        let mut formulas = Vec::new();
        for (schema, role) in &self.schemas {
            if let Some(field) = schema.properties.get(name) {
                formulas.push(Formula::Satisfies(field, field_role(schema, *role, name)));
            } else if let Some(additional) = free_values(schema) {
                let role = match role {
                    Role::Stored(_) => Role::Stored(Level::Field),
                    Role::Branch(node) => Role::Branch(node.and_then(free_values)),
                };
                formulas.push(Formula::Satisfies(additional, role));
            } else if is_closed(schema, *role) && !is_built_in(schema, *role, name) {
                return None;
            }
        }
        formulas.extend(self.has.get(name).into_iter().flatten().cloned());
        Some(formulas)
    }

    /// All field names in the schemas.
    pub(super) fn declared(&self) -> BTreeSet<Rc<str>> {
        let named = self.schemas.iter().flat_map(|(schema, _)| schema.properties.keys());
        named.map(|name| Rc::from(name.as_str())).chain(self.has.keys().cloned()).collect()
    }
}

fn field_role<'s>(schema: &'s Schema, role: Role<'s>, name: &str) -> Role<'s> {
    match role {
        Role::Stored(place) if name == "metadata" && (place == Level::Root || schema.embedded_resource) => {
            Role::Stored(Level::Metadata)
        }
        Role::Stored(_) => Role::Stored(Level::Field),
        Role::Branch(node) => Role::Branch(node.and_then(|node| node.properties.get(name))),
    }
}

/// Whether pruning keeps only the fields that the schema names.
fn is_closed(schema: &Schema, role: Role<'_>) -> bool {
    matches!(role, Role::Stored(place) if place != Level::Metadata) && !schema.keeps_unknown()
}

/// Whether the server knows the field without a schema.
fn is_built_in(schema: &Schema, role: Role<'_>, name: &str) -> bool {
    let resource = schema.embedded_resource || matches!(role, Role::Stored(Level::Root));
    resource && ["apiVersion", "kind", "metadata"].contains(&name)
}

/// Whether a default satisfies a formula; `None` if a few steps cannot tell.
fn default_meets(formula: &Formula<'_>, default: &Value) -> Option<bool> {
    const STEPS: u64 = 1_000;
    holds(formula, default, &Cell::new(STEPS))
}

/// Whether the value is excluded by name.
pub(super) fn is_excepted(value: &Value, constraints: &Constraints<'_>) -> bool {
    constraints.not_values.iter().any(|values| values.iter().any(|it| same(it, value)))
}

/// Whether the value meets the constraints; `None` if a constraint cannot be evaluated and no other decides, or if the
/// steps run out.
pub(super) fn admits(constraints: &Constraints<'_>, value: &Value, steps: &Cell<u64>) -> Option<bool> {
    steps.set(steps.get().checked_sub(1)?);
    let kind = Types::of(value);
    let certain = constraints.types.has(kind)
        && constraints.values.as_ref().is_none_or(|values| values.iter().any(|it| same(it, value)))
        && !is_excepted(value, constraints);
    if !certain {
        return Some(false);
    }
    let own = match value {
        Value::Null | Value::Bool(_) => Some(true),
        Value::Number(number) => Some(constraints.number.admits(number)),
        Value::String(text) => constraints.text.admits(text),
        Value::Array(items) => list(constraints, items, steps),
        Value::Object(fields) => object(&constraints.object, fields, steps),
    };
    let chosen = constraints.choices.iter().map(|ways| any(ways.iter().map(|way| holds(way, value, steps))));
    all(std::iter::once(own).chain(chosen))
}

/// Whether a value satisfies a formula; `None` if that cannot be evaluated.
pub(super) fn holds(formula: &Formula<'_>, value: &Value, steps: &Cell<u64>) -> Option<bool> {
    let mut constraints = Constraints::new();
    constraints.add(formula.clone());
    admits(&constraints, value, steps)
}

fn list(constraints: &Constraints<'_>, items: &[Value], steps: &Cell<u64>) -> Option<bool> {
    let constraints = &constraints.list;
    if !constraints.count.holds(items.len()) {
        return Some(false);
    }
    let each = constraints.items.iter().flat_map(|(schema, role)| {
        items.iter().map(move |item| holds(&Formula::Satisfies(schema, *role), item, steps))
    });
    let some = constraints.has.iter().map(|formula| any(items.iter().map(|item| holds(formula, item, steps))));
    let unique = constraints.unique.iter().map(|unique| Some(!repeats(unique, items)));
    let repeated = constraints.repeated.iter().map(|unique| Some(repeats(unique, items)));
    all(each.chain(some).chain(unique).chain(repeated))
}

/// Whether two items are equal in the way that `unique` forbids.
pub(super) fn repeats(unique: &Unique<'_>, items: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    items.iter().any(|item| !seen.insert(identity(unique, item)))
}

/// Returns the part of an item that `unique` forbids other items to repeat.
pub(super) fn identity(unique: &Unique<'_>, item: &Value) -> Vec<Option<String>> {
    match unique {
        Unique::Items => vec![Some(key(item))],
        Unique::Keys(keys) => keys.iter().map(|name| item.get(name).map(key)).collect(),
    }
}

fn object(constraints: &Objects<'_>, fields: &Map<String, Value>, steps: &Cell<u64>) -> Option<bool> {
    if !constraints.count.holds(fields.len())
        || constraints.lacks.iter().any(|name| fields.contains_key(&**name))
        || constraints.has.keys().any(|name| !fields.contains_key(&**name))
    {
        return Some(false);
    }
    let each = fields.iter().map(|(name, value)| match constraints.constraints_on(name) {
        None => Some(false),
        Some(formulas) => all(formulas.iter().map(|formula| holds(formula, value, steps))),
    });
    let other = constraints.has_other.iter().map(|(schemas, formula)| {
        let unnamed = fields.iter().filter(|(name, _)| !is_named(schemas, name));
        any(unnamed.map(|(_, value)| holds(formula, value, steps)))
    });
    all(each.chain(other))
}

/// Whether one of the schemas names the field.
pub(super) fn is_named(schemas: &[&Schema], name: &str) -> bool {
    schemas.iter().any(|schema| schema.properties.contains_key(name))
}

fn all(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for answer in answers {
        match answer {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = false,
        }
    }
    known.then_some(true)
}

fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for answer in answers {
        match answer {
            Some(true) => return Some(true),
            Some(false) => {}
            None => known = false,
        }
    }
    known.then_some(false)
}
