//! Credential plugins of a kubeconfig (`users[].user.exec`), run here and not by the client library: that runs one
//! three times to build a client, never again after a 401, and quotes its output, including tokens, in errors.
//! A kubeconfig may come from anybody: the program is announced before it runs, and can be restricted to a list.

use std::fmt;
use std::io::IsTerminal;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine;
use http::HeaderValue;
use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;

use pushback_system::program::find_program;

use super::connect::ConnectOptions;
use crate::{ClusterError, ErrorKind};

/// Timeout of a plugin that does not prompt.
const SILENT_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout of a plugin that may prompt the user.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum length of an answer: a token and a certificate chain take a few kilobytes.
const MAX_ANSWER: u64 = 1 << 20;

/// A plugin whose program was found and is allowed.
pub(super) struct Plugin {
    /// Its configuration in the kubeconfig.
    pub(super) config: ExecConfig,
    /// Path of the program; `None` if it is not installed.
    program: Option<PathBuf>,
    /// The user entry that configures it: `user "dev" of /home/me/.kube/config`.
    owner: String,
}

impl Plugin {
    /// Finds the program of a plugin.
    ///
    /// # Errors
    /// No program is named, or it is not on the list of allowed ones.
    pub(super) fn find(config: ExecConfig, owner: String, options: &ConnectOptions) -> Result<Self, ClusterError> {
        let command = config.command.clone().unwrap_or_default();
        if command.is_empty() {
            return Err(configuration("the credential plugin of the kubeconfig names no command"));
        }
        let program = find_program(&command, (options.environment)("PATH"));
        // A bare name means the program found through PATH, never a file of that name elsewhere.
        let is = |allowed: &String| {
            program.as_deref() == Some(Path::new(allowed)) || (*allowed == command && !allowed.contains(MAIN_SEPARATOR))
        };
        if options.credential_plugins.as_ref().is_some_and(|allowed| !allowed.iter().any(is)) {
            return Err(configuration(format!(
                "the credential plugin {command:?} of {owner} is not among those that --credential-plugins allows"
            )));
        }
        Ok(Self { config, program, owner })
    }

    /// Describes what is about to run. Omits the arguments, which can be secrets.
    pub(super) fn announcement(&self) -> String {
        let count = self.config.args.iter().flatten().count();
        let arguments = match count {
            0 => String::new(),
            1 => " with 1 argument".to_owned(),
            count => format!(" with {count} arguments"),
        };
        let named = || self.config.command.as_deref().map(Path::new);
        let program = self.program.as_deref().or_else(named).unwrap_or(Path::new(""));
        format!("running the credential plugin {}{arguments}, for {}", program.display(), self.owner)
    }
}

/// Omits arguments and environment, which may be credentials.
impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("program", &self.program).field("owner", &self.owner).finish_non_exhaustive()
    }
}

fn configuration(message: impl Into<String>) -> ClusterError {
    ClusterError::new(ErrorKind::Configuration, message)
}

/// The answer of a plugin.
pub(super) struct Credential {
    /// `Bearer …`.
    pub(super) authorization: Option<HeaderValue>,
    /// Certificate and key, base64 of PEM as a kubeconfig has them.
    pub(super) certificate: Option<(String, String)>,
    /// When to renew; `None`: when the server refuses it.
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

/// Runs a plugin. `first`: nothing has been displayed yet, so the plugin may use the terminal.
pub(super) async fn run(plugin: &Plugin, first: bool) -> Result<Credential, ClusterError> {
    let config = &plugin.config;
    let program = config.command.as_deref().unwrap_or_default();
    let fail = |message: String| configuration(message);
    // If messages only go to a log, the plugin's own may contain what no log may.
    let shown = first && std::io::stderr().is_terminal();
    let terminal = shown && std::io::stdin().is_terminal();
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

    let missing = || {
        let hint = config.install_hint.as_deref().unwrap_or_default().trim();
        let hint = if hint.is_empty() { String::new() } else { format!("; the kubeconfig says: {hint}") };
        fail(format!("the credential plugin \"{program}\" is not installed or not in PATH{hint}"))
    };
    // A bare name would be searched again, also in the folders that were skipped.
    let mut command = tokio::process::Command::new(plugin.program.as_ref().ok_or_else(missing)?);
    command.args(config.args.iter().flatten());
    for variable in config.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            // An invalid variable name would panic when it is set.
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
        // The plugin explains itself to the user; later on that would disrupt the progress display.
        .stderr(if shown { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .kill_on_drop(true);

    let timeout = if interactive { PROMPT_TIMEOUT } else { SILENT_TIMEOUT };
    let (status, stdout) = match tokio::time::timeout(timeout, answer(&mut command)).await {
        Err(_) => {
            let seconds = timeout.as_secs();
            return Err(fail(format!("the credential plugin \"{program}\" did not end within {seconds} s")));
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
        Ok(Err(error)) => return Err(fail(format!("the credential plugin \"{program}\" cannot be run: {error}"))),
        Ok(Ok(None)) => {
            return Err(fail(format!(
                "the credential plugin \"{program}\" answered with more than {MAX_ANSWER} bytes"
            )));
        }
        Ok(Ok(Some(answer))) => answer,
    };
    if !status.success() {
        return Err(ClusterError::new(
            ErrorKind::Unauthorized,
            format!("the credential plugin \"{program}\" failed ({status}); run it by hand to see why"),
        ));
    }
    read(&stdout, program)
}

/// Runs a program to its end; `None` if its output is too long.
async fn answer(command: &mut tokio::process::Command) -> std::io::Result<Option<(ExitStatus, Vec<u8>)>> {
    let mut child = command.spawn()?;
    let mut stdout = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(MAX_ANSWER + 1).read_to_end(&mut stdout).await?;
    }
    if stdout.len() as u64 > MAX_ANSWER {
        child.kill().await?;
        return Ok(None);
    }
    Ok(Some((child.wait().await?, stdout)))
}

/// Parses a plugin's answer: JSON, or YAML, which kubectl also accepts.
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

    fn plugin(command: &str, script: &str) -> ExecConfig {
        let args = (!script.is_empty()).then(|| vec!["-c".to_owned(), script.to_owned()]);
        ExecConfig { command: Some(command.to_owned()), args, ..ExecConfig::default() }
    }

    fn found(config: ExecConfig, allowed: Option<&[&str]>) -> Result<Plugin, ClusterError> {
        let credential_plugins = allowed.map(|allowed| allowed.iter().map(|&name| name.to_owned()).collect());
        let options = ConnectOptions { credential_plugins, ..ConnectOptions::default() };
        Plugin::find(config, "user \"u\" of kubeconfig".to_owned(), &options)
    }

    async fn message_of(config: ExecConfig) -> String {
        let plugin = found(config, None).unwrap();
        run(&plugin, false).await.map(|_| ()).unwrap_err().message
    }

    #[tokio::test]
    async fn a_missing_plugin_is_named_with_the_kubeconfigs_hint() {
        let config =
            ExecConfig { install_hint: Some("brew install kubelogin".to_owned()), ..plugin("/nowhere/kubelogin", "") };
        assert_eq!(
            message_of(config).await,
            "the credential plugin \"/nowhere/kubelogin\" is not installed or not in PATH; \
             the kubeconfig says: brew install kubelogin"
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_answer_without_end_is_not_read_to_the_end() {
        assert_eq!(
            message_of(plugin("sh", "exec yes hunter2")).await,
            "the credential plugin \"sh\" answered with more than 1048576 bytes"
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_is_run_is_named_by_its_path_and_without_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("login");
        std::fs::write(&program, "").unwrap();
        let path = Some(std::env::join_paths([Path::new("."), Path::new("/nowhere"), folder.path()]).unwrap());
        assert_eq!(find_program("login", path.clone()), None, "it cannot be run");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(find_program("login", path.clone()), Some(program));
        assert_eq!(find_program("./login", path), Some("./login".into()));
        let said = found(plugin("/bin/sh", "hunter2"), None).unwrap().announcement();
        assert_eq!(said, "running the credential plugin /bin/sh with 2 arguments, for user \"u\" of kubeconfig");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn plugin_of_a_relative_path_entry_is_not_run() {
        fn path(_: &str) -> Option<std::ffi::OsString> {
            Some("bin:.".into())
        }
        let options = ConnectOptions { environment: path, ..ConnectOptions::default() };
        // The test's working directory has no `sh`; a bare name would be searched in the PATH of this process.
        let plugin = Plugin::find(plugin("sh", "exit 0"), "user \"u\"".to_owned(), &options).unwrap();
        let message = run(&plugin, false).await.map(|_| ()).unwrap_err().message;
        assert_eq!(message, "the credential plugin \"sh\" is not installed or not in PATH");
    }

    #[cfg(unix)]
    #[test]
    fn only_plugins_of_the_list_are_run() {
        let sh = find_program("sh", std::env::var_os("PATH")).unwrap();
        assert!(found(plugin("sh", ""), Some(&["aws", "sh"])).is_ok());
        assert!(found(plugin("sh", ""), Some(&[sh.to_str().unwrap()])).is_ok());
        for (command, allowed) in [("sh", &["aws"][..]), ("sh", &[]), ("/tmp/evil/sh", &["sh"]), ("sh", &["none"])] {
            let message = found(plugin(command, ""), Some(allowed)).map(|_| ()).unwrap_err().message;
            assert_eq!(
                message,
                format!(
                    "the credential plugin {command:?} of user \"u\" of kubeconfig is not among those that \
                     --credential-plugins allows"
                )
            );
        }
    }
}
