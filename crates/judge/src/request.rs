//! A request: two objects, and what the judgement depends on besides them.

use serde::Deserialize;
use serde_json::Value;

use crate::API_VERSION;
use crate::response::{ErrorKind, ErrorPosition, JudgeError};

/// Kind of a request.
const KIND: &str = "JudgeRequest";

/// A request to judge the change of a CRD, or of an object that a controller makes a CRD from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgeRequest {
    /// `pushback.dev/v1alpha1`.
    pub api_version: String,
    /// `JudgeRequest`.
    pub kind: String,
    /// Any value; the response has it, too.
    #[serde(default)]
    pub id: Option<Value>,
    /// The present object, with its status if that is known; absent or null if it is created.
    #[serde(default)]
    pub old: Option<Value>,
    /// The object after the change; absent or null if it is deleted.
    #[serde(default)]
    pub new: Option<Value>,
    /// The Kubernetes version that serves it, such as `1.33`; the newest one that is known by default.
    #[serde(default)]
    pub kubernetes_version: Option<String>,
    /// Stored custom resources of the kind, to count those that are affected.
    #[serde(default)]
    pub objects: Vec<Value>,
}

impl JudgeRequest {
    /// Reads a request from a line of JSON.
    ///
    /// # Errors
    /// The line is not JSON, or not such a request; with the id as far as it can be read.
    pub fn parse(line: &[u8]) -> Result<Self, (Option<Value>, JudgeError)> {
        // A list of values would be read as the fields in their order.
        if line.trim_ascii_start().starts_with(b"[") {
            return Err((None, JudgeError::request("expected an object, found a list".to_owned())));
        }
        let request: Self = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => {
                let id = serde_json::from_slice::<Value>(line).ok().and_then(|value| value.get("id").cloned());
                let kind = if error.is_data() { ErrorKind::Request } else { ErrorKind::Syntax };
                let column = u64::try_from(error.column()).unwrap_or(u64::MAX);
                let text = error.to_string();
                // The parser counts lines within the line.
                let message = text.split(" at line ").next().unwrap_or_default().to_owned();
                return Err((id, JudgeError { kind, message, position: ErrorPosition { line: 0, column } }));
            }
        };
        if (request.api_version.as_str(), request.kind.as_str()) != (API_VERSION, KIND) {
            let message = format!(
                "expected apiVersion {API_VERSION} and kind {KIND}, found {:?} and {:?}",
                request.api_version, request.kind
            );
            return Err((request.id, JudgeError::request(message)));
        }
        Ok(request)
    }
}
