//! The named schemas below a node, sorted by name. A CRD has thousands of such nodes, most with few names, so each takes
//! only the memory that it needs.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use serde_json::{Map, Value};

use super::Schema;

/// Number of properties from which names are found by their hash: a judgement is mostly lookups.
const WIDE: usize = 8;

/// `properties`, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    sorted: Vec<(String, Schema)>,
    /// Present from [`WIDE`] properties on.
    indices: Option<Indices>,
}

/// The index of each name.
#[derive(Clone, Debug, Default)]
struct Indices {
    table: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl Indices {
    fn from_sorted(sorted: &[(String, Schema)]) -> Self {
        let mut indices = Self { table: HashTable::with_capacity(sorted.len()), ..Self::default() };
        let hash = |index: usize| indices.hasher.hash_one(sorted[index].0.as_str());
        for index in 0..sorted.len() {
            indices.table.insert_unique(hash(index), index, |index| hash(*index));
        }
        indices
    }

    fn find(&self, name: &str, sorted: &[(String, Schema)]) -> Option<usize> {
        self.table.find(self.hasher.hash_one(name), |index| sorted[*index].0 == name).copied()
    }
}

impl PartialEq for Properties {
    fn eq(&self, other: &Self) -> bool {
        self.sorted == other.sorted
    }
}

impl Properties {
    fn from_sorted(sorted: Vec<(String, Schema)>) -> Self {
        let indices = (sorted.len() >= WIDE).then(|| Indices::from_sorted(&sorted));
        Self { sorted, indices }
    }

    /// Parses every schema of a map.
    pub(super) fn of(map: &Map<String, Value>, read: impl Fn(&Value) -> Schema) -> Self {
        let mut written: Vec<(&String, &Value)> = map.iter().collect();
        written.sort_unstable_by_key(|(name, _)| *name);
        Self::from_sorted(written.into_iter().map(|(name, value)| (name.clone(), read(value))).collect())
    }

    /// The number of properties.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no properties.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The schema with this name.
    #[must_use]
    pub fn get(&self, name: &(impl AsRef<str> + ?Sized)) -> Option<&Schema> {
        self.get_key_value(name).map(|(_, schema)| schema)
    }

    /// The schema with this name, and the stored name.
    #[must_use]
    pub fn get_key_value(&self, name: &(impl AsRef<str> + ?Sized)) -> Option<(&String, &Schema)> {
        let name = name.as_ref();
        let index = match &self.indices {
            Some(indices) => indices.find(name, &self.sorted)?,
            None => self.sorted.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?,
        };
        self.sorted.get(index).map(|(name, schema)| (name, schema))
    }

    /// Whether there is a schema with this name.
    #[must_use]
    pub fn contains_key(&self, name: &(impl AsRef<str> + ?Sized)) -> bool {
        self.get_key_value(name).is_some()
    }

    /// Iterates over names and schemas.
    pub fn iter(&self) -> <&Self as IntoIterator>::IntoIter {
        self.into_iter()
    }

    /// Iterates over the names.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.sorted.iter().map(|(name, _)| name)
    }

    /// Iterates over the schemas.
    pub fn values(&self) -> impl Iterator<Item = &Schema> {
        self.sorted.iter().map(|(_, schema)| schema)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Schema> {
        self.sorted.iter_mut().map(|(_, schema)| schema)
    }
}

/// If a name is repeated, its last schema counts.
impl FromIterator<(String, Schema)> for Properties {
    fn from_iter<I: IntoIterator<Item = (String, Schema)>>(schemas: I) -> Self {
        Self::from_sorted(schemas.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Properties {
    type Item = (&'a String, &'a Schema);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (String, Schema)>, fn(&'a (String, Schema)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.sorted.iter().map(|(name, schema)| (name, schema))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_found_wherever_it_was_written() {
        let schema = Schema::of(&json!({"properties": {"b": {"type": "string"}, "": {}, "a": {}, "B": {}, "aa": {}}}));
        let properties = &schema.properties;
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["", "B", "a", "aa", "b"]);
        for (name, schema) in properties {
            assert!(std::ptr::eq(properties.get(name).unwrap(), schema), "{name:?}");
        }
        assert!(!properties.contains_key("ab") && properties.get("c").is_none());
    }

    #[test]
    fn name_of_wide_schema_is_found_by_its_hash() {
        let fields: Map<String, Value> = (0..WIDE).map(|number| (format!("f{number}"), json!({}))).collect();
        let schema = Schema::of(&json!({"properties": fields}));
        let properties = &schema.properties;
        assert!(properties.indices.is_some() && properties.keys().is_sorted());
        for (name, schema) in properties {
            assert!(std::ptr::eq(properties.get(name).unwrap(), schema), "{name:?}");
        }
        assert!(!properties.contains_key("f") && properties.get(&format!("f{WIDE}")).is_none());
    }
}
