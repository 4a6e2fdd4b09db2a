//! The API server's refusals in dry-run as findings of rule `server`: one per cause, at its input position.

use std::collections::{BTreeMap, BTreeSet};

use pushback_cluster::{Address, Cause, ClusterError, ErrorKind, NAMESPACE_TERMINATING, server_message};
use pushback_objects::finding::LiveObjects;
use pushback_objects::source::{display_path, value_at};
use pushback_objects::{Finding, PathSegment, Position, Positions, Verdict};
use pushback_preflight::registry;
use pushback_storage::replacement::Obstacle;
use serde_json::Value;

use super::desired::{Desired, takes_more_along};

/// The rule name of these findings.
pub const RULE: &str = "server";
/// The check for a namespace that does not exist.
const MISSING_NAMESPACE: &str = "namespace";
/// The check for a field that cannot be changed.
const IMMUTABLE: &str = "immutable";

/// The server's refusal of a change in a dry run.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The server's words.
    pub error: ClusterError,
    /// True if the server would accept the same object as a new one.
    pub(super) only_as_new: bool,
    /// The address of the dry run, if the namespace of the object does not exist.
    pub(super) elsewhere: Option<Address>,
    /// The reason why `--storage` cannot carry its stored objects over, if that is what refuses the change.
    pub(super) storage: Option<Obstacle>,
}

impl Refusal {
    /// A refusal at the object's own address.
    pub(super) fn new(error: ClusterError) -> Box<Self> {
        Box::new(Self { error, only_as_new: false, elsewhere: None, storage: None })
    }

    /// A CRD whose stored objects cannot be carried over.
    pub(super) fn of_storage(obstacle: Obstacle) -> Box<Self> {
        let error = ClusterError::new(ErrorKind::Invalid, obstacle.to_string());
        Box::new(Self { storage: Some(obstacle), ..*Self::new(error) })
    }

    /// The findings for the refused object.
    pub(super) fn findings(&self, desired: &Desired) -> Vec<Finding> {
        match &self.storage {
            Some(obstacle) => vec![storage_finding(desired, obstacle, &self.error.message)],
            None => findings(desired, &self.error, self.only_as_new),
        }
    }
}

/// Most objects that a finding names.
const NAMED: usize = 5;

/// The finding for stored objects that cannot be carried over.
fn storage_finding(desired: &Desired, obstacle: &Obstacle, message: &str) -> Finding {
    let (check, remedy) = match obstacle {
        Obstacle::Bridge(_) => ("bridge", Some("correct what the API server refuses in the CRD with both versions")),
        Obstacle::Conversion(_) => {
            ("conversion", Some("correct the conversion plan, or the objects that it does not fit"))
        }
        Obstacle::Loss { .. } => {
            ("loss", Some("keep the fields in the new version, or convert with a plan or a webhook"))
        }
        Obstacle::Begun(_) => ("resume", None),
    };
    let position = desired.positions.locate(&["spec".into(), "versions".into()]);
    let mut finding =
        Finding::new(registry::STORAGE, check, Verdict::Breaking, desired.object.clone(), message).at(Some(position));
    finding.remedy = remedy.map(str::to_owned);
    if let Obstacle::Loss { losses, storage } = obstacle {
        let names: BTreeSet<&String> = losses.fields.values().map(|(_, object)| object).collect();
        let names = names.into_iter().take(NAMED).cloned().collect();
        finding.live_objects = Some(LiveObjects::exactly(losses.affected, losses.objects, names));
        finding.version = Some(storage.clone());
        finding.path = losses.fields.keys().next().cloned();
        finding.effect = Some("pruned".to_owned());
    }
    finding
}

/// Findings for one refused object. `only_as_new`: the server would accept it as a new object.
#[must_use]
pub fn findings(desired: &Desired, error: &ClusterError, only_as_new: bool) -> Vec<Finding> {
    let told = server_message::causes(&error.message);
    if !told.is_empty() {
        let check =
            |cause: &Cause| if cause.reason == server_message::UNKNOWN_FIELD { "unknown-field" } else { "invalid" };
        return told.into_iter().map(|cause| finding(desired, check(&cause), &cause)).collect();
    }
    let check = if only_as_new { IMMUTABLE } else { check_name(error) };
    if error.causes.is_empty() || matches!(check, "denied" | "terminating") {
        let cause = Cause { reason: error.reason.clone(), field: String::new(), message: error.message.clone() };
        return vec![finding(desired, check, &cause)];
    }
    error
        .causes
        .iter()
        .map(|cause| {
            let immutable = cause.message.contains("immutable")
                || (cause.reason == "FieldValueForbidden" && cause.message.contains("updates to"));
            finding(desired, if immutable { IMMUTABLE } else { check }, cause)
        })
        .collect()
}

/// The place of the field that a warning of the server names.
#[must_use]
pub fn place_of_warning(message: &str, object: &Value, positions: &Positions) -> Option<Position> {
    let field = server_message::field_of_warning(message)?;
    Some(positions.locate(&server_message::path(field, object)))
}

/// The fields of an object that the server does not know.
pub(super) fn unknown_fields(error: &ClusterError, object: &Value) -> Vec<Vec<PathSegment>> {
    let causes = server_message::causes(&error.message)
        .into_iter()
        .filter(|cause| cause.reason == server_message::UNKNOWN_FIELD);
    causes.map(|cause| server_message::path(&cause.field, object)).collect()
}

fn finding(desired: &Desired, check: &str, cause: &Cause) -> Finding {
    let path = server_message::path(&cause.field, &desired.value);
    let mut finding =
        Finding::new(RULE, check, Verdict::Breaking, desired.object.clone(), without_value(&cause.message))
            .at(Some(desired.positions.locate(&path)));
    if !path.is_empty() {
        finding = finding.path(display_path(&path));
    }
    let value = quoted_value(&cause.message);
    finding.repeats.extend(registry::findings_for_refusal(&desired.object, &cause.field, value));
    if !path.is_empty() && value_at(&desired.value, &path).is_some_and(Value::is_null) {
        let part = if matches!(path.last(), Some(PathSegment::Index(_))) { "item" } else { "field" };
        return finding.remedy(format!("remove the {part} from the manifest: its value is null"));
    }
    match check {
        IMMUTABLE if desired.object.kind == "CustomResourceDefinition" => {
            finding.remedy("keep the value, or define a new kind beside this one and move the objects to it")
        }
        IMMUTABLE if takes_more_along(&desired.object) => finding.remedy(
            "keep the value, or create the object under another name: to replace it would delete all that goes with it",
        ),
        IMMUTABLE => finding.remedy(
            "keep the value, or replace the object: annotation kapp.k14s.io/update-strategy: fallback-on-replace",
        ),
        "unknown-field" => finding.remedy("check the spelling, or the version of the kind that the cluster serves"),
        "terminating" => {
            finding.remedy("wait until the Namespace is gone, and add it to the manifests or create it anew")
        }
        MISSING_NAMESPACE => finding.remedy("add the Namespace to the manifests, or create it first"),
        "quota" => finding.remedy("raise the quota, or free what it counts"),
        "denied" => finding.remedy("change what the admission webhook or policy names, or correct the policy"),
        _ => finding,
    }
}

/// Removes the value from `Invalid value: {…}: field is immutable`: it may be huge, and it may be confidential; the
/// path is enough.
fn without_value(message: &str) -> String {
    let Some(value) = message.strip_prefix("Invalid value: ") else { return message.to_owned() };
    let end = match value.chars().next() {
        Some('{') => value.rfind("}: "),
        Some('[') => value.rfind("]: "),
        _ => None,
    };
    end.map_or_else(|| message.to_owned(), |end| value[end + 3..].to_owned())
}

/// The quoted value in `Invalid value: "v1beta1": missing from …`.
fn quoted_value(message: &str) -> Option<&str> {
    message.strip_prefix("Invalid value: \"")?.split('"').next()
}

fn check_name(error: &ClusterError) -> &'static str {
    match error.kind {
        ErrorKind::Invalid if error.message.contains("immutable") => IMMUTABLE,
        ErrorKind::Invalid => "invalid",
        ErrorKind::Denied if error.message.contains("exceeded quota") => "quota",
        ErrorKind::Denied | ErrorKind::Forbidden if error.reason == NAMESPACE_TERMINATING => "terminating",
        ErrorKind::Denied => "denied",
        ErrorKind::Forbidden => "forbidden",
        ErrorKind::NotFound if error.message.contains("namespaces") => MISSING_NAMESPACE,
        ErrorKind::NotFound | ErrorKind::UnknownKind => "not-found",
        ErrorKind::Conflict | ErrorKind::AlreadyExists => "conflict",
        ErrorKind::TooLarge => "too-large",
        _ => "error",
    }
}

/// Merges the findings of each missing namespace, however many objects it would contain.
pub fn merge_missing_namespaces(findings: &mut Vec<Finding>) {
    let mut objects: BTreeMap<String, usize> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.check == MISSING_NAMESPACE) {
        *objects.entry(finding.object.namespace.clone()).or_default() += 1;
    }
    let mut seen = BTreeSet::new();
    findings.retain(|finding| finding.check != MISSING_NAMESPACE || seen.insert(finding.object.namespace.clone()));
    for finding in findings.iter_mut().filter(|finding| finding.check == MISSING_NAMESPACE) {
        let count = objects.get(&finding.object.namespace).copied().unwrap_or_default();
        if count > 1 {
            finding.message = format!("{}; {count} objects go into it", finding.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_value_is_left_out_of_the_message() {
        assert_eq!(without_value("Invalid value: {\"a\":{\"b\":1}}: field is immutable"), "field is immutable");
        assert_eq!(without_value("Invalid value: \"x\": must be y"), "Invalid value: \"x\": must be y");
    }
}
