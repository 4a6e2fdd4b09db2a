//! Positions of a derived CRD: each of its nodes has the position of the part of the source object that it is made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_objects::source::{PathSegment, Position, Positions, PositionsBuilder};
use serde_json::Value;

/// A path of keys.
pub(super) fn path(keys: &[&str]) -> Vec<PathSegment> {
    keys.iter().map(|key| PathSegment::from(*key)).collect()
}

/// The paths in the source object of parts of a CRD, by their path in the CRD. A part without an entry is at the same
/// place below its parent in both.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Origins(BTreeMap<Vec<PathSegment>, Vec<PathSegment>>);

impl Origins {
    /// Adds a part with its origin.
    pub(super) fn add(&mut self, part: Vec<PathSegment>, origin: Vec<PathSegment>) {
        self.0.insert(part, origin);
    }

    /// The positions of a CRD.
    pub(super) fn positions(&self, crd: &Value, source: &Positions) -> Positions {
        let mut layout = Layout {
            origins: self,
            source,
            builder: PositionsBuilder::new(Arc::from(source.file())),
            part: Vec::new(),
            origin: self.0.get(&Vec::new()).cloned().unwrap_or_default(),
        };
        layout.add(crd, &"".into());
        layout.builder.finish()
    }
}

struct Layout<'a> {
    origins: &'a Origins,
    source: &'a Positions,
    builder: PositionsBuilder,
    /// Path of the node in the CRD.
    part: Vec<PathSegment>,
    /// Path of its origin.
    origin: Vec<PathSegment>,
}

impl Layout<'_> {
    fn add(&mut self, value: &Value, segment: &PathSegment) {
        let Position { line, column, .. } = self.source.locate(&self.origin);
        self.builder.open(segment, line, column);
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| self.add_child(value, key.as_str().into())),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(index, value)| self.add_child(value, index.into()));
            }
            _ => {}
        }
        self.builder.close();
    }

    fn add_child(&mut self, value: &Value, segment: PathSegment) {
        self.part.push(segment.clone());
        match self.origins.0.get(&self.part) {
            Some(origin) => {
                let parent = std::mem::replace(&mut self.origin, origin.clone());
                self.add(value, &segment);
                self.origin = parent;
            }
            None => {
                self.origin.push(segment.clone());
                self.add(value, &segment);
                self.origin.pop();
            }
        }
        self.part.pop();
    }
}
