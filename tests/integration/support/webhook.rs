//! An admission webhook with a script: it allows, denies or patches what the API server asks about, and
//! remembers what it was asked. It sees the objects of one namespace only, so that tests share a cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::https::{HttpsServer, Request};
use super::{TestCluster, wait_until};

/// An API server reads a new configuration within a second or so.
const SOON: Duration = Duration::from_secs(60);

/// What the webhook answers.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Allow,
    /// With these words.
    Deny(String),
    /// And warn with these words.
    Warn(String),
    /// A JSON patch.
    Patch(Value),
}

/// Which webhook configurations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Validating,
    Mutating,
}

/// A running webhook, called by nobody until it is registered.
#[derive(Debug)]
pub(crate) struct Webhook {
    server: Option<HttpsServer>,
    port: u16,
    certificate_authority: String,
    asked: Arc<Mutex<Vec<Value>>>,
    /// Its test is done with it: it allows everything.
    dismissed: Arc<AtomicBool>,
}

/// A webhook configuration; deleted when this value is dropped.
#[derive(Debug)]
pub(crate) struct Registration<'a> {
    cluster: &'a TestCluster,
    path: String,
}

impl Webhook {
    /// Starts it. `script` gets the `request` of each AdmissionReview; `names` are DNS names by which it is called.
    pub(crate) fn start(names: &[&str], script: impl Fn(&Value) -> Verdict + Send + Sync + 'static) -> Self {
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let remembered = Arc::clone(&asked);
        let dismissed = Arc::<AtomicBool>::default();
        let ignores = Arc::clone(&dismissed);
        let server = HttpsServer::start(names, move |Request { body, .. }| {
            let request = &body["request"];
            let mut response = json!({"uid": request["uid"], "allowed": true});
            let verdict = if ignores.load(Ordering::SeqCst) {
                Verdict::Allow
            } else {
                remembered.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
                script(request)
            };
            match verdict {
                Verdict::Allow => {}
                Verdict::Deny(message) => {
                    response["allowed"] = json!(false);
                    response["status"] = json!({"code": 403, "message": message});
                }
                Verdict::Warn(message) => response["warnings"] = json!([message]),
                Verdict::Patch(patch) => {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(BASE64.encode(patch.to_string()));
                }
            }
            (200, json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
        });
        let (port, certificate_authority) = (server.port(), BASE64.encode(server.certificate_authority()));
        Self { server: Some(server), port, certificate_authority, asked, dismissed }
    }

    /// The `request`s of the AdmissionReviews so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It can no longer be reached.
    pub(crate) fn stop(&mut self) {
        self.server = None;
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The authority for `clientConfig.caBundle`.
    pub(crate) fn ca_bundle(&self) -> &str {
        &self.certificate_authority
    }

    /// A `clientConfig` by address.
    pub(crate) fn by_url(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/", self.port), "caBundle": self.certificate_authority})
    }

    /// Registers it by address for one namespace, and returns when the API server has begun to call it. The fields of
    /// `webhook` go over the defaults: all objects of the core, `apps` and `batch` groups, no side effects,
    /// `failurePolicy: Fail`.
    #[track_caller]
    pub(crate) fn register<'a>(
        &self,
        cluster: &'a TestCluster,
        form: Form,
        namespace: &str,
        webhook: Value,
    ) -> Registration<'a> {
        let registration = self.register_unseen(cluster, &configuration(form, namespace, &self.by_url(), webhook));
        let probe =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "probe"}});
        wait_until("the webhook is called", SOON, || {
            let answer = cluster.api().apply_with(&probe, "fieldManager=test&dryRun=All");
            let asked_in_vain = answer.status >= 400;
            (asked_in_vain || !self.asked().is_empty()).then_some(())
        });
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        registration
    }

    /// Writes a configuration, and does not wait.
    #[track_caller]
    pub(crate) fn register_unseen<'a>(&self, cluster: &'a TestCluster, configuration: &Value) -> Registration<'a> {
        cluster.api().apply(configuration).ok();
        Registration { cluster, path: cluster.api().path_of(configuration) }
    }
}

/// The configuration of a webhook for one namespace, and named after it.
pub(crate) fn configuration(form: Form, namespace: &str, client_config: &Value, overrides: Value) -> Value {
    let mut webhook = json!({
        "name": format!("{namespace}.webhook.example"),
        "clientConfig": client_config.clone(),
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{
            "apiGroups": ["", "apps", "batch"], "apiVersions": ["*"], "resources": ["*"],
            "operations": ["CREATE", "UPDATE"], "scope": "Namespaced",
        }],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    });
    if let (Value::Object(webhook), Value::Object(overrides)) = (&mut webhook, overrides) {
        webhook.extend(overrides);
    }
    let kind = match form {
        Form::Validating => "ValidatingWebhookConfiguration",
        Form::Mutating => "MutatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": namespace}, "webhooks": [webhook],
    })
}

impl Drop for Webhook {
    fn drop(&mut self) {
        // An API server goes on calling it for a while after its configuration is deleted, and would refuse what the
        // next step of a test writes if nobody answered. So it listens until the process ends.
        self.dismissed.store(true, Ordering::SeqCst);
        std::mem::forget(self.server.take());
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        // A test that fails must not leave others with a webhook that nobody answers.
        drop(self.cluster.api().request("DELETE", &self.path, None, None));
    }
}
