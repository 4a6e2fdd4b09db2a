//! A request as the proxy saw it, read the way the API server reads it, and what became of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// What a request wants, in the API server's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    /// Server-side apply.
    Apply,
    /// A patch of any other form.
    Patch,
    Delete,
    DeleteCollection,
    /// Groups, kinds, versions, OpenAPI.
    Discovery,
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Discovery => "discovery",
        })
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// In the order of arrival, from 1.
    pub(crate) number: usize,
    /// Which of the proxy's kubeconfigs it came with.
    pub(crate) client: String,
    /// When it came, since the proxy started.
    pub(crate) at: Duration,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) verb: Verb,
    /// Nothing is stored.
    pub(crate) dry_run: bool,
    /// Empty for the core group.
    pub(crate) group: String,
    /// The plural, with its subresource: `deployments/status`; empty for discovery.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    /// Empty where a collection is meant.
    pub(crate) name: String,
    pub(crate) body: Bytes,
}

impl Request {
    pub(super) fn read(method: &http::Method, uri: &http::Uri, content_type: &str, body: Bytes) -> Self {
        let query: BTreeMap<String, String> =
            url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let path = uri.path().to_owned();
        let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
        let (group, rest) = match words.as_slice() {
            ["api", _version, rest @ ..] => (String::new(), rest),
            ["apis", group, _version, rest @ ..] => ((*group).to_owned(), rest),
            ["apis", group] => ((*group).to_owned(), &[][..]),
            _ => (String::new(), &[][..]),
        };
        let (namespace, rest) = match rest {
            // `namespaces/x` is the Namespace itself, with nothing or its subresource behind it.
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status"] | ["finalize"]) => {
                ((*namespace).to_owned(), rest)
            }
            rest => (String::new(), rest),
        };
        let (resource, name) = match rest {
            [] => (String::new(), String::new()),
            [resource] => ((*resource).to_owned(), String::new()),
            [resource, name] => ((*resource).to_owned(), (*name).to_owned()),
            [resource, name, subresource @ ..] => (format!("{resource}/{}", subresource.join("/")), (*name).to_owned()),
        };
        let watches = query.get("watch").is_some_and(|value| value == "1" || value == "true");
        let verb = match method.as_str() {
            _ if resource.is_empty() => Verb::Discovery,
            "GET" if watches => Verb::Watch,
            "GET" if name.is_empty() => Verb::List,
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" if content_type.contains("apply-patch") => Verb::Apply,
            "PATCH" => Verb::Patch,
            "DELETE" if name.is_empty() => Verb::DeleteCollection,
            "DELETE" => Verb::Delete,
            _ => Verb::Get,
        };
        let mut request = Self {
            number: 0,
            client: String::new(),
            at: Duration::ZERO,
            method: method.as_str().to_owned(),
            dry_run: query.contains_key("dryRun"),
            path,
            query,
            verb,
            group,
            resource,
            namespace,
            name,
            body,
        };
        request.dry_run |= request.verb == Verb::Delete && request.json()["dryRun"][0] == "All";
        request
    }

    /// Whether it changes what is stored. Reviews of access are questions.
    pub(crate) fn writes(&self) -> bool {
        let changes = matches!(
            self.verb,
            Verb::Create | Verb::Update | Verb::Apply | Verb::Patch | Verb::Delete | Verb::DeleteCollection
        );
        changes && !self.dry_run && !matches!(self.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io")
    }

    /// The body; `null` where there is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The `uid` and `resourceVersion` that the object must still have for this write.
    pub(crate) fn preconditions(&self) -> (Option<String>, Option<String>) {
        let body = self.json();
        let tested = |field: &str| {
            let path = format!("/metadata/{field}");
            let operations = body.as_array()?;
            let test = operations.iter().find(|operation| operation["op"] == "test" && operation["path"] == path)?;
            test["value"].as_str().map(str::to_owned)
        };
        let given = |field: &str| {
            let named = body["metadata"][field].as_str().or_else(|| body["preconditions"][field].as_str());
            named.map(str::to_owned).or_else(|| tested(field))
        };
        (given("uid"), given("resourceVersion"))
    }

    /// Verb and resource, as in `list configmaps`, `dry-run apply deployments`, `discovery`.
    pub(crate) fn kind(&self) -> String {
        let dry_run = if self.dry_run { "dry-run " } else { "" };
        format!("{dry_run}{} {}", self.verb, self.resource).trim_end().to_owned()
    }

    /// The object: `configmaps default/settings`. A create names it in its body only.
    pub(crate) fn object(&self) -> String {
        let in_body = if self.verb == Verb::Create { self.json() } else { Value::Null };
        let name = in_body["metadata"]["name"].as_str().unwrap_or(&self.name);
        format!("{} {}/{name}", self.resource, self.namespace)
    }
}

/// A request and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: Request,
    /// What the server answered; `None` while it has not, and where it was not asked.
    pub(crate) status: Option<u16>,
    /// When it had.
    pub(crate) answered_at: Option<Duration>,
    /// The server's answer to a write.
    pub(crate) answer: Bytes,
    /// What the proxy did to it.
    pub(crate) fault: Option<String>,
}

impl Exchange {
    /// The server accepted a write: it had its effect, whether or not the client heard of that.
    pub(crate) fn accepted(&self) -> bool {
        self.request.writes() && self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// It brought an object into being.
    pub(crate) fn created(&self) -> bool {
        self.accepted() && self.status == Some(201)
    }

    /// The object as the server stored it.
    pub(crate) fn stored(&self) -> Value {
        serde_json::from_slice(&self.answer).unwrap_or_default()
    }
}
