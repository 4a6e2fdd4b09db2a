//! What a server may answer: discovery, lists, refusals, warnings, lines of a watch. No panic, and a refusal of a
//! Secret never shows its value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_cluster::kube::fuzzing;

const VALUE: &str = "hunter2-value";

fuzz_target!(|bytes: &[u8]| {
    fuzzing::read_discovery(bytes);
    fuzzing::read_watch(bytes);
    let warnings = fuzzing::read_warnings(&String::from_utf8_lossy(bytes));
    assert!(warnings.iter().all(|warning| !warning.is_empty()));
    let code = 400 + u16::from(bytes.first().copied().unwrap_or_default());
    let error = fuzzing::read_refusal(code, bytes, VALUE);
    assert!(!error.message.is_empty() && !error.message.contains(VALUE), "{}", error.message);
    assert!(error.causes.iter().all(|cause| !cause.message.contains(VALUE)));
});
