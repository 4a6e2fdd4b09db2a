//! Objects of one version to try: the fullest and the emptiest, each field at each of its values, each field absent, and
//! draws of several fields. Only objects that the API server accepts are used.

use pushback_crd::schema::Schema;
use pushback_objects::object::join_api_version;
use serde_json::{Map, Value, json};

use super::constants::{Constants, overlap};
use super::round_trip::RoundTrips;
use super::values::{full, minimal, values};
use crate::path::{FieldPath, FieldStep};
use crate::prune::OF_EVERY_RESOURCE;

/// Maximum number of fields of a version that are varied one by one.
const FIELDS: usize = 1_500;
/// Maximum number of objects that are made and found invalid, for each one that may be used.
const ATTEMPTS: usize = 6;
/// Largest schema, in nodes, whose full object is varied; a smaller object is enough for the others.
const FULL: usize = 400;
/// Maximum number of drawn objects.
const DRAWS: usize = 20_000;

/// A field that is varied, with its values.
struct Field {
    path: FieldPath,
    values: Vec<Value>,
}

/// The next object to make.
#[derive(Clone, Copy, Debug)]
enum Recipe {
    Full,
    Empty,
    Minimal,
    /// A field with one of its values, in an object with nothing else or in a full one.
    Set {
        field: usize,
        value: usize,
        is_full: bool,
    },
    /// The full object without a field.
    Without(usize),
    /// Several fields at drawn values.
    Drawn(u64),
}

/// Makes objects of one version.
pub(super) struct Objects<'a> {
    trips: &'a RoundTrips<'a>,
    version: &'a str,
    schema: Option<&'a Schema>,
    base: [Value; 2],
    fields: Vec<Field>,
    /// Number of the first fields that expressions or operations of the plan are about.
    touched: usize,
    recipes: std::vec::IntoIter<Recipe>,
    draws: u64,
    seed: u64,
    attempts: usize,
}

impl<'a> Objects<'a> {
    pub(super) fn new(trips: &'a RoundTrips<'a>, version: &'a str, constants: &Constants) -> Self {
        let resource = trips.resource(version);
        let schema = resource.map(|resource| resource.schema);
        let (fields, touched) = schema.map(|schema| fields(trips, version, schema, constants)).unwrap_or_default();
        let is_small = schema.is_some_and(|schema| schema.size() <= FULL);
        let recipes = recipes(&fields, touched, is_small);
        let base = schema.map_or([Value::Null, Value::Null], |schema| {
            [minimal(schema, 0), if is_small { full(schema, 0) } else { minimal(schema, 0) }]
        });
        let seed = [trips.converter().name(), version]
            .concat()
            .bytes()
            .fold(17_u64, |seed, byte| seed.wrapping_mul(0x0000_0100_0000_01b3).wrapping_add(u64::from(byte)));
        Self {
            trips,
            version,
            schema,
            base,
            fields,
            touched,
            recipes: recipes.into_iter(),
            draws: 0,
            seed,
            attempts: 0,
        }
    }

    fn make(&self, recipe: Recipe) -> Option<Value> {
        let schema = self.schema?;
        let mut object = match recipe {
            Recipe::Full => full(schema, 0),
            Recipe::Empty => json!({}),
            Recipe::Minimal => self.base[0].clone(),
            Recipe::Set { field, value, is_full } => {
                let mut object = self.base[usize::from(is_full)].clone();
                let Field { path, values } = self.fields.get(field)?;
                set(&mut object, schema, path.steps(), values.get(value)?.clone());
                object
            }
            Recipe::Without(field) => {
                let mut object = self.base[1].clone();
                remove(&mut object, self.fields.get(field)?.path.steps());
                object
            }
            Recipe::Drawn(seed) => self.drawn(schema, seed),
        };
        let api_version = join_api_version(self.trips.converter().group(), self.version);
        if let Value::Object(fields) = &mut object {
            OF_EVERY_RESOURCE.iter().for_each(|name| drop(fields.shift_remove(*name)));
            let mut whole = Map::new();
            whole.insert("apiVersion".to_owned(), api_version.into());
            whole.insert("kind".to_owned(), self.trips.converter().kind().into());
            whole.insert("metadata".to_owned(), json!({"name": "sample"}));
            whole.append(fields);
            *fields = whole;
        }
        Some(object)
    }

    fn drawn(&self, schema: &Schema, seed: u64) -> Value {
        let mut draws = Draws(self.seed.wrapping_add(seed));
        let mut object = self.base[draws.below(2)].clone();
        let touched = if self.touched == 0 { self.fields.len() } else { self.touched };
        let some = &self.fields[..touched];
        for _ in 0..=draws.below(6).min(some.len()) {
            let Some(Field { path, values }) = some.get(draws.below(some.len().max(1))) else { continue };
            match draws.below(5) {
                0 => remove(&mut object, path.steps()),
                _ if values.is_empty() => {}
                _ => set(&mut object, schema, path.steps(), values[draws.below(values.len())].clone()),
            }
        }
        object
    }
}

impl Iterator for Objects<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let recipe = self.recipes.next().unwrap_or(Recipe::Drawn(self.draws));
            if let Recipe::Drawn(_) = recipe {
                self.draws += 1;
                if self.draws > DRAWS as u64 || self.attempts > ATTEMPTS * 4_000 {
                    return None;
                }
            }
            self.attempts += 1;
            let object = self.make(recipe)?;
            if self.trips.is_valid(self.version, &object) {
                return Some(object);
            }
        }
    }
}

/// What is tried, in this order: whole objects, then the fields that the plan is about, then draws of these, then others.
fn recipes(fields: &[Field], touched: usize, is_small: bool) -> Vec<Recipe> {
    let mut recipes = vec![Recipe::Full, Recipe::Empty, Recipe::Minimal];
    let set = |fields: &mut dyn Iterator<Item = usize>, all: &[Field], is_full| -> Vec<Recipe> {
        fields
            .flat_map(|field| (0..all[field].values.len()).map(move |value| Recipe::Set { field, value, is_full }))
            .collect()
    };
    recipes.extend(set(&mut (0..touched), fields, false));
    if is_small {
        recipes.extend((0..fields.len()).map(Recipe::Without));
        recipes.extend(set(&mut (0..touched), fields, true));
    }
    recipes.extend((0..64).map(|seed| Recipe::Drawn(1_000_000 + seed)));
    recipes.extend(set(&mut (touched..fields.len()), fields, false));
    recipes
}

/// The fields of a version, those that the plan is about first, with their number.
fn fields(trips: &RoundTrips<'_>, version: &str, schema: &Schema, constants: &Constants) -> (Vec<Field>, usize) {
    let converter = trips.converter();
    let mut found = Vec::new();
    collect(schema, &FieldPath::default(), converter.bag(), &mut found);
    let is_touched = |path: &FieldPath| {
        let of_operations = converter.operations().iter().flat_map(|operation| [&operation.older, &operation.newer]);
        constants.read.iter().chain(of_operations).any(|other| !other.is_root() && overlap(path, other))
    };
    let (mut fields, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(path, _)| is_touched(path));
    let touched = fields.len();
    fields.extend(others);
    let others = trips.versions().into_iter().filter(|other| *other != version);
    let others: Vec<&Schema> = others.filter_map(|other| Some(trips.resource(other)?.schema)).collect();
    let fields = fields.into_iter().map(|(path, node)| {
        let mut paths = vec![path.clone()];
        for operation in converter.operations() {
            if operation.older == path {
                paths.push(operation.newer.clone());
            } else if operation.newer == path {
                paths.push(operation.older.clone());
            }
        }
        let related: Vec<&Schema> =
            others.iter().flat_map(|schema| paths.iter().filter_map(|path| node_at(schema, path.steps()))).collect();
        Field { values: values(node, &related, constants), path }
    });
    (fields.collect(), touched)
}

fn collect<'s>(schema: &'s Schema, at: &FieldPath, bag: &str, found: &mut Vec<(FieldPath, &'s Schema)>) {
    if found.len() >= FIELDS {
        return;
    }
    for (name, field) in &schema.properties {
        if name == bag || (at.is_root() && OF_EVERY_RESOURCE.contains(&name.as_str())) {
            continue;
        }
        let path = at.field(name);
        found.push((path.clone(), field));
        collect(field, &path, bag, found);
    }
    if let Some(below) = schema.items.as_deref().or_else(|| schema.additional_schema()) {
        let path = at.each();
        found.push((path.clone(), below));
        collect(below, &path, bag, found);
    }
}

fn node_at<'s>(schema: &'s Schema, steps: &[FieldStep]) -> Option<&'s Schema> {
    steps.iter().try_fold(schema, |node, step| match step {
        FieldStep::Field(name) => node.properties.get(name),
        FieldStep::Each => node.items.as_deref().or_else(|| node.additional_schema()),
    })
}

/// Sets a field, and makes what it is in: with its required fields, lists with one item, and maps with one key.
fn set(value: &mut Value, schema: &Schema, steps: &[FieldStep], new: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *value = new;
        return;
    };
    match step {
        FieldStep::Field(name) => {
            let Some(below) = schema.properties.get(name) else { return };
            if !value.is_object() {
                *value = minimal(schema, 0);
            }
            let Value::Object(fields) = value else { return };
            let next = fields.entry(name.clone()).or_insert_with(|| minimal(below, 0));
            set(next, below, rest, new);
        }
        FieldStep::Each if schema.items.is_some() => {
            let Some(below) = schema.items.as_deref() else { return };
            if value.as_array().is_none_or(Vec::is_empty) {
                *value = json!([minimal(below, 0)]);
            }
            set(&mut value[0], below, rest, new);
        }
        FieldStep::Each => {
            let Some(below) = schema.additional_schema() else { return };
            if !value.is_object() {
                *value = json!({});
            }
            let Value::Object(fields) = value else { return };
            let next = fields.entry("key".to_owned()).or_insert_with(|| minimal(below, 0));
            set(next, below, rest, new);
        }
    }
}

/// Removes a field; of a list its first item, of a map one key.
fn remove(value: &mut Value, steps: &[FieldStep]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match (step, value) {
        (FieldStep::Field(name), Value::Object(fields)) if rest.is_empty() => drop(fields.shift_remove(name)),
        (FieldStep::Field(name), Value::Object(fields)) => {
            if let Some(below) = fields.get_mut(name) {
                remove(below, rest);
            }
        }
        (FieldStep::Each, Value::Array(items)) if rest.is_empty() => items.clear(),
        (FieldStep::Each, Value::Array(items)) => items.iter_mut().for_each(|item| remove(item, rest)),
        (FieldStep::Each, Value::Object(fields)) if rest.is_empty() => fields.clear(),
        (FieldStep::Each, Value::Object(fields)) => fields.values_mut().for_each(|below| remove(below, rest)),
        _ => {}
    }
}

/// A sequence of numbers that its seed determines (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap_or_default() % end.max(1)
    }
}
