//! A fingerprint identifies one change: different changes never share one, and positions, texts and key order do not
//! affect it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Possible schemas of a field, with texts, which no fingerprint covers.
fn field() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0..4_i64, 0..2_u8).prop_map(|(maximum, text)| {
            json!({"type": "integer", "maximum": maximum, "description": format!("text {text}")})
        }),
        (0..3_u64).prop_map(|length| json!({"type": "string", "maxLength": length})),
        prop::sample::subsequence(vec!["A", "B", "C"], 1..=3)
            .prop_map(|words| json!({"type": "string", "enum": words})),
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]})),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let names = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3);
        (prop::collection::vec(inner, 3), names, prop::sample::subsequence(vec!["a", "b", "c"], 0..=2)).prop_map(
            |(fields, names, required)| {
                let required: Vec<_> = required.into_iter().filter(|name| names.contains(name)).collect();
                let properties: Map<String, Value> = names.into_iter().map(ToOwned::to_owned).zip(fields).collect();
                let mut object = json!({"type": "object", "properties": properties});
                if !required.is_empty() {
                    object["required"] = json!(required);
                }
                object
            },
        )
    })
}

fn definition(spec: &Value, scope: &str) -> Value {
    edited(|value| {
        value["spec"]["scope"] = json!(scope);
        for version in value["spec"]["versions"].as_array_mut().expect("versions") {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec.clone();
            for key in ["subresources", "selectableFields", "additionalPrinterColumns"] {
                version.as_object_mut().expect("a map").shift_remove(key);
            }
        }
    })
}

/// The meaning of a schema at a path of plain fields, without texts; independent of the rule's own code.
fn meaning(definition: &Value, version: &str, path: &str) -> Value {
    fn stripped(schema: &Value) -> Value {
        let Value::Object(map) = schema else { return schema.clone() };
        let kept = map.iter().filter(|(key, value)| !(*key == "description" && value.is_string()));
        let mut kept: Value = kept.map(|(key, value)| (key.clone(), stripped(value))).collect();
        kept.sort_all_objects();
        kept
    }
    let versions = definition["spec"]["versions"].as_array().expect("versions");
    let of_name = versions.iter().find(|other| other["name"] == version);
    let root = of_name.map_or(Value::Null, |version| version["schema"]["openAPIV3Schema"].clone());
    let node =
        path.split('.').filter(|name| !name.is_empty()).fold(root, |node, name| node["properties"][name].clone());
    stripped(&node)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn different_changes_never_share_a_fingerprint(
        fields in prop::collection::vec(field(), 3), scopes in prop::collection::vec(prop::bool::ANY, 3),
    ) {
        let definitions: Vec<Value> = fields
            .iter()
            .zip(scopes)
            .map(|(field, cluster)| definition(field, if cluster { "Cluster" } else { "Namespaced" }))
            .collect();
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for (old, new) in [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)] {
            let (old, new) = (&definitions[old], &definitions[new]);
            let mut live = old.clone();
            live["status"] = json!({"storedVersions": ["v1"]});
            for finding in run(update(live, new.clone())).findings {
                let (version, path) = (finding.version.clone().unwrap_or_default(), finding.path.clone().unwrap_or_default());
                // A loss between versions of the new definition is a change of that definition.
                let crosses = finding.check.starts_with("crossVersion");
                let before = if crosses { new } else { old };
                let sides = [before, new].map(|side| meaning(side, &version, &path));
                let change = json!([finding.check, version, path, finding.old, finding.new, sides]);
                let first = known.entry(finding.fingerprint.clone()).or_insert_with(|| change.clone());
                prop_assert_eq!(&*first, &change, "{}", finding.message);
            }
        }
    }

    #[test]
    fn texts_and_the_order_of_keys_are_no_difference(old in field(), new in field()) {
        fn turned(value: &Value) -> Value {
            match value {
                Value::Object(map) => {
                    let texts = map.contains_key("type").then(|| ("description".to_owned(), json!("other words")));
                    let others = map.iter().rev().filter(|(key, _)| *key != "description");
                    others.map(|(key, value)| (key.clone(), turned(value))).chain(texts).collect()
                }
                other => other.clone(),
            }
        }
        let fingerprints = |old: &Value, new: &Value| -> Vec<String> {
            let mut live = definition(old, "Namespaced");
            live["status"] = json!({"storedVersions": ["v1"]});
            let report = run(update(live, definition(new, "Namespaced")));
            let mut all: Vec<String> = report.findings.into_iter().map(|finding| finding.fingerprint).collect();
            all.sort();
            all
        };
        prop_assert_eq!(fingerprints(&old, &new), fingerprints(&turned(&old), &turned(&new)));
    }
}

#[test]
fn a_version_that_goes_is_the_version_with_its_schema() {
    let without = |live: Value| {
        let mut new = foos();
        new["spec"]["versions"].as_array_mut().expect("versions").remove(1);
        let report = run(update(live, new));
        let removal = report.findings.iter().find(|finding| finding.check == "servedVersionRemoval").expect("found");
        removal.fingerprint.clone()
    };
    let mut other = live(&["v1"]);
    other["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] =
        json!({"type": "string"});
    assert_ne!(without(live(&["v1"])), without(other));
}

#[test]
fn a_definition_that_goes_is_the_definition_with_its_content() {
    let object = json!({"metadata": {"name": "one", "namespace": "a"}});
    let deletion = |definition: Value, objects: usize| {
        let report = run_with(vec![delete(definition)], &json!({}), Ok(vec![object.clone(); objects]));
        report.findings[0].fingerprint.clone()
    };
    let mut other = live(&["v1"]);
    other["spec"]["names"]["shortNames"] = json!([]);
    assert_ne!(deletion(live(&["v1"]), 1), deletion(other, 1));
    assert_eq!(deletion(live(&["v1"]), 1), deletion(live(&["v1"]), 3), "how many there are is bound by the waiver");
}
