//! `managedFields` as a server sends them: parsed or refused, written back in one form, and combined as sets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_cluster::managed_fields::{FieldSet, managers, project, resolve};
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let (one, other) = match &value {
        Value::Array(two) if two.len() == 2 => (&two[0], &two[1]),
        one => (one, one),
    };
    let object = json!({"metadata": {"managedFields": [
        {"manager": "a", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": one}, other,
    ]}, "spec": other});
    let _ = managers(&object);
    let (Ok(a), Ok(b)) = (FieldSet::parse(one), FieldSet::parse(other)) else { return };
    assert_eq!(FieldSet::parse(&a.to_value()).as_ref(), Ok(&a), "a set survives being written");
    let (union, difference, both) = (a.union(&b), a.difference(&b), a.intersection(&b));
    assert_eq!(union, b.union(&a));
    assert_eq!(both, b.intersection(&a));
    assert_eq!(difference.union(&both), a);
    assert!(difference.intersection(&b).is_empty());
    for path in union.paths() {
        assert!(a.contains(&path) || b.contains(&path));
        let _ = resolve(&path, other);
    }
    let _ = a.lost(&b);
    let _ = project(&a, other);
});
