//! Builds requests: paths, queries, bodies, and whether each may be repeated.

use std::fmt::{self, Write};

use http::Method;
use pushback_system::redact::Secrets;
use serde_json::{Value, json};

use super::retry::Repeatable;
use crate::{
    Address, ApplyOptions, ClusterError, DeleteOptions, ErrorKind, FIELD_MANAGER, Kind, ListQuery, LogQuery, Patch,
};

/// Seconds after which the server ends a watch.
pub(super) const WATCH_SECONDS: u32 = 290;

/// Maximum length of an answer about one object, or about the served kinds: far above etcd's limit.
const MAX_OBJECT: usize = 64 << 20;

/// Maximum length of a page of a list; a longer page is requested again with fewer objects.
const MAX_PAGE: usize = 128 << 20;

const JSON: &str = "application/json";

/// Objects without spec and status; a server that cannot leave them out answers with whole objects.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// One request, which can be sent repeatedly.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path_and_query: String,
    pub(super) accept: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
    pub(super) repeatable: Repeatable,
    /// Whether it changes stored state.
    pub(super) writes: bool,
    /// Maximum length of the answer in bytes.
    pub(super) longest: usize,
    /// Timeout of an attempt, as a multiple of the usual one.
    pub(super) patience: u32,
    /// Retried only briefly: other answers are useful without this one.
    pub(super) dispensable: bool,
    /// The answer is a long-running stream and does not count against the limit of requests.
    pub(super) stream: bool,
    /// Whether it bypasses the limit of requests.
    pub(super) urgent: bool,
    /// Whether it is about one object: the time of the answer then indicates the server's load.
    pub(super) about_one_object: bool,
    /// Text for people: `apply Deployment shop/web`.
    pub(super) label: String,
    /// Verb and resource, for the counters: `patch deployments.apps`.
    pub(super) counter: String,
    /// Whether the body is about a Secret.
    pub(super) secret: bool,
}

impl Call {
    fn new(method: Method, path_and_query: String, label: String, counter: String) -> Self {
        Self {
            method,
            path_and_query,
            accept: JSON,
            content_type: JSON,
            body: Vec::new(),
            repeatable: Repeatable::Yes,
            writes: false,
            longest: MAX_OBJECT,
            patience: 1,
            dispensable: false,
            stream: false,
            urgent: false,
            about_one_object: false,
            label,
            counter,
            secret: false,
        }
    }

    /// A read of a path that is not an object's: version, discovery.
    pub(super) fn read_path(path: impl Into<String>, accept: &'static str) -> Self {
        let path = path.into();
        let label = format!("read {path}");
        Self { accept, ..Self::new(Method::GET, path, label, "get discovery".to_owned()) }
    }

    pub(super) fn get(address: &Address) -> Result<Self, ClusterError> {
        Self::on_object(Method::GET, "get", address)
    }

    pub(super) fn list(query: &ListQuery) -> Result<Self, ClusterError> {
        let mut url = list_path(query)?;
        let mut parameters = Parameters::default();
        parameters.selectors(query);
        if query.limit > 0 {
            parameters.add("limit", &query.limit.to_string());
        }
        parameters.add("continue", &query.continue_token);
        parameters.append_to(&mut url);
        let label = list_label("list", query);
        let call = Self::new(Method::GET, url, label, counter("list", &query.kind));
        let accept = if query.metadata_only { METADATA } else { JSON };
        Ok(Self { accept, patience: 2, longest: MAX_PAGE, ..call })
    }

    pub(super) fn watch(query: &ListQuery, resource_version: &str) -> Result<Self, ClusterError> {
        let mut url = list_path(query)?;
        let mut parameters = Parameters::default();
        parameters.add("watch", "true");
        parameters.selectors(query);
        parameters.add("resourceVersion", resource_version);
        parameters.add("allowWatchBookmarks", "true");
        parameters.add("timeoutSeconds", &WATCH_SECONDS.to_string());
        parameters.append_to(&mut url);
        let label = list_label("watch", query);
        Ok(Self { stream: true, ..Self::new(Method::GET, url, label, counter("watch", &query.kind)) })
    }

    pub(super) fn logs(pod: &Address, query: &LogQuery) -> Result<Self, ClusterError> {
        let address = Address { subresource: "log".to_owned(), ..pod.clone() };
        let mut url = object_path(&address, &address.name)?;
        let mut parameters = Parameters::default();
        parameters.add("container", &query.container);
        if query.follow {
            parameters.add("follow", "true");
        }
        if query.previous {
            parameters.add("previous", "true");
        }
        if let Some(lines) = query.lines {
            parameters.add("tailLines", &lines.to_string());
        }
        parameters.append_to(&mut url);
        let call = Self::new(Method::GET, url, label("read", &address), counter("get", &address.kind));
        // A container that has not begun is not worth waiting for.
        Ok(Self { stream: true, dispensable: true, accept: "*/*", ..call })
    }

    pub(super) fn create(address: &Address, body: &Value, dry_run: bool) -> Result<Self, ClusterError> {
        let name = if address.subresource.is_empty() { "" } else { &address.name };
        let mut url = object_path(address, name)?;
        let mut parameters = Parameters::default();
        parameters.dry_run(dry_run);
        parameters.add("fieldManager", FIELD_MANAGER);
        parameters.append_to(&mut url);
        // A review is a query: nothing is stored.
        let review = matches!(address.kind.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io");
        let writes = !dry_run && !review;
        let mut call = Self::new(Method::POST, url, label("create", address), counter("create", &address.kind));
        call.writes = writes;
        call.repeatable = if writes { Repeatable::IfNotProcessed } else { Repeatable::Yes };
        call.carry(address, body)
    }

    pub(super) fn apply(address: &Address, body: &Value, options: ApplyOptions) -> Result<Self, ClusterError> {
        let mut call = Self::on_object(Method::PATCH, "apply", address)?;
        let mut parameters = Parameters::default();
        parameters.add("fieldManager", FIELD_MANAGER);
        if options.force {
            parameters.add("force", "true");
        }
        parameters.add("fieldValidation", if options.strict { "Strict" } else { "Warn" });
        parameters.dry_run(options.dry_run);
        parameters.append_to(&mut call.path_and_query);
        call.content_type = "application/apply-patch+yaml";
        call.writes = !options.dry_run;
        call.carry(address, body)
    }

    pub(super) fn patch(address: &Address, patch: &Patch, dry_run: bool) -> Result<Self, ClusterError> {
        let mut call = Self::on_object(Method::PATCH, "patch", address)?;
        let mut parameters = Parameters::default();
        parameters.add("fieldManager", FIELD_MANAGER);
        parameters.dry_run(dry_run);
        parameters.append_to(&mut call.path_and_query);
        let (content_type, body, twice_is_once) = match patch {
            Patch::Json(body) => ("application/json-patch+json", body, is_guarded(body)),
            // Setting the same values again has no effect.
            Patch::Merge(body) => ("application/merge-patch+json", body, true),
        };
        call.content_type = content_type;
        call.writes = !dry_run;
        call.repeatable = if dry_run || twice_is_once { Repeatable::Yes } else { Repeatable::IfNotProcessed };
        call.carry(address, body)
    }

    /// Writes a whole object, under the resourceVersion that it has.
    pub(super) fn replace(address: &Address, body: &Value, options: ApplyOptions) -> Result<Self, ClusterError> {
        let mut call = Self::on_object(Method::PUT, "update", address)?;
        let mut parameters = Parameters::default();
        parameters.add("fieldManager", FIELD_MANAGER);
        parameters.add("fieldValidation", if options.strict { "Strict" } else { "Warn" });
        parameters.dry_run(options.dry_run);
        parameters.append_to(&mut call.path_and_query);
        call.writes = !options.dry_run;
        call.repeatable = if options.dry_run { Repeatable::Yes } else { Repeatable::IfNotProcessed };
        call.carry(address, body)
    }

    pub(super) fn delete(address: &Address, options: &DeleteOptions) -> Result<Self, ClusterError> {
        let mut call = Self::on_object(Method::DELETE, "delete", address)?;
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        });
        let mut preconditions = json!({});
        if !options.uid.is_empty() {
            preconditions["uid"] = json!(options.uid);
        }
        if !options.resource_version.is_empty() {
            preconditions["resourceVersion"] = json!(options.resource_version);
        }
        if preconditions != json!({}) {
            body["preconditions"] = preconditions;
        }
        if options.immediate {
            body["gracePeriodSeconds"] = json!(0);
        }
        if options.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        call.body = encode(&body)?;
        call.writes = !options.dry_run;
        // Without a uid, a retry could delete an object of the same name that was created in between.
        let twice_is_once = options.dry_run || !options.uid.is_empty();
        call.repeatable = if twice_is_once { Repeatable::Yes } else { Repeatable::IfNotProcessed };
        Ok(call)
    }

    fn on_object(method: Method, verb: &str, address: &Address) -> Result<Self, ClusterError> {
        if address.name.is_empty() {
            return Err(ClusterError::new(ErrorKind::Invalid, format!("no name given for {}", address.kind.kind)));
        }
        let path = object_path(address, &address.name)?;
        let (about_one_object, urgent) = (true, address.urgent);
        Ok(Self {
            about_one_object,
            urgent,
            ..Self::new(method, path, label(verb, address), counter(verb, &address.kind))
        })
    }

    fn carry(mut self, address: &Address, body: &Value) -> Result<Self, ClusterError> {
        self.body = encode(body)?;
        self.secret = address.kind.group.is_empty() && address.kind.kind == "Secret";
        Ok(self)
    }

    /// The values that no message about this request may show.
    pub(super) fn secrets(&self) -> Secrets {
        if !self.secret {
            return Secrets::default();
        }
        Secrets::of_body(&serde_json::from_slice(&self.body).unwrap_or_default())
    }
}

/// Omits the body, which may be a Secret's.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("label", &self.label).field("path", &self.path_and_query).finish_non_exhaustive()
    }
}

fn encode(body: &Value) -> Result<Vec<u8>, ClusterError> {
    serde_json::to_vec(body)
        .map_err(|error| ClusterError::new(ErrorKind::Invalid, format!("cannot be written as JSON: {error}")))
}

/// Whether a JSON patch requires a certain state of the object; a second one then conflicts.
fn is_guarded(patch: &Value) -> bool {
    patch.as_array().is_some_and(|operations| {
        operations.iter().any(|operation| {
            let path = operation.get("path").and_then(Value::as_str);
            let op = operation.get("op").and_then(Value::as_str);
            path == Some("/metadata/resourceVersion") && matches!(op, Some("test" | "replace" | "add"))
        })
    })
}

/// `apply Deployment shop/web`, `create SelfSubjectAccessReview`, `patch Deployment shop/web/scale`.
fn label(verb: &str, address: &Address) -> String {
    let mut label = format!("{verb} {address}").trim_end().to_owned();
    if !address.subresource.is_empty() {
        let _ = write!(label, "/{}", address.subresource);
    }
    label
}

fn list_label(verb: &str, query: &ListQuery) -> String {
    match &query.namespace {
        Some(namespace) if query.kind.namespaced => format!("{verb} {} in {namespace}", query.kind.kind),
        _ => format!("{verb} {}", query.kind.kind),
    }
}

fn counter(verb: &str, kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("{verb} {}", kind.plural)
    } else {
        format!("{verb} {}.{}", kind.plural, kind.group)
    }
}

fn list_path(query: &ListQuery) -> Result<String, ClusterError> {
    resource_path(&query.kind, query.namespace.as_deref().unwrap_or_default())
}

fn object_path(address: &Address, name: &str) -> Result<String, ClusterError> {
    if address.kind.namespaced && address.namespace.is_empty() {
        return Err(ClusterError::new(
            ErrorKind::Invalid,
            format!("no namespace given for {address}, which lives in one"),
        ));
    }
    let mut path = resource_path(&address.kind, &address.namespace)?;
    for segment in [name, address.subresource.as_str()] {
        if !segment.is_empty() {
            push_segment(&mut path, segment)?;
        }
    }
    Ok(path)
}

fn resource_path(kind: &Kind, namespace: &str) -> Result<String, ClusterError> {
    let mut path = group_version_path(&kind.group, &kind.version)?;
    if kind.namespaced && !namespace.is_empty() {
        path.push_str("/namespaces");
        push_segment(&mut path, namespace)?;
    }
    push_segment(&mut path, &kind.plural)?;
    Ok(path)
}

/// `/api/v1`, `/apis/apps/v1`.
pub(super) fn group_version_path(group: &str, version: &str) -> Result<String, ClusterError> {
    let mut path = String::new();
    if group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        push_segment(&mut path, group)?;
    }
    push_segment(&mut path, version)?;
    Ok(path)
}

/// Appends an escaped path segment, so that no name can reach another path.
pub(super) fn push_segment(path: &mut String, segment: &str) -> Result<(), ClusterError> {
    if matches!(segment, "" | "." | "..") {
        return Err(ClusterError::new(ErrorKind::Invalid, format!("\"{segment}\" is not a valid name")));
    }
    path.push('/');
    for byte in segment.bytes() {
        // Unreserved characters, and the colon of names like `system:node`.
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    Ok(())
}

#[derive(Default)]
struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// Adds a parameter unless its value is empty.
    fn add(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.0.push((name, value.to_owned()));
        }
    }

    fn dry_run(&mut self, dry_run: bool) {
        if dry_run {
            self.add("dryRun", "All");
        }
    }

    fn selectors(&mut self, query: &ListQuery) {
        self.add("labelSelector", &query.label_selector);
        self.add("fieldSelector", &query.field_selector);
    }

    fn append_to(self, url: &mut String) {
        if self.0.is_empty() {
            return;
        }
        url.push('?');
        url.push_str(&url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.0).finish());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn deployment() -> Arc<Kind> {
        Arc::new(Kind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
            namespaced: true,
            ..Kind::default()
        })
    }

    fn cluster_role() -> Arc<Kind> {
        Arc::new(Kind {
            group: "rbac.authorization.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "ClusterRole".to_owned(),
            plural: "clusterroles".to_owned(),
            ..Kind::default()
        })
    }

    #[test]
    fn an_apply_names_its_manager_and_asks_for_validation() {
        let options = ApplyOptions::DRY_RUN;
        let call = Call::apply(&Address::new(deployment(), "shop", "web"), &json!({}), options).unwrap();
        assert_eq!(
            call.path_and_query,
            "/apis/apps/v1/namespaces/shop/deployments/web\
             ?fieldManager=pushback&force=true&fieldValidation=Strict&dryRun=All"
        );
        assert_eq!(
            (call.label.as_str(), call.counter.as_str()),
            ("apply Deployment shop/web", "apply deployments.apps")
        );
        assert!(!call.writes);
    }

    #[test]
    fn names_cannot_leave_their_place_in_the_path() {
        let call = Call::get(&Address::new(cluster_role(), "", "system:a/../b?c#ä")).unwrap();
        assert_eq!(
            call.path_and_query,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%2F..%2Fb%3Fc%23%C3%A4"
        );
        assert_eq!(Call::get(&Address::new(cluster_role(), "", "..")).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(Call::get(&Address::new(cluster_role(), "", "")).unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn an_object_that_lives_in_a_namespace_needs_one_but_a_list_does_not() {
        assert_eq!(Call::get(&Address::new(deployment(), "", "web")).unwrap_err().kind, ErrorKind::Invalid);
        let query = ListQuery::new(deployment(), None, "a in (b,c)");
        assert_eq!(
            Call::list(&query).unwrap().path_and_query,
            "/apis/apps/v1/deployments?labelSelector=a+in+%28b%2Cc%29&limit=500"
        );
    }

    #[test]
    fn only_what_does_no_harm_twice_is_repeatable() {
        let address = Address::new(deployment(), "shop", "web");
        let create = |dry_run| Call::create(&address, &json!({}), dry_run).unwrap().repeatable;
        assert_eq!(create(false), Repeatable::IfNotProcessed);
        assert_eq!(create(true), Repeatable::Yes);
        let delete = |uid: &str| {
            let options = DeleteOptions { uid: uid.to_owned(), ..DeleteOptions::default() };
            Call::delete(&address, &options).unwrap().repeatable
        };
        assert_eq!(delete(""), Repeatable::IfNotProcessed);
        assert_eq!(delete("1-2"), Repeatable::Yes);
        let append = json!({"op": "add", "path": "/spec/list/-", "value": 1});
        let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        let patch = |operations| Call::patch(&address, &Patch::Json(operations), false).unwrap().repeatable;
        assert_eq!(patch(json!([append])), Repeatable::IfNotProcessed);
        assert_eq!(patch(json!([test, append])), Repeatable::Yes);
    }

    #[test]
    fn a_delete_carries_its_preconditions() {
        let options =
            DeleteOptions { uid: "1-2".to_owned(), resource_version: "7".to_owned(), immediate: true, dry_run: true };
        let call = Call::delete(&Address::new(deployment(), "shop", "web"), &options).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&call.body).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
                "preconditions": {"uid": "1-2", "resourceVersion": "7"}, "gracePeriodSeconds": 0, "dryRun": ["All"],
            })
        );
    }

    #[test]
    fn a_subresource_follows_the_name() {
        let address = Address { subresource: "scale".to_owned(), ..Address::new(deployment(), "shop", "web") };
        let call = Call::patch(&address, &Patch::Merge(json!({})), false).unwrap();
        assert_eq!(call.path_and_query, "/apis/apps/v1/namespaces/shop/deployments/web/scale?fieldManager=pushback");
        assert_eq!(call.label, "patch Deployment shop/web/scale");
    }
}
