//! The built-in API versions that Kubernetes deprecates or has removed, with their successors.
//! A table: [`of`] looks a kind in one version up, [`NEWEST`] is the last release that it knows.

/// A Kubernetes release, such as `(1, 36)`.
pub type Release = (u32, u32);

/// The newest release that the table covers.
pub const NEWEST: Release = (1, 36);

/// What becomes of a kind in one API version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// `apiVersion`, such as `policy/v1beta1`.
    pub api_version: &'static str,
    /// Kinds that share it.
    pub kinds: &'static [&'static str],
    /// The first release that deprecates it.
    pub deprecated: Release,
    /// The first release that no longer serves it; `None` if none is planned.
    pub removed: Option<Release>,
    /// What replaces it.
    pub successor: Option<Successor>,
    /// What else changes in a manifest, or what to use instead; a sentence without a full stop, or empty.
    pub advice: &'static str,
}

/// The API that replaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Successor {
    /// `apiVersion`.
    pub api_version: &'static str,
    /// The kind, if it has another name.
    pub kind: Option<&'static str>,
    /// The first release that serves it.
    pub since: Release,
}

/// The state of an API version in one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is served, and nothing is said against it.
    Current,
    /// It is served, and deprecated.
    Deprecated,
    /// It is no longer served.
    Removed,
}

impl Lifecycle {
    /// The state in a release.
    #[must_use]
    pub fn state(&self, release: Release) -> State {
        if self.removed.is_some_and(|removed| removed <= release) {
            State::Removed
        } else if self.deprecated <= release {
            State::Deprecated
        } else {
            State::Current
        }
    }

    /// What to use in a release instead of one of its kinds: the successor, or the successor of one that is removed as
    /// well; and what else changes on the way.
    #[must_use]
    pub fn way_out(&'static self, kind: &str, release: Release) -> (Option<Successor>, Vec<&'static str>) {
        let (mut row, mut advice) = (self, Vec::new());
        loop {
            advice.extend(Some(row.advice).filter(|advice| !advice.is_empty()));
            let Some(successor) = row.successor else { return (None, advice) };
            match of(successor.api_version, successor.kind.unwrap_or(kind)) {
                Some(next) if next.state(release) == State::Removed => row = next,
                _ => return (Some(successor), advice),
            }
        }
    }
}

impl Lifecycle {
    /// What is to be said of one of its kinds in a release; `None` if nothing.
    #[must_use]
    pub fn verdict(&self, kind: &str, release: Release) -> Option<String> {
        let version = self.api_version;
        match (self.state(release), self.removed.map(text)) {
            (State::Current, _) => None,
            (State::Removed, removed) => {
                Some(format!("Kubernetes {} and later do not serve {kind} in {version}", removed.unwrap_or_default()))
            }
            (State::Deprecated, removed) => {
                let until = removed.map(|removed| format!(", and goes in {removed}")).unwrap_or_default();
                Some(format!("{kind} in {version} is deprecated since Kubernetes {}{until}", text(self.deprecated)))
            }
        }
    }

    /// What to do about it, in a release.
    #[must_use]
    pub fn remedy(&'static self, kind: &str, release: Release) -> String {
        let (successor, advice) = self.way_out(kind, release);
        let to = successor.map(|successor| {
            let other = successor.kind.map(|kind| format!("{kind} of ")).unwrap_or_default();
            format!("use {other}{}, which is served since {}", successor.api_version, text(successor.since))
        });
        to.into_iter().chain(advice.into_iter().map(str::to_owned)).collect::<Vec<_>>().join("; ")
    }
}

/// What becomes of a kind in an API version; `None` if it is current, or not built in.
#[must_use]
pub fn of(api_version: &str, kind: &str) -> Option<&'static Lifecycle> {
    TABLE.iter().find(|row| row.api_version == api_version && row.kinds.contains(&kind))
}

/// `1.36`.
#[must_use]
pub fn text((major, minor): Release) -> String {
    format!("{major}.{minor}")
}

/// Reads `1.36` or `v1.36`; a patch level is ignored.
#[must_use]
pub fn parse(text: &str) -> Option<Release> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
    let mut number = || {
        let part = parts.next()?;
        part.chars().all(|c| c.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let release = (number()?, number()?);
    // A provider adds to the patch level: `1.30.2-gke.1`.
    let is_plain = parts.next().is_none_or(|patch| patch.starts_with(|c: char| c.is_ascii_digit()));
    is_plain.then_some(release)
}

const fn gone(
    api_version: &'static str,
    kinds: &'static [&'static str],
    deprecated: u32,
    removed: u32,
    successor: (&'static str, u32),
    advice: &'static str,
) -> Lifecycle {
    let (successor, since) = successor;
    Lifecycle {
        api_version,
        kinds,
        deprecated: (1, deprecated),
        removed: Some((1, removed)),
        successor: Some(Successor { api_version: successor, kind: None, since: (1, since) }),
        advice,
    }
}

const fn without_successor(
    api_version: &'static str,
    kinds: &'static [&'static str],
    deprecated: u32,
    removed: u32,
    advice: &'static str,
) -> Lifecycle {
    Lifecycle { api_version, kinds, deprecated: (1, deprecated), removed: Some((1, removed)), successor: None, advice }
}

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const FLOW: &str = "flowcontrol.apiserver.k8s.io/v1";
const FLOW_BETA: &str = "flowcontrol.apiserver.k8s.io/v1beta3";
const POLICIES: &[&str] = &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
const MUTATING_POLICIES: &[&str] = &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];
const FLOWS: &[&str] = &["FlowSchema", "PriorityLevelConfiguration"];
const SELECTOR: &str = "`spec.selector` is required, and cannot be changed later";
const WORKLOADS: &[&str] = &["Deployment", "DaemonSet", "ReplicaSet"];
const INGRESS: &str = "`spec.backend` is `spec.defaultBackend`, a backend's `serviceName` and `servicePort` are \
                       `service.name` and `service.port`, and each path needs a `pathType`";
const CLAIMS: &[&str] = &["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"];

/// Sources: kubernetes.io, *Deprecated API Migration Guide* (removals from 1.16 to 1.32); the lifecycle that the API's
/// own source declares, `k8s.io/api` 0.36 `zz_generated.prerelease-lifecycle.go` of each version; for core/v1
/// `pkg/apis/core/v1` and the release notes of 1.19 and 1.33.
pub static TABLE: &[Lifecycle] = &[
    gone("extensions/v1beta1", WORKLOADS, 8, 16, ("apps/v1", 9), SELECTOR),
    gone("extensions/v1beta1", &["NetworkPolicy"], 9, 16, ("networking.k8s.io/v1", 7), ""),
    gone("extensions/v1beta1", &["PodSecurityPolicy"], 11, 16, ("policy/v1beta1", 10), ""),
    gone("extensions/v1beta1", &["Ingress"], 14, 22, ("networking.k8s.io/v1", 19), INGRESS),
    gone("apps/v1beta1", &["Deployment", "StatefulSet", "ControllerRevision"], 8, 16, ("apps/v1", 9), SELECTOR),
    gone(
        "apps/v1beta2",
        &["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "ControllerRevision"],
        9,
        16,
        ("apps/v1", 9),
        "",
    ),
    gone(
        "admissionregistration.k8s.io/v1beta1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
        16,
        22,
        (ADMISSION, 16),
        "each webhook needs `sideEffects` and `admissionReviewVersions`, and `failurePolicy` defaults to Fail",
    ),
    gone(
        "apiextensions.k8s.io/v1beta1",
        &["CustomResourceDefinition"],
        16,
        22,
        ("apiextensions.k8s.io/v1", 16),
        "each version needs a structural schema of its own, and unknown fields are pruned",
    ),
    gone("apiregistration.k8s.io/v1beta1", &["APIService"], 19, 22, ("apiregistration.k8s.io/v1", 10), ""),
    gone("authentication.k8s.io/v1beta1", &["TokenReview"], 19, 22, ("authentication.k8s.io/v1", 6), ""),
    gone(
        "authorization.k8s.io/v1beta1",
        &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"],
        19,
        22,
        ("authorization.k8s.io/v1", 6),
        "`spec.group` is `spec.groups`",
    ),
    gone(
        "certificates.k8s.io/v1beta1",
        &["CertificateSigningRequest"],
        19,
        22,
        ("certificates.k8s.io/v1", 19),
        "`spec.signerName` and `spec.usages` are required",
    ),
    gone("coordination.k8s.io/v1beta1", &["Lease"], 19, 22, ("coordination.k8s.io/v1", 14), ""),
    gone("networking.k8s.io/v1beta1", &["Ingress"], 19, 22, ("networking.k8s.io/v1", 19), INGRESS),
    gone("networking.k8s.io/v1beta1", &["IngressClass"], 19, 22, ("networking.k8s.io/v1", 19), ""),
    gone(
        "rbac.authorization.k8s.io/v1beta1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
        17,
        22,
        (RBAC, 8),
        "",
    ),
    gone("scheduling.k8s.io/v1beta1", &["PriorityClass"], 14, 22, ("scheduling.k8s.io/v1", 14), ""),
    gone("storage.k8s.io/v1beta1", &["CSIDriver"], 19, 22, ("storage.k8s.io/v1", 18), ""),
    gone("storage.k8s.io/v1beta1", &["CSINode"], 17, 22, ("storage.k8s.io/v1", 17), ""),
    gone("storage.k8s.io/v1beta1", &["StorageClass"], 19, 22, ("storage.k8s.io/v1", 6), ""),
    gone("storage.k8s.io/v1beta1", &["VolumeAttachment"], 19, 22, ("storage.k8s.io/v1", 13), ""),
    gone("storage.k8s.io/v1alpha1", &["VolumeAttachment"], 21, 24, ("storage.k8s.io/v1", 13), ""),
    gone("storage.k8s.io/v1alpha1", &["CSIStorageCapacity"], 21, 24, ("storage.k8s.io/v1", 24), ""),
    gone("batch/v1beta1", &["CronJob"], 21, 25, ("batch/v1", 21), ""),
    gone(
        "discovery.k8s.io/v1beta1",
        &["EndpointSlice"],
        21,
        25,
        ("discovery.k8s.io/v1", 21),
        "an endpoint's `topology` is `nodeName`, `zone` and `deprecatedTopology`",
    ),
    gone(
        "events.k8s.io/v1beta1",
        &["Event"],
        22,
        25,
        ("events.k8s.io/v1", 19),
        "`type`, `reason`, `action`, `reportingController` and `reportingInstance` are required",
    ),
    gone(
        "autoscaling/v2beta1",
        &["HorizontalPodAutoscaler"],
        22,
        25,
        ("autoscaling/v2", 23),
        "`targetAverageUtilization` is `target.averageUtilization`, with `target.type: Utilization`",
    ),
    gone("autoscaling/v2beta2", &["HorizontalPodAutoscaler"], 23, 26, ("autoscaling/v2", 23), ""),
    gone(
        "policy/v1beta1",
        &["PodDisruptionBudget"],
        21,
        25,
        ("policy/v1", 21),
        "an empty `spec.selector` selects all Pods of the namespace, and no longer none",
    ),
    without_successor(
        "policy/v1beta1",
        &["PodSecurityPolicy"],
        21,
        25,
        "use Pod Security Admission (labels of the namespace) or an admission webhook instead",
    ),
    gone("node.k8s.io/v1beta1", &["RuntimeClass"], 22, 25, ("node.k8s.io/v1", 20), ""),
    gone("storage.k8s.io/v1beta1", &["CSIStorageCapacity"], 24, 27, ("storage.k8s.io/v1", 24), ""),
    gone("flowcontrol.apiserver.k8s.io/v1beta1", FLOWS, 23, 26, (FLOW_BETA, 26), ""),
    gone(
        "flowcontrol.apiserver.k8s.io/v1beta2",
        FLOWS,
        26,
        29,
        (FLOW_BETA, 26),
        "`assuredConcurrencyShares` is `nominalConcurrencyShares`",
    ),
    gone(
        "flowcontrol.apiserver.k8s.io/v1beta3",
        FLOWS,
        29,
        32,
        (FLOW, 29),
        "`nominalConcurrencyShares` of 0 stays 0, and is no longer 30",
    ),
    gone("authentication.k8s.io/v1beta1", &["SelfSubjectReview"], 30, 33, ("authentication.k8s.io/v1", 28), ""),
    gone("authentication.k8s.io/v1alpha1", &["SelfSubjectReview"], 29, 32, ("authentication.k8s.io/v1", 28), ""),
    gone("admissionregistration.k8s.io/v1alpha1", POLICIES, 29, 32, (ADMISSION, 30), ""),
    gone("admissionregistration.k8s.io/v1beta1", POLICIES, 31, 34, (ADMISSION, 30), ""),
    gone("admissionregistration.k8s.io/v1alpha1", MUTATING_POLICIES, 35, 38, (ADMISSION, 36), ""),
    gone("admissionregistration.k8s.io/v1beta1", MUTATING_POLICIES, 37, 40, (ADMISSION, 36), ""),
    gone("storage.k8s.io/v1alpha1", &["VolumeAttributesClass"], 32, 35, ("storage.k8s.io/v1", 34), ""),
    gone("storage.k8s.io/v1beta1", &["VolumeAttributesClass"], 34, 37, ("storage.k8s.io/v1", 34), ""),
    gone("networking.k8s.io/v1beta1", &["IPAddress", "ServiceCIDR"], 34, 37, ("networking.k8s.io/v1", 33), ""),
    gone("certificates.k8s.io/v1alpha1", &["ClusterTrustBundle"], 34, 37, ("certificates.k8s.io/v1beta1", 33), ""),
    gone("coordination.k8s.io/v1alpha2", &["LeaseCandidate"], 35, 38, ("coordination.k8s.io/v1beta1", 33), ""),
    gone("resource.k8s.io/v1beta1", CLAIMS, 35, 38, ("resource.k8s.io/v1", 34), ""),
    gone("resource.k8s.io/v1beta2", CLAIMS, 36, 39, ("resource.k8s.io/v1", 34), ""),
    gone("resource.k8s.io/v1alpha3", &["DeviceTaintRule"], 36, 39, ("resource.k8s.io/v1beta2", 36), ""),
    Lifecycle {
        api_version: "v1",
        kinds: &["Endpoints"],
        deprecated: (1, 33),
        removed: None,
        successor: Some(Successor { api_version: "discovery.k8s.io/v1", kind: Some("EndpointSlice"), since: (1, 21) }),
        advice: "",
    },
    Lifecycle {
        api_version: "v1",
        kinds: &["ComponentStatus"],
        deprecated: (1, 19),
        removed: None,
        successor: None,
        advice: "ask the components' health endpoints instead",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_in_a_version_is_listed_once_and_leads_to_one_that_is_served_later() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            for kind in row.kinds {
                assert!(seen.insert((row.api_version, kind)), "{} {kind}", row.api_version);
            }
            assert!(row.removed.is_none_or(|removed| row.deprecated < removed), "{}", row.api_version);
            assert!(!row.advice.ends_with('.'), "{}", row.advice);
            let Some(successor) = row.successor else {
                assert!(!row.advice.is_empty(), "{} leads nowhere", row.api_version);
                continue;
            };
            // One must be able to change over when the old version goes at the latest.
            assert!(row.removed.is_none_or(|removed| successor.since <= removed), "{}", row.api_version);
            let kind = successor.kind.unwrap_or(row.kinds[0]);
            if let Some(next) = of(successor.api_version, kind) {
                assert!(next.removed > row.removed, "{} leads to what goes first", row.api_version);
            }
        }
    }

    #[test]
    fn a_successor_that_is_gone_as_well_leads_on_to_its_own() {
        let row = of("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema").expect("a row");
        let to = |release| row.way_out("FlowSchema", release).0.map(|successor| successor.api_version);
        assert_eq!(to((1, 26)), Some("flowcontrol.apiserver.k8s.io/v1beta3"));
        assert_eq!(to((1, 32)), Some("flowcontrol.apiserver.k8s.io/v1"));
        let (successor, advice) = TABLE[2].way_out("PodSecurityPolicy", (1, 25));
        assert_eq!((successor, advice.len()), (None, 1));
    }

    #[test]
    fn a_release_is_read_as_kubernetes_writes_it() {
        for (text, release) in [("1.36", (1, 36)), ("v1.22", (1, 22)), ("1.31.4", (1, 31)), ("v1.30.2-gke.1", (1, 30))]
        {
            assert_eq!(parse(text), Some(release), "{text}");
        }
        for wrong in ["", "1", "v", "1.", ".36", "1.x", "1.36+", "one.two", "-1.3", "1.36.x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
