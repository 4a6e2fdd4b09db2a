//! Facts files, as anybody may have edited them. Every part gets its digest anew, so that the reader behind the
//! digests and the rules get it. No panic; what is accepted is written back and reads the same; a changed part is
//! found; every report can be written.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pushback::run::replay::judge;
use pushback_deploy::check::facts_file::{FactsError, FactsFile, sha256};
use pushback_terminal::check::formats;
use serde_json::{Map, Value, json};

fuzz_target!(|text: &str| {
    let _ = FactsFile::parse(text);
    let Ok(mut parts) = serde_json::from_str::<Map<String, Value>>(text) else { return };
    parts.shift_remove("digests");
    let digests: Map<String, Value> =
        parts.iter().map(|(part, value)| (part.clone(), sha256(&value.to_string()).into())).collect();
    parts.insert("digests".to_owned(), digests.into());
    let sealed = Value::from(parts.clone()).to_string();
    let file = match FactsFile::parse(&sealed) {
        Ok(file) => file,
        Err(FactsError::Edited { part, .. }) => panic!("sealed part {part:?} counts as edited"),
        Err(FactsError::NotFacts | FactsError::Malformed { .. } | FactsError::Newer(_)) => return,
    };
    let written = file.render();
    let read = FactsFile::parse(&written).expect("what is written can be read");
    assert_eq!(read.render(), written);
    assert!((read.facts(), &read.judged_by, &read.verdict) == (file.facts(), &file.judged_by, &file.verdict));
    assert!((&read.report, &read.named, &read.tool) == (&file.report, &file.named, &file.tool));

    let names: Vec<String> = parts.keys().cloned().collect();
    // The part depends on the input alone.
    let name = &names[text.len() % names.len()];
    let mut edited = parts.clone();
    edited[name] = match &parts[name] {
        Value::String(text) => format!("{text}x").into(),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("another".to_owned(), json!(1));
            fields.into()
        }
        Value::Array(items) => items.iter().cloned().chain([json!(1)]).collect(),
        _ => json!("another"),
    };
    assert!(FactsFile::parse(&Value::from(edited).to_string()).is_err(), "{name}");
    let mut without = parts;
    without.shift_remove(name);
    assert!(FactsFile::parse(&Value::from(without).to_string()).is_err(), "without {name}");

    if let Ok(replayed) = judge(Path::new("facts.json"), &file, &[]) {
        for word in formats::words() {
            let _ = (formats::find(word).expect("a format").render)(&replayed.report);
        }
        let again = judge(Path::new("facts.json"), &file, &[]).expect("a verdict");
        assert!(again.report == replayed.report, "the same facts give the same verdict");
    }
});
