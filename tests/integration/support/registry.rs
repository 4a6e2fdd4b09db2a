//! A small OCI registry on 127.0.0.1: manifests, blobs, tags and tokens, and answers that a test wants instead.
//! Plain HTTP, as clients accept from this machine.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::http::{self, Head, write_json};

const TOKEN: &str = "registry-token-0123456789";
pub(crate) const IMAGE_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A running registry; it lives as long as the test process.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    host: String,
    store: Arc<Mutex<Store>>,
}

#[derive(Debug, Default)]
struct Store {
    /// Bytes by `REPOSITORY/manifests/REFERENCE`, or by the digest of a blob.
    contents: HashMap<String, Vec<u8>>,
    tags: BTreeMap<String, Vec<String>>,
    /// User and password that a token needs.
    login: Option<(String, String)>,
    /// Status, or target of a redirect, of paths that contain a text.
    answers: Vec<(String, Result<u16, String>)>,
    requests: Vec<Head>,
}

/// A layer of an artifact.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    media_type: String,
    annotations: Value,
    bytes: Vec<u8>,
}

impl Layer {
    pub(crate) fn new(media_type: &str, bytes: Vec<u8>) -> Self {
        Self { media_type: media_type.to_owned(), annotations: Value::Null, bytes }
    }

    /// A compressed archive of these files.
    pub(crate) fn archive(media_type: &str, files: &[(&str, &str)]) -> Self {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            // Names that the library would refuse.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).expect("an entry");
        }
        let packed = builder.into_inner().and_then(GzEncoder::finish).expect("an archive");
        Self::new(media_type, packed)
    }

    pub(crate) fn annotated(mut self, annotations: Value) -> Self {
        self.annotations = annotations;
        self
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": digest(&self.bytes), "size": self.bytes.len(),
            "annotations": self.annotations})
    }
}

fn digest(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

impl Registry {
    pub(crate) fn start() -> Self {
        let store = Arc::<Mutex<Store>>::default();
        let shared = Arc::clone(&store);
        let (port, _) = http::start(move |head, stream| {
            let mut store = shared.lock().unwrap_or_else(PoisonError::into_inner);
            store.requests.push(head.clone());
            store.answer(head, stream)
        });
        Self { host: format!("127.0.0.1:{port}"), store }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The name of an artifact: `oci://HOST/NAME`.
    pub(crate) fn oci(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host)
    }

    /// Pushes an artifact, and returns its digest.
    pub(crate) fn push(&self, repository: &str, tag: &str, layers: &[Layer]) -> String {
        let mut store = self.store();
        for layer in layers {
            store.contents.insert(digest(&layer.bytes), layer.bytes.clone());
        }
        drop(store);
        let layers: Vec<Value> = layers.iter().map(Layer::descriptor).collect();
        self.push_manifest(repository, tag, &json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": layers}))
    }

    /// Pushes an index of manifests that were pushed, and returns its digest.
    pub(crate) fn push_index(&self, repository: &str, tag: &str, manifests: &[&str]) -> String {
        let entry = |digest: &&str| json!({"mediaType": MANIFEST, "digest": digest, "size": 1});
        let manifests: Vec<Value> = manifests.iter().map(entry).collect();
        self.push_manifest(repository, tag, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))
    }

    /// Pushes an image with a configuration for one platform, and returns its digest.
    pub(crate) fn push_image(&self, repository: &str, tag: &str, os: &str, architecture: &str) -> String {
        let config = json!({"os": os, "architecture": architecture}).to_string().into_bytes();
        let media_type = "application/vnd.oci.image.config.v1+json";
        let descriptor = Layer::new(media_type, config.clone()).descriptor();
        self.store().contents.insert(digest(&config), config);
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor, "layers": []});
        self.push_manifest(repository, tag, &manifest)
    }

    /// Pushes an index of images for these architectures; the images themselves are never asked for.
    pub(crate) fn push_platforms(&self, repository: &str, tag: &str, architectures: &[&str]) {
        let entry = |architecture: &&str| {
            json!({"mediaType": MANIFEST, "digest": digest(architecture.as_bytes()), "size": 1,
                "platform": {"os": "linux", "architecture": architecture}})
        };
        let manifests: Vec<Value> = architectures.iter().map(entry).collect();
        self.push_manifest(repository, tag, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}));
    }

    fn push_manifest(&self, repository: &str, tag: &str, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let digest = digest(&bytes);
        let mut store = self.store();
        for reference in [tag, &digest] {
            store.contents.insert(format!("{repository}/manifests/{reference}"), bytes.clone());
        }
        store.tags.entry(repository.to_owned()).or_default().push(tag.to_owned());
        digest
    }

    /// Replaces the content of a layer without its digest.
    pub(crate) fn corrupt(&self, layer: &Layer, bytes: &[u8]) {
        self.store().contents.insert(digest(&layer.bytes), bytes.to_vec());
    }

    /// Answers only with a token, which needs this login.
    pub(crate) fn protect(&self, user: &str, password: &str) {
        self.store().login = Some((user.to_owned(), password.to_owned()));
    }

    /// Answers paths that contain a text with a status.
    pub(crate) fn refuse(&self, path: &str, status: u16) {
        self.store().answers.push((path.to_owned(), Ok(status)));
    }

    /// Redirects paths that contain a text.
    pub(crate) fn redirect(&self, path: &str, target: &str) {
        self.store().answers.push((path.to_owned(), Err(target.to_owned())));
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Head> {
        self.store().requests.clone()
    }
}

impl Store {
    fn answer(&self, head: &Head, stream: &mut dyn Write) -> std::io::Result<()> {
        let target = head[0].split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let sent = |value: &str| head.iter().any(|line| line.eq_ignore_ascii_case(&format!("authorization: {value}")));
        if path == "/token" {
            let (user, password) = self.login.clone().unwrap_or_default();
            let is_known = sent(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
            let status = if is_known { 200 } else { 401 };
            return write_json(stream, status, "", &json!({"token": if is_known { TOKEN } else { "" }}));
        }
        if let Some((_, answer)) = self.answers.iter().find(|(known, _)| path.contains(known)) {
            return match answer {
                Ok(status) => write_json(stream, *status, "", &json!({"errors": [{"message": "hunter2"}]})),
                Err(target) => write_json(stream, 307, &format!("location: {target}\r\n"), &Value::Null),
            };
        }
        if self.login.is_some() && !sent(&format!("Bearer {TOKEN}")) {
            let host = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
            let realm = format!("http://{}/token", host.unwrap_or_default());
            let challenge = format!("www-authenticate: Bearer realm=\"{realm}\",service=\"test\"\r\n");
            return write_json(stream, 401, &challenge, &Value::Null);
        }
        let name = path.strip_prefix("/v2/").unwrap_or(path);
        if let Some(repository) = name.strip_suffix("/tags/list") {
            return write_json(stream, 200, "", &json!({"tags": self.tags.get(repository)}));
        }
        let key = name.split_once("/blobs/").map_or(name, |(_, digest)| digest);
        match self.contents.get(key) {
            Some(bytes) => {
                write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", bytes.len())?;
                stream.write_all(bytes)
            }
            None => write_json(stream, 404, "", &Value::Null),
        }
    }
}
