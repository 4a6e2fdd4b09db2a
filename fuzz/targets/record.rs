//! The app's record as anybody with access to the namespace may have written it: understood, called damaged, or void.
//! The input is the `data` of the ConfigMap; other texts are tried as its parts.
#![no_main]

#[path = "shared/one_object.rs"]
mod one_object;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use one_object::OneObject;
use pushback_app::inventory::Inventory;
use pushback_app::record::{AppName, observe};
use pushback_system::environment::Environment;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let data = match serde_json::from_str(text) {
        Ok(data @ Value::Object(_)) => data,
        _ => json!({"spec": "{}", "pushback": text, "pushback-inventory": text, "pushback-lock": text}),
    };
    let record = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"kapp.k14s.io/is-app": ""}},
    });
    let app = AppName { name: "a".to_owned(), namespace: "n".to_owned() };
    let cluster = OneObject(Arc::new(record));
    if let Ok(observed) = futures::executor::block_on(observe(&cluster, &app))
        && let Some(record) = &observed.record
    {
        let _ = (record.label_value(), record.used_kinds(), record.namespaces());
        if let Some(lock) = &record.lock {
            let _ = (lock.describe(), lock.lease(), lock.holder_is_gone(&Environment::fixed(1)));
        }
        let mut again = Inventory::default();
        for shard in observed.inventory.to_shards() {
            again.add_shard(&shard).expect("what is written can be read");
        }
        assert_eq!(again, observed.inventory);
    }
});
