//! Refusals that are inconclusive because their cause is part of the planned set: a namespace, a CRD, a role, a
//! webhook. Such an object is not verified, and waits for the cause.

use std::collections::{BTreeMap, BTreeSet};

use pushback_cluster::{ClusterError, ErrorKind, NAMESPACE_TERMINATING};
use pushback_objects::{ObjectExt, ObjectKey};
use pushback_preflight::Verification;
use pushback_preflight::rule::Judgement;
use serde_json::Value;

use super::desired::Desired;
use super::{Options, Planned};

/// Why a refusal is inconclusive.
struct Explained {
    /// Reason for display.
    reason: String,
    /// The objects of the set that must first exist, be ready, or be deleted.
    after: Vec<ObjectKey>,
}

/// The objects of the set, by what their absence can cause.
#[derive(Debug, Default)]
pub(super) struct Providers {
    changed: BTreeSet<ObjectKey>,
    /// Group and kind of custom resources whose CRD changes → the CRD.
    custom_kinds: BTreeMap<(String, String), ObjectKey>,
    /// Objects that control the admission of others: webhooks, admission policies.
    admission: Vec<ObjectKey>,
    /// Services of the set, changed or not, as backends of webhooks.
    services: Vec<Service>,
    /// Namespace and labels of the Pods that an object of the set creates.
    pods: Vec<(ObjectKey, Value)>,
    /// Quotas and limit ranges that change.
    limits: Vec<ObjectKey>,
}

#[derive(Debug)]
struct Service {
    key: ObjectKey,
    selector: Value,
}

impl Providers {
    /// The objects of a set: those of the manifests, then those that the run deletes.
    pub(super) fn new(pairs: &[(Desired, Planned)], prunes: &[Planned]) -> Self {
        let mut providers = Self::default();
        for (wanted, planned) in pairs {
            providers.add(&wanted.object.key(), Some(&wanted.value), planned.operation().writes());
        }
        for planned in prunes {
            providers.add(&planned.object.key(), planned.live.as_deref(), true);
        }
        providers
    }

    /// Decides what the server's answer about one object means, now that the whole set is known. A final refusal stays in
    /// `refused`, and is returned as findings.
    pub(super) fn settle(&self, wanted: &Desired, planned: &mut Planned, options: &Options) -> Judgement {
        let mut judgement = Judgement::default();
        planned.kind_changes = self.definition_of(wanted).is_some();
        let Some(refused) = planned.refused.take() else {
            // Even a positive answer is not final.
            if planned.operation().writes() && planned.verification == Verification::Server && planned.kind_changes {
                let reason = format!("the CustomResourceDefinition of {} is changed by this run", wanted.object.kind);
                planned.verification = Verification::NotVerified(reason);
            }
            return judgement;
        };
        let error = &refused.error;
        // A rule of the Config that fails has no other cause.
        let explained = (error.kind != ErrorKind::Configuration).then(|| self.explain(wanted, error)).flatten();
        planned.verification = if let Some(explained) = explained {
            planned.after = explained.after;
            Verification::NotVerified(explained.reason)
        } else if error.kind == ErrorKind::Forbidden && options.tolerate_forbidden {
            Verification::NotVerified(format!("compared without the server: {}", error.message))
        } else if error.kind == ErrorKind::Unsupported {
            planned.no_dry_run = true;
            Verification::NotVerified(error.message.clone())
        } else if matches!(error.kind, ErrorKind::WebhookUnavailable | ErrorKind::Server | ErrorKind::Protocol) {
            // A webhook may answer by the time of the write, which is tried until then.
            if options.strict || error.kind != ErrorKind::WebhookUnavailable {
                let unable = format!("{} could not be verified by the server: {}", wanted.object, error.message);
                judgement.unable.push(unable);
            }
            Verification::NotVerified(error.message.clone())
        } else {
            judgement.findings = refused.findings(wanted);
            planned.refused = Some(refused);
            Verification::Refused
        };
        judgement
    }

    fn add(&mut self, object: &ObjectKey, value: Option<&Value>, writes: bool) {
        let part = |pointer: &str| value.and_then(|value| value.pointer(pointer)).cloned();
        if object.kind == "Service" && object.group.is_empty() {
            let selector = part("/spec/selector").unwrap_or_default();
            self.services.push(Service { key: object.clone(), selector });
        }
        let labels = match (object.group.as_str(), object.kind.as_str()) {
            ("", "Pod") => part("/metadata/labels"),
            ("apps", _) => part("/spec/template/metadata/labels"),
            _ => None,
        };
        self.pods.extend(labels.map(|labels| (object.clone(), labels)));
        if !writes {
            return;
        }
        match (object.group.as_str(), object.kind.as_str()) {
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                if let Some(crd) = value {
                    let kind = (crd.text("/spec/group").to_owned(), crd.text("/spec/names/kind").to_owned());
                    self.custom_kinds.insert(kind, object.clone());
                }
            }
            ("admissionregistration.k8s.io", _) => self.admission.push(object.clone()),
            ("", "ResourceQuota" | "LimitRange") => self.limits.push(object.clone()),
            _ => {}
        }
        self.changed.insert(object.clone());
    }

    fn changed(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<&ObjectKey> {
        self.changed.get(&ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    fn definition_of(&self, desired: &Desired) -> Option<&ObjectKey> {
        self.custom_kinds.get(&(desired.object.group.clone(), desired.object.kind.clone()))
    }

    /// Why a refusal is inconclusive; `None` if it is final.
    fn explain(&self, desired: &Desired, error: &ClusterError) -> Option<Explained> {
        let object = &desired.object;
        let because = |reason: String, after: Vec<ObjectKey>| Some(Explained { reason, after });
        if let Some(namespace) = self.changed("", "Namespace", "", &object.namespace) {
            let after = vec![namespace.clone()];
            if error.kind == ErrorKind::NotFound {
                return because(format!("Namespace {} is created by this run", object.namespace), after);
            }
            if error.reason == NAMESPACE_TERMINATING {
                let reason =
                    format!("Namespace {} is still being deleted, and created anew by this run", object.namespace);
                return because(reason, after);
            }
            if error.kind == ErrorKind::Denied && error.message.contains("violates PodSecurity") {
                return because(format!("Namespace {} is changed by this run", object.namespace), after);
            }
        }
        if let Some(definition) = self.definition_of(desired)
            && error.kind != ErrorKind::Forbidden
        {
            let reason = format!("the CustomResourceDefinition of {} is changed by this run", object.kind);
            return because(reason, vec![definition.clone()]);
        }
        if let Some(explained) = self.explain_reference(desired, error) {
            return Some(explained);
        }
        let by_admission = ["admission webhook \"", "ValidatingAdmissionPolicy '"];
        let by_admission = by_admission.iter().any(|words| error.message.contains(words));
        let refused =
            !by_admission && matches!(error.kind, ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::Forbidden);
        let limits: Vec<ObjectKey> =
            self.limits.iter().filter(|limit| limit.namespace == object.namespace).cloned().collect();
        if refused && !limits.is_empty() {
            return because("a quota or limit range of its namespace is changed by this run".to_owned(), limits);
        }
        if error.kind == ErrorKind::WebhookUnavailable
            && let Some(backend) = self.backend(&error.message)
        {
            return because("the webhook's own backend is in this set".to_owned(), backend);
        }
        if (by_admission || error.kind == ErrorKind::WebhookUnavailable) && !self.admission.is_empty() {
            let reason = "a webhook or admission policy is changed by this run".to_owned();
            return because(reason, self.admission.clone());
        }
        None
    }

    /// Explains a refusal because of a referenced object that does not exist yet.
    fn explain_reference(&self, desired: &Desired, error: &ClusterError) -> Option<Explained> {
        let object = &desired.object;
        let refused =
            matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Invalid);
        if !refused {
            return None;
        }
        let value = &desired.value;
        let references = match (object.group.as_str(), object.kind.as_str()) {
            ("", "Pod") => {
                let account = match value.text("/spec/serviceAccountName") {
                    "" => "default",
                    name => name,
                };
                vec![
                    ("", "ServiceAccount", object.namespace.as_str(), account),
                    ("scheduling.k8s.io", "PriorityClass", "", value.text("/spec/priorityClassName")),
                    ("node.k8s.io", "RuntimeClass", "", value.text("/spec/runtimeClassName")),
                ]
            }
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
                let (kind, name) = (value.text("/roleRef/kind"), value.text("/roleRef/name"));
                let namespace = if kind == "Role" { object.namespace.as_str() } else { "" };
                vec![("rbac.authorization.k8s.io", kind, namespace, name)]
            }
            _ => Vec::new(),
        };
        let after: Vec<ObjectKey> = references
            .into_iter()
            .filter_map(|(group, kind, namespace, name)| self.changed(group, kind, namespace, name))
            .cloned()
            .collect();
        let first = after.first()?;
        Some(Explained { reason: format!("{} {} is changed by this run", first.kind, first.name), after })
    }

    /// The Service that a webhook calls, and the workloads behind it, if they are in the set. The server's message has
    /// the address: `https://name.namespace.svc:443/path`.
    fn backend(&self, message: &str) -> Option<Vec<ObjectKey>> {
        let called =
            |service: &&Service| message.contains(&format!("//{}.{}.svc", service.key.name, service.key.namespace));
        let service = self.services.iter().find(called)?;
        let runs = |labels: &Value| match &service.selector {
            Value::Object(selector) if !selector.is_empty() => {
                selector.iter().all(|(key, wanted)| labels.get(key) == Some(wanted))
            }
            _ => false,
        };
        let pods = self.pods.iter().filter(|(key, labels)| key.namespace == service.key.namespace && runs(labels));
        Some([service.key.clone()].into_iter().chain(pods.map(|(key, _)| key.clone())).collect())
    }
}
