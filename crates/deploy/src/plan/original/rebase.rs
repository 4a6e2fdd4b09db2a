//! What kapp copies from the live object into a manifest before it compares the two: its built-in rebase rules.
//! An apply needs none of them; here they say what does not count as a difference.

use pushback_manifest::config::{Matcher, Path, PathPart, PathRule, RebaseAction, RebaseRule, RebaseSource, rebase};
use serde_json::Value;

const WEBHOOKS: [(&str, &str); 2] = [
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
];
const DEPLOYMENTS: [(&str, &str); 2] = [("apps", "Deployment"), ("extensions", "Deployment")];
const REVISION: &[&str] = &["metadata", "annotations", "deployment.kubernetes.io/revision"];

/// kapp's rules about single fields; those about the metadata as a whole are in [`onto`].
pub(super) fn built_in() -> Vec<RebaseRule> {
    let claim = [("", "PersistentVolumeClaim")];
    let namespace = [("", "Namespace")];
    let definition = [("apiextensions.k8s.io", "CustomResourceDefinition")];
    let annotation = |name: &'static str| vec!["metadata", "annotations", name];
    let openshift = ["mcs", "supplemental-groups", "uid-range"];
    let bound = [
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "pv.kubernetes.io/migrated-to",
        "volume.beta.kubernetes.io/storage-provisioner",
    ];
    let mut rules = vec![
        kept(&["spec", "clusterIP"], &[("", "Service")]),
        kept(&["spec", "healthCheckNodePort"], &[("", "Service")]),
        kept(&["spec", "finalizers"], &namespace),
        kept(&["spec", "storageClassName"], &claim),
        kept(&["spec", "volumeMode"], &claim),
        kept(&["spec", "volumeName"], &claim),
        kept(REVISION, &DEPLOYMENTS),
        kept(&["webhooks", "*", "clientConfig", "caBundle"], &WEBHOOKS),
        kept(&["spec", "caBundle"], &[("apiregistration.k8s.io", "APIService")]),
        kept(&["spec", "conversion", "webhookClientConfig", "caBundle"], &definition),
        kept(&["spec", "conversion", "webhook", "clientConfig", "caBundle"], &definition),
        kept(&["spec", "nodeName"], &[("", "Pod")]),
    ];
    rules.extend(bound.map(|name| kept(&annotation(name), &claim)));
    rules.extend(
        openshift.map(|name| kept(&["metadata", "annotations", &format!("openshift.io/sa.scc.{name}")], &namespace)),
    );
    rules.push(RebaseRule {
        paths: vec![path(&["rules"])],
        action: RebaseAction::Copy(vec![RebaseSource::Existing]),
        matchers: vec![Matcher::And(vec![
            of_kinds(&[("rbac.authorization.k8s.io", "ClusterRole")]),
            Matcher::Not(Box::new(Matcher::EmptyField { path: path(&["aggregationRule"]) })),
        ])],
    });
    let secretgen = Matcher::And(vec![
        of_kinds(&[("", "Secret")]),
        Matcher::HasAnnotation { keys: vec!["secretgen.carvel.dev/image-pull-secret".to_owned()] },
    ]);
    rules.push(RebaseRule {
        paths: vec![
            path(&["data", ".dockerconfigjson"]),
            path(&["metadata", "annotations", "secretgen.carvel.dev/status"]),
        ],
        action: RebaseAction::Copy(vec![RebaseSource::Existing, RebaseSource::New]),
        matchers: vec![secretgen],
    });
    rules
}

/// Fields that kapp leaves out of the comparison.
pub(super) fn excluded() -> Vec<PathRule> {
    vec![PathRule { path: path(REVISION), matchers: vec![of_kinds(&DEPLOYMENTS)] }]
}

/// A manifest with what kapp copies from a live object: all metadata but labels and annotations, then what rules say.
pub(super) fn onto(rules: &[RebaseRule], manifest: &Value, live: &Value) -> Value {
    let mut onto = manifest.clone();
    if let (Some(fields), Some(metadata)) = (onto.as_object_mut(), live.get("metadata")) {
        let mut metadata = metadata.clone();
        if let Some(map) = metadata.as_object_mut() {
            for name in ["labels", "annotations"] {
                map.shift_remove(name);
                let given = manifest.pointer(&format!("/metadata/{name}"));
                map.extend(given.map(|given| (name.to_owned(), given.clone())));
            }
        }
        fields.insert("metadata".to_owned(), metadata);
    }
    let mut onto = std::sync::Arc::new(onto);
    // Where a rule cannot be evaluated, the plan refuses the object.
    let _ = rebase::rebase_all(rules, &mut onto, live);
    std::sync::Arc::unwrap_or_clone(onto)
}

fn kept(parts: &[&str], kinds: &[(&str, &str)]) -> RebaseRule {
    RebaseRule {
        paths: vec![path(parts)],
        action: RebaseAction::Copy(vec![RebaseSource::New, RebaseSource::Existing]),
        matchers: vec![of_kinds(kinds)],
    }
}

fn of_kinds(kinds: &[(&str, &str)]) -> Matcher {
    let one = |(group, kind): &(&str, &str)| Matcher::ApiGroupKind {
        api_group: (*group).to_owned(),
        kind: (*kind).to_owned(),
    };
    Matcher::Any(kinds.iter().map(one).collect())
}

fn path(parts: &[&str]) -> Path {
    let part = |part: &&str| match *part {
        "*" => PathPart::AllIndexes,
        key => PathPart::Key(key.to_owned()),
    };
    parts.iter().map(part).collect()
}
