//! Dry runs of Pods that controllers would make, and the part of the server that refuses one.

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kinds, NAMESPACE_TERMINATING};
use pushback_objects::ObjectExt;
use pushback_preflight::facts::{PodAdmission, PodRefusal};
use pushback_preflight::{Answer, WorkloadPod};
use serde_json::Value;

/// The status of an object that is not valid; with 400 the server could not read it.
const UNPROCESSABLE: u16 = 422;

/// Characters that the server appends to `generateName`.
const RANDOM: usize = 5;

/// Asks for the admission of a Pod.
///
/// # Errors
/// The server gives no answer.
pub(super) async fn ask(cluster: &dyn Cluster, kinds: &Kinds, pod: Option<WorkloadPod>) -> Result<Answer, String> {
    let WorkloadPod { pod, owned } = pod.ok_or("it has no Pod template")?;
    let first = dry_run(cluster, kinds, &pod).await?;
    let is_policy = |by: PodRefusal| [PodRefusal::Webhook, PodRefusal::Policy].contains(&by);
    let admission = match (first, owned) {
        // It may refuse Pods without an owner, and this one's is still to be made.
        (PodAdmission::Refused { by, .. }, Some(owned)) if is_policy(by) => dry_run(cluster, kinds, &owned).await?,
        (first, _) => first,
    };
    Ok(Answer::PodAdmission { admission })
}

async fn dry_run(cluster: &dyn Cluster, kinds: &Kinds, pod: &Value) -> Result<PodAdmission, String> {
    let kind = kinds.preferred("", "Pod").ok_or("the cluster serves no Pods")?;
    let address = Address::new(Arc::clone(kind), pod.namespace(), pod.name());
    match cluster.create(&address, pod, true).await {
        Ok(_) => Ok(PodAdmission::Accepted),
        Err(error) => admission(pod, error),
    }
}

/// The admission that an error shows.
///
/// # Errors
/// It shows none.
fn admission(pod: &Value, error: ClusterError) -> Result<PodAdmission, String> {
    let message = without_random_name(pod, &error.message);
    let by = match error.kind {
        // Whether the name is free is looked at after admission.
        ErrorKind::AlreadyExists => return Ok(PodAdmission::Accepted),
        ErrorKind::Forbidden => return Ok(PodAdmission::Forbidden { message }),
        ErrorKind::Unsupported => return Ok(PodAdmission::NoDryRun { message }),
        ErrorKind::Denied if error.reason != NAMESPACE_TERMINATING => refusal(&error.message),
        ErrorKind::Invalid if error.status == UNPROCESSABLE => PodRefusal::Invalid,
        _ => return Err(message),
    };
    let mut fields: Vec<String> = error.causes.into_iter().map(|cause| cause.field).collect();
    fields.retain(|field| !field.is_empty());
    Ok(PodAdmission::Refused { by, message, fields })
}

/// The part of the server that words a refusal so: a `Status` names none.
fn refusal(message: &str) -> PodRefusal {
    let has = |words: &str| message.contains(words);
    if has("admission webhook \"") {
        PodRefusal::Webhook
    } else if has("ValidatingAdmissionPolicy '") {
        PodRefusal::Policy
    } else if has("violates PodSecurity \"") {
        PodRefusal::PodSecurity
    } else if has("exceeded quota: ") {
        PodRefusal::Quota
    } else if has("failed quota: ") {
        PodRefusal::QuotaRequests
    } else if has(" usage per ") || has(" limit to request ratio per ") {
        PodRefusal::LimitRange
    } else if has("error looking up service account ") && message.ends_with(" not found") {
        PodRefusal::ServiceAccount
    } else if has("no PriorityClass with name ") {
        PodRefusal::PriorityClass
    } else if has("RuntimeClass \"") && message.ends_with(" not found") {
        PodRefusal::RuntimeClass
    } else {
        PodRefusal::Denied
    }
}

/// The message without the characters that the server makes up for the name of the Pod.
fn without_random_name(pod: &Value, message: &str) -> String {
    let prefix = pod.text("/metadata/generateName");
    let mut rest = message;
    let mut text = String::new();
    while let Some(start) = rest.find(prefix).filter(|_| !prefix.is_empty()) {
        let (before, after) = rest.split_at(start + prefix.len());
        let is_random = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let random = after.chars().take_while(is_random).count();
        text += before;
        rest = if random == RANDOM { after.get(RANDOM..).unwrap_or_default() } else { after };
        text += if random == RANDOM { "*" } else { "" };
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(kind: ErrorKind, status: u16, message: &str) -> ClusterError {
        ClusterError { status, ..ClusterError::new(kind, message) }
    }

    /// Messages as API servers 1.30 to 1.36 word them, without the prefix that names the Pod.
    #[test]
    fn part_of_the_server_follows_from_its_words() {
        let cases = [
            ("violates PodSecurity \"restricted:latest\": runAsNonRoot != true (…)", PodRefusal::PodSecurity),
            ("minimum cpu usage per Container is 200m, but request is 100m", PodRefusal::LimitRange),
            (
                "[cpu max limit to request ratio per Container is 4, but provided ratio is 10.0, x]",
                PodRefusal::LimitRange,
            ),
            ("failed quota: q: must specify limits.cpu for: web", PodRefusal::QuotaRequests),
            ("exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0", PodRefusal::Quota),
            ("error looking up service account shop/web: serviceaccount \"web\" not found", PodRefusal::ServiceAccount),
            ("no PriorityClass with name gold was found", PodRefusal::PriorityClass),
            ("pod rejected: RuntimeClass \"gvisor\" not found", PodRefusal::RuntimeClass),
            (
                "admission webhook \"a.b\" denied the request: violates PodSecurity \"mine\": exceeded quota: x",
                PodRefusal::Webhook,
            ),
            ("ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no", PodRefusal::Policy),
            ("error looking up service account shop/web: etcdserver: request timed out", PodRefusal::Denied),
            ("pod node label selector conflicts with its namespace node label selector", PodRefusal::Denied),
        ];
        for (message, by) in cases {
            let found = admission(&json!({}), error(ErrorKind::Denied, 403, message));
            let refused = PodAdmission::Refused { by, message: message.to_owned(), fields: Vec::new() };
            assert_eq!(found, Ok(refused), "{message}");
        }
    }

    #[test]
    fn only_admission_and_validation_refuse_a_pod() {
        let of = |kind, status, message: &str| admission(&json!({}), error(kind, status, message));
        assert_eq!(of(ErrorKind::AlreadyExists, 409, "pods \"web-0\" already exists"), Ok(PodAdmission::Accepted));
        let words = "User \"u\" cannot create resource \"pods\"".to_owned();
        assert_eq!(of(ErrorKind::Forbidden, 403, &words), Ok(PodAdmission::Forbidden { message: words }));
        let words = "admission webhook \"a\" does not support dry run".to_owned();
        assert_eq!(of(ErrorKind::Unsupported, 400, &words), Ok(PodAdmission::NoDryRun { message: words }));
        for (kind, status) in [
            (ErrorKind::WebhookUnavailable, 500),
            (ErrorKind::Server, 500),
            (ErrorKind::NotFound, 404),
            (ErrorKind::Invalid, 400),
            (ErrorKind::Busy, 429),
            (ErrorKind::Timeout, 504),
        ] {
            assert!(of(kind, status, "no").is_err(), "{kind:?}");
        }
        let terminating = error(ErrorKind::Denied, 403, "being terminated").with_reason(NAMESPACE_TERMINATING);
        assert!(admission(&json!({}), terminating).is_err());
        let mut invalid = error(ErrorKind::Invalid, 422, "spec.hostname: Invalid value");
        invalid.causes = vec![pushback_cluster::Cause { field: "spec.hostname".to_owned(), ..Default::default() }];
        let fields = vec!["spec.hostname".to_owned()];
        let message = invalid.message.clone();
        assert_eq!(
            admission(&json!({}), invalid),
            Ok(PodAdmission::Refused { by: PodRefusal::Invalid, message, fields })
        );
    }

    #[test]
    fn generated_name_is_left_out_of_the_words() {
        let pod = json!({"metadata": {"generateName": "web-"}});
        let without = |message: &str| without_random_name(&pod, message);
        assert_eq!(without("Pod shop/web-x7k2p: no; web-x7k2p"), "Pod shop/web-*: no; web-*");
        assert_eq!(without("web-server and web-"), "web-server and web-");
        assert_eq!(without("web-é"), "web-é");
        assert_eq!(without_random_name(&json!({}), "web-x7k2p"), "web-x7k2p");
    }
}
