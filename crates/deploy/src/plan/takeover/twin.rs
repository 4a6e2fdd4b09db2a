//! A Pod template names its ServiceAccount in two fields, `serviceAccountName` and the older `serviceAccount`. The server
//! fills in each of them from the other, so that the account stays unless both are removed.

use pushback_cluster::managed_fields::{self as fields, Element, FieldSet, ManagerEntry};
use pushback_objects::ObjectExt;
use pushback_objects::object::split_api_version;
use pushback_objects::pod_template::pod_template_path;
use serde_json::Value;

use super::{is_ours, is_predecessor};

/// Both fields.
const NAMES: [&str; 2] = ["serviceAccountName", "serviceAccount"];

/// Returns the fields that the server filled in from one that the manifest no longer has. One that another manager owns
/// is not among them.
pub(super) fn filled_in_fields(live: &Value, known: &[ManagerEntry], wanted: &FieldSet) -> Vec<Vec<Element>> {
    let (group, _) = split_api_version(live.text("/apiVersion"));
    let Some(template) = pod_template_path(group, live.text("/kind")) else { return Vec::new() };
    let [name, twin] = NAMES
        .map(|name| -> Vec<Element> { template.iter().copied().chain(["spec", name]).map(Element::field).collect() });
    let is_left = |(field, other): &(&Vec<Element>, &Vec<Element>)| {
        is_removed(field, known, wanted) && is_filled_in(other, live, known, wanted)
    };
    [(&name, &twin), (&twin, &name)].into_iter().filter(is_left).map(|(_, other)| other.clone()).collect()
}

/// Returns whether the next apply removes a field: no owner is left.
fn is_removed(field: &[Element], known: &[ManagerEntry], wanted: &FieldSet) -> bool {
    let mut owners = known.iter().filter(|entry| entry.fields.contains(field)).peekable();
    owners.peek().is_some()
        && !wanted.contains(field)
        && owners.all(|entry| is_ours(&entry.owner) || is_predecessor(&entry.owner))
}

/// Returns whether a field has a value and no owner.
fn is_filled_in(field: &[Element], live: &Value, known: &[ManagerEntry], wanted: &FieldSet) -> bool {
    let is_owned = || known.iter().any(|entry| entry.fields.contains(field));
    fields::resolve(field, live).is_some() && !wanted.contains(field) && !is_owned()
}

#[cfg(test)]
mod tests {
    use pushback_cluster::managed_fields::Owner;
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, name: &str) -> ManagerEntry {
        let owner = Owner {
            manager: manager.to_owned(),
            operation: "Apply".to_owned(),
            api_version: "apps/v1".to_owned(),
            ..Owner::default()
        };
        let mut fields = FieldSet::default();
        fields.insert(&["spec", "template", "spec", name].map(Element::field));
        ManagerEntry { owner, fields }
    }

    #[test]
    fn account_without_an_owner_is_filled_in_from_one_that_is_removed() {
        let pod = json!({"serviceAccountName": "a", "serviceAccount": "a"});
        let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}});
        let [name, twin] = NAMES.map(|name| vec![["spec", "template", "spec", name].map(Element::field).to_vec()]);
        let none = FieldSet::default();
        let found = |known: &[ManagerEntry], wanted: &FieldSet| filled_in_fields(&live, known, wanted);
        let ours = entry("pushback", NAMES[0]);
        assert_eq!(found(std::slice::from_ref(&ours), &none), twin);
        assert_eq!(found(&[entry("pushback", NAMES[1])], &none), name);
        assert_eq!(found(&[entry("kubectl", NAMES[0])], &none), twin);
        assert!(found(std::slice::from_ref(&ours), &ours.fields).is_empty(), "the manifest still has it");
        assert!(found(&[ours.clone(), entry("other", NAMES[0])], &none).is_empty(), "another manager keeps it");
        assert!(found(&[ours, entry("other", NAMES[1])], &none).is_empty(), "another manager has set it");
        assert!(found(&[entry("other", NAMES[0])], &none).is_empty());
        // Both fields may be in a custom resource, and mean two things.
        let custom = json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}});
        assert!(filled_in_fields(&custom, &[entry("pushback", NAMES[0])], &none).is_empty());
    }
}
