//! A response: a verdict with its findings, or an error.

use pushback_crd::words;
use pushback_objects::finding::Finding;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::Value;

use crate::API_VERSION;

words! {
    /// The verdict on a whole change: that of its worst finding.
    pub enum JudgeVerdict {
        /// No object is affected: there are only changes worth knowing, or none.
        Safe = "safe",
        /// Proved unsafe.
        Breaking = "breaking",
        /// Not provable either way.
        Unknown = "unknown",
    }
}

words! {
    /// The kind of an error.
    pub enum ErrorKind {
        /// The line is not JSON.
        Syntax = "syntax",
        /// The JSON is not a request that can be judged.
        Request = "request",
        /// The line is longer than 16 MiB. It is skipped.
        TooLong = "tooLong",
    }
}

/// The answer to a line.
#[derive(Clone, Debug, Default)]
pub struct JudgeResponse {
    /// The id of the request.
    pub id: Option<Value>,
    /// The verdict; `None` if there is an error.
    pub verdict: Option<JudgeVerdict>,
    /// The findings, as in the JSON report of `check`.
    pub changes: Vec<Finding>,
    /// Facts that were missing.
    pub unable: Vec<String>,
    /// The error.
    pub error: Option<JudgeError>,
}

/// The reason why a line could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgeError {
    /// Its kind.
    pub kind: ErrorKind,
    /// What is wrong, as one sentence.
    pub message: String,
    /// The place in the input.
    pub position: ErrorPosition,
}

/// A place in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorPosition {
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 1; 0 if the error is about the line as a whole.
    pub column: u64,
}

impl JudgeError {
    /// An error about a request as a whole.
    pub(crate) fn request(message: String) -> Self {
        Self { kind: ErrorKind::Request, message, position: ErrorPosition::default() }
    }
}

impl Serialize for JudgeResponse {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", API_VERSION)?;
        map.serialize_entry("kind", "JudgeResponse")?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        if let Some(error) = &self.error {
            map.serialize_entry("error", error)?;
            return map.end();
        }
        map.serialize_entry("verdict", &self.verdict)?;
        map.serialize_entry("changes", &self.changes)?;
        if !self.unable.is_empty() {
            map.serialize_entry("unable", &self.unable)?;
        }
        map.end()
    }
}
