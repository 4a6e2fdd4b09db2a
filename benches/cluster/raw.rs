//! What the API server itself can do: the same requests with the same bodies through the same client library,
//! 32 at a time, and nothing else done with the answers than reading them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use pushback_app::identity::{APP_LABEL, ASSOCIATION_LABEL, IDENTITY_ANNOTATION, association, identity};
use pushback_objects::ObjectRef;
use serde_json::{Value, json};

const WORKERS: usize = 32;
const LABEL: &str = "1700000000000000000";

/// Plain requests in one namespace.
#[derive(Debug)]
pub(crate) struct Raw<'a> {
    pub(crate) runtime: &'a tokio::runtime::Runtime,
    pub(crate) kubeconfig: &'a Path,
    pub(crate) namespace: &'a str,
}

#[derive(Clone, Debug)]
struct Plain {
    method: Method,
    path: String,
    content_type: &'static str,
    body: String,
}

impl Raw<'_> {
    /// A dry-run of every object, then a write of every object.
    pub(crate) fn create(&self, objects: &[Value]) -> Duration {
        let bodies: Vec<Value> = objects.iter().map(|object| stamped(object, self.namespace)).collect();
        let requests = |query: &str| -> Vec<Plain> {
            let apply = |body: &Value| Plain {
                method: Method::PATCH,
                path: format!("{}?fieldManager=raw&force=true&fieldValidation=Strict{query}", path_of(body)),
                content_type: "application/apply-patch+yaml",
                body: body.to_string(),
            };
            bodies.iter().map(apply).collect()
        };
        self.timed(vec![requests("&dryRun=All"), requests("")], WORKERS)
    }

    /// A write of every object, and no dry-run.
    pub(crate) fn write(&self, objects: &[Value]) {
        self.write_by(objects, WORKERS);
    }

    /// The same, by so many workers.
    pub(crate) fn write_by(&self, objects: &[Value], workers: usize) {
        let apply = |object: &Value| {
            let mut body = object.clone();
            body["metadata"]["namespace"] = self.namespace.into();
            let path = format!("{}?fieldManager=raw&force=true", path_of(&body));
            Plain { method: Method::PATCH, path, content_type: "application/apply-patch+yaml", body: body.to_string() }
        };
        self.timed(vec![objects.iter().map(apply).collect()], workers);
    }

    /// Looks until all Deployments of the namespace are available.
    pub(crate) fn until_available(&self) {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments?limit=500", self.namespace);
        self.runtime.block_on(async {
            let client = self.client().await;
            let are_available = async || {
                pages(&client, &path).await.iter().all(|page| {
                    let page: Value = serde_json::from_slice(page).expect("a list");
                    page["items"].as_array().expect("items").iter().all(is_available)
                })
            };
            while !are_available().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }

    /// A patch of nothing for every object, by so many workers.
    pub(crate) fn patch(&self, objects: &[Value], workers: usize) -> Duration {
        let patch = |object: &Value| {
            let mut named = object.clone();
            named["metadata"]["namespace"] = self.namespace.into();
            let body = "{}".to_owned();
            Plain { method: Method::PATCH, path: path_of(&named), content_type: "application/merge-patch+json", body }
        };
        self.timed(vec![objects.iter().map(patch).collect()], workers)
    }

    /// The list of all ConfigMaps, page by page.
    pub(crate) fn list(&self) -> Duration {
        self.timed_pages(&self.config_maps())
    }

    /// The list of all objects of a path, so many in a page.
    pub(crate) fn list_all(&self, path: &str, page: usize) -> Duration {
        self.timed_pages(&format!("{path}?limit={page}"))
    }

    fn timed_pages(&self, path: &str) -> Duration {
        self.runtime.block_on(async {
            let client = self.client().await;
            let began = Instant::now();
            pages(&client, path).await;
            began.elapsed()
        })
    }

    /// A delete of every ConfigMap that was created here.
    pub(crate) fn delete(&self) -> Duration {
        let found = self.runtime.block_on(async {
            let client = self.client().await;
            pages(&client, &self.config_maps()).await
        });
        let delete = |object: &Value| Plain {
            method: Method::DELETE,
            path: format!(
                "/api/v1/namespaces/{}/configmaps/{}",
                self.namespace,
                object["metadata"]["name"].as_str().expect("a name")
            ),
            content_type: "application/json",
            body: json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
                "preconditions": {"uid": object["metadata"]["uid"]},
            })
            .to_string(),
        };
        let requests = found.iter().flat_map(|page| {
            let page: Value = serde_json::from_slice(page).expect("a list");
            page["items"].as_array().expect("items").iter().map(delete).collect::<Vec<_>>()
        });
        self.timed(vec![requests.collect()], WORKERS)
    }

    /// Where the first page of all ConfigMaps is.
    fn config_maps(&self) -> String {
        let selector = format!("{APP_LABEL}={LABEL}").replace('/', "%2F").replace('=', "%3D");
        format!("/api/v1/namespaces/{}/configmaps?labelSelector={selector}&limit=500", self.namespace)
    }

    /// Sends each batch, one after the other, over connections of its own.
    fn timed(&self, batches: Vec<Vec<Plain>>, workers: usize) -> Duration {
        self.runtime.block_on(async {
            let client = self.client().await;
            let began = Instant::now();
            for batch in batches {
                let (batch, next) = (Arc::new(batch), Arc::new(AtomicUsize::new(0)));
                let workers = (0..workers).map(|_| {
                    let (client, batch, next) = (client.clone(), Arc::clone(&batch), Arc::clone(&next));
                    tokio::spawn(async move {
                        while let Some(plain) = batch.get(next.fetch_add(1, Ordering::Relaxed)) {
                            send(&client, plain).await;
                        }
                    })
                });
                for worker in workers.collect::<Vec<_>>() {
                    worker.await.expect("every request is answered");
                }
            }
            began.elapsed()
        })
    }

    async fn client(&self) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        kube::Client::try_from(config).expect("a client")
    }
}

fn is_available(deployment: &Value) -> bool {
    deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
        && deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"]
}

/// The answers of a list, page by page.
async fn pages(client: &kube::Client, first: &str) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("{first}{next}");
        let plain = Plain { method: Method::GET, path, content_type: "application/json", body: String::new() };
        let body = send(client, &plain).await;
        // The token stands near the beginning; the items are not read.
        let head = String::from_utf8_lossy(&body[..body.len().min(1000)]).into_owned();
        let token = head.split_once("\"continue\":\"").and_then(|(_, rest)| rest.split_once('"'));
        pages.push(body);
        match token {
            Some((token, _)) if !token.is_empty() => next = format!("&continue={token}"),
            _ => return pages,
        }
    }
}

async fn send(client: &kube::Client, plain: &Plain) -> Vec<u8> {
    let request = Request::builder()
        .method(plain.method.clone())
        .uri(&plain.path)
        .header("accept", "application/json")
        .header("content-type", plain.content_type)
        .body(Body::from(plain.body.clone().into_bytes()))
        .expect("a request");
    let response =
        client.send(request).await.unwrap_or_else(|error| panic!("{} {}: {error}", plain.method, plain.path));
    let status = response.status();
    let body = response.into_body().collect().await.expect("an answer").to_bytes();
    assert!(status.is_success(), "{} {}: {}", plain.method, plain.path, String::from_utf8_lossy(&body));
    body.to_vec()
}

/// The object as an app's objects are stamped.
fn stamped(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = namespace.into();
    let reference = ObjectRef::of(&object);
    let metadata = &mut object["metadata"];
    metadata["labels"][APP_LABEL] = LABEL.into();
    metadata["labels"][ASSOCIATION_LABEL] = association(&reference.key()).into();
    metadata["annotations"][IDENTITY_ANNOTATION] = identity(&reference).into();
    object
}

fn path_of(object: &Value) -> String {
    let reference = ObjectRef::of(object);
    let root = if reference.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", reference.group) };
    let plural = format!("{}s", reference.kind.to_lowercase());
    format!("{root}/{}/namespaces/{}/{plural}/{}", reference.version, reference.namespace, reference.name)
}
