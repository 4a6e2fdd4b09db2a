//! Conversion plans, against a CRD with two versions. No panic; errors have a message and a place in the file; what is
//! compiled converts objects there and back without another kind, name or version than was asked for.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pushback::run::storage::conversion::ConversionFiles;
use pushback_conversion::{NoPrograms, goldens, suggestions};
use serde_json::{Value, json};

const DEFINITION: &str = include_str!("../../examples/conversion/definition.yaml");

static CRD: LazyLock<Value> = LazyLock::new(|| serde_yaml::from_str(DEFINITION).expect("YAML"));

/// Files of this process: a command reads what paths name.
static FILES: LazyLock<ConversionFiles> = LazyLock::new(|| {
    let file = |name: &str| std::env::temp_dir().join(format!("pushback-fuzz-{}-{name}.yaml", std::process::id()));
    let definition = file("crd");
    std::fs::write(&definition, DEFINITION).expect("a file");
    ConversionFiles { definition, plan: Some(file("plan")) }
});

static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let given: Value = serde_yaml::from_str(include_str!("../../examples/conversion/cache.yaml")).expect("YAML");
    let group = CRD["spec"]["group"].as_str().expect("a group");
    let kind = &CRD["spec"]["names"]["kind"];
    let versions = CRD["spec"]["versions"].as_array().expect("versions").iter();
    let empty = versions.map(|version| {
        let api_version = format!("{group}/{}", version["name"].as_str().expect("a name"));
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": {}})
    });
    empty.chain([given]).collect()
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(FILES.plan.as_ref().expect("a path"), bytes).expect("a file");
    let converter = match FILES.draft() {
        Ok(converter) => converter,
        Err(error) => {
            assert!(!error.errors.is_empty() && error.errors.iter().all(|error| !error.message.is_empty()));
            return;
        }
    };
    let _ = (suggestions(&converter), goldens(&converter, &NoPrograms));
    for object in &*OBJECTS {
        for version in &converter.lineage().versions {
            let Ok(there) = converter.convert(object.clone(), version, &NoPrograms) else { continue };
            assert_eq!(there.object["apiVersion"], format!("{}/{version}", converter.group()));
            assert_eq!(
                (&there.object["kind"], &there.object["metadata"]["name"]),
                (&object["kind"], &object["metadata"]["name"])
            );
            let from = object["apiVersion"].as_str().expect("a version").rsplit('/').next().expect("a version");
            let _ = converter.convert(there.object, from, &NoPrograms);
        }
    }
});
