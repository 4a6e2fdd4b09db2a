//! Apps as listed: a summary of each record.
//! An app whose run did not finish is never a success, whatever kapp's part of the record says.

use pushback_objects::ObjectExt;
use serde_json::{Value, json};

/// The phase of a run that is in progress or was killed, `applying` or `deleting`: the record's last change is then the
/// previous one. kapp does not know the phase, so it is void if kapp has written since.
fn phase(record: &Value, spec: &Value) -> String {
    let own: Value = serde_json::from_str(record.text("/data/pushback")).unwrap_or(Value::Null);
    let is_known = own.text("/lastChangeName") == spec.text("/lastChangeName");
    let phase = own.text("/phase");
    if is_known && matches!(phase, "applying" | "deleting") { phase.to_owned() } else { String::new() }
}

/// Summary of a record, with the result of its last change.
#[must_use]
pub fn listed(record: &Value) -> Value {
    let spec: Value = serde_json::from_str(record.text("/data/spec")).unwrap_or(Value::Null);
    let successful = spec.pointer("/lastChange/successful").filter(|_| phase(record, &spec).is_empty());
    let state = match (phase(record, &spec).as_str(), successful.and_then(Value::as_bool)) {
        // A record is deleted last: its objects are already being deleted.
        ("deleting", _) => "deleting",
        (_, Some(true)) => "succeeded",
        (_, Some(false)) => "failed",
        (_, None) => "unfinished",
    };
    json!({
        "namespace": record.namespace(),
        "name": record.name().strip_suffix(".apps.k14s.io").unwrap_or(record.name()),
        "label": spec.text("/labelValue"),
        "namespaces": spec.pointer("/lastChange/namespaces"),
        "state": state,
        "successful": successful,
        "startedAt": spec.pointer("/lastChange/startedAt"),
        "finishedAt": spec.pointer("/lastChange/finishedAt"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_not_come_to_its_end_is_no_success() {
        let record = |phase: &str, change: &str| {
            let spec = json!({"lastChangeName": "app-change-1", "lastChange": {"successful": true}});
            let own = json!({"phase": phase, "lastChangeName": change});
            json!({"metadata": {"name": "app"}, "data": {"spec": spec.to_string(), "pushback": own.to_string()}})
        };
        for phase in ["applying", "deleting"] {
            assert_eq!(listed(&record(phase, "app-change-1"))["successful"], Value::Null, "{phase}");
        }
        assert_eq!(listed(&record("done", "app-change-1"))["successful"], true);
        // kapp has written since.
        assert_eq!(listed(&record("applying", "app-change-0"))["successful"], true);
    }
}
