//! JSON reports, and whatever else `verify` is given. No panic; a file fits itself; a report fits only an equal one.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pushback::run::verify::{FileKind, verify};
use serde_json::Value;

/// Files of this process: `verify` reads what a path names.
static FILES: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    ["one", "other"].map(|name| std::env::temp_dir().join(format!("pushback-fuzz-{}-{name}", std::process::id())))
});

fuzz_target!(|bytes: &[u8]| {
    let [one, other] = &*FILES;
    std::fs::write(one, bytes).expect("a file");
    let Ok(alone) = verify(std::slice::from_ref(one), &[]) else { return };
    let twice = verify(&[one.clone(), one.clone()], &[]).expect("a file that was read before");
    assert_eq!(twice.mismatches.len(), 2 * alone.mismatches.len(), "a file fits itself: {:?}", twice.mismatches);
    let [file] = alone.files.as_slice() else { panic!("one file gives one row") };
    serde_json::to_string(file).expect("a row");
    if file.kind != FileKind::Report {
        return;
    }
    let mut changed: Value = serde_json::from_slice(bytes).expect("a report is JSON");
    changed["app"] = format!("{}x", file.app).into();
    std::fs::write(other, changed.to_string()).expect("a file");
    let both = verify(&[one.clone(), other.clone()], &[]).expect("a report");
    assert!(!both.mismatches.is_empty(), "two reports about different apps fit");
});
