//! The AdmissionReview as the API server sends it, and the answer (`k8s.io/api/admission/v1`). Only the parts that matter
//! are read.

use http::StatusCode;
use pushback_crd::definition::crd::{GROUP, KIND as CRD};
use pushback_objects::ObjectExt;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::{AdmissionResult, Decision, KIND};
use crate::notice::Notice;
use crate::reviews::{Outcome, Reply};

/// `apiVersion` of requests and answers; what is in them is the same in both.
const API_VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// The version of CRDs that is judged: the API server converts others, since rules match equivalent versions.
const CRD_VERSION: &str = "v1";

/// Operation on a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A create, or anything else that changes no stored CRD.
    Create,
    Update,
    Delete,
}

impl Operation {
    fn parse(text: &str) -> Self {
        match text {
            "UPDATE" => Self::Update,
            "DELETE" => Self::Delete,
            _ => Self::Create,
        }
    }
}

/// Parts of a request that answer and log repeat.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    api_version: &'static str,
    uid: String,
    pub(super) operation: Operation,
    /// Name of the CRD.
    pub(super) name: String,
    user: String,
}

/// The user who asks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) username: String,
    pub(super) groups: Vec<String>,
}

/// The objects of a review.
#[derive(Debug)]
pub(super) enum Content {
    /// A CRD before and after.
    Crd { old: Value, new: Value },
    /// An object of another kind, or a subresource.
    Other(String),
    /// Reason that the objects cannot be read.
    Unreadable(String),
}

/// A request.
#[derive(Debug)]
pub(super) struct Review {
    pub(super) envelope: Envelope,
    pub(super) user: User,
    pub(super) content: Content,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de> + Default"))]
struct Wire<O> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<WireRequest<O>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "O: Deserialize<'de> + Default"))]
struct WireRequest<O> {
    uid: String,
    kind: WireKind,
    sub_resource: String,
    name: String,
    operation: String,
    user_info: User,
    object: O,
    old_object: O,
}

impl<O: Default> Default for WireRequest<O> {
    fn default() -> Self {
        Self {
            uid: String::new(),
            kind: WireKind::default(),
            sub_resource: String::new(),
            name: String::new(),
            operation: String::new(),
            user_info: User::default(),
            object: O::default(),
            old_object: O::default(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireKind {
    group: String,
    version: String,
    kind: String,
}

impl Review {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// The body is not an AdmissionReview that could be answered.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        match serde_json::from_slice::<Wire<Value>>(body) {
            Ok(wire) => Self::read(wire, |old, new| Content::Crd { old, new }),
            // An object that is nested too deeply for the reader can still be skipped, and the request answered.
            Err(error) => {
                let skipped = serde_json::from_slice::<Wire<IgnoredAny>>(body);
                let wire = skipped.map_err(|_| format!("the body is not an AdmissionReview: {error}"))?;
                Self::read(wire, |_, _| {
                    Content::Unreadable(format!("the objects of the review cannot be read: {error}"))
                })
            }
        }
    }

    fn read<O>(wire: Wire<O>, content: impl FnOnce(O, O) -> Content) -> Result<Self, String> {
        let found = API_VERSIONS.into_iter().find(|known| *known == wire.api_version);
        let Some(api_version) = found.filter(|_| wire.kind == KIND.name) else {
            let (kind, version) = (super::bounded::sentence(&wire.kind), super::bounded::sentence(&wire.api_version));
            return Err(format!(
                "expected an {} of {}, found kind {kind:?} in {version:?}",
                KIND.name, API_VERSIONS[0]
            ));
        };
        let request = wire.request.filter(|request| !request.uid.is_empty());
        let request = request.ok_or_else(|| "request.uid is missing".to_owned())?;
        let WireRequest { uid, kind, sub_resource, name, operation, user_info: user, object, old_object } = request;
        let is_crd = (kind.group.as_str(), kind.kind.as_str()) == (GROUP, CRD) && kind.version == CRD_VERSION;
        let content = match (is_crd, sub_resource.as_str()) {
            (true, "") => content(old_object, object),
            (true, subresource) => Content::Other(format!("the subresource {subresource} of a CRD")),
            (false, _) => Content::Other(format!("{} of {}/{}", kind.kind, kind.group, kind.version)),
        };
        // Where a whole collection is deleted, only the object has the name.
        let name = match &content {
            Content::Crd { old, .. } if name.is_empty() => old.name().to_owned(),
            _ => name,
        };
        let operation = Operation::parse(&operation);
        let envelope = Envelope { api_version, uid, operation, name, user: user.username.clone() };
        Ok(Self { envelope, user, content })
    }
}

/// The answer to a review.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    pub(super) allowed: bool,
    /// Reason of a refusal.
    pub(super) message: Option<String>,
    /// For the user.
    pub(super) warnings: Vec<String>,
    /// For the audit log; the API server puts the name of the webhook before each key.
    pub(super) audit: Vec<(&'static str, String)>,
}

impl Envelope {
    /// The answer, with what is counted and logged about it.
    pub(super) fn reply(&self, decision: Decision) -> Reply {
        let Decision { result, response, reason } = decision;
        let notice = reason.map(|reason| Notice::Judged {
            crd: self.name.clone(),
            operation: self.verb(),
            user: self.user.clone(),
            result: result.as_str(),
            reason,
        });
        let body = self.review(response).to_string().into_bytes();
        Reply { notice, ..Reply::review(Outcome::Answered(AdmissionResult::index(result, self.operation)), body) }
    }

    fn verb(&self) -> &'static str {
        match self.operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "deletion",
        }
    }

    fn review(&self, response: Response) -> Value {
        let Response { allowed, message, warnings, audit } = response;
        let mut response = json!({"uid": self.uid, "allowed": allowed});
        if let Some(message) = message {
            response["status"] = json!({
                "status": "Failure", "code": StatusCode::FORBIDDEN.as_u16(), "reason": "Forbidden", "message": message,
            });
        }
        if !warnings.is_empty() {
            response["warnings"] = warnings.into();
        }
        if !audit.is_empty() {
            let audit: Map<String, Value> =
                audit.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
            response["auditAnnotations"] = audit.into();
        }
        json!({"apiVersion": self.api_version, "kind": KIND.name, "response": response})
    }
}
