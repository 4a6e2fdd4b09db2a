//! The ways out of a refusal by the API server, as data: those that the live object and the manifest show to be open.

use pushback_objects::finding::Finding;
use pushback_objects::object::ObjectExt;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::{Value, json};

use crate::facts::{Change, Facts};

/// The field of a PersistentVolumeClaim that can only grow.
const CLAIM_SIZE: [&str; 4] = ["spec", "resources", "requests", "storage"];

/// The ways out of a finding, the best first.
pub(crate) fn ways_out(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let change = facts.changes.find(&finding.object.key());
    let own = match (finding.check.as_str(), change) {
        ("immutable", Some(change)) => immutable(change, finding),
        ("unknown-field", _) => vec![left_out(facts, finding)],
        ("namespace", _) => vec![in_namespace(facts, finding, &[])],
        ("terminating", _) => {
            let namespace = format!("namespace/{}", finding.object.namespace);
            let wait = facts.invocation.kubectl(&["wait", "--for=delete", &namespace, "--timeout=10m"]);
            vec![in_namespace(facts, finding, &[wait])]
        }
        _ => Vec::new(),
    };
    own.into_iter().chain(finding.remedy.iter().map(Remedy::author)).collect()
}

fn change(step: impl Into<String>) -> Remedy {
    Remedy::deployer(RemedyKind::Change, step)
}

/// The ways around a field that cannot be changed, besides keeping its value.
fn immutable(change: &Change, finding: &Finding) -> Vec<Remedy> {
    let Some(live) = change.live.as_deref() else { return Vec::new() };
    match (change.object.group.as_str(), change.object.kind.as_str()) {
        ("", "ConfigMap" | "Secret") if live.get("immutable") == Some(&Value::Bool(true)) => of_fixed_content(live),
        ("", "PersistentVolumeClaim") if finding.path.as_deref() == Some(&CLAIM_SIZE.join(".")) => {
            of_claim(change, live)
        }
        _ => Vec::new(),
    }
}

/// A ConfigMap or Secret whose content is fixed. A chart that renders another value each time needs the live one kept.
fn of_fixed_content(live: &Value) -> Vec<Remedy> {
    let anew = change(
        "give each content an object of its own name: annotate the manifest with `kapp.k14s.io/versioned: \"\"`; references to \
         it among the manifests follow",
    );
    let keep = change(
        "keep the live content: annotate the manifest with `kapp.k14s.io/update-strategy: skip`, if it is rendered anew each \
         time, such as a generated password",
    );
    let replace = change(
        "replace the object: annotate the manifest with `kapp.k14s.io/update-strategy: fallback-on-replace`; Pods read the new \
         content once they are restarted",
    );
    let labels = live.pointer("/metadata/labels");
    let has_label = |key: &str| labels.is_some_and(|labels| labels.get(key).is_some());
    if has_label("helm.sh/chart") { vec![keep, anew, replace] } else { vec![anew, keep, replace] }
}

/// A claim that has grown outside of the manifests: by hand, or by a controller that resizes volumes.
fn of_claim(changed: &Change, live: &Value) -> Vec<Remedy> {
    let size = live.text("/spec/resources/requests/storage");
    if size.is_empty() {
        return Vec::new();
    }
    let position = changed.locate(&CLAIM_SIZE.map(Into::into));
    let place = position.map(|position| format!(" in {}:{}", position.file, position.line)).unwrap_or_default();
    let field = CLAIM_SIZE.join(".");
    let same = change(format!(
        "set `{field}: {size}`{place}: the claim has grown outside of the manifests, and cannot shrink"
    ));
    let matcher = json!({"apiVersionKindMatcher": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}});
    let rule =
        json!({"path": CLAIM_SIZE, "type": "copy", "sources": ["existing", "new"], "resourceMatchers": [matcher]});
    let rebase = "if a controller resizes the volume, keep the live size by a rebase rule; the manifest then only sets the \
                  size of a new claim";
    let rebase = Remedy::deployer(RemedyKind::Configure, rebase).config(json!({"rebaseRules": [rule]}));
    vec![same, rebase]
}

/// Writes the object without the field.
fn left_out(facts: &Facts, finding: &Finding) -> Remedy {
    let field = finding.path.as_deref().filter(|path| !path.is_empty());
    let field = field.map_or_else(|| "the field".to_owned(), |field| format!("`{field}`"));
    let step = format!("if {field} is not needed, leave it out with `--strict=false`, which warns of each such field");
    Remedy::deployer(RemedyKind::Configure, step).commands([facts.invocation.with("--strict", "false").to_string()])
}

/// Creates the namespace of the object, after these commands.
fn in_namespace(facts: &Facts, finding: &Finding, before: &[String]) -> Remedy {
    let namespace = finding.object.namespace.as_str();
    let create = facts.invocation.kubectl(&["create", "namespace", namespace]);
    let step = match before {
        [] => format!("create namespace {namespace} first"),
        _ => format!("wait until namespace {namespace} is gone, and create it anew"),
    };
    let commands = before.iter().cloned().chain([create, facts.invocation.to_string()]);
    Remedy::deployer(RemedyKind::CorrectObjects, step).commands(commands)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pushback_objects::finding::Verdict;
    use pushback_objects::object::ObjectRef;

    use super::*;
    use crate::facts::{ChangeSet, Operation, Verification};

    /// The kinds and first steps of the ways out of a refused update of this live object.
    fn ways(live: Value, check: &str, path: &str) -> Vec<Remedy> {
        let object = ObjectRef::of(&live);
        let change = Change {
            object: object.clone(),
            resource: String::new(),
            namespaced: true,
            operation: Operation::Update,
            desired: Some(Arc::new(live.clone())),
            live: Some(Arc::new(live)),
            result: None,
            verification: Verification::Server,
            positions: None,
            orphaned: false,
            taken_from: Vec::new(),
        };
        let changes = ChangeSet { changes: vec![change], ..ChangeSet::default() };
        let facts = Facts { changes, ..Facts::default() };
        let finding = Finding::new("server", check, Verdict::Breaking, object, "m").path(path).remedy("keep the value");
        ways_out(&facts, &finding)
    }

    fn config_map(labels: &Value, immutable: bool) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "labels": labels},
            "immutable": immutable, "data": {"k": "v"}})
    }

    fn first(ways: &[Remedy]) -> &str {
        &ways[0].steps[0]
    }

    #[test]
    fn fixed_content_gets_a_new_name_unless_a_chart_renders_it() {
        let own = ways(config_map(&json!({}), true), "immutable", "data");
        assert!(first(&own).contains("kapp.k14s.io/versioned"), "{own:?}");
        let chart = ways(config_map(&json!({"helm.sh/chart": "a-1"}), true), "immutable", "data");
        assert!(first(&chart).contains("update-strategy: skip"), "{chart:?}");
        assert_eq!(chart.len(), 4);
        let changeable = ways(config_map(&json!({}), false), "immutable", "data");
        assert_eq!(first(&changeable), "keep the value");
    }

    #[test]
    fn claim_that_has_grown_keeps_its_size_in_the_manifest_or_by_a_rule() {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a", "namespace": "b"},
            "spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let grown = ways(claim.clone(), "immutable", "spec.resources.requests.storage");
        assert!(first(&grown).contains("2Gi"), "{grown:?}");
        assert_eq!(
            grown[1].config.as_ref().and_then(|config| config.pointer("/rebaseRules/0/type")),
            Some(&json!("copy"))
        );
        assert_eq!(first(&ways(claim, "immutable", "spec.storageClassName")), "keep the value");
    }

    #[test]
    fn object_without_its_namespace_gets_it_by_a_command() {
        let object = config_map(&json!({}), false);
        let commands = |check: &str| ways(object.clone(), check, "")[0].commands.clone();
        assert_eq!(commands("namespace"), ["kubectl create namespace b", "pushback apply"]);
        assert_eq!(commands("terminating")[0], "kubectl wait --for=delete namespace/b --timeout=10m");
        assert_eq!(commands("unknown-field"), ["pushback apply --strict=false"]);
    }
}
