//! Turns an API server's error responses into a [`ClusterError`].
//! Kinds follow from status code, reason, causes and, as a last resort, the wording of the message.

use kube::client::Body;
use pushback_system::redact::Secrets;
use serde::Deserialize;

use crate::{Cause, ClusterError, ErrorKind, ErrorNote, NAMESPACE_TERMINATING, server_message};

/// Maximum characters shown of an answer that is not a `Status`.
const SHOWN_TEXT: usize = 300;

/// Maximum bytes of such an answer that are examined.
const READ_TEXT: usize = 64 << 10;

/// `metav1.Status`, only the fields used here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    kind: String,
    message: Option<String>,
    reason: Option<String>,
    code: Option<u16>,
    details: Option<Details>,
    metadata: Option<Metadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    r#continue: Option<Box<str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: Option<String>,
    kind: Option<String>,
    causes: Option<Vec<StatusCause>>,
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

/// A refusal, and what a retry needs to know about it.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The error to report.
    pub(super) error: ClusterError,
    /// The server's `retryAfterSeconds`.
    pub(super) retry_after_seconds: Option<u64>,
    /// Whether the server says that nothing was done, although the code alone does not.
    pub(super) not_processed: bool,
}

/// Parses the body of an answer outside 2xx. `secrets` are values of the request that no message may show.
pub(super) fn refusal(code: u16, body: &[u8], audit_id: Option<&str>, secrets: &Secrets) -> Refusal {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) if status.kind == "Status" => of_status(code, &status, audit_id, secrets),
        _ => Refusal { error: of_text(code, body, secrets), retry_after_seconds: None, not_processed: false },
    }
}

/// The error in a watch's `ERROR` event.
pub(super) fn watch_error(status: &serde_json::Value) -> ClusterError {
    let status = Status::deserialize(status).unwrap_or_default();
    of_status(status.code.unwrap_or(500), &status, None, &Secrets::default()).error
}

fn of_status(code: u16, status: &Status, audit_id: Option<&str>, secrets: &Secrets) -> Refusal {
    let text = status.message.as_deref().unwrap_or_default().trim();
    let reason = status.reason.as_deref().unwrap_or_default();
    let details = status.details.as_ref();
    let causes = details.and_then(|details| details.causes.as_deref()).unwrap_or_default();
    let terminating = causes.iter().any(|cause| cause.reason.as_deref() == Some(NAMESPACE_TERMINATING))
        || (code == 403 && text.contains("because it is being terminated"));
    // A quota's bookkeeping lost a race. The object was not stored, whatever its kind.
    let quota_conflict = code == 409
        && reason == "Conflict"
        && details.and_then(|details| details.kind.as_deref()) == Some("resourcequotas")
        && text.starts_with("Operation cannot be fulfilled on resourcequotas");
    let kind = if terminating {
        ErrorKind::Denied
    } else if quota_conflict {
        ErrorKind::Busy
    } else {
        kind_of(code, reason, text, details.and_then(|details| details.name.as_deref()).is_some())
    };

    let mut message = match text {
        "" => bare_message(code),
        "Unauthorized" => "the server does not accept these credentials".to_owned(),
        text => secrets.mask(trim_prefix(text)),
    };
    if kind == ErrorKind::Server
        && let Some(audit_id) = audit_id
    {
        message = format!("{message} (audit id {audit_id})");
    }
    Refusal {
        error: ClusterError {
            kind,
            message,
            status: code,
            reason: if terminating { NAMESPACE_TERMINATING.to_owned() } else { reason.to_owned() },
            causes: causes
                .iter()
                // A cause with neither reason nor field repeats the message.
                .filter(|cause| cause.reason.is_some() || cause.field.is_some())
                .map(|cause| Cause {
                    reason: cause.reason.clone().unwrap_or_default(),
                    field: cause.field.clone().unwrap_or_default(),
                    message: secrets.mask(cause.message.as_deref().unwrap_or_default()),
                })
                .collect(),
            ambiguous: false,
            note: status
                .metadata
                .as_ref()
                .and_then(|list| list.r#continue.clone())
                .map(|token| Box::new(ErrorNote::ContinueToken(token))),
        },
        retry_after_seconds: details.and_then(|details| details.retry_after_seconds),
        not_processed: quota_conflict,
    }
}

fn kind_of(code: u16, reason: &str, text: &str, names_object: bool) -> ErrorKind {
    // A webhook or policy may return any code that its author chose.
    let webhook_denied = text.contains("admission webhook \"") && text.contains("denied the request");
    let policy_denied = text.contains("ValidatingAdmissionPolicy '") && text.contains("denied request");
    if webhook_denied || policy_denied {
        return ErrorKind::Denied;
    }
    if text.contains("admission webhook \"") && text.contains("does not support dry run") {
        return ErrorKind::Unsupported;
    }
    if text.contains("failed calling webhook") || (server_message::is_of_conversion(text) && text.contains("failed")) {
        return ErrorKind::WebhookUnavailable;
    }
    if text.contains("etcdserver: request is too large") || text.contains("trying to send message larger than max") {
        return ErrorKind::TooLarge;
    }
    match code {
        400 | 422 => ErrorKind::Invalid,
        401 => ErrorKind::Unauthorized,
        403 if is_authorization(text) => ErrorKind::Forbidden,
        403 => ErrorKind::Denied,
        404 if !names_object || text.starts_with("the server could not find the requested resource") => {
            ErrorKind::UnknownKind
        }
        404 => ErrorKind::NotFound,
        405 | 406 | 415 => ErrorKind::Unsupported,
        408 | 504 => ErrorKind::Timeout,
        409 if reason == "AlreadyExists" => ErrorKind::AlreadyExists,
        409 => ErrorKind::Conflict,
        410 => ErrorKind::Expired,
        413 => ErrorKind::TooLarge,
        429 => ErrorKind::Busy,
        // The patch does not fit the schema; the server reports this as an internal error.
        500 if text.contains("failed to create typed patch object")
            || text.contains("failed to convert new object")
            // An owner's entry is in a version that lacks a field of the object.
            || text.contains("field not declared in schema") =>
        {
            ErrorKind::Invalid
        }
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::Protocol,
    }
}

/// Whether a 403 is from the authorizer. Admission plugins also answer 403: quota, Pod security, limit ranges.
fn is_authorization(text: &str) -> bool {
    text.is_empty()
        || text.contains("forbidden: User \"")
        || text.contains("attempting to grant RBAC permissions not currently held")
        || text.starts_with("Forbidden")
}

/// Handles an answer that is not a `Status`: from a proxy, a load balancer, or the server's own mux.
fn of_text(code: u16, body: &[u8], secrets: &Secrets) -> ClusterError {
    let text = String::from_utf8_lossy(body.get(..body.len().min(READ_TEXT)).unwrap_or_default());
    // Masked before truncation: half a value would not be recognised.
    let text = secrets.mask(text.trim());
    let kind = match code {
        // A 403 or 404 that Kubernetes did not write is about the path, never about an object.
        403 => ErrorKind::Forbidden,
        404 => ErrorKind::UnknownKind,
        _ => kind_of(code, "", &text, false),
    };
    let shown: String = text.chars().take(SHOWN_TEXT).collect();
    let message = if code == 404 {
        "the server does not serve this kind".to_owned()
    } else if shown.is_empty() || shown.starts_with(['<', '{', '[']) {
        bare_message(code)
    } else {
        format!("{}: {shown}", bare_message(code))
    };
    ClusterError { status: code, ..ClusterError::new(kind, message) }
}

fn bare_message(code: u16) -> String {
    let name = http::StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()).unwrap_or("");
    format!("the server answered {code} {name}").trim_end().to_owned()
}

/// Removes the repeated object name, `deployments.apps "web" is forbidden: `: the caller's message already has it.
fn trim_prefix(text: &str) -> &str {
    let text = text.strip_prefix("Internal error occurred: ").unwrap_or(text);
    for separator in [" is invalid: ", " is forbidden: "] {
        if let Some((object, rest)) = text.split_once(separator)
            && names_object(object)
            && !rest.is_empty()
        {
            return rest.strip_prefix("[]: ").unwrap_or(rest);
        }
    }
    text
}

/// Whether a text is `deployments.apps "web"`, or `deployments.apps` alone in answers about all of them.
fn names_object(text: &str) -> bool {
    let (resource, name) = text.split_once(' ').unwrap_or((text, "\"\""));
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    !resource.is_empty() && name.is_some_and(|name| !name.contains('"'))
}

/// Why a request got no answer, from the client library's error.
#[derive(Debug)]
pub(super) struct ConnectionFailure {
    /// The error to report.
    pub(super) error: ClusterError,
    /// Whether the server has seen nothing of the request, or says so.
    pub(super) not_processed: bool,
    /// Whether no retry can help: an untrusted certificate, a missing token file.
    pub(super) permanent: bool,
}

/// Converts an error of the connection or of the client's own layers. `server` is the displayed address.
pub(super) fn broken(error: &kube::Error, server: &str) -> ConnectionFailure {
    let sources = Sources(Some(error));
    if let Some(auth) = sources.clone().find_map(|source| source.downcast_ref::<kube::client::AuthError>()) {
        return ConnectionFailure { error: auth_error(auth), not_processed: true, permanent: true };
    }
    let mut before_sending = false;
    let mut not_taken = false;
    let mut certificate = false;
    let mut last = String::new();
    for source in sources {
        not_taken |= source.downcast_ref::<h2::Error>().is_some_and(was_not_taken);
        if source
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect)
        {
            before_sending = true;
        }
        if let Some(error) = source.downcast_ref::<std::io::Error>() {
            before_sending |=
                matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::AddrNotAvailable);
        }
        last = source.to_string();
        // An `io::Error` around a TLS error has the same text and hides the type.
        certificate |= last.contains("invalid peer certificate");
    }
    // More or longer headers than any server sends. The next answer would be the same.
    let too_large = last == "message head is too large";
    let message = if too_large {
        format!("the headers of an answer of {server} are too many or too large")
    } else if certificate && (last.contains("certificate expired") || last.contains("certificate not valid yet")) {
        let words = last.strip_prefix("invalid peer certificate: ").unwrap_or(&last);
        format!(
            "by this machine's clock the certificate of {server} is not valid ({words}); check the clock, or renew it"
        )
    } else if certificate {
        format!("the certificate of {server} is not trusted ({last}); check certificate-authority in the kubeconfig")
    } else if not_taken {
        format!("{server} is closing the connection and did not take the request")
    } else if before_sending {
        format!("no connection to {server}: {last}")
    } else {
        format!("the connection to {server} broke: {last}")
    };
    let kind = if too_large { ErrorKind::Protocol } else { ErrorKind::Unreachable };
    ConnectionFailure {
        error: ClusterError::new(kind, message),
        not_processed: before_sending || not_taken,
        permanent: certificate || too_large,
    }
}

/// Whether the server says that it has not begun to process the request, as one that shuts down does: RFC 9113, 8.7.
fn was_not_taken(error: &h2::Error) -> bool {
    let reason = error.reason();
    reason == Some(h2::Reason::REFUSED_STREAM)
        || (error.is_go_away() && error.is_remote() && reason == Some(h2::Reason::NO_ERROR))
}

/// A note on clock skew: tokens and certificates have a validity, and a wrong clock makes them appear invalid.
pub(super) fn clock_note(server: jiff::Timestamp, here: jiff::Timestamp) -> String {
    const TOLERATED: i64 = 60;
    let ahead = here.as_second() - server.as_second();
    let side = if ahead > 0 { "ahead of" } else { "behind" };
    match ahead.abs() {
        0..=TOLERATED => String::new(),
        seconds => format!("; this machine's clock is {seconds} s {side} the server's, and tokens go by it"),
    }
}

/// Errors of plugins and identity providers can contain tokens, so only the kind of failure is reported.
fn auth_error(error: &kube::client::AuthError) -> ClusterError {
    use kube::client::AuthError;
    let what = match error {
        AuthError::ReadTokenFile(source, path) => format!("cannot read token file {}: {source}", path.display()),
        AuthError::InvalidBearerToken(_) => "the token has characters that a header cannot hold".to_owned(),
        AuthError::InvalidBasicAuth(_) => "user name or password has characters that a header cannot hold".to_owned(),
        AuthError::Oidc(_) => "the OIDC token of the kubeconfig could not be refreshed".to_owned(),
        AuthError::NoValidNativeRootCA(_) => "no trusted root certificates on this machine".to_owned(),
        _ => "the credentials of the kubeconfig cannot be used".to_owned(),
    };
    ClusterError::new(ErrorKind::Configuration, what)
}

/// Converts an error of building the client.
pub(super) fn client_error(error: &kube::Error) -> ClusterError {
    if let Some(auth) = Sources(Some(error)).find_map(|source| source.downcast_ref::<kube::client::AuthError>()) {
        return auth_error(auth);
    }
    let message = match error {
        // The error quotes the proxy's address, which can contain a password.
        kube::Error::ProxyProtocolUnsupported { proxy_url } => {
            format!(
                "the proxy's scheme \"{}\" is not known; known: http, https, socks5",
                proxy_url.scheme_str().unwrap_or("")
            )
        }
        kube::Error::RustlsTls(_) | kube::Error::InferKubeconfig(_) => {
            "the client certificate, its key or the server's CA in the kubeconfig cannot be used".to_owned()
        }
        kube::Error::HttpError(_) => {
            "a user or group to impersonate has characters that a header cannot hold".to_owned()
        }
        _ => "the client could not be built".to_owned(),
    };
    ClusterError::new(ErrorKind::Configuration, message)
}

/// Iterates over an error and its sources.
#[derive(Clone)]
struct Sources<'a>(Option<&'a (dyn std::error::Error + 'static)>);

impl<'a> Iterator for Sources<'a> {
    type Item = &'a (dyn std::error::Error + 'static);

    fn next(&mut self) -> Option<Self::Item> {
        let current = self.0?;
        self.0 = current.source();
        Some(current)
    }
}

/// Reads a whole body, up to a limit in bytes.
pub(super) async fn read_body(body: Body, limit: usize) -> Result<Vec<u8>, ReadBodyError> {
    use futures::StreamExt;
    use http_body_util::BodyExt;
    let mut read = Vec::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(ReadBodyError::Broken)?;
        if read.len().saturating_add(chunk.len()) > limit {
            return Err(ReadBodyError::TooLong);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum ReadBodyError {
    /// The connection broke.
    Broken(kube::Error),
    /// The body exceeds the limit.
    TooLong,
    /// The body is not JSON, or not the expected JSON.
    InvalidJson(serde_json::Error),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(code: u16, reason: &str, message: &str, details: &serde_json::Value) -> ClusterError {
        let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message, "details": details});
        refusal(code, body.to_string().as_bytes(), None, &Secrets::default()).error
    }

    /// Messages as worded by API servers 1.30 to 1.36.
    #[test]
    fn kinds_follow_code_reason_and_words() {
        let cases = [
            (400, "BadRequest", "admission webhook \"a.b\" denied the request: no", ErrorKind::Denied),
            (500, "", "admission webhook \"a.b\" denied the request without explanation", ErrorKind::Denied),
            (
                422,
                "Invalid",
                "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: z",
                ErrorKind::Denied,
            ),
            (400, "BadRequest", "admission webhook \"a.b\" does not support dry run", ErrorKind::Unsupported),
            (
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"a.b\": Post: EOF",
                ErrorKind::WebhookUnavailable,
            ),
            (500, "", "conversion webhook for ex.com/v1, Kind=Foo failed: Post: EOF", ErrorKind::WebhookUnavailable),
            (403, "Forbidden", "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1", ErrorKind::Denied),
            (
                403,
                "Forbidden",
                "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": hostPort",
                ErrorKind::Denied,
            ),
            (
                403,
                "Forbidden",
                "pods \"p\" is forbidden: User \"u\" cannot get resource \"pods\"",
                ErrorKind::Forbidden,
            ),
            (
                403,
                "Forbidden",
                "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"u\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held: x",
                ErrorKind::Forbidden,
            ),
            (401, "Unauthorized", "Unauthorized", ErrorKind::Unauthorized),
            (405, "MethodNotAllowed", "the server does not allow this method", ErrorKind::Unsupported),
            (409, "AlreadyExists", "configmaps \"a\" already exists", ErrorKind::AlreadyExists),
            (409, "Conflict", "Operation cannot be fulfilled on configmaps \"a\": modified", ErrorKind::Conflict),
            (410, "Expired", "too old resource version", ErrorKind::Expired),
            (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", ErrorKind::TooLarge),
            (500, "", "etcdserver: request is too large", ErrorKind::TooLarge),
            (415, "UnsupportedMediaType", "the body of the request was in an unknown format", ErrorKind::Unsupported),
            (422, "Invalid", "Service \"s\" is invalid: spec.ports: Required value", ErrorKind::Invalid),
            (
                500,
                "",
                "failed to create typed patch object (a/b; v1, Kind=Service): .spec.x: field not declared in schema",
                ErrorKind::Invalid,
            ),
            (
                500,
                "",
                "failed to convert new object (a/s; /v1, Kind=Secret) to proper version: illegal base64 data",
                ErrorKind::Invalid,
            ),
            (500, "", ".spec.accessPolicy: field not declared in schema", ErrorKind::Invalid),
            (429, "TooManyRequests", "too many requests", ErrorKind::Busy),
            (500, "", "etcdserver: leader changed", ErrorKind::Server),
            (503, "ServiceUnavailable", "the server is currently unable to handle the request", ErrorKind::Server),
            (504, "Timeout", "Timeout: request did not complete within requested timeout", ErrorKind::Timeout),
        ];
        for (code, reason, message, kind) in cases {
            assert_eq!(read(code, reason, message, &json!(null)).kind, kind, "{code} {message}");
        }
    }

    #[test]
    fn a_404_is_about_the_object_only_if_it_names_one() {
        let details = json!({"name": "a", "kind": "configmaps"});
        let gone = read(404, "NotFound", "configmaps \"a\" not found", &details);
        assert_eq!((gone.kind, gone.message.as_str()), (ErrorKind::NotFound, "configmaps \"a\" not found"));
        let unserved = read(404, "NotFound", "the server could not find the requested resource", &json!({}));
        assert_eq!(unserved.kind, ErrorKind::UnknownKind);
    }

    #[test]
    fn a_namespace_that_goes_away_has_its_own_reason() {
        let causes = json!({"causes": [{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated",
            "field": "metadata.namespace"}]});
        let message = "configmaps \"a\" is forbidden: unable to create new content in namespace shop because it is being terminated";
        for details in [causes, json!(null)] {
            let error = read(403, "Forbidden", message, &details);
            assert_eq!((error.kind, error.reason.as_str()), (ErrorKind::Denied, NAMESPACE_TERMINATING));
            assert_eq!(error.message, "unable to create new content in namespace shop because it is being terminated");
        }
    }

    #[test]
    fn the_managers_of_a_conflict_are_kept() {
        let details = json!({"causes": [{"reason": "FieldManagerConflict", "field": ".spec.replicas",
            "message": "conflict with \"hpa\" using apps/v1"}]});
        let error = read(409, "Conflict", "Apply failed with 1 conflict: conflict with \"hpa\"", &details);
        assert_eq!(
            error.causes,
            [Cause {
                reason: "FieldManagerConflict".to_owned(),
                field: ".spec.replicas".to_owned(),
                message: "conflict with \"hpa\" using apps/v1".to_owned(),
            }]
        );
    }

    #[test]
    fn a_cause_that_only_repeats_the_message_is_left_out() {
        let error = read(500, "InternalError", "boom", &json!({"causes": [{"message": "boom"}]}));
        assert_eq!(error.causes, []);
    }

    #[test]
    fn a_quotas_own_conflict_stored_nothing() {
        let body = json!({"kind": "Status", "code": 409, "reason": "Conflict", "details": {"name": "q", "kind": "resourcequotas"},
            "message": "Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified"});
        let refusal = refusal(409, body.to_string().as_bytes(), None, &Secrets::default());
        assert_eq!((refusal.error.kind, refusal.not_processed), (ErrorKind::Busy, true));
    }

    #[test]
    fn the_prefix_that_names_the_object_again_is_left_out() {
        let shown = |message: &str| read(422, "Invalid", message, &json!(null)).message;
        assert_eq!(shown("Deployment.apps \"web\" is invalid: spec.x: Required value"), "spec.x: Required value");
        assert_eq!(shown("pods is forbidden: User \"u\" cannot list"), "User \"u\" cannot list");
        assert_eq!(shown("ConfigMap \"big\" is invalid: []: Too long: x"), "Too long: x");
        assert_eq!(shown("something \"web\" else \"x\" is invalid: y"), "something \"web\" else \"x\" is invalid: y");
        assert_eq!(shown("a \"b\" is invalid: "), "a \"b\" is invalid:");
    }

    #[test]
    fn an_internal_error_names_its_audit_id() {
        let body = json!({"kind": "Status", "code": 500, "message": "Internal error occurred: boom"}).to_string();
        let error = refusal(500, body.as_bytes(), Some("1-2-3"), &Secrets::default()).error;
        assert_eq!(error.message, "boom (audit id 1-2-3)");
    }

    #[test]
    fn an_answer_of_a_proxy_is_told_briefly() {
        let read = |code, body: &[u8]| refusal(code, body, None, &Secrets::default()).error;
        let page = read(502, b"<html><body>Bad Gateway</body></html>");
        assert_eq!((page.kind, page.message.as_str()), (ErrorKind::Server, "the server answered 502 Bad Gateway"));
        let text = read(404, b"404 page not found\n");
        assert_eq!((text.kind, text.message.as_str()), (ErrorKind::UnknownKind, "the server does not serve this kind"));
        assert_eq!(read(503, b"no backend").message, "the server answered 503 Service Unavailable: no backend");
        assert_eq!(read(500, &[0xff; 9000]).kind, ErrorKind::Server);
        assert_eq!(read(799, b"").kind, ErrorKind::Protocol);
    }

    #[test]
    fn a_wrong_clock_is_named_with_its_difference() {
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        assert_eq!(clock_note(at(1000), at(1060)), "");
        assert_eq!(
            clock_note(at(1000), at(1600)),
            "; this machine's clock is 600 s ahead of the server's, and tokens go by it"
        );
        assert_eq!(
            clock_note(at(1600), at(1000)),
            "; this machine's clock is 600 s behind the server's, and tokens go by it"
        );
    }

    #[test]
    fn a_hostile_status_is_no_panic() {
        for body in [
            "{\"kind\":\"Status\",\"details\":{\"causes\":[null]}}",
            "{\"kind\":\"Status\",\"code\":-1}",
            "null",
            "[]",
            "\"\"",
        ] {
            assert_eq!(refusal(422, body.as_bytes(), None, &Secrets::default()).error.status, 422, "{body}");
        }
    }
}
