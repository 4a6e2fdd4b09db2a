//! Bindings: their role and their subjects. An account that is no longer bound loses permissions, which no other check
//! shows.

use std::collections::BTreeSet;

use pushback_objects::object::{ObjectExt, ObjectKey};
use serde_json::{Value, json};

use super::super::difference::{ChangeType, Severity};
use super::super::model::Resource;
use super::context::Context;
use super::manifest_difference::{ManifestDifference, REFUSED};

pub(super) fn differences(
    context: &Context<'_>,
    before: &Resource,
    after: &Resource,
    (old, new): (&Value, &Value),
) -> Vec<ManifestDifference> {
    let is_binding = |resource: &Resource| {
        resource.object.group == "rbac.authorization.k8s.io"
            && matches!(resource.object.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
    };
    if !is_binding(before) || !is_binding(after) {
        return Vec::new();
    }
    let mut found: Vec<ManifestDifference> = role(before, after, (old, new)).into_iter().collect();
    let (was, is) = (subjects(before, old), subjects(after, new));
    // A removed account needs no permissions.
    let lost = was.difference(&is).filter(|subject| !subject.account().is_some_and(|key| context.is_gone(&key)));
    let lost: Vec<String> = lost.map(Subject::title).collect();
    if !lost.is_empty() {
        let message = format!("no longer bound to the role: {}", lost.join(", "));
        let narrowed =
            ManifestDifference::new(Severity::Warning, "subjects", message).kind(ChangeType::PermissionsNarrowed);
        found.push(narrowed.values(Some(json!(lost)), None));
    }
    let gained: Vec<String> = is.difference(&was).map(Subject::title).collect();
    if !gained.is_empty() {
        let message = format!("bound to the role from now on: {}", gained.join(", "));
        let widened = ManifestDifference::new(Severity::Info, "subjects", message).kind(ChangeType::PermissionsWidened);
        found.push(widened.values(None, Some(json!(gained))));
    }
    found
}

/// A change of the bound role.
fn role(before: &Resource, after: &Resource, (old, new): (&Value, &Value)) -> Option<ManifestDifference> {
    let title = |value: &Value| format!("{} {}", value.text("/roleRef/kind"), value.text("/roleRef/name"));
    let (was, is) = (title(old), title(new));
    if was == is {
        return None;
    }
    let (severity, tail) = if before.object.key() == after.object.key() {
        (Severity::Breaking, format!(", {REFUSED}"))
    } else {
        (Severity::Warning, String::new())
    };
    let message = format!("binds {is} instead of {was}{tail}");
    Some(ManifestDifference::new(severity, "roleRef", message).values(Some(json!(was)), Some(json!(is))))
}

/// A service account, user or group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    kind: String,
    namespace: String,
    name: String,
}

impl Subject {
    fn title(&self) -> String {
        let Self { kind, namespace, name } = self;
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }

    /// The ServiceAccount, if the subject is one.
    fn account(&self) -> Option<ObjectKey> {
        let Self { kind, namespace, name } = self.clone();
        (kind == "ServiceAccount").then(|| ObjectKey { group: String::new(), kind, namespace, name })
    }
}

fn subjects(binding: &Resource, manifest: &Value) -> BTreeSet<Subject> {
    let listed = manifest.get("subjects").and_then(Value::as_array).into_iter().flatten();
    let subjects = listed.map(|subject| {
        let kind = subject.text("/kind").to_owned();
        let namespace = match (kind.as_str(), subject.text("/namespace")) {
            ("ServiceAccount", "") => binding.object.namespace.clone(),
            ("ServiceAccount", namespace) => namespace.to_owned(),
            // Users and groups have no namespace.
            _ => String::new(),
        };
        Subject { kind, namespace, name: subject.text("/name").to_owned() }
    });
    subjects.collect()
}
