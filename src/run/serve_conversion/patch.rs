//! What a definition needs for the API server to call a conversion webhook: `spec.conversion`, alone or in the
//! definition.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use pushback_cluster::ClusterError;
use pushback_cluster::directory::rewrite;
use pushback_crd::definition::crd::KIND as DEFINITION;
use pushback_manifest::files;
use pushback_manifest::yaml::Limits;
use pushback_objects::ObjectExt;
use pushback_system::bounded_file;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use url::Url;

use crate::run::error::CommandError;

/// Where the API server finds the webhook.
#[derive(Clone, Debug)]
pub enum Address {
    /// A Service: namespace, name, path and port.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The path of the URL.
        path: String,
        /// The port of the Service.
        port: u16,
    },
    /// An address that the API server can reach.
    Url(String),
}

/// What is printed.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Where the webhook is.
    pub address: Address,
    /// File with the certificates of its authority; without one, something else puts them into the definition.
    pub authority: Option<PathBuf>,
}

impl Patch {
    /// A merge patch for a definition.
    ///
    /// # Errors
    /// The address or the certificates cannot be used.
    pub fn value(&self) -> Result<Value, CommandError> {
        let mut client = match &self.address {
            Address::Url(url) => json!({"url": https(url)?}),
            Address::Service { namespace, name, path, port } => {
                if !path.starts_with('/') {
                    return Err(CommandError::usage(format!("--path: expected a path from /, found {path:?}")));
                }
                json!({"service": {"namespace": namespace, "name": name, "path": path, "port": port}})
            }
        };
        if let Some(path) = &self.authority {
            client["caBundle"] = authority(path)?.into();
        }
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        Ok(json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}))
    }

    /// The text of a file with definitions, each with the patch. Other documents, and every byte outside the
    /// definitions, stay.
    ///
    /// # Errors
    /// As for [`Patch::value`], or the file cannot be read or has no definition.
    pub fn definitions(&self, file: &Path) -> Result<String, CommandError> {
        let patch = self.value()?;
        let shown = files::shown(file);
        let text = String::from_utf8(content(file)?)
            .map_err(|_| CommandError::usage(format!("{shown}: it is not UTF-8 text")))?;
        let (mut text, count) = rewrite(&text, &shown, |value, _| Ok::<_, ClusterError>(patched(value, &patch)))?;
        if count == 0 {
            return Err(CommandError::usage(format!("{shown}: there is no definition in it")));
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }
}

fn patched(value: &Value, patch: &Value) -> Option<Value> {
    let is_definition = value.text("/kind") == DEFINITION && value.get("spec").is_some_and(Value::is_object);
    is_definition.then(|| {
        let mut value = value.clone();
        value["spec"]["conversion"] = patch["spec"]["conversion"].clone();
        value
    })
}

/// Checks a URL by the API server's rules for webhooks.
///
/// # Errors
/// The API server would not call it.
pub fn https(text: &str) -> Result<&str, CommandError> {
    let refused = |why: &str| CommandError::usage(format!("--url {text}: {why}"));
    let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
    match url {
        _ if url.scheme() != "https" => Err(refused("the API server calls webhooks with https alone")),
        _ if !url.username().is_empty() || url.password().is_some() => Err(refused("a user is not allowed")),
        _ if url.query().is_some() || url.fragment().is_some() => Err(refused("a query or fragment is not allowed")),
        _ => Ok(text),
    }
}

/// A `caBundle` with the certificates of an authority.
///
/// # Errors
/// The file cannot be read, or has something else.
pub fn authority(path: &Path) -> Result<String, CommandError> {
    Ok(BASE64.encode(certificates(path)?))
}

/// The certificates of an authority in PEM, each of which the API server can read.
fn certificates(path: &Path) -> Result<Vec<u8>, CommandError> {
    let bytes = content(path)?;
    let refused = |why: String| {
        let hint = "give the certificates of the authority in PEM: blocks of BEGIN CERTIFICATE";
        CommandError::usage_with_hint(format!("--ca-file {}: {why}", files::shown(path)), hint)
    };
    let blocks = pem::parse_many(&bytes).map_err(|error| refused(format!("it is not PEM: {error}")))?;
    if blocks.is_empty() {
        return Err(refused("it is not PEM: it has no block".to_owned()));
    }
    let mut store = RootCertStore::empty();
    for block in blocks {
        if block.tag() != "CERTIFICATE" {
            return Err(refused(format!(
                "it holds a {}, and everybody can read what goes into a definition",
                block.tag()
            )));
        }
        store
            .add(CertificateDer::from(block.into_contents()))
            .map_err(|error| refused(format!("a certificate is damaged: {error}")))?;
    }
    Ok(bytes)
}

fn content(path: &Path) -> Result<Vec<u8>, CommandError> {
    let read = bounded_file::read(path, Limits::default().bytes as u64);
    read.map_err(|reason| CommandError::usage(format!("{}: it cannot be read: {reason}", files::shown(path))))
}
