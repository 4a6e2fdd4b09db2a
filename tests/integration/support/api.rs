//! A small blocking client for the API server: tests seed and look at objects with it, so that they
//! judge the product by what the server says and not by the product's own reading.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::poll::poll;

/// Generous: a request that takes this long on a loaded machine is stuck.
const REQUEST_DEADLINE: Duration = Duration::from_secs(60);

/// Within this a definition that is established is in discovery.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("test-client")
        .enable_all()
        .build()
        .expect("a runtime for the test client")
});

/// Waits for a future on the tests' runtime. Not to be called from async code.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// The server's answer, whatever it says.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body: an object, a list, a `Status`; a JSON string where it is no JSON.
    pub(crate) body: Value,
    request: String,
}

impl Answer {
    /// The body of a 2xx answer; fails the test on any other.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{} was answered {}: {}", self.request, self.status, self.body);
        self.body
    }

    /// The `message` of a refusal.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().or(self.body.as_str()).unwrap_or_default()
    }
}

/// Talks to one API server as one user.
#[derive(Clone)]
pub(crate) struct ApiClient {
    client: kube::Client,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApiClient").finish_non_exhaustive()
    }
}

impl ApiClient {
    /// A client for the current context of a kubeconfig file.
    pub(crate) fn new(kubeconfig: &Path) -> Result<Self, String> {
        let place = kubeconfig.display();
        let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| format!("{place}: {error}"))?;
        let client = block_on(async {
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(|error| error.to_string())?;
            kube::Client::try_from(config).map_err(|error| error.to_string())
        });
        Ok(Self { client: client.map_err(|error| format!("{place}: {error}"))? })
    }

    /// Sends anything; `Err` only where no answer came.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        self.send(method, path, "application/json", content_type, body)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        content_type: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let described = format!("{method} {path}");
        let mut request = http::Request::builder().method(method).uri(path).header("accept", accept);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let body = body.map(|value| value.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(Body::from(body)).map_err(|error| format!("{described}: {error}"))?;
        let client = self.client.clone();
        let (status, bytes) = block_on(async {
            tokio::time::timeout(REQUEST_DEADLINE, async {
                let response = client.send(request).await.map_err(|error| format!("{described}: {error}"))?;
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.map_err(|error| format!("{described}: {error}"))?;
                Ok::<_, String>((status, body.to_bytes()))
            })
            .await
            .unwrap_or_else(|_| Err(format!("{described}: no answer within {REQUEST_DEADLINE:?}")))
        })?;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { status, body, request: described })
    }

    #[track_caller]
    fn answered(&self, method: &str, path: &str, content_type: Option<&str>, body: Option<&Value>) -> Answer {
        self.request(method, path, content_type, body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// GET of an object, a list or any other path.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.answered("GET", path, None, None)
    }

    /// GET in another form than plain JSON.
    #[track_caller]
    pub(crate) fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, accept, None, None).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The items of a list; they carry no `apiVersion` and `kind`, as the server leaves them out.
    #[track_caller]
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        match self.get(path).ok()["items"].take() {
            Value::Array(items) => items,
            other => panic!("GET {path} is no list: its items are {other}"),
        }
    }

    /// POST to a collection or a subresource.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.answered("POST", path, Some("application/json"), Some(body))
    }

    /// PUT of a whole object.
    #[track_caller]
    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.answered("PUT", path, Some("application/json"), Some(body))
    }

    /// A merge patch.
    #[track_caller]
    pub(crate) fn merge_patch(&self, path: &str, body: &Value) -> Answer {
        self.answered("PATCH", path, Some("application/merge-patch+json"), Some(body))
    }

    /// DELETE of an object or a collection.
    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.answered("DELETE", path, None, None)
    }

    /// Server-side apply, forced, as the field manager `test`; unknown fields are refused.
    #[track_caller]
    pub(crate) fn apply(&self, object: &Value) -> Answer {
        self.apply_with(object, "fieldManager=test&force=true&fieldValidation=Strict")
    }

    /// Server-side apply with a query of the test's own; `fieldManager` is required in it.
    #[track_caller]
    pub(crate) fn apply_with(&self, object: &Value, query: &str) -> Answer {
        let path = format!("{}?{query}", self.path_of(object));
        self.answered("PATCH", &path, Some("application/apply-patch+yaml"), Some(object))
    }

    /// Whether discovery has the object's kind.
    #[track_caller]
    pub(crate) fn serves(&self, object: &Value) -> bool {
        self.find_path(object).is_some()
    }

    /// The path of an object by its apiVersion, kind, namespace and name, as discovery has it. Of a definition that was
    /// written a moment ago it may lag behind.
    #[track_caller]
    pub(crate) fn path_of(&self, object: &Value) -> String {
        let found = poll(SERVED_WITHIN, || self.find_path(object));
        found.unwrap_or_else(|| panic!("not served: {} {}", object["apiVersion"], object["kind"]))
    }

    #[track_caller]
    fn find_path(&self, object: &Value) -> Option<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let answer = self.get(&format!("{root}/{api_version}"));
        if answer.status == 404 {
            return None;
        }
        let answer = answer.ok();
        let resources = answer["resources"].as_array()?;
        let resource = resources
            .iter()
            .find(|resource| resource["kind"] == object["kind"] && !text(&resource["name"]).contains('/'))?;
        let namespace = match (resource["namespaced"].as_bool(), object["metadata"]["namespace"].as_str()) {
            (Some(true), namespace) => format!("namespaces/{}/", namespace.unwrap_or("default")),
            _ => String::new(),
        };
        let (plural, name) = (text(&resource["name"]), text(&object["metadata"]["name"]));
        Some(format!("{root}/{api_version}/{namespace}{plural}/{name}"))
    }
}
