//! Drops fields that a version does not have and nulls that it does not allow, as the API server does when it reads an
//! object: a later version may call something else by such a name.

use serde_json::{Map, Value};

use pushback_crd::schema::{Additional, Schema};
use pushback_objects::source::PathSegment;

/// Fields of a resource that conversions leave alone.
pub(super) const OF_EVERY_RESOURCE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What is found in one object.
#[derive(Debug)]
pub(super) struct Pruned<'p> {
    /// Name of the bag.
    pub(super) bag: &'p str,
    /// Whether bags stay.
    pub(super) keeps_bags: bool,
    /// Paths of dropped fields, innermost step first.
    pub(super) lost: Vec<Vec<PathSegment>>,
}

impl Pruned<'_> {
    /// Prunes a value under the schema of its node.
    pub(super) fn prune(&mut self, value: &mut Value, schema: &Schema, is_resource: bool) {
        match value {
            Value::Object(map) => self.object(map, schema, is_resource || schema.embedded_resource),
            Value::Array(items) => {
                let Some(below) = &schema.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    let before = self.lost.len();
                    self.prune(item, below, false);
                    self.within(before, || index.into());
                }
            }
            _ => {}
        }
    }

    fn within(&mut self, before: usize, segment: impl Fn() -> PathSegment) {
        for path in &mut self.lost[before..] {
            path.push(segment());
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, schema: &Schema, is_resource: bool) {
        let mut unknown: Vec<String> = Vec::new();
        for (key, value) in map.iter_mut() {
            if is_resource && OF_EVERY_RESOURCE.contains(&key.as_str()) {
                continue;
            }
            let below = match (schema.properties.get(key), &schema.additional) {
                (Some(below), _) => below,
                (None, Some(Additional::Schema(below))) => below,
                (None, Some(Additional::Anything | Additional::Nothing)) => continue,
                (None, None) => {
                    let is_bag = self.keeps_bags && key == self.bag;
                    if !is_bag && (!schema.preserve_unknown || key == self.bag) {
                        unknown.push(key.clone());
                    }
                    continue;
                }
            };
            if value.is_null() {
                if !below.nullable && below.kind.is_some() {
                    unknown.push(key.clone());
                }
                continue;
            }
            let before = self.lost.len();
            self.prune(value, below, false);
            self.within(before, || key.as_str().into());
        }
        for key in unknown {
            let was_null = map.shift_remove(&key).is_none_or(|value| value.is_null());
            if !was_null {
                self.lost.push(vec![PathSegment::Key(key)]);
            }
        }
    }
}
