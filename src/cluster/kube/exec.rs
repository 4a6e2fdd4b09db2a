//! Credential plugins of a kubeconfig (`users[].user.exec`), run here and not by the client library: that runs one three
//! times to build a client, never again after a 401, and quotes its output, tokens and all, in errors.

use std::io::IsTerminal;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use http::HeaderValue;
use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;

use crate::cluster::{ClusterError, ErrorKind};

/// A plugin that asks nobody must come back within this time.
const SILENT_TIMEOUT: Duration = Duration::from_mins(2);

/// A person who is asked gets this long.
const PROMPT_TIMEOUT: Duration = Duration::from_mins(10);

/// What a plugin answered.
pub(super) struct Credential {
    /// `Bearer …`.
    pub(super) authorization: Option<HeaderValue>,
    /// Certificate and key, base64 of PEM as a kubeconfig has them.
    pub(super) certificate: Option<(String, String)>,
    /// When to ask again; `None`: when the server refuses it.
    pub(super) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs a plugin. `first`: the run has shown nothing yet, so the plugin may use the terminal.
pub(super) async fn run(config: &ExecConfig, first: bool) -> Result<Credential, ClusterError> {
    let program = config.command.as_deref().unwrap_or_default();
    let fail = |message: String| ClusterError::new(ErrorKind::Configuration, message);
    if program.is_empty() {
        return Err(fail("the credential plugin of the kubeconfig names no command".to_owned()));
    }
    let terminal = first && std::io::stdin().is_terminal();
    let interactive = match config.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !terminal => {
            return Err(fail(format!(
                "the credential plugin \"{program}\" must ask at a terminal (interactiveMode: Always), and there is none; \
                 log in with it first, or use another user in the kubeconfig"
            )));
        }
        Some(ExecInteractiveMode::Always | ExecInteractiveMode::IfAvailable) | None => terminal,
    };

    let mut command = tokio::process::Command::new(program);
    command.args(config.args.iter().flatten());
    for variable in config.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            // A name that no environment can hold would end the process that sets it.
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(fail(format!(
                    "the credential plugin \"{program}\" has an impossible environment variable"
                )));
            }
            command.env(name, value);
        }
    }
    let mut spec = json!({"interactive": interactive});
    if config.provide_cluster_info {
        spec["cluster"] = serde_json::to_value(&config.cluster).unwrap_or_default();
    }
    let info = json!({"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec});
    command
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
        // The plugin explains itself to the user; later on that would tear the progress apart.
        .stderr(if first { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .kill_on_drop(true);

    let timeout = if interactive { PROMPT_TIMEOUT } else { SILENT_TIMEOUT };
    let output = match tokio::time::timeout(timeout, command.output()).await {
        Err(_) => {
            let seconds = timeout.as_secs();
            return Err(fail(format!("the credential plugin \"{program}\" did not end within {seconds} s")));
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            let hint = config.install_hint.as_deref().unwrap_or_default().trim();
            let hint = if hint.is_empty() { String::new() } else { format!("; the kubeconfig says: {hint}") };
            return Err(fail(format!("the credential plugin \"{program}\" is not installed or not in PATH{hint}")));
        }
        Ok(Err(error)) => return Err(fail(format!("the credential plugin \"{program}\" cannot be run: {error}"))),
        Ok(Ok(output)) => output,
    };
    if !output.status.success() {
        return Err(ClusterError::new(
            ErrorKind::Unauthorized,
            format!("the credential plugin \"{program}\" failed ({}); run it by hand to see why", output.status),
        ));
    }
    read(&output.stdout, program)
}

/// Reads a plugin's answer. JSON, or YAML, which kubectl accepts too.
fn read(stdout: &[u8], program: &str) -> Result<Credential, ClusterError> {
    let fail =
        |what: &str| ClusterError::new(ErrorKind::Configuration, format!("the credential plugin \"{program}\" {what}"));
    let credential: ExecCredential = serde_json::from_slice(stdout)
        .ok()
        .or_else(|| serde_yaml::from_slice(stdout).ok())
        .ok_or_else(|| fail("did not answer with an ExecCredential"))?;
    let status = credential.status.ok_or_else(|| fail("answered without a status"))?;
    let expires = match status.expiration_timestamp.as_deref() {
        Some(text) => Some(text.parse().map_err(|_| fail("answered with an expirationTimestamp that is no time"))?),
        None => None,
    };
    let authorization = match status.token.as_deref().map(str::trim).filter(|token| !token.is_empty()) {
        Some(token) => {
            let mut header = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| fail("answered with a token that a header cannot hold"))?;
            header.set_sensitive(true);
            Some(header)
        }
        None => None,
    };
    let encode = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
    let certificate = status.client_certificate_data.zip(status.client_key_data).map(|(a, b)| (encode(a), encode(b)));
    if authorization.is_none() && certificate.is_none() {
        return Err(fail("answered with neither a token nor a certificate with its key"));
    }
    Ok(Credential { authorization, certificate, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_with_its_expiry_is_read_from_json_and_from_yaml() {
        let json =
            br#"{"kind":"ExecCredential","status":{"token":"abc","expirationTimestamp":"2030-01-01T00:00:00Z"}}"#;
        let yaml = b"kind: ExecCredential\nstatus:\n  token: abc\n  expirationTimestamp: '2030-01-01T00:00:00Z'\n";
        for answer in [json.as_slice(), yaml.as_slice()] {
            let credential = read(answer, "login").unwrap();
            let header = credential.authorization.unwrap();
            assert_eq!(header, "Bearer abc");
            assert!(header.is_sensitive());
            assert_eq!(credential.expires.map(|at| at.to_string()).as_deref(), Some("2030-01-01T00:00:00Z"));
        }
    }

    #[test]
    fn no_answer_is_quoted_in_an_error() {
        for answer in [
            r#"{"status":{"token":["hunter2"]}}"#,
            r#"{"status":{"token":"hunter2\n"},"#,
            r#"{"status":{"token":"hunter2\u0001"}}"#,
            r#"{"status":{"token":"hunter2","expirationTimestamp":"hunter2"}}"#,
            r#"{"status":{"clientKeyData":"hunter2"}}"#,
            r#"{"hunter2":1}"#,
        ] {
            let error = read(answer.as_bytes(), "login").map(|_| ()).unwrap_err();
            assert!(!error.message.contains("hunter2"), "{}", error.message);
            assert!(error.message.contains("\"login\""), "{}", error.message);
        }
    }

    #[tokio::test]
    async fn a_missing_plugin_is_named_with_the_kubeconfigs_hint() {
        let config = ExecConfig {
            command: Some("/nowhere/kubelogin".to_owned()),
            install_hint: Some("brew install kubelogin".to_owned()),
            ..ExecConfig::default()
        };
        let error = run(&config, false).await.map(|_| ()).unwrap_err();
        assert_eq!(
            error.message,
            "the credential plugin \"/nowhere/kubelogin\" is not installed or not in PATH; \
             the kubeconfig says: brew install kubelogin"
        );
    }
}
