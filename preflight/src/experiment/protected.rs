//! Protected targets: namespaces, system objects, the runner's own objects, and fields and API groups that only a
//! dangerous experiment may change. The lists are those of the original runner.

use pushback_objects::object::split_api_version;

use super::InjectionType;

/// Namespaces that are never injected into, whatever an experiment allows.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Namespace of the runner itself.
const RUNNER_NAMESPACE: &str = "operator-chaos-system";
/// Name prefixes of the runner's own objects.
const RUNNER_PREFIXES: [&str; 5] =
    ["chaos-rollback-", "chaos-result-", "chaos-backup-", "chaos-controller-", "operator-chaos-"];

const CONFIG_MAPS: [&str; 9] = [
    "kube-root-ca.crt",
    "coredns",
    "kube-proxy",
    "cluster-info",
    "extension-apiserver-authentication",
    "kubeadm-config",
    "kubelet-config",
    "kube-apiserver",
    "scheduler-config",
];
const SECRETS: [&str; 4] = ["etcd-client", "apiserver-etcd-client", "service-account-key", "oauth-serving-cert"];
const CONFIG_PREFIXES: [&str; 3] = ["etcd-", "kube-apiserver-", "openshift-service-ca"];
const SERVICES: [&str; 4] = ["kubernetes", "openshift-apiserver", "dns-default", "kube-dns"];
const SERVICE_ACCOUNTS: [&str; 4] = ["default", "deployer", "builder", "pipeline"];
const BINDINGS: [&str; 1] = ["cluster-admin"];
const WEBHOOKS: [&str; 5] = [
    "validate-policy.kyverno.io",
    "gatekeeper-validating-webhook-configuration",
    "gatekeeper-mutating-webhook-configuration",
    "cert-manager-webhook",
    "istio-sidecar-injector",
];

/// Cluster-scoped kinds that the original knows.
const CLUSTER_KINDS: [&str; 21] = [
    "APIService",
    "AdmissionCheck",
    "ClusterQueue",
    "ClusterRole",
    "ClusterRoleBinding",
    "Cohort",
    "CustomResourceDefinition",
    "IngressClass",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "ProvisioningRequestConfig",
    "ResourceFlavor",
    "StorageClass",
    "Topology",
    "ValidatingWebhookConfiguration",
    "WorkloadPriorityClass",
];

/// Kinds that ResourceDeletion never deletes.
const UNDELETABLE_KINDS: [&str; 6] =
    ["Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PersistentVolume"];

/// Fields that decide whether and how pods run.
const SENSITIVE_FIELDS: [&str; 24] = [
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsPolicy",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "replicas",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "selector",
    "serviceAccount",
    "serviceAccountName",
    "shareProcessNamespace",
    "strategy",
    "template",
    "tolerations",
    "updateStrategy",
    "volumes",
];

/// API groups of the platform, without those of custom resources.
const CORE_GROUPS: [&str; 21] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "route.openshift.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Fields that identify an object; CRDMutation must not change them.
const IDENTITY_PATHS: [&str; 10] = [
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
];

/// Why injecting into a namespace is forbidden; `None` if allowed.
pub(crate) fn protected_namespace(namespace: &str, allow_dangerous: bool) -> Option<String> {
    if NAMESPACES.contains(&namespace) {
        return Some(format!("namespace {namespace} is protected: nothing is ever injected there"));
    }
    (!allow_dangerous && namespace.starts_with("openshift-"))
        .then(|| format!("namespace {namespace} belongs to the platform: it needs blastRadius.allowDangerous"))
}

/// Why deleting a namespace or its objects is forbidden; `None` if allowed.
pub(super) fn undeletable_namespace(namespace: &str) -> Option<String> {
    let is_protected = NAMESPACES.contains(&namespace)
        || namespace == RUNNER_NAMESPACE
        || ["openshift-", "chaos-"].iter().any(|prefix| namespace.starts_with(prefix));
    is_protected.then(|| format!("namespace {namespace} is protected: nothing is deleted there"))
}

/// Whether the runner stores its own state under such names.
pub(super) fn belongs_to_runner(name: &str) -> bool {
    RUNNER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the cluster itself depends on the object.
pub(super) fn is_system_object(kind: &str, name: &str) -> bool {
    let has_system_prefix = || CONFIG_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    match kind {
        "ConfigMap" => CONFIG_MAPS.contains(&name) || has_system_prefix(),
        "Secret" => SECRETS.contains(&name) || has_system_prefix(),
        "Service" => SERVICES.contains(&name),
        "ServiceAccount" => SERVICE_ACCOUNTS.contains(&name),
        "ClusterRoleBinding" => BINDINGS.contains(&name) || name.starts_with("system:"),
        "RoleBinding" => name.starts_with("system:"),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => WEBHOOKS.contains(&name),
        _ => false,
    }
}

/// Whether only a dangerous experiment may change the field.
pub(super) fn is_sensitive_field(name: &str) -> bool {
    SENSITIVE_FIELDS.contains(&name)
}

/// Whether a path of CRDMutation would change the identity of an object.
pub(super) fn is_identity(path: &str) -> bool {
    IDENTITY_PATHS.contains(&path)
}

/// Whether an API version belongs to the platform rather than to a custom resource.
pub(crate) fn is_core_api(api_version: &str) -> bool {
    CORE_GROUPS.contains(&split_api_version(api_version).0)
}

/// Whether a label is one of Kubernetes' own, which controllers read.
pub(crate) fn is_system_label(key: &str) -> bool {
    ["kubernetes.io/", "k8s.io/"].iter().any(|part| key.contains(part))
}

/// Whether ResourceDeletion rejects the kind.
pub(super) fn is_undeletable_kind(kind: &str) -> bool {
    UNDELETABLE_KINDS.contains(&kind)
}

/// Whether an injection is cluster-scoped.
pub(super) fn is_cluster_scoped<'a>(kind: InjectionType, parameter: &dyn Fn(&str) -> &'a str) -> bool {
    match kind {
        InjectionType::WebhookDisrupt => true,
        InjectionType::RbacRevoke => parameter("bindingType") == "ClusterRoleBinding",
        InjectionType::CrdMutation | InjectionType::FinalizerBlock => {
            let (group, _) = split_api_version(parameter("apiVersion"));
            matches!(group, "apiextensions.k8s.io" | "apiregistration.k8s.io")
                || CLUSTER_KINDS.contains(&parameter("kind"))
        }
        _ => false,
    }
}
