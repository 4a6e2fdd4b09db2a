//! Records of killed runs in a cluster, as anybody with access to the namespace may have written them: journals of
//! experiments, and the progress of storage migrations. No panic; what is read is written back and reads the same.
#![no_main]

#[path = "shared/one_object.rs"]
mod one_object;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use libfuzzer_sys::fuzz_target;
use one_object::OneObject;
use pushback_cluster::{Kind, Kinds};
use pushback_crd::definition::StoredState;
use pushback_storage::record::{Progress, ProgressRecord};
use pushback_system::environment::Environment;
use pushback_upgrade::journal::Journal;
use pushback_upgrade::recover;
use serde_json::json;

fuzz_target!(|text: &str| {
    let mut kinds = Kinds::default();
    for (kind, plural) in [("ConfigMap", "configmaps"), ("Secret", "secrets")] {
        let (kind, plural) = (kind.to_owned(), plural.to_owned());
        kinds.add(Kind { version: "v1".to_owned(), kind, plural, namespaced: true, ..Kind::default() });
    }
    for kind in ["ConfigMap", "Secret"] {
        let content = if kind == "Secret" { BASE64.encode(text) } else { text.to_owned() };
        let cluster = OneObject(Arc::new(json!({
            "apiVersion": "v1", "kind": kind, "data": {"journal": content, "progress.json": content},
            "metadata": {
                "name": "pushback-experiment-a", "namespace": "shop", "uid": "u",
                "annotations": {"pushback.dev/not-restored": text},
            },
        })));
        let left = futures::executor::block_on(recover::look(&cluster, &kinds, &Environment::fixed(1), None));
        let left = left.expect("a cluster that answers");
        assert_eq!(left.found.journals.len() + left.found.unreadable.len(), 1);
        let _ = (left.describe(), left.namespaces());
        for stored in &left.found.journals {
            let written = serde_json::to_string(&stored.journal).expect("JSON");
            assert_eq!(serde_json::from_str::<Journal>(&written).expect("a journal"), stored.journal);
            for step in &stored.journal.steps {
                let _ = (step.describe_values(), step.values(), step.target.address(&kinds), format!("{step:?}"));
            }
        }
        let state = StoredState::of(&json!({"metadata": {"uid": "u", "generation": 1}}));
        let record = ProgressRecord::of("shop", "cogs.ex.com", None);
        if let Ok((_, Some(progress))) = futures::executor::block_on(record.read(&cluster, &state)) {
            let written = serde_json::to_string(&progress).expect("JSON");
            assert_eq!(serde_json::from_str::<Progress>(&written).expect("progress"), progress);
        }
    }
});
