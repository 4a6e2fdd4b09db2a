//! What server-side apply refuses and a plain write takes: fields that a kind lacks are left out, as the server itself
//! does, and objects with list items of the same key are written whole, so that all of them stay.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pushback_manifest::config::path;
use pushback_objects::PathSegment;
use pushback_objects::source::display_path;
use serde_json::Value;

use crate::server_message::{self, UNKNOWN_FIELD};
use crate::{Address, Cause, ClusterError, ErrorKind};

/// What is known of objects that were refused once.
#[derive(Debug, Default)]
pub(super) struct Lenient(Mutex<BTreeMap<Address, Exception>>);

/// How one object differs from what server-side apply takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Exception {
    /// Fields that the kind lacks, in the order in which they were found.
    unknown: Vec<Vec<PathSegment>>,
    /// Lists with items of the same key, and what the server says of each.
    duplicates: Vec<(Vec<PathSegment>, String)>,
}

impl Lenient {
    /// What is known of an object.
    pub(super) fn of(&self, address: &Address) -> Exception {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned().unwrap_or_default()
    }

    /// Remembers it, so that the next write is not refused first.
    pub(super) fn remember(&self, address: &Address, exception: Exception) {
        if !exception.unknown.is_empty() || !exception.duplicates.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address.clone(), exception);
        }
    }
}

impl Exception {
    /// Removes the fields that the kind lacks.
    pub(super) fn leave_out(&self, body: &mut Value) {
        for field in &self.unknown {
            path::remove_at(body, field);
        }
    }

    /// Whether a plain write is needed.
    pub(super) fn is_written_whole(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// Learns from a refusal, and changes the body accordingly. Returns whether another attempt can succeed: nothing
    /// else is wrong with the object.
    pub(super) fn learn(&mut self, error: &ClusterError, body: &mut Value) -> bool {
        if error.kind != ErrorKind::Invalid || self.is_written_whole() {
            return false;
        }
        let causes = server_message::causes(&error.message);
        let is_known = |cause: &Cause| cause.reason == UNKNOWN_FIELD || server_message::is_duplicate(cause);
        if causes.is_empty() || !causes.iter().all(is_known) {
            return false;
        }
        let mut has_learned = false;
        for cause in causes {
            let field = server_message::path(&cause.field, body);
            if cause.reason != UNKNOWN_FIELD {
                self.duplicates.push((field, cause.message));
                has_learned = true;
            } else if path::remove_at(body, &field).is_some() {
                self.unknown.push(field);
                has_learned = true;
            }
        }
        has_learned
    }

    /// Adds what the server would say of the object as it was given.
    pub(super) fn tell(&self, warnings: &mut Vec<String>) {
        let unknown = self.unknown.iter().map(|field| format!("unknown field \"{}\"", display_path(field)));
        let mut told: Vec<String> = unknown.collect();
        for (list, message) in &self.duplicates {
            let list = display_path(list);
            if !warnings.iter().any(|warning| warning.starts_with(&list)) {
                told.push(format!("{list}: {message}"));
            }
        }
        told.retain(|text| !warnings.contains(text));
        warnings.splice(0..0, told);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::config_map;
    use super::*;

    fn refusal(errors: &str) -> ClusterError {
        let message = format!("failed to create typed patch object (a/b; apps/v1, Kind=Deployment): errors:\n{errors}");
        ClusterError::new(ErrorKind::Invalid, message)
    }

    #[test]
    fn what_a_plain_write_takes_is_learned_and_told_as_the_server_does() {
        let given =
            json!({"spec": {"x": 1, "containers": [{"name": "a", "y": 2, "env": [{"name": "A"}, {"name": "A"}]}]}});
        let (mut body, mut exception) = (given.clone(), Exception::default());
        let unknown = refusal(
            "  .spec.x: field not declared in schema\n  .spec.containers[name=\"a\"].y: field not declared in schema",
        );
        assert!(exception.learn(&unknown, &mut body));
        assert_eq!(body, json!({"spec": {"containers": [{"name": "a", "env": [{"name": "A"}, {"name": "A"}]}]}}));
        assert!(!exception.learn(&unknown, &mut body), "nothing new");
        assert!(!exception.is_written_whole());
        let twice = refusal("  .spec.containers[name=\"a\"].env: duplicate entries for key [name=\"A\"]");
        assert!(exception.learn(&twice, &mut body) && exception.is_written_whole());

        let lenient = Lenient::default();
        let address = Address::new(config_map(), "a", "b");
        lenient.remember(&address, exception);
        let mut again = given;
        let known = lenient.of(&address);
        known.leave_out(&mut again);
        assert_eq!(again, body);
        let mut warnings = vec!["spec.containers[0].env[1]: hides previous definition of \"A\"".to_owned()];
        known.tell(&mut warnings);
        assert_eq!(
            warnings,
            [
                "unknown field \"spec.x\"",
                "unknown field \"spec.containers[0].y\"",
                "spec.containers[0].env[1]: hides previous definition of \"A\"",
            ]
        );
    }

    #[test]
    fn what_no_write_takes_stays_refused() {
        let mut body = json!({"spec": {"x": 1, "replicas": "two"}});
        let mixed = refusal(
            "  .spec.x: field not declared in schema\n  .spec.replicas: expected numeric (int or float), got string",
        );
        assert!(!Exception::default().learn(&mixed, &mut body));
        let other = ClusterError::new(ErrorKind::Invalid, "spec.x: Required value");
        assert!(!Exception::default().learn(&other, &mut body));
        assert_eq!(body, json!({"spec": {"x": 1, "replicas": "two"}}));
    }
}
