//! What users of the crate rely on: the place of each change, its proof, and its witness.

use serde_json::{Value, json};

use super::path::node_at;
use super::*;
use crate::schema::contain::{Effect, SchemaStep};
use crate::schema::pipeline::{self, Server};

fn widgets(first: &Value, second: &Value) -> Value {
    let version = |name: &str, storage: bool, fields: &Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {
            "type": "object", "properties": fields,
        }}}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version("v1", true, first), version("v2", false, second)],
        },
        "status": {"storedVersions": ["v1"]},
    })
}

/// The version, place, keyword and proof of each change.
fn lines(old: &Value, new: &Value) -> Vec<String> {
    let changes = compare(&Upgrade::of(old, new, Server::default()));
    let line = |change: DefinitionChange| {
        let proof = match &change.proof {
            Proof::Safe(_) => "safe",
            Proof::Breaking { effect, .. } => effect.as_str(),
            Proof::Unknown { .. } => "unknown",
        };
        let (version, path) = (change.version.clone().unwrap_or_default(), change.path().unwrap_or_default());
        format!("{version} {path} {} {proof}", change.keyword).trim_start().to_owned()
    };
    changes.into_iter().map(line).collect()
}

#[test]
fn every_change_has_its_place_and_its_proof() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let fields = json!({"name": text, "size": number});
    let old = widgets(&fields, &fields);
    assert_eq!(lines(&old, &old), [""; 0]);

    let mut new = widgets(&fields, &json!({"name": text}));
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["versions"][0]["deprecated"] = json!(true);
    assert_eq!(
        lines(&old, &new),
        [
            "spec.scope scope unreadable",
            "v1 deprecated versionDeprecated safe",
            "v2 spec.size existingFieldRemoval pruned",
            "v2 spec.size crossVersionLoss pruned",
        ]
    );
    assert_eq!(
        lines(&new, &old)[1..],
        ["v1 deprecated versionUndeprecated safe", "v2 spec.size fieldAdded safe"],
        "what is new was in no object"
    );

    let mut gone = old.clone();
    gone["spec"]["versions"].as_array_mut().expect("a list").remove(0);
    assert_eq!(lines(&old, &gone), ["v1  storedVersionRemoval unreadable"]);
}

#[test]
fn a_witness_was_fine_and_is_not_any_more() {
    let list = |most: u64| json!({"names": {"type": "array", "items": {"type": "string", "maxLength": most}}});
    let (old, new) = (widgets(&list(20), &list(20)), widgets(&list(10), &list(20)));
    let upgrade = Upgrade::of(&old, &new, Server::default());
    let changes = compare(&upgrade);
    let change = changes.iter().find(|change| change.keyword == "maxLength").expect("the change");
    let steps = ["spec", "names"].map(|name| SchemaStep::Property(name.to_owned()));
    assert_eq!(change.node(), Some([steps.as_slice(), &[SchemaStep::Items]].concat().as_slice()));
    assert!(
        matches!(&change.proof, Proof::Breaking { effect: Effect::Rejected, blocks: Some(Blocked::EditOfList), .. }),
        "{:?}",
        change.proof
    );
    let witness = change.witness.as_ref().expect("an object");
    let is_taken = |resource| pipeline::create(&resource, upgrade.server, witness).accepted();
    assert_eq!(upgrade.old_resource("v1").map(is_taken), Some(Some(true)));
    assert_eq!(upgrade.new_resource("v1").map(is_taken), Some(Some(false)));
}

#[test]
fn what_a_server_would_refuse_is_told_where_it_is_new() {
    let field = json!({"name": {"type": "string", "uniqueItems": true}});
    let (old, new) = (widgets(&json!({}), &json!({})), widgets(&json!({}), &field));
    let refused = refusals(Some(&old), &new, pipeline::Server::default());
    assert!(!refused.is_empty());
    let (version, steps) = node_at(&new, &refused[0].path).expect("a place in a schema");
    assert_eq!((version.as_str(), path::field_path(&steps).as_str()), ("v2", "spec.name"));
    assert_eq!(refusals(Some(&new), &new, pipeline::Server::default()), []);
}

#[test]
fn removed_default_of_a_required_field_blocks_creation() {
    let with = |field: Value| {
        let mut crd = widgets(&json!({"a": field}), &json!({"a": field}));
        for version in crd["spec"]["versions"].as_array_mut().expect("versions") {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!(["a"]);
        }
        crd
    };
    let (old, new) = (with(json!({"type": "string", "default": "x"})), with(json!({"type": "string"})));
    let changes = compare(&Upgrade::of(&old, &new, Server::default()));
    let of_default = changes.iter().filter(|change| change.keyword == "default");
    let blocks: Vec<Option<Blocked>> = of_default
        .map(|change| match &change.proof {
            Proof::Breaking { blocks, .. } => *blocks,
            _ => None,
        })
        .collect();
    assert_eq!(blocks, [Some(Blocked::Create), Some(Blocked::Create)]);
}

#[test]
fn status_that_is_required_blocks_only_creation() {
    let with = |required: Value| {
        let fields = json!({"a": {"type": "string"}});
        let mut crd = widgets(&fields, &fields);
        for version in crd["spec"]["versions"].as_array_mut().expect("versions") {
            version["subresources"] = json!({"status": {}});
            let schema = &mut version["schema"]["openAPIV3Schema"];
            // The server drops the status of a new object after it has filled in the default.
            schema["properties"]["status"] = json!({"type": "object", "default": {}});
            schema["required"] = required.clone();
        }
        crd
    };
    let (old, new) = (with(json!([])), with(json!(["status"])));
    let changes = compare(&Upgrade::of(&old, &new, Server::default()));
    let of_required: Vec<_> = changes.iter().filter(|change| change.keyword == "required").collect();
    assert!(!of_required.is_empty());
    for change in of_required {
        assert!(matches!(change.proof, Proof::Breaking { blocks: Some(Blocked::Create), .. }), "{change:?}");
    }
}
