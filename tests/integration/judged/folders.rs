//! What only a cluster can know is unknown on a folder or git ref: which objects go with a definition.

use serde_json::{Value, json};

use crate::support::apply::config_map;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: what_goes_with_a_definition_of_a_folder_is_unknown,
        Nothing: to_replace_a_definition_of_a_folder_is_no_way_around,
        Nothing: what_goes_with_a_definition_that_a_release_drops_is_unknown,
    ]
}

fn definition(plural: &str, fields: &[&str], strategy: Option<&str>) -> String {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": plural.to_uppercase(), "plural": plural, "singular": plural, "listKind": "List"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": fields}},
            }}}],
        },
    });
    if let Some(strategy) = strategy {
        definition["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": strategy});
    }
    format!("{definition}\n---\n")
}

/// Config that decides what `unknown` does.
fn settings(fail_mode: &str) -> String {
    let rules = json!([{"name": "CRDUpgradeSafety", "config": {"failMode": fail_mode}}]);
    json!({"apiVersion": "kapp.k14s.io/v1alpha1", "kind": "Config", "preflightRules": rules}).to_string()
}

const FOLDER: [&str; 6] = ["-a", "x", "--cluster", "dir:live", "-o", "json"];

/// A folder to which this has been applied.
fn folder(input: &str) -> Pushback {
    let pushback = Pushback::new();
    pushback.write("in/app.yaml", input);
    pushback.run(&[&["apply", "--yes", "-f", "in"], &FOLDER[..]].concat()).expect(0);
    pushback
}

/// Exit codes of a check with `failMode: closed` and with `failMode: open`, and what the latter finds.
fn check(pushback: &Pushback, arguments: &[&str]) -> (i32, i32, Vec<String>) {
    let run = |fail_mode| -> Ran {
        pushback.write("config.json", settings(fail_mode));
        pushback.run(&[&["check", "--config", "config.json", "-o", "json"], arguments].concat())
    };
    let (closed, open) = (run("closed"), run("open"));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = open.json()["findings"].as_array().expect("findings").clone();
    let findings =
        findings.iter().map(|it| format!("{} {} {}", word(&it["check"]), word(&it["verdict"]), word(&it["severity"])));
    (closed.code, open.code, findings.collect())
}

fn what_goes_with_a_definition_of_a_folder_is_unknown() {
    let rest = config_map("a", "1");
    let pushback = folder(&(definition("boxes", &["size"], None) + &rest));
    pushback.write("in/app.yaml", &rest);
    let common = ["-a", "x", "-f", "in", "--cluster", "dir:live"];
    let expected = (10, 0, vec!["crdDeletion unknown warning".to_owned()]);
    assert_eq!(check(&pushback, &common), expected);
    // By default, too; and nothing is lost.
    let ran = pushback.run(&[&["apply", "--yes", "-f", "in"], &FOLDER[..]].concat()).expect(10);
    assert!(pushback.tree("live").values().any(|file| file.contains("boxes.example.com")), "{}", ran.stdout);
    pushback.run(&[&["apply", "--yes", "-f", "in", "--config", "config.json"], &FOLDER[..]].concat()).expect(0);
}

fn to_replace_a_definition_of_a_folder_is_no_way_around() {
    let pushback = folder(&definition("boxes", &["size", "colour"], None));
    let common = ["-a", "x", "-f", "in", "--cluster", "dir:live"];
    // A schema that no object suffers from: what is unknown is only whether there are objects.
    pushback.write("in/app.yaml", definition("boxes", &["size", "colour", "shape"], Some("always-replace")));
    assert_eq!(check(&pushback, &common), (10, 0, vec!["crdReplacement unknown warning".to_owned()]));
    // One that prunes their fields is refused as it would be in place.
    pushback.write("in/app.yaml", definition("boxes", &["size"], Some("always-replace")));
    let (closed, open, findings) = check(&pushback, &common);
    assert_eq!((closed, open), (10, 10), "{findings:?}");
    assert_eq!(findings, ["existingFieldRemoval breaking error", "crdReplacement unknown warning"]);
}

fn what_goes_with_a_definition_that_a_release_drops_is_unknown() {
    let pushback = Pushback::new();
    let kept = definition("boxes", &["size"], None);
    pushback.write("old/all.yaml", kept.clone() + &definition("bags", &["size"], None)).write("new/all.yaml", &kept);
    let expected = (10, 0, vec!["crdDeletion unknown warning".to_owned()]);
    assert_eq!(check(&pushback, &["-f", "new", "--cluster", "dir:old"]), expected);
}
