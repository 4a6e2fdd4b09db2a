//! Entry points for the fuzz targets: the parsers of external data, without a connection.
//! Built only under `--cfg fuzzing`.

use pushback_system::redact::Secrets;
use serde_json::json;

use super::connect::ConnectOptions;
use super::{discovery, error, kubeconfig, transport, watch};
use crate::{ClusterError, Kinds};

/// Reads a kubeconfig up to the point where its plugin would run.
///
/// # Errors
/// The kubeconfig cannot be used.
pub fn read_kubeconfig(text: &str) -> Result<(), ClusterError> {
    let options =
        ConnectOptions { kubeconfig_yaml: Some(text.to_owned()), environment: |_| None, ..ConnectOptions::default() };
    kubeconfig::resolve(&options).map(|_| ())
}

/// Parses an answer as every format of discovery.
pub fn read_discovery(body: &[u8]) {
    let mut kinds = Kinds::default();
    discovery::read_any(&mut kinds, body);
}

/// Parses lines of a watch.
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

/// The refusal of a request for a Secret with this value.
#[must_use]
pub fn read_refusal(code: u16, body: &[u8], value: &str) -> ClusterError {
    let secrets = Secrets::of_body(&json!({"stringData": {"key": value}}));
    error::refusal(code, body, None, &secrets).error
}
