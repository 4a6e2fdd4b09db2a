//! The kinds that Kubernetes itself serves, for a folder, which has no discovery.
//! As of 1.36, from Kubernetes' own `api/discovery/aggregated_v2.json`; the preferred version of a kind comes first.

use pushback_objects::object::split_api_version;
use pushback_preflight::api_lifecycle::{self, NEWEST, State};

use crate::{Kind, Kinds};

/// One kind per line: API version, kind, plural, scope, verbs, short names, subresources.
const TABLE: &str = "\
v1 Binding bindings namespaced create - -
v1 ComponentStatus componentstatuses cluster get,list cs -
v1 ConfigMap configmaps namespaced all cm -
v1 Endpoints endpoints namespaced all ep -
v1 Event events namespaced all ev -
v1 LimitRange limitranges namespaced all limits -
v1 Namespace namespaces cluster all ns finalize,status
v1 Node nodes cluster all no proxy,status
v1 PersistentVolumeClaim persistentvolumeclaims namespaced all pvc status
v1 PersistentVolume persistentvolumes cluster all pv status
v1 Pod pods namespaced all po attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status
v1 PodTemplate podtemplates namespaced all - -
v1 ReplicationController replicationcontrollers namespaced all rc scale,status
v1 ResourceQuota resourcequotas namespaced all quota status
v1 Secret secrets namespaced all - -
v1 ServiceAccount serviceaccounts namespaced all sa token
v1 Service services namespaced all svc proxy,status
apiregistration.k8s.io/v1 APIService apiservices cluster all - status
apps/v1 ControllerRevision controllerrevisions namespaced all - -
apps/v1 DaemonSet daemonsets namespaced all ds status
apps/v1 Deployment deployments namespaced all deploy scale,status
apps/v1 ReplicaSet replicasets namespaced all rs scale,status
apps/v1 StatefulSet statefulsets namespaced all sts scale,status
events.k8s.io/v1 Event events namespaced all ev -
authentication.k8s.io/v1 SelfSubjectReview selfsubjectreviews cluster create - -
authentication.k8s.io/v1 TokenReview tokenreviews cluster create - -
authorization.k8s.io/v1 LocalSubjectAccessReview localsubjectaccessreviews namespaced create - -
authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews cluster create - -
authorization.k8s.io/v1 SelfSubjectRulesReview selfsubjectrulesreviews cluster create - -
authorization.k8s.io/v1 SubjectAccessReview subjectaccessreviews cluster create - -
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced all hpa status
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced all hpa status
batch/v1 CronJob cronjobs namespaced all cj status
batch/v1 Job jobs namespaced all - status
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests cluster all csr approval,status
certificates.k8s.io/v1beta1 ClusterTrustBundle clustertrustbundles cluster all - -
certificates.k8s.io/v1beta1 PodCertificateRequest podcertificaterequests namespaced all - status
certificates.k8s.io/v1alpha1 ClusterTrustBundle clustertrustbundles cluster all - -
networking.k8s.io/v1 IngressClass ingressclasses cluster all - -
networking.k8s.io/v1 Ingress ingresses namespaced all ing status
networking.k8s.io/v1 IPAddress ipaddresses cluster all ip -
networking.k8s.io/v1 NetworkPolicy networkpolicies namespaced all netpol -
networking.k8s.io/v1 ServiceCIDR servicecidrs cluster all - status
networking.k8s.io/v1beta1 IPAddress ipaddresses cluster all ip -
networking.k8s.io/v1beta1 ServiceCIDR servicecidrs cluster all - status
policy/v1 PodDisruptionBudget poddisruptionbudgets namespaced all pdb status
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster all - -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster all - -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings namespaced all - -
rbac.authorization.k8s.io/v1 Role roles namespaced all - -
storage.k8s.io/v1 CSIDriver csidrivers cluster all - -
storage.k8s.io/v1 CSINode csinodes cluster all - -
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities namespaced all - -
storage.k8s.io/v1 StorageClass storageclasses cluster all sc -
storage.k8s.io/v1 VolumeAttachment volumeattachments cluster all - status
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses cluster all vac -
storage.k8s.io/v1beta1 VolumeAttributesClass volumeattributesclasses cluster all vac -
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies cluster all - -
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings cluster all - -
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster all - -
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster all - status
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster all - -
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster all - -
admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy mutatingadmissionpolicies cluster all - -
admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings cluster all - -
admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicy mutatingadmissionpolicies cluster all - -
admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings cluster all - -
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster all crd,crds status
scheduling.k8s.io/v1 PriorityClass priorityclasses cluster all pc -
scheduling.k8s.io/v1alpha2 PodGroup podgroups namespaced all - status
scheduling.k8s.io/v1alpha2 Workload workloads namespaced all - -
coordination.k8s.io/v1 Lease leases namespaced all - -
coordination.k8s.io/v1beta1 LeaseCandidate leasecandidates namespaced all - -
coordination.k8s.io/v1alpha2 LeaseCandidate leasecandidates namespaced all - -
node.k8s.io/v1 RuntimeClass runtimeclasses cluster all - -
discovery.k8s.io/v1 EndpointSlice endpointslices namespaced all - -
resource.k8s.io/v1 DeviceClass deviceclasses cluster all - -
resource.k8s.io/v1 ResourceClaim resourceclaims namespaced all - status
resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates namespaced all - -
resource.k8s.io/v1 ResourceSlice resourceslices cluster all - -
resource.k8s.io/v1beta2 DeviceClass deviceclasses cluster all - -
resource.k8s.io/v1beta2 DeviceTaintRule devicetaintrules cluster all - status
resource.k8s.io/v1beta2 ResourceClaim resourceclaims namespaced all - status
resource.k8s.io/v1beta2 ResourceClaimTemplate resourceclaimtemplates namespaced all - -
resource.k8s.io/v1beta2 ResourceSlice resourceslices cluster all - -
resource.k8s.io/v1beta1 DeviceClass deviceclasses cluster all - -
resource.k8s.io/v1beta1 ResourceClaim resourceclaims namespaced all - status
resource.k8s.io/v1beta1 ResourceClaimTemplate resourceclaimtemplates namespaced all - -
resource.k8s.io/v1beta1 ResourceSlice resourceslices cluster all - -
resource.k8s.io/v1alpha3 DeviceTaintRule devicetaintrules cluster all - status
resource.k8s.io/v1alpha3 ResourcePoolStatusRequest resourcepoolstatusrequests cluster all - status
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas cluster all - status
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations cluster all - status
internal.apiserver.k8s.io/v1alpha1 StorageVersion storageversions cluster all - status
storagemigration.k8s.io/v1beta1 StorageVersionMigration storageversionmigrations cluster all - status
";

/// The meaning of `all` in the table, and the verbs of a custom resource.
const ALL_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The verbs of a kind whose objects are stored.
pub(super) fn all_verbs() -> Vec<String> {
    ALL_VERBS.iter().map(|&verb| verb.to_owned()).collect()
}

/// Kubernetes' own kinds. Those of versions that are no longer served are among them: the cluster that a folder is for
/// may be older, and rule RemovedAPIs judges them.
pub(super) fn built_in() -> Kinds {
    let mut kinds = Kinds::default();
    TABLE.lines().filter_map(parse_line).for_each(|kind| kinds.add(kind));
    let removed: Vec<Kind> = removed().filter_map(|(version, kind)| of_removed(&kinds, version, kind)).collect();
    removed.into_iter().for_each(|kind| kinds.add(kind));
    kinds
}

/// API version and kind of what the newest release no longer serves.
fn removed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = api_lifecycle::TABLE.iter().filter(|row| row.state(NEWEST) == State::Removed);
    let all = rows.flat_map(|row| row.kinds.iter().map(|kind| (row.api_version, *kind)));
    // Definitions in v1beta1 have another form, which nothing here reads.
    all.filter(|(_, kind)| *kind != "CustomResourceDefinition")
}

/// A kind in a version that is no longer served: like the one that is.
fn of_removed(kinds: &Kinds, api_version: &str, kind: &str) -> Option<Kind> {
    let (group, version) = split_api_version(api_version);
    let (group, version) = (group.to_owned(), version.to_owned());
    if kind == "PodSecurityPolicy" {
        let line = parse_line("policy/v1beta1 PodSecurityPolicy podsecuritypolicies cluster all psp -")?;
        return Some(Kind { group, version, ..line });
    }
    let served = kinds.iter().find(|served| served.kind == kind)?;
    Some(Kind { group, version, ..Kind::clone(served) })
}

fn parse_line(line: &str) -> Option<Kind> {
    let mut fields = line.split(' ');
    let (group, version) = split_api_version(fields.next()?);
    let kind = fields.next()?;
    let plural = fields.next()?;
    let namespaced = fields.next()? == "namespaced";
    let verbs = match fields.next()? {
        "all" => all_verbs(),
        verbs => comma_list(verbs),
    };
    Some(Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: comma_list(fields.next()?),
        namespaced,
        verbs,
        subresources: comma_list(fields.next()?),
    })
}

/// Splits at commas; `-` is the empty list.
fn comma_list(text: &str) -> Vec<String> {
    if text == "-" { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_kind() {
        for line in TABLE.lines() {
            assert_eq!(line.split(' ').count(), 7, "{line}");
            assert!(line.contains(" namespaced ") || line.contains(" cluster "), "{line}");
        }
        let versions: usize = built_in().iter().map(|kind| built_in().versions(&kind.group, &kind.kind).len()).sum();
        assert_eq!(versions, TABLE.lines().count() + removed().count());
    }

    #[test]
    fn a_version_that_is_no_longer_served_is_known_and_never_preferred() {
        let kinds = built_in();
        for (version, kind) in removed() {
            let (group, version) = split_api_version(version);
            assert!(kinds.find(group, version, kind).is_some(), "{group}/{version} {kind}");
            let is_gone_altogether = group == "extensions" || kind == "PodSecurityPolicy";
            assert_eq!(kinds.preferred(group, kind).unwrap().version == version, is_gone_altogether, "{group} {kind}");
        }
        assert!(!kinds.find("rbac.authorization.k8s.io", "v1beta1", "ClusterRole").unwrap().namespaced);
        assert!(kinds.find("extensions", "v1beta1", "Ingress").unwrap().namespaced);
    }

    #[test]
    fn kinds_know_their_scope_and_the_preferred_version() {
        let kinds = built_in();
        let autoscaler = kinds.preferred("autoscaling", "HorizontalPodAutoscaler").unwrap();
        assert_eq!((autoscaler.version.as_str(), autoscaler.namespaced), ("v2", true));
        assert!(!kinds.find("rbac.authorization.k8s.io", "v1", "ClusterRole").unwrap().namespaced);
        assert!(kinds.find("apps", "v1", "Deployment").unwrap().subresources.contains(&"scale".to_owned()));
        assert!(!kinds.find("authorization.k8s.io", "v1", "SubjectAccessReview").unwrap().offers("get"));
    }
}
