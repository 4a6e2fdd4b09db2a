//! Facts about the end of a run without success.

use pushback_manifest::collect::Problem;
use pushback_objects::ObjectRef;
use serde::Serialize;

use super::Millis;

/// Reason why a run ended without success, with its facts. The error of the last event is the sentence about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum RunFailure {
    /// The user declined.
    Declined,
    /// Standard input ended before an answer.
    NoAnswer,
    /// The cluster has changed since the user agreed, and the changes would be others now.
    PlanOutdated,
    /// A flag is missing, or its value is wrong.
    Flag {
        /// The flag: `--labels`.
        flag: &'static str,
        /// The wrong part of its value; empty if the flag is missing.
        #[serde(skip_serializing_if = "String::is_empty")]
        value: String,
    },
    /// A file of the input does not exist.
    NoFile {
        /// The file.
        file: String,
    },
    /// The input is empty, or the filters select nothing.
    NoObjects,
    /// Objects of the input lack a required field, or have the same name and different content.
    InvalidObjects {
        /// The objects.
        objects: Vec<Problem>,
    },
    /// Objects of the input are where the user allows no write.
    NotAllowed {
        /// The objects.
        objects: Vec<Problem>,
    },
    /// Objects of the input belong to other apps.
    OwnedByOthers {
        /// The objects.
        objects: Vec<OwnedObject>,
    },
    /// The cluster does not serve a kind.
    UnknownKind {
        /// API version.
        api_version: String,
        /// Kind.
        kind: String,
    },
    /// Change rules contradict each other.
    Cycle {
        /// The objects on the cycle; the last one is the first one.
        objects: Vec<ObjectRef>,
    },
    /// The Config names a rule that does not exist.
    UnknownRule {
        /// Name of the rule.
        rule: String,
    },
    /// No app has this name.
    NoApp {
        /// The app.
        app: AppRef,
        /// Other namespaces with an app of this name.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        elsewhere: Vec<String>,
    },
    /// The app record could not be created under its new name.
    RecordNotCreated {
        /// The cluster's error.
        message: String,
    },
    /// Preflight refused.
    Refused {
        /// Rules that lacked facts.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unable: Vec<UnableRule>,
    },
    /// Waiting took too long.
    WaitTimeout {
        /// The limit.
        limit: Millis,
        /// True for the limit of each object, false for that of all together.
        per_object: bool,
    },
}

/// An app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AppRef {
    /// App name.
    pub name: String,
    /// Namespace of its record.
    pub namespace: String,
}

/// An object of another app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnedObject {
    /// The object.
    pub object: ObjectRef,
    /// The app; `None` if only its label is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppRef>,
    /// The app's label on the object, `key=value`.
    pub label: String,
}

/// A rule that lacked facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnableRule {
    /// Name of the rule.
    pub rule: String,
    /// Reason, one sentence.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failure_in_json_has_its_reason_and_its_facts() {
        let app = AppRef { name: "shop".to_owned(), namespace: "a".to_owned() };
        let failures = [
            RunFailure::Declined,
            RunFailure::Flag { flag: "--new-name", value: String::new() },
            RunFailure::UnknownKind { api_version: "example.com/v1".to_owned(), kind: "A".to_owned() },
            RunFailure::NoApp { app, elsewhere: vec!["b".to_owned()] },
            RunFailure::WaitTimeout { limit: Millis(1_000), per_object: true },
        ];
        let expected = json!([
            {"reason": "Declined"},
            {"reason": "Flag", "flag": "--new-name"},
            {"reason": "UnknownKind", "apiVersion": "example.com/v1", "kind": "A"},
            {"reason": "NoApp", "app": {"name": "shop", "namespace": "a"}, "elsewhere": ["b"]},
            {"reason": "WaitTimeout", "limit": 1_000, "perObject": true},
        ]);
        assert_eq!(json!(failures), expected);
    }
}
