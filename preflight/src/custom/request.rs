//! Planned changes as requests to an API server, in the terms of admission: what is asked for, the object and the one
//! that it takes the place of.

use serde_json::{Value, json};

use crate::facts::{Change, Operation};

/// What an API server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// An object is created.
    Create,
    /// An object is written over.
    Update,
    /// An object is deleted.
    Delete,
}

impl Request {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Delete];

    /// Its name in admission.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A request with its objects; at least one is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'c> {
    pub(super) request: Request,
    pub(super) change: &'c Change,
    /// The object after the request.
    pub(super) object: Option<&'c Value>,
    /// The object before it.
    pub(super) old: Option<&'c Value>,
}

impl<'c> Asked<'c> {
    /// The requests that a change makes. What is only released from the app is not deleted.
    pub(super) fn of(change: &'c Change) -> Vec<Self> {
        let (after, before) = (change.after(), change.live.as_deref());
        let asked =
            |request, object: Option<&'c Value>, old| object.or(old).map(|_| Self { request, change, object, old });
        let requests = match change.operation {
            Operation::Create => [asked(Request::Create, after, None), None],
            Operation::Update => [asked(Request::Update, after, before), None],
            Operation::Replace => [asked(Request::Delete, None, before), asked(Request::Create, after, None)],
            Operation::Delete if !change.orphaned => [asked(Request::Delete, None, before), None],
            Operation::Delete | Operation::Noop | Operation::Exists => [None, None],
        };
        requests.into_iter().flatten().collect()
    }

    /// The object that it is about.
    pub(super) fn subject(&self) -> Option<&'c Value> {
        self.object.or(self.old)
    }

    /// The variable `request`, as far as a plan knows it.
    pub(super) fn variable(&self) -> Value {
        let Change { object, resource, .. } = self.change;
        json!({
            "operation": self.request.as_str(),
            "kind": {"group": object.group, "version": object.version, "kind": object.kind},
            "resource": {"group": object.group, "version": object.version, "resource": resource},
            "name": object.name,
            "namespace": object.namespace,
        })
    }

    /// The schema of `request`.
    pub(super) fn schema() -> Value {
        let texts = |names: &[&str]| -> Value {
            let properties = names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
            json!({"type": "object", "properties": properties.collect::<serde_json::Map<_, _>>()})
        };
        let mut schema = texts(&["operation", "name", "namespace"]);
        schema["properties"]["kind"] = texts(&["group", "version", "kind"]);
        schema["properties"]["resource"] = texts(&["group", "version", "resource"]);
        schema
    }
}
