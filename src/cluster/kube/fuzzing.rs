//! What the fuzz targets reach of this room: the readers of what comes from outside, without a connection.
//! Built under `--cfg fuzzing` alone.

use serde_json::json;

use super::connect::ConnectOptions;
use super::{discovery, error, kubeconfig, transport, watch};
use crate::cluster::{ClusterError, Kinds};
use crate::redact::Secrets;

/// Reads a kubeconfig up to the point where its plugin would be run.
///
/// # Errors
/// It cannot be used.
pub fn read_kubeconfig(text: &str) -> Result<(), ClusterError> {
    let options =
        ConnectOptions { kubeconfig_yaml: Some(text.to_owned()), environment: |_| None, ..ConnectOptions::default() };
    kubeconfig::resolve(&options).map(|_| ())
}

/// Reads an answer as every form of discovery.
pub fn read_discovery(body: &[u8]) {
    let mut kinds = Kinds::default();
    discovery::read_any(&mut kinds, body);
}

/// Reads lines of a watch.
pub fn read_watch(body: &[u8]) {
    for line in body.split(|byte| *byte == b'\n') {
        let _ = watch::read_line(line);
    }
}

/// The texts of a `Warning` header.
#[must_use]
pub fn read_warnings(value: &str) -> Vec<String> {
    transport::warning_texts(value)
}

/// The refusal of a Secret with this value.
#[must_use]
pub fn read_refusal(code: u16, body: &[u8], value: &str) -> ClusterError {
    let secrets = Secrets::of_body(&json!({"stringData": {"key": value}}));
    error::refusal(code, body, None, &secrets).error
}
