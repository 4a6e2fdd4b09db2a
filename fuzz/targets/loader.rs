//! Bytes of a manifest: read or refused, never a panic; limits hold, positions lie within the text, and what is
//! written back as YAML or JSON is read as the same values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_manifest::yaml::{self, Limits};
use pushback_manifest::{self as manifest, LoadOptions};
use pushback_objects::{PathSegment, Position};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { bytes: 64 << 10, depth: 60, nodes: 20_000, documents: 200, alias_bytes: 64 << 10 };
    match yaml::load("f", bytes, &limits) {
        Err(error) => {
            assert!(!error.message.is_empty());
            within(bytes, &error.position);
        }
        Ok(loaded) => {
            assert!(loaded.documents.len() <= limits.documents);
            for warning in &loaded.warnings {
                within(bytes, &warning.position);
            }
            for document in &loaded.documents {
                assert!(depth(&document.value) <= limits.depth);
                places(&document.value, &mut Vec::new(), &mut |path| within(bytes, &document.positions.locate(path)));
                again(&document.value);
            }
        }
    }
    let options = LoadOptions { stdin: Some(bytes.to_owned()), limits, ..LoadOptions::default() };
    match manifest::load(&["-".to_owned()], &options) {
        Ok(input) => {
            for manifest in &input.manifests {
                assert!(!manifest.object.name.is_empty() && !manifest.object.kind.is_empty());
                within(bytes, &manifest.positions.start());
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(|error| within(bytes, &error.position));
        }
    }
});

/// Line 0 means that only the file is known.
fn within(bytes: &[u8], position: &Position) {
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    assert!(position.line as usize <= lines, "{position} is beyond {lines} lines");
    assert!(position.column as usize <= bytes.len() + 2, "{position} is beyond the text");
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

fn places(value: &Value, path: &mut Vec<PathSegment>, look: &mut impl FnMut(&[PathSegment])) {
    look(path);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.into());
                places(item, path, look);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                path.push(key.as_str().into());
                places(field, path, look);
                path.pop();
            }
        }
        _ => {}
    }
}

/// What we write, we read as the same.
fn again(value: &Value) {
    let limits = Limits::default();
    let written = serde_yaml::to_string(value).expect("JSON values can be written as YAML");
    for text in [written, value.to_string()] {
        let read = yaml::load("written", text.as_bytes(), &limits)
            .unwrap_or_else(|error| panic!("{error}: {value} was written as {text:?}"));
        // A scalar at the top of a JSON text is YAML, and an empty document has no node.
        let read = read.documents.first().map_or(&Value::Null, |document| &document.value);
        assert_eq!(read, value, "written as {text:?}");
    }
}
