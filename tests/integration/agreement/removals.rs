//! Random removals from a real release: whole objects, and parts of objects.

use serde_json::{Value, json};

use super::pairs::{self, Pair, Side};
use crate::support::dice::Dice;

/// Most objects of a release that are left out or edited.
const MOST: u64 = 6;
/// Deepest field that is removed.
const DEPTH: usize = 8;

/// A release, and what a number of removals leave of it.
pub(super) fn pair(seed: u64) -> Pair {
    let mut dice = Dice(seed);
    let mut releases = pairs::pairs();
    releases.retain(|pair| !pair.is_small() && pair.old.len() == 1);
    let release = releases.swap_remove(dice.place(releases.len()));
    let mut objects: Vec<Value> = release.new.values().flat_map(|text| pairs::documents(text)).collect();
    objects.extend(data());
    let old = side(&objects);
    for _ in 0..=dice.throw(MOST) {
        if objects.len() < 2 {
            break;
        }
        let index = dice.place(objects.len());
        if dice.throw(3) < 2 {
            objects.remove(index);
        } else {
            remove_part(&mut objects[index], &mut dice);
        }
    }
    Pair { name: format!("removals {seed} from {}", release.name), old, new: side(&objects) }
}

/// Objects with data, which few releases have.
fn data() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "vault"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}}}),
    ]
}

/// Releases that remove a webhook, each with the number of webhooks that are neither left nor renamed.
pub(super) fn of_webhooks() -> Vec<(Pair, usize)> {
    let validating = |webhooks: &[[&str; 2]]| admission("ValidatingWebhookConfiguration", "policy", webhooks);
    let mutating = |webhooks: &[[&str; 2]]| admission("MutatingWebhookConfiguration", "policy", webhooks);
    let (a, b, c) = (["a.com", "deployments"], ["b.com", "daemonsets"], ["c.com", "deployments"]);
    let moved = admission("ValidatingWebhookConfiguration", "policies", &[a]);
    let rest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rest"}});
    let cases = [
        ("a configuration", vec![validating(&[a, b])], vec![], 2),
        ("an entry", vec![validating(&[a, b])], vec![validating(&[a])], 1),
        ("a mutating configuration", vec![mutating(&[a]), validating(&[b])], vec![validating(&[b])], 1),
        ("none, one moves", vec![validating(&[a])], vec![moved], 0),
        ("none, one is renamed", vec![validating(&[a])], vec![validating(&[c])], 0),
        (
            "one of two, of which one is renamed",
            vec![validating(&[a, ["d.com", "deployments"]])],
            vec![validating(&[c])],
            1,
        ),
    ];
    let with_rest = |objects: Vec<Value>| side(&[objects, vec![rest.clone()]].concat());
    let pair = |(name, old, new, removed): (&str, Vec<Value>, Vec<Value>, usize)| {
        (Pair { name: format!("webhooks: {name}"), old: with_rest(old), new: with_rest(new) }, removed)
    };
    cases.into_iter().map(pair).collect()
}

/// A release that removes admission policies and bindings.
pub(super) fn of_policies() -> Pair {
    let object = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "policy"}, "spec": spec});
    let matches = json!({"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["deployments"]}]});
    let checks = json!({"matchConstraints": matches, "validations": [{"expression": "false"}]});
    let binding = json!({"policyName": "policy", "validationActions": ["Deny"]});
    let sets = json!({"matchConstraints": matches, "reinvocationPolicy": "Never", "mutations": []});
    let old = [
        object("ValidatingAdmissionPolicy", checks),
        object("ValidatingAdmissionPolicyBinding", binding),
        object("MutatingAdmissionPolicy", sets),
        object("MutatingAdmissionPolicyBinding", json!({"policyName": "policy"})),
    ];
    let rest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rest"}});
    let old = [&old[..], std::slice::from_ref(&rest)].concat();
    Pair { name: "admission policies".to_owned(), old: side(&old), new: side(&[rest]) }
}

/// A configuration with webhooks: name, and the resource that each sees.
fn admission(kind: &str, name: &str, webhooks: &[[&str; 2]]) -> Value {
    let webhook = |[name, resource]: &[&str; 2]| {
        json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": format!("https://{name}/check")},
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}]})
    };
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": webhooks.iter().map(webhook).collect::<Vec<_>>()})
}

fn side(objects: &[Value]) -> Side {
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    Side::from([("all.yaml".to_owned(), text)])
}

/// Removes a field or an item somewhere below the object, but nothing that identifies it.
fn remove_part(object: &mut Value, dice: &mut Dice) {
    let Some(fields) = object.as_object() else { return };
    let known = ["apiVersion", "kind", "metadata", "status"];
    let keys: Vec<String> = fields.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect();
    if keys.is_empty() {
        return;
    }
    let mut node = &mut object[&keys[dice.place(keys.len())]];
    for _ in 0..DEPTH {
        let goes_deeper = dice.throw(5) < 4;
        match node {
            Value::Object(map) if !map.is_empty() => {
                let keys: Vec<String> = map.keys().cloned().collect();
                let key = &keys[dice.place(keys.len())];
                if !goes_deeper || !(map[key].is_object() || map[key].is_array()) {
                    map.shift_remove(key);
                    return;
                }
                node = &mut node[key.as_str()];
            }
            Value::Array(items) if !items.is_empty() => {
                let index = dice.place(items.len());
                if !goes_deeper || !(items[index].is_object() || items[index].is_array()) {
                    items.remove(index);
                    return;
                }
                node = &mut node[index];
            }
            _ => return,
        }
    }
}
