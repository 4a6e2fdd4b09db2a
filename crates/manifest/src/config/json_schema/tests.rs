//! The JSON Schema and the parser agree on the example after a change of any node, and the committed files are up to date.

use std::path::Path;
use std::sync::LazyLock;

use pushback_objects::json_schema::testing::differences;
use pushback_objects::{ObjectRef, Positions};
use serde_json::Value;

use super::json_schema;
use crate::Manifest;
use crate::config::parse::parse;
use crate::config::testing::{documents, manifests};

static VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::validator_for(&json_schema()).expect("a JSON Schema"));

/// Fails if an editor would complain about this Config.
pub(in crate::config) fn accept(config: &Value) {
    let faults: Vec<String> =
        VALIDATOR.iter_errors(config).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{config}\n{}", faults.join("\n"));
}

fn errors(config: &Value) -> Vec<String> {
    let manifest = Manifest {
        object: ObjectRef::of(config),
        value: config.clone(),
        positions: Positions::of_file("config.yaml").into(),
    };
    let parsed = parse(&[manifest], env!("CARGO_PKG_VERSION"), &documents, None);
    parsed.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn schema_and_parser_agree_on_every_changed_node_of_the_example() {
    let example = manifests("config.example.yaml", include_str!("../../../../../config.example.yaml")).remove(0).value;
    accept(&example);
    let differences = differences(&example, |changed| VALIDATOR.is_valid(changed), errors);
    assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn schemas_of_the_documents_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let schemas =
        [("config.json", json_schema()), ("conversion-plan.json", pushback_conversion::json_schema::json_schema())];
    for (name, schema) in schemas {
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        let path = folder.join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(&folder).expect("the folder is made");
            std::fs::write(&path, &text).expect("the file is written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "{name} is stale: UPDATE_DOCS=1 cargo test -p pushback-manifest schemas_of_the_documents"
        );
    }
}
