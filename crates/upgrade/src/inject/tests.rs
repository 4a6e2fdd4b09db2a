//! Targets of experiments against a cluster that records each request.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use pushback_cluster::{
    ApplyOptions, Capabilities, Deleted, Kind, ListQuery, Page, ServerVersion, WatchEvent, Written,
};
use pushback_objects::object::split_api_version;
use pushback_preflight::experiment::{DangerLevel, Experiment, Injection, InjectionType};

use super::*;

const NAMESPACE: &str = "ex";
const RUNNER: &str = "system:serviceaccount:ci:runner";

/// Cluster-scoped kinds, of which each is a target of each injection: API version, kind, plural, an object that may be
/// allowed.
const CLUSTER_SCOPED: [(&str, &str, &str, &str); 24] = [
    ("v1", "Namespace", "namespaces", "other"),
    ("v1", "Namespace", "namespaces", NAMESPACE),
    ("v1", "Node", "nodes", "node-1"),
    ("v1", "PersistentVolume", "persistentvolumes", "disk"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "backup"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", "backup"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "backups.example.com"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "hook"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "hook"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "policy"),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        "policy",
    ),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses", "fast"),
    ("storage.k8s.io/v1", "CSIDriver", "csidrivers", "csi.example.com"),
    ("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", "attached"),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "urgent"),
    ("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", "sandbox"),
    ("networking.k8s.io/v1", "IngressClass", "ingressclasses", "nginx"),
    ("apiregistration.k8s.io/v1", "APIService", "apiservices", "v1.metrics.example.com"),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas", "backup"),
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", "backup"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", "request"),
    ("cert-manager.io/v1", "ClusterIssuer", "clusterissuers", "letsencrypt"),
    ("kueue.x-k8s.io/v1beta1", "ClusterQueue", "clusterqueues", "batch"),
    ("example.com/v1", "Fleet", "fleets", "all"),
];

const NAMESPACED: [(&str, &str, &str); 11] = [
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Pod", "pods"),
    ("v1", "ResourceQuota", "resourcequotas"),
    ("v1", "Secret", "secrets"),
    ("v1", "Service", "services"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("apps/v1", "Deployment", "deployments"),
    ("coordination.k8s.io/v1", "Lease", "leases"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
];

/// A cluster with these objects. Namespaced ones exist under any name.
#[derive(Debug, Default)]
struct Recorded {
    objects: Vec<Value>,
    /// `userInfo` of the run; by default a ServiceAccount of another namespace.
    user: Option<Value>,
    /// The error of each write.
    refusal: Option<ErrorKind>,
    requests: Mutex<Vec<String>>,
}

impl Recorded {
    fn note(&self, request: impl Into<String>) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.into());
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn kinds() -> Kinds {
        let mut kinds = Kinds::default();
        let kind = |api_version: &str, kind: &str, plural: &str, namespaced: bool| {
            let (group, version) = split_api_version(api_version);
            let verbs = ["get", "list", "delete"].map(str::to_owned).to_vec();
            let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
            Kind { group, version, kind, plural, namespaced, verbs, ..Kind::default() }
        };
        for (api_version, name, plural, _) in CLUSTER_SCOPED {
            kinds.add(kind(api_version, name, plural, false));
        }
        for (api_version, name, plural) in NAMESPACED {
            kinds.add(kind(api_version, name, plural, true));
        }
        kinds
    }

    fn refused<T>(&self, what: &str, address: &Address) -> Result<T, ClusterError> {
        self.note(format!("{what} {address}"));
        Err(ClusterError::new(self.refusal.unwrap_or(ErrorKind::Unsupported), "a plan writes nothing"))
    }
}

#[async_trait]
impl Cluster for Recorded {
    fn description(&self) -> String {
        "recorded".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { server: true, writable: true }
    }

    async fn version(&self) -> Result<Option<ServerVersion>, ClusterError> {
        Ok(None)
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        Ok(Arc::new(Self::kinds()))
    }

    async fn rediscover(&self, _group: &str) -> Result<Arc<Kinds>, ClusterError> {
        self.kinds().await
    }

    async fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        self.note(format!("get {address}"));
        let named = self.objects.iter().find(|object| Target::of(object).to_string() == address.to_string());
        let any = || {
            json!({
                "apiVersion": address.kind.api_version(), "kind": address.kind.kind,
                "metadata": {"namespace": address.namespace, "name": address.name, "uid": "u", "resourceVersion": "1"},
                "spec": {"replicas": 1},
            })
        };
        Ok(named.cloned().or_else(|| address.kind.namespaced.then(any)).map(Arc::new))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        self.note(format!("list {}", query.kind.kind));
        let items = self.objects.iter().filter(|object| object.text("/kind") == query.kind.kind);
        Ok(Page { items: items.cloned().map(Arc::new).collect(), ..Page::default() })
    }

    async fn create(&self, address: &Address, _body: &Value, _dry_run: bool) -> Result<Written, ClusterError> {
        if address.kind.kind != "SelfSubjectReview" {
            return self.refused("create", address);
        }
        let user = json!({"username": RUNNER, "groups": ["system:authenticated", "ops"]});
        let user = self.user.clone().unwrap_or(user);
        let object = Arc::new(json!({"status": {"userInfo": user}}));
        Ok(Written { object, created: true, warnings: Vec::new() })
    }

    async fn apply(&self, address: &Address, _body: &Value, _options: ApplyOptions) -> Result<Written, ClusterError> {
        self.refused("apply", address)
    }

    async fn patch(&self, address: &Address, _patch: &Patch, _dry_run: bool) -> Result<Written, ClusterError> {
        self.refused("patch", address)
    }

    async fn delete(&self, address: &Address, _options: &DeleteOptions) -> Result<Option<Deleted>, ClusterError> {
        self.refused("delete", address)
    }

    async fn watch(
        &self,
        _query: &ListQuery,
        _resource_version: &str,
    ) -> Result<BoxStream<'static, Result<WatchEvent, ClusterError>>, ClusterError> {
        Err(ClusterError::new(ErrorKind::Unsupported, "a plan watches nothing"))
    }
}

/// An experiment whose parameters name the target in each way that an injection reads.
fn experiment(kind: InjectionType, api_version: &str, target: &str, name: &str) -> Experiment {
    let webhook = if target.starts_with("Mutating") { "mutating" } else { "validating" };
    let parameters = [
        ("apiVersion", api_version),
        ("kind", target),
        ("name", name),
        ("resourceType", target),
        ("bindingType", target),
        ("bindingName", name),
        ("webhookName", name),
        ("webhookType", webhook),
        ("labelSelector", "app=x"),
        ("labelKey", "team"),
        ("newValue", "chaos"),
        ("field", "size"),
        ("key", "size"),
        ("value", "2"),
        ("quotaName", name),
        ("pods", "0"),
    ];
    let mut experiment = Experiment { namespace: NAMESPACE.to_owned(), ..Experiment::default() };
    experiment.injection = Injection {
        kind,
        danger: DangerLevel::High,
        parameters: parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..Injection::default()
    };
    experiment
}

fn site(consents: &[&str]) -> Site {
    Site {
        allowed: [NAMESPACE.to_owned()].into(),
        max_danger: DangerLevel::High,
        cluster_scoped: consents.iter().map(|consent| consent.parse().expect("a consent")).collect(),
    }
}

async fn planned(cluster: &Recorded, experiment: &Experiment, site: &Site) -> Result<Planned, Refusal> {
    admit(experiment, site)?;
    plan(cluster, &Recorded::kinds(), experiment, site, "run-1").await
}

#[tokio::test]
async fn injection_into_each_cluster_scoped_kind_without_consent_is_refused_unread() {
    let mut refusals = 0;
    for (api_version, target, _, name) in CLUSTER_SCOPED {
        let objects = vec![json!({
            "apiVersion": api_version, "kind": target,
            "metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "subjects": [{"kind": "User", "name": "x"}],
        })];
        let cluster = Recorded { objects, ..Recorded::default() };
        for kind in InjectionType::ALL.iter().copied() {
            // A consent for another object changes nothing.
            for site in [site(&[]), site(&["Node/node-2", "ClusterRole/other"])] {
                let given = experiment(kind, api_version, target, name);
                let outcome = planned(&cluster, &given, &site).await;
                let what = format!("{} on {target}/{name}", kind.as_str());
                let requests = cluster.requests();
                let is_about = |request: &String| {
                    CLUSTER_SCOPED.iter().any(|(_, kind, _, _)| request.contains(&format!(" {kind} ")))
                };
                assert!(!requests.iter().any(is_about), "{what}: {requests:?}");
                match outcome {
                    Ok(planned) => {
                        let inside = |step: &Step| step.target.namespace == NAMESPACE;
                        assert!(planned.steps.iter().all(inside), "{what}: {:?}", planned.steps);
                    }
                    Err(_) => refusals += 1,
                }
            }
        }
    }
    // Only QuotaExhaustion, DeploymentScaleZero and SecretDeletion find something in the namespace, whatever is named.
    let inside = 3;
    assert_eq!(refusals, 2 * CLUSTER_SCOPED.len() * (InjectionType::ALL.len() - inside));
}

#[tokio::test]
async fn webhook_configurations_selected_by_label_need_a_consent_each() {
    let hook = |name: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "webhooks": [],
        })
    };
    let cluster = Recorded { objects: vec![hook("a"), hook("b")], ..Recorded::default() };
    let mut given = experiment(InjectionType::WebhookDisrupt, "", "", "");
    given.injection.parameters.insert("webhookLabelSelector".to_owned(), "app=x".to_owned());
    let refusal = planned(&cluster, &given, &site(&["ValidatingWebhookConfiguration/a"])).await.unwrap_err();
    let expected = "ValidatingWebhookConfiguration b is cluster-scoped; allow it with --allow-cluster-scoped \
                    ValidatingWebhookConfiguration/b";
    assert_eq!(refusal.to_string(), expected);
    let both = site(&["ValidatingWebhookConfiguration/a", "ValidatingWebhookConfiguration/b"]);
    planned(&cluster, &given, &both).await.unwrap();
}

fn rbac(kind: &str, name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "uid": "u", "resourceVersion": "1", "labels": {"of": name}},
    });
    merge_into(&mut object, more);
    object
}

fn merge_into(object: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        object[key] = value;
    }
}

#[tokio::test]
async fn permissions_of_the_run_are_never_a_target() {
    let runner = json!([{"kind": "ServiceAccount", "namespace": "ci", "name": "runner"}]);
    let bound = |name: &str| json!({"subjects": runner, "roleRef": {"kind": "ClusterRole", "name": name}});
    let selects = |name: &str| json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"of": name}}]}});
    let inside = |mut object: Value| {
        object["metadata"]["namespace"] = NAMESPACE.into();
        object
    };
    let theirs =
        json!({"subjects": [{"kind": "User", "name": "x"}], "roleRef": {"kind": "ClusterRole", "name": "theirs"}});
    let role_of_runner = json!({"subjects": runner, "roleRef": {"kind": "Role", "name": "inside"}});
    let objects = vec![
        rbac("ClusterRoleBinding", "direct", bound("aggregated")),
        rbac("ClusterRoleBinding", "theirs", theirs),
        rbac("ClusterRole", "aggregated", selects("part")),
        rbac("ClusterRole", "part", selects("part-of-part")),
        rbac("ClusterRole", "part-of-part", json!({})),
        rbac("ClusterRole", "theirs", json!({})),
        inside(rbac("RoleBinding", "by-name", bound("by-name"))),
        rbac("ClusterRole", "by-name", json!({})),
        inside(rbac("RoleBinding", "to-role", role_of_runner)),
        inside(rbac("Role", "inside", json!({}))),
        inside(rbac("Role", "other", json!({}))),
    ];
    let cluster = Recorded { objects, ..Recorded::default() };
    for (kind, name, is_allowed) in [
        ("ClusterRoleBinding", "direct", false),
        ("ClusterRoleBinding", "theirs", true),
        ("ClusterRole", "aggregated", false),
        ("ClusterRole", "part", false),
        ("ClusterRole", "part-of-part", false),
        ("ClusterRole", "by-name", false),
        ("ClusterRole", "theirs", true),
        ("RoleBinding", "by-name", false),
        ("Role", "inside", false),
        ("Role", "other", true),
    ] {
        let consent = format!("{kind}/{name}");
        let consents: &[&str] = if kind.starts_with("Cluster") { &[&consent] } else { &[] };
        let given = experiment(InjectionType::LabelStomping, "rbac.authorization.k8s.io/v1", kind, name);
        let outcome = planned(&cluster, &given, &site(consents)).await;
        match outcome {
            Ok(_) => assert!(is_allowed, "{consent}"),
            Err(refusal) => {
                assert!(!is_allowed, "{consent}: {refusal}");
                let why = format!("grants permissions to {RUNNER}, the user of this run, who could not restore them");
                assert!(refusal.to_string().ends_with(&why), "{consent}: {refusal}");
            }
        }
    }
    let account = Recorded::default();
    for (namespace, is_refused) in [("ci", true), (NAMESPACE, false)] {
        let mut given = experiment(InjectionType::LabelStomping, "v1", "ServiceAccount", "runner");
        given.namespace = namespace.to_owned();
        let site = Site { allowed: [namespace.to_owned()].into(), ..site(&[]) };
        let outcome = planned(&account, &given, &site).await;
        assert_eq!(outcome.is_err(), is_refused, "{namespace}");
        assert!(outcome.err().is_none_or(|refusal| refusal.to_string().contains(RUNNER)), "{namespace}");
    }
}

fn controlled(api_version: &str, kind: &str, name: &str, controller: Option<&str>) -> Value {
    let owner = controller.map(|name| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": "Deployment", "controller": true})
    });
    json!({
        "apiVersion": api_version, "kind": kind, "spec": {"replicas": 1},
        "metadata": {
            "namespace": NAMESPACE, "name": name, "uid": format!("{kind}-{name}"), "resourceVersion": "1",
            "ownerReferences": owner.into_iter().collect::<Vec<_>>(),
        },
    })
}

#[tokio::test]
async fn pod_of_the_run_and_its_controllers_are_never_a_target() {
    let runner = controlled("v1", "Pod", "runner-1", Some("runner"));
    let objects = vec![
        runner.clone(),
        controlled("v1", "Pod", "other-1", Some("other")),
        controlled("apps/v1", "Deployment", "runner", None),
        controlled("apps/v1", "Deployment", "other", None),
    ];
    let user = json!({
        "username": format!("system:serviceaccount:{NAMESPACE}:runner"),
        "extra": {"authentication.kubernetes.io/pod-name": ["runner-1"]},
    });
    let cluster = Recorded { objects, user: Some(user.clone()), ..Recorded::default() };
    for (kind, api_version, target, name, is_allowed) in [
        (InjectionType::LabelStomping, "v1", "Pod", "runner-1", false),
        (InjectionType::LabelStomping, "v1", "Pod", "other-1", true),
        (InjectionType::ResourceDeletion, "v1", "Pod", "runner-1", false),
        (InjectionType::ResourceDeletion, "apps/v1", "Deployment", "runner", false),
        (InjectionType::LabelStomping, "apps/v1", "Deployment", "runner", false),
        (InjectionType::FinalizerBlock, "apps/v1", "Deployment", "runner", false),
        (InjectionType::DeploymentScaleZero, "apps/v1", "Deployment", "runner", false),
        (InjectionType::DeploymentScaleZero, "apps/v1", "Deployment", "other", true),
        (InjectionType::NetworkPartition, "v1", "Pod", "any", false),
    ] {
        let outcome = planned(&cluster, &experiment(kind, api_version, target, name), &site(&[])).await;
        let what = format!("{} on {target}/{name}", kind.as_str());
        match outcome {
            Ok(_) => assert!(is_allowed, "{what}"),
            Err(refusal) => {
                assert!(!is_allowed, "{what}: {refusal}");
                let why = "runs these experiments, and could not revert them";
                assert!(refusal.to_string().ends_with(why), "{what}: {refusal}");
            }
        }
    }
    let kill = experiment(InjectionType::PodKill, "", "", "");
    let killed = planned(&cluster, &kill, &site(&[])).await.expect("the other Pod").steps;
    assert_eq!(killed.iter().map(|step| step.target.name.as_str()).collect::<Vec<_>>(), ["other-1"]);
    let alone = Recorded { objects: vec![runner], user: Some(user), ..Recorded::default() };
    assert!(matches!(planned(&alone, &kill, &site(&[])).await, Err(Refusal::Impossible(_))));
}

#[tokio::test]
async fn injection_that_the_server_refuses_for_good_is_sent_once() {
    for refusal in [ErrorKind::Forbidden, ErrorKind::Invalid, ErrorKind::Denied] {
        for kind in [
            InjectionType::ConfigDrift,
            InjectionType::FinalizerBlock,
            InjectionType::LabelStomping,
            InjectionType::PodKill,
            InjectionType::QuotaExhaustion,
            InjectionType::ResourceDeletion,
        ] {
            let objects = vec![controlled("v1", "Pod", "web-1", Some("web"))];
            let cluster = Recorded { objects, refusal: Some(refusal), ..Recorded::default() };
            let given = experiment(kind, "v1", "ConfigMap", "settings");
            let planned = planned(&cluster, &given, &site(&[])).await.unwrap_or_else(|why| panic!("{kind:?}: {why}"));
            assert!(!planned.steps.is_empty(), "{kind:?}");
            for step in &planned.steps {
                cluster.requests();
                let error = make(&cluster, &Recorded::kinds(), step, "mark", false).await.expect_err("refused");
                assert_eq!(error.kind, refusal, "{kind:?}");
                let writes = ["create", "apply", "patch", "delete"];
                let sent = cluster.requests();
                let sent: Vec<&String> =
                    sent.iter().filter(|request| writes.iter().any(|verb| request.starts_with(verb))).collect();
                assert_eq!(sent.len(), 1, "{kind:?}: {sent:?}");
            }
        }
    }
}

#[tokio::test]
async fn objects_that_a_revert_needs_are_refused_with_consent_too() {
    let cluster = Recorded::default();
    let admission = "admissionregistration.k8s.io/v1";
    let rbac = "rbac.authorization.k8s.io/v1";
    for (kind, api_version, target, name) in [
        (InjectionType::LabelStomping, "coordination.k8s.io/v1", "Lease", "pushback-experiments"),
        (InjectionType::CrdMutation, "coordination.k8s.io/v1", "Lease", "pushback-experiments"),
        (InjectionType::ResourceDeletion, "coordination.k8s.io/v1", "Lease", "pushback-experiments"),
        (InjectionType::ConfigDrift, "v1", "ConfigMap", "pushback-experiment-1"),
        (InjectionType::LabelStomping, "v1", "Namespace", "kube-system"),
        (InjectionType::LabelStomping, "v1", "Namespace", "default"),
        (InjectionType::CrdMutation, rbac, "ClusterRole", "cluster-admin"),
        (InjectionType::CrdMutation, rbac, "ClusterRole", "system:node"),
        (InjectionType::RbacRevoke, rbac, "ClusterRoleBinding", "system:basic-user"),
        (InjectionType::LabelStomping, "apiregistration.k8s.io/v1", "APIService", "v1.apps"),
        (InjectionType::CrdMutation, "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "catch-all"),
    ] {
        let consent = format!("{target}/{name}");
        let refusal = planned(&cluster, &experiment(kind, api_version, target, name), &site(&[&consent])).await;
        assert!(matches!(refusal, Err(Refusal::Forbidden(_))), "{consent}: {refusal:?}");
        assert_eq!(cluster.requests(), Vec::<String>::new(), "{consent}");
    }

    // These may get a label, and no other field.
    let object = |api_version: &str, kind: &str| {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "it", "uid": "u", "resourceVersion": "1"},
        })
    };
    let taint = r#"[{"key": "a", "effect": "NoExecute"}]"#;
    for (api_version, target, field, value) in [
        (admission, "ValidatingWebhookConfiguration", "webhooks", "[]"),
        (admission, "ValidatingAdmissionPolicyBinding", "spec.validationActions", "[\"Deny\"]"),
        ("v1", "PersistentVolume", "spec.persistentVolumeReclaimPolicy", "Delete"),
        ("v1", "Node", "spec.taints", taint),
    ] {
        let cluster = Recorded { objects: vec![object(api_version, target)], ..Recorded::default() };
        let site = site(&[&format!("{target}/it")]);
        let mut given = experiment(InjectionType::CrdMutation, api_version, target, "it");
        let parameters = &mut given.injection.parameters;
        parameters.remove("field");
        parameters.insert("path".to_owned(), field.to_owned());
        parameters.insert("value".to_owned(), value.to_owned());
        let refusal = planned(&cluster, &given, &site).await;
        assert!(matches!(refusal, Err(Refusal::Forbidden(_))), "{target}: {refusal:?}");
        let label = experiment(InjectionType::LabelStomping, api_version, target, "it");
        planned(&cluster, &label, &site).await.unwrap_or_else(|refusal| panic!("{target}: {refusal}"));
    }
}

#[test]
fn consent_names_one_object() {
    for wrong in ["", "Node", "Node/", "/x", "Node/*", "Node/a/b"] {
        assert!(wrong.parse::<ClusterScoped>().is_err(), "{wrong:?}");
    }
    assert_eq!("Node/node-1".parse::<ClusterScoped>().expect("a consent").to_string(), "Node/node-1");
}
