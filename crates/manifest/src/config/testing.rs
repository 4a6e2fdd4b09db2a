//! Config documents for tests, from YAML text. Positions are those of keys and list elements.

use std::sync::Arc;

use pushback_objects::source::PositionsBuilder;
use pushback_objects::{ObjectRef, PathSegment};
use serde_json::{Map, Value};
use serde_yaml::granit_parser::{Event, Parser, ScalarStyle};

use super::parse::Documents;
use crate::{InputError, Manifest};

/// The documents of a text.
pub(super) fn manifests(file: &str, text: &str) -> Vec<Manifest> {
    documents(file, text)
        .expect("it is valid")
        .into_iter()
        .map(|(value, positions)| Manifest { object: ObjectRef::of(&value), value, positions: Arc::new(positions) })
        .collect()
}

/// The documents of a text, in the form that the Config parser expects.
pub(super) fn documents(file: &str, text: &str) -> Result<Documents, InputError> {
    let mut events = Parser::new_from_str(text)
        .map(|event| event.expect("it is valid"))
        .filter(|(event, _)| is_data(event))
        .map(|(event, span)| {
            (
                event,
                u32::try_from(span.start.line()).expect("it is valid"),
                u32::try_from(span.start.col()).expect("it is valid") + 1,
            )
        });
    let mut documents = Vec::new();
    while let Some((event, ..)) = events.next() {
        if matches!(event, Event::DocumentStart(..)) {
            let mut builder = PositionsBuilder::new(file.into());
            let (event, line, column) = events.next().expect("it is valid");
            builder.open(&"".into(), line, column);
            let value = node(event, &mut events, &mut builder);
            builder.close();
            documents.push((value, builder.finish()));
        }
    }
    Ok(documents)
}

/// Comments are events of their own.
fn is_data(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::DocumentStart(..)
            | Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd
    )
}

fn node<'a>(
    event: Event<'a>,
    events: &mut dyn Iterator<Item = (Event<'a>, u32, u32)>,
    builder: &mut PositionsBuilder,
) -> Value {
    match event {
        Event::MappingStart(..) => {
            let mut map = Map::new();
            loop {
                let (event, line, column) = events.next().expect("it is valid");
                let Event::Scalar(key, ..) = event else {
                    assert!(matches!(event, Event::MappingEnd), "{event:?} in place of a key");
                    break Value::Object(map);
                };
                builder.open(&PathSegment::Key(key.to_string()), line, column);
                let (event, ..) = events.next().expect("it is valid");
                map.insert(key.to_string(), node(event, events, builder));
                builder.close();
            }
        }
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                let (event, line, column) = events.next().expect("it is valid");
                if matches!(event, Event::SequenceEnd) {
                    break Value::Array(items);
                }
                builder.open(&PathSegment::Index(items.len()), line, column);
                items.push(node(event, events, builder));
                builder.close();
            }
        }
        Event::Scalar(text, ScalarStyle::Plain, ..) => match text.as_ref() {
            "" | "~" | "null" => Value::Null,
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            text => text.parse::<serde_json::Number>().map_or_else(|_| Value::from(text), Value::Number),
        },
        Event::Scalar(text, ..) => Value::from(text.as_ref()),
        other => panic!("not in a test document: {other:?}"),
    }
}
