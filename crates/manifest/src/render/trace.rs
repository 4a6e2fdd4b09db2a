//! The way from a rendered object back to the file that a person edits. Where it is not known, positions stay those of
//! the rendered text.

use std::collections::HashMap;

use pushback_objects::object::{ObjectExt, split_api_version};
use pushback_objects::source::{Document, PathSegment, Positions, PositionsBuilder};
use serde_json::Value;

use super::template_lines::TemplateLines;

/// The sources of a rendered text.
#[derive(Debug)]
pub(crate) enum Trace {
    /// Documents from which objects are made.
    Documents(SourceDocuments),
    /// Lines of templates, by line of the rendered text.
    Lines(TemplateLines),
}

impl Trace {
    /// Returns the positions of a rendered document in its source; `None` if the source is not known.
    pub(crate) fn positions(&self, value: &Value, rendered: &Positions) -> Option<Positions> {
        match self {
            Self::Documents(documents) => {
                let source = documents.source_of(value)?;
                let mut builder = PositionsBuilder::new(source.positions.file().into());
                let mut path = Vec::new();
                copy(&mut builder, &"".into(), (value, &source.value), &mut path, &source.positions);
                Some(builder.finish())
            }
            Self::Lines(lines) => lines.relocate(rendered),
        }
    }
}

/// Documents by group, kind and name.
#[derive(Debug, Default)]
pub(crate) struct SourceDocuments(HashMap<(String, String), HashMap<String, Vec<Document>>>);

impl SourceDocuments {
    /// Keeps documents.
    pub(super) fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let mut kinds: HashMap<_, HashMap<String, Vec<Document>>> = HashMap::new();
        for document in documents {
            let name = document.value.name().to_owned();
            kinds.entry(kind_of(&document.value)).or_default().entry(name).or_default().push(document);
        }
        Self(kinds)
    }

    /// The only document that an object can be made of: of its kind, with its name or a part of it.
    fn source_of(&self, value: &Value) -> Option<&Document> {
        let names = self.0.get(&kind_of(value))?;
        let documents = match names.get(value.name()) {
            Some(documents) => documents,
            // Names are given prefixes and suffixes.
            None => {
                let mut parts = names.iter().filter(|(known, _)| !known.is_empty() && value.name().contains(*known));
                parts.next().filter(|_| parts.next().is_none())?.1
            }
        };
        match documents.as_slice() {
            [document] => Some(document),
            _ => None,
        }
    }
}

fn kind_of(value: &Value) -> (String, String) {
    let (group, _) = split_api_version(value.text("/apiVersion"));
    (group.to_owned(), value.text("/kind").to_owned())
}

/// Copies the positions of nodes that both have. A node that only the rendered object has is where its parent is.
fn copy(
    builder: &mut PositionsBuilder,
    segment: &PathSegment,
    (value, source): (&Value, &Value),
    path: &mut Vec<PathSegment>,
    positions: &Positions,
) {
    let place = positions.locate(path);
    builder.open(segment, place.line, place.column);
    match (value, source) {
        (Value::Object(fields), Value::Object(known)) => {
            for (name, field) in fields {
                if let Some(source) = known.get(name) {
                    path.push(name.as_str().into());
                    copy(builder, &name.as_str().into(), (field, source), path, positions);
                    path.pop();
                }
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(from) = source_index(index, item, known) {
                    path.push(from.into());
                    copy(builder, &index.into(), (item, &known[from]), path, positions);
                    path.pop();
                }
            }
        }
        _ => {}
    }
    builder.close();
}

/// Index of an item in the source: of the same name if it has one, otherwise its own.
fn source_index(index: usize, item: &Value, known: &[Value]) -> Option<usize> {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => known.iter().position(|it| it.text("/name") == name),
        None => (index < known.len()).then_some(index),
    }
}
