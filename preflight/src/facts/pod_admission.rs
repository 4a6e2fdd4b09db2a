//! The API server's answer to the dry run of a workload's Pod.

use pushback_crd::words;
use serde::{Deserialize, Serialize};

words! {
    /// The part of the API server that refuses a Pod.
    pub enum PodRefusal {
        /// The Pod Security Standard that the namespace enforces.
        PodSecurity = "podSecurity",
        /// A minimum, maximum or ratio of a LimitRange.
        LimitRange = "limitRange",
        /// A quota that demands requests or limits of every container.
        QuotaRequests = "quotaRequests",
        /// A quota without room for the Pod.
        Quota = "quota",
        /// The ServiceAccount does not exist.
        ServiceAccount = "serviceAccount",
        /// The PriorityClass does not exist.
        PriorityClass = "priorityClass",
        /// The RuntimeClass does not exist.
        RuntimeClass = "runtimeClass",
        /// An admission webhook.
        Webhook = "webhook",
        /// A ValidatingAdmissionPolicy.
        Policy = "policy",
        /// The validation of Pods.
        Invalid = "invalid",
        /// Another admission plugin.
        Denied = "denied",
    }
}

/// The API server's answer to the dry run of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum PodAdmission {
    /// Admission lets the Pod pass.
    Accepted,
    /// Admission refuses the Pod.
    Refused {
        /// The part of the server that refuses it.
        by: PodRefusal,
        /// The server's words, without the name of the Pod.
        message: String,
        /// Fields of the Pod that the server names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<String>,
    },
    /// The user may not create Pods.
    Forbidden {
        /// The server's words.
        message: String,
    },
    /// A webhook does not take part in dry runs.
    NoDryRun {
        /// The server's words.
        message: String,
    },
}
