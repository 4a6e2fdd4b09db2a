//! The published lists of kapp and OLM row by row, in each profile; the effect of mode, failMode and profile.
//!
//! The published example has errors, corrected here: its name is not `<plural>.<group>`, its scope is `cluster`, a root
//! field is shown below `.spec`, and one edit changes a version that it does not show.

use serde_json::{Value, json};

use super::*;

/// The published example with a field of each kind that the rows mention.
fn samples(field: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.test.example.com"},
        "spec": {
            "group": "test.example.com", "scope": "Namespaced",
            "names": {"kind": "Sample", "listKind": "SampleList", "plural": "samples", "singular": "sample"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                    "spec": {"type": "object", "properties": {"f": field}}, "status": {"type": "object"},
                    "pollInterval": {"type": "string"},
                }}},
            }],
        },
        "status": {"storedVersions": ["v1alpha1"]},
    })
}

const ROOT: &str = "/spec/versions/0/schema/openAPIV3Schema";

fn judge(old: Value, new: Value, config: &Value) -> RunReport {
    run_with(vec![update(old, new)], config, Ok(Vec::new()))
}

/// The result of a change in each profile: the verdict and check of every finding, or `passes`.
fn outcomes(old: &Value, new: &Value) -> String {
    let of = |profile: &str| {
        let report = judge(old.clone(), new.clone(), &json!({"profile": profile, "liveObjects": "off"}));
        let reported: Vec<String> = report
            .findings
            .iter()
            .filter(|finding| finding.verdict != Verdict::Change)
            .map(|finding| format!("{} {}", format!("{:?}", finding.verdict).to_lowercase(), finding.check))
            .collect();
        if reported.is_empty() { "passes".to_owned() } else { reported.join(", ") }
    };
    format!("{} | {} | {}", of("data"), of("published"), of("strict"))
}

fn fields(old: Value, new: Value) -> String {
    outcomes(&samples(old), &samples(new))
}

fn edited(edit: impl Fn(&mut Value)) -> String {
    let old = samples(json!({"type": "string"}));
    let mut new = old.clone();
    edit(&mut new);
    outcomes(&old, &new)
}

#[test]
fn each_published_row_in_each_profile() {
    let object =
        |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let number = |keyword: &str, value: i64| {
        let kind = match keyword {
            "minimum" | "maximum" => "integer",
            "minLength" | "maxLength" => "string",
            "minItems" | "maxItems" => "array",
            _ => "object",
        };
        let mut schema = json!({"type": kind, keyword: value});
        match kind {
            "array" => schema["items"] = json!({"type": "string"}),
            "object" => schema["additionalProperties"] = json!({"type": "string"}),
            _ => {}
        }
        schema
    };
    let without = |keyword: &str| {
        let mut schema = number(keyword, 0);
        schema.as_object_mut().expect("a schema").remove(keyword);
        schema
    };
    let string = || json!({"type": "string"});
    let mut rows = vec![
        (
            "new required field",
            fields(
                object(json!({"a": string()}), json!([])),
                object(json!({"a": string(), "b": string()}), json!(["b"])),
            ),
        ),
        (
            "existing field becomes required",
            edited(|crd| crd.pointer_mut(ROOT).expect("a schema")["required"] = json!(["pollInterval"])),
        ),
        (
            "new required field with a default",
            fields(
                object(json!({"a": string()}), json!([])),
                object(json!({"a": string(), "b": {"type": "string", "default": "x"}}), json!(["b"])),
            ),
        ),
        (
            "field removed",
            edited(|crd| {
                let schema = crd.pointer_mut(ROOT).expect("a schema");
                schema["properties"].as_object_mut().expect("fields").shift_remove("pollInterval");
            }),
        ),
        ("type changed", fields(string(), json!({"type": "integer"}))),
        ("type widened", fields(json!({"type": "integer"}), json!({"type": "number"}))),
        ("default added", fields(string(), json!({"type": "string", "default": "x"}))),
        (
            "default changed",
            fields(json!({"type": "string", "default": "x"}), json!({"type": "string", "default": "y"})),
        ),
        ("default removed", fields(json!({"type": "string", "default": "x"}), string())),
        ("enum added", fields(string(), json!({"type": "string", "enum": ["a"]}))),
        (
            "enum added that changes nothing",
            fields(json!({"type": "boolean"}), json!({"type": "boolean", "enum": [true, false]})),
        ),
        (
            "enum values removed",
            fields(json!({"type": "string", "enum": ["a", "b"]}), json!({"type": "string", "enum": ["a"]})),
        ),
        ("whole enum removed", fields(json!({"type": "string", "enum": ["a", "b"]}), string())),
    ];
    let (lower, upper) =
        (["minimum", "minLength", "minItems", "minProperties"], ["maximum", "maxLength", "maxItems", "maxProperties"]);
    let mut labels = Vec::new();
    for keyword in lower.into_iter().chain(upper) {
        labels.push((format!("{keyword} added"), fields(without(keyword), number(keyword, 3))));
        labels.push((format!("{keyword} raised"), fields(number(keyword, 2), number(keyword, 3))));
        labels.push((format!("{keyword} lowered"), fields(number(keyword, 3), number(keyword, 2))));
        labels.push((format!("{keyword} removed"), fields(number(keyword, 3), without(keyword))));
    }
    rows.extend(labels.iter().map(|(label, outcome)| (label.as_str(), outcome.clone())));
    rows.extend([
        ("scope changed", edited(|crd| crd["spec"]["scope"] = json!("Cluster"))),
        ("stored version removed", edited(|crd| crd["spec"]["versions"][0]["name"] = json!("v1alpha2"))),
        (
            "enum values added",
            fields(json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["a", "b"]})),
        ),
        (
            "required becomes optional",
            fields(object(json!({"a": string()}), json!(["a"])), object(json!({"a": string()}), json!([]))),
        ),
        (
            "version added, others unchanged",
            edited(|crd| {
                let mut version = crd["spec"]["versions"][0].clone();
                version["name"] = json!("v1");
                version["storage"] = json!(false);
                crd["spec"]["versions"].as_array_mut().expect("a list").push(version);
            }),
        ),
        (
            "version added with a new field",
            edited(|crd| {
                let mut version = crd["spec"]["versions"][0].clone();
                version["name"] = json!("v1");
                version["storage"] = json!(false);
                let schema = &mut version["schema"]["openAPIV3Schema"];
                schema["properties"]["spec"]["properties"]["g"] = json!({"type": "string"});
                crd["spec"]["versions"].as_array_mut().expect("a list").push(version);
            }),
        ),
        (
            "description changed",
            fields(json!({"type": "string", "description": "x"}), json!({"type": "string", "description": "y"})),
        ),
        (
            "pattern changed",
            fields(json!({"type": "string", "pattern": "^a+$"}), json!({"type": "string", "pattern": "^a*$"})),
        ),
        (
            "map type changed",
            fields(json!({"type": "object"}), json!({"type": "object", "x-kubernetes-map-type": "atomic"})),
        ),
    ]);
    let table: Vec<String> = rows.iter().map(|(label, outcome)| format!("{label:34}| {outcome}")).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    new required field                | breaking required | breaking required | breaking required
    existing field becomes required   | breaking required | breaking required | breaking required
    new required field with a default | passes | breaking required | breaking defaultOfNewField
    field removed                     | breaking existingFieldRemoval | breaking existingFieldRemoval | breaking existingFieldRemoval
    type changed                      | breaking type | breaking type | breaking type
    type widened                      | passes | breaking type | breaking reader
    default added                     | breaking default | breaking default | breaking default
    default changed                   | breaking default | breaking default | breaking default
    default removed                   | breaking default | breaking default | breaking default
    enum added                        | breaking enum | breaking enum | breaking enum
    enum added that changes nothing   | passes | breaking enum | passes
    enum values removed               | breaking enum | breaking enum | breaking enum
    whole enum removed                | passes | breaking enum | breaking reader
    minimum added                     | breaking minimum | breaking minimum | breaking minimum
    minimum raised                    | breaking minimum | breaking minimum | breaking minimum
    minimum lowered                   | passes | passes | breaking reader
    minimum removed                   | passes | passes | breaking reader
    minLength added                   | breaking minLength | breaking minLength | breaking minLength
    minLength raised                  | breaking minLength | breaking minLength | breaking minLength
    minLength lowered                 | passes | passes | breaking reader
    minLength removed                 | passes | passes | breaking reader
    minItems added                    | breaking minItems | breaking minItems | breaking minItems
    minItems raised                   | breaking minItems | breaking minItems | breaking minItems
    minItems lowered                  | passes | passes | breaking reader
    minItems removed                  | passes | passes | breaking reader
    minProperties added               | breaking minProperties | breaking minProperties | breaking minProperties
    minProperties raised              | breaking minProperties | breaking minProperties | breaking minProperties
    minProperties lowered             | passes | passes | breaking reader
    minProperties removed             | passes | passes | breaking reader
    maximum added                     | breaking maximum | breaking maximum | breaking maximum
    maximum raised                    | passes | passes | breaking reader
    maximum lowered                   | breaking maximum | breaking maximum | breaking maximum
    maximum removed                   | passes | passes | breaking reader
    maxLength added                   | breaking maxLength | breaking maxLength | breaking maxLength
    maxLength raised                  | passes | passes | breaking reader
    maxLength lowered                 | breaking maxLength | breaking maxLength | breaking maxLength
    maxLength removed                 | passes | passes | breaking reader
    maxItems added                    | breaking maxItems | breaking maxItems | breaking maxItems
    maxItems raised                   | passes | passes | breaking reader
    maxItems lowered                  | breaking maxItems | breaking maxItems | breaking maxItems
    maxItems removed                  | passes | passes | breaking reader
    maxProperties added               | breaking maxProperties | breaking maxProperties | breaking maxProperties
    maxProperties raised              | passes | passes | breaking reader
    maxProperties lowered             | breaking maxProperties | breaking maxProperties | breaking maxProperties
    maxProperties removed             | passes | passes | breaking reader
    scope changed                     | breaking scope | breaking scope | breaking scope
    stored version removed            | breaking storedVersionRemoval | breaking storedVersionRemoval | breaking storedVersionRemoval
    enum values added                 | passes | passes | breaking reader
    required becomes optional         | passes | passes | breaking reader
    version added, others unchanged   | passes | passes | passes
    version added with a new field    | passes | passes | passes
    description changed               | passes | passes | passes
    pattern changed                   | passes | passes | breaking reader
    map type changed                  | unknown x-kubernetes-map-type | unknown x-kubernetes-map-type | unknown x-kubernetes-map-type
    ");
}

#[test]
fn the_published_sentences_are_kept() {
    let old = samples(json!({"type": "string"}));
    let line = |edit: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        edit(&mut new);
        let report = judge(old.clone(), new, &json!({"profile": "published", "liveObjects": "off"}));
        report.findings.iter().filter_map(registry::published_line).collect::<Vec<_>>().join("\n")
    };
    let lines = [
        line(&|crd| crd["spec"]["scope"] = json!("Cluster")),
        line(&|crd| crd["spec"]["versions"][0]["name"] = json!("v1alpha2")),
        line(&|crd| {
            let schema = crd.pointer_mut(ROOT).expect("a schema");
            schema["properties"].as_object_mut().expect("fields").shift_remove("pollInterval");
        }),
        line(&|crd| crd.pointer_mut(ROOT).expect("a schema")["required"] = json!(["pollInterval"])),
        line(&|crd| {
            crd.pointer_mut(ROOT).expect("a schema")["properties"]["spec"]["x-kubernetes-map-type"] = json!("atomic");
        }),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoScopeChange" validation failed: scope changed from "Namespaced" to "Cluster"
    CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoStoredVersionRemoved" validation failed: stored version "v1alpha1" removed
    CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1alpha1 field/^.pollInterval may not be removed
    CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "ChangeValidator" validation failed: version "v1alpha1", field "^": new required fields added: [pollInterval]
    CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "ChangeValidator" validation failed: unable to determine if change to existing field is safe: v1alpha1 ^.spec (x-kubernetes-map-type)
    "#);
}

#[test]
fn mode_fail_mode_and_profile_make_an_outcome_of_each_verdict() {
    let string = || json!({"type": "string"});
    let pairs = [
        ("safe", string(), json!({"type": "string", "description": "x"})),
        ("safe, but listed", json!({"type": "integer"}), json!({"type": "number"})),
        ("breaking", string(), json!({"type": "integer"})),
        ("unknown", json!({"type": "object"}), json!({"type": "object", "x-kubernetes-map-type": "atomic"})),
        ("for readers", json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["a", "b"]})),
    ];
    let mut table = Vec::new();
    for mode in ["error", "warn"] {
        for fail_mode in ["closed", "open"] {
            for profile in ["data", "published", "strict"] {
                let of = |old: &Value, new: &Value| {
                    let config = json!({"mode": mode, "failMode": fail_mode, "profile": profile, "liveObjects": "off"});
                    let report = judge(samples(old.clone()), samples(new.clone()), &config);
                    let code = if report.outcome.refuses() { 10 } else { 0 };
                    format!("{:?} {code}", report.outcome).to_lowercase()
                };
                let cells: Vec<String> =
                    pairs.iter().map(|(name, old, new)| format!("{name}: {}", of(old, new))).collect();
                table.push(format!("{mode:5} {fail_mode:6} {profile:9} | {}", cells.join(" | ")));
            }
        }
    }
    insta::assert_snapshot!(table.join("\n"), @"
    error closed data      | safe: passed 0 | safe, but listed: passed 0 | breaking: refused 10 | unknown: refused 10 | for readers: passed 0
    error closed published | safe: passed 0 | safe, but listed: refused 10 | breaking: refused 10 | unknown: refused 10 | for readers: passed 0
    error closed strict    | safe: passed 0 | safe, but listed: refused 10 | breaking: refused 10 | unknown: refused 10 | for readers: refused 10
    error open   data      | safe: passed 0 | safe, but listed: passed 0 | breaking: refused 10 | unknown: warned 0 | for readers: passed 0
    error open   published | safe: passed 0 | safe, but listed: refused 10 | breaking: refused 10 | unknown: warned 0 | for readers: passed 0
    error open   strict    | safe: passed 0 | safe, but listed: refused 10 | breaking: refused 10 | unknown: warned 0 | for readers: refused 10
    warn  closed data      | safe: passed 0 | safe, but listed: passed 0 | breaking: warned 0 | unknown: warned 0 | for readers: passed 0
    warn  closed published | safe: passed 0 | safe, but listed: warned 0 | breaking: warned 0 | unknown: warned 0 | for readers: passed 0
    warn  closed strict    | safe: passed 0 | safe, but listed: warned 0 | breaking: warned 0 | unknown: warned 0 | for readers: warned 0
    warn  open   data      | safe: passed 0 | safe, but listed: passed 0 | breaking: warned 0 | unknown: warned 0 | for readers: passed 0
    warn  open   published | safe: passed 0 | safe, but listed: warned 0 | breaking: warned 0 | unknown: warned 0 | for readers: passed 0
    warn  open   strict    | safe: passed 0 | safe, but listed: warned 0 | breaking: warned 0 | unknown: warned 0 | for readers: warned 0
    ");
}

#[test]
fn a_single_check_warns_or_is_silent_where_the_settings_say_so() {
    let of = |severity: Value| {
        let config = json!({"checks": {"type": severity}, "liveObjects": "off"});
        let report = judge(samples(json!({"type": "string"})), samples(json!({"type": "integer"})), &config);
        format!("{:?} {}", report.outcome, report.findings.len())
    };
    assert_eq!(["error", "warn", "off"].map(|word| of(json!(word))), ["Refused 1", "Warned 1", "Passed 0"]);
    let described = |config: Value| {
        let text = |text: &str| samples(json!({"type": "string", "description": text}));
        judge(text("a"), text("b"), &config).findings.len()
    };
    assert_eq!((described(json!({})), described(json!({"checks": {"description": "warn"}}))), (0, 1));
}
