//! Small languages in annotations, and text that is shown: rules of order, group names, strategies, escapes, masks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_manifest::config::mask::Masker;
use pushback_manifest::config::{defaults::defaults, ordering};
use pushback_deploy::plan::annotations;
use pushback_terminal::escape::{is_hidden, terminal_safe, terminal_safe_lines};
use pushback_objects::Positions;
use serde_json::json;

fuzz_target!(|text: &str| {
    assert!(!terminal_safe(text).chars().any(is_hidden));
    assert!(!terminal_safe_lines(text).chars().any(|c| c != '\n' && is_hidden(c)));

    let object = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "n", "namespace": "s", "annotations": {
            "kapp.k14s.io/change-rule": text, "kapp.k14s.io/change-group": text,
            "kapp.k14s.io/update-strategy": text, "kapp.k14s.io/change-rule.x": text, text: "",
        }},
    });
    if let Ok(rule) = ordering::parse_rule(text) {
        ordering::check_group(&rule.group).expect("a rule's group was checked");
    }
    let _ = ordering::expand(text, &object);
    let _ = annotations::read(&object, &Positions::of_file("f"));

    // The first line is a secret value, the rest a message that quotes it.
    let (value, message) = text.split_once('\n').unwrap_or((text, text));
    if value.len() >= 4 && !"***".contains(value) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"key": value}});
        let masker = Masker::new(&defaults().diff_mask_rules);
        let shown = masker.hide(&[&secret], &format!("{message} {value}"));
        // A mask beside other text may spell the value by chance only where the value has stars.
        assert!(value.contains('*') || !shown.contains(value), "{value:?} is shown: {shown:?}");
    }
});
