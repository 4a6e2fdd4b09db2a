//! Bytes of Config documents: parsed strictly or refused with places, and every rule that was accepted can be used on
//! an object.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_manifest::config::{Config, matcher, ordering, parse, path, rebase};
use pushback_manifest::Manifest;
use pushback_manifest::yaml::{self, Limits};
use pushback_objects::ObjectRef;
use serde_json::json;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { bytes: 64 << 10, depth: 60, nodes: 20_000, documents: 50, alias_bytes: 64 << 10 };
    let documents = |name: &str, bytes: &[u8]| {
        let loaded = yaml::load(name, bytes, &limits)?;
        Ok(loaded.documents.into_iter().map(|document| (document.value, document.positions)).collect::<Vec<_>>())
    };
    let Ok(found) = documents("f", bytes) else { return };
    let manifests: Vec<Manifest> = found
        .into_iter()
        .map(|(value, positions)| Manifest { object: ObjectRef::of(&value), value, positions: Arc::new(positions) })
        .collect();
    let config = match parse::parse(&manifests, "1.0.0", &|name, text| documents(name, text.as_bytes()), None) {
        Ok(config) => config,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.iter().all(|error| !error.message.is_empty()));
            return;
        }
    };
    let config = Config::merge(defaults(), config);
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "x", "image": "y"}, {"name": "z"}]}}},
        "data": {"key": "dmFsdWU="}, "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let mut masked = object.clone();
    Masker::new(&config.diff_mask_rules).mask(&mut masked, &mut MaskNumbers::default());
    let mut desired = Arc::new(object.clone());
    let _ = rebase::rebase_all(&config.rebase_rules, &mut desired, &object);
    for rule in &config.ownership_label_rules {
        let _ = matcher::matches_any(&rule.matchers, &object);
        let _ = path::resolve(&rule.path, &object);
    }
    for binding in &config.change_group_bindings {
        let _ = ordering::expand(&binding.name, &object);
    }
});
