//! The user's credentials for registries: those of Docker, Podman and Helm, from their files or from credential helpers.
//! Without any, a registry is read anonymously.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pushback_system::bounded_file;
use pushback_system::environment::variables;
use pushback_system::program::{Program, find_program};
use secrecy::SecretString;
use serde::Deserialize;

use crate::error::{ErrorKind, RegistryError};

/// Maximum size of a file of credentials.
const MAX_FILE: u64 = 4 << 20;

/// Limits of a credential helper.
const TIME: Duration = Duration::from_secs(30);
const MAX_ANSWER: u64 = 1 << 20;
const MEMORY: u64 = 1 << 30;

/// The registry of Docker Hub, and the name under which Docker keeps its credentials.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// User name with which a helper returns an identity token.
const TOKEN_USER: &str = "<token>";

/// Credentials for a registry.
#[derive(Clone, Default)]
pub enum Credentials {
    /// None.
    #[default]
    Anonymous,
    /// User and password.
    Basic(String, SecretString),
    /// A token that the registry's authorisation server exchanges for another one.
    Identity(SecretString),
    /// A token for the registry itself.
    Bearer(SecretString),
}

/// Omits the values.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Basic(..) => "Basic",
            Self::Identity(_) => "Identity",
            Self::Bearer(_) => "Bearer",
        })
    }
}

/// Credentials that were looked up.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundCredentials {
    /// The credentials.
    pub(crate) credentials: Credentials,
    /// A credential helper that returned none.
    pub(crate) failed_helper: Option<String>,
}

/// Files with credentials, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct CredentialFiles {
    files: Vec<PathBuf>,
    path: Option<OsString>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConfigFile {
    auths: HashMap<String, Entry>,
    #[serde(rename = "credHelpers")]
    helpers: HashMap<String, String>,
    #[serde(rename = "credsStore")]
    store: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(rename = "Username", default)]
    username: String,
    #[serde(rename = "Secret", default)]
    secret: String,
}

impl CredentialFiles {
    /// The files of this user: those of Docker, Podman and Helm.
    #[must_use]
    pub fn of_user() -> Self {
        Self { files: files(&|name| env::var_os(name).filter(|value| !value.is_empty())), path: env::var_os("PATH") }
    }

    /// Looks up the credentials for a repository.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn find(&self, registry: &str, repository: &str) -> Result<FoundCredentials, RegistryError> {
        let mut failed_helper = None;
        for file in self.files.iter().filter(|file| file.exists()) {
            let unreadable = |reason: &str| {
                let message = format!("the credentials in {} cannot be read: {reason}", file.display());
                RegistryError::new(ErrorKind::Denied, message, "Correct the file, or log in again.")
            };
            let bytes = bounded_file::read(file, MAX_FILE).map_err(|reason| unreadable(&reason))?;
            // The parser's message could quote a value.
            let config: ConfigFile = serde_json::from_slice(&bytes).map_err(|_| unreadable("it is not valid JSON"))?;
            let found = self.find_in(&config, registry, repository);
            if !matches!(found.credentials, Credentials::Anonymous) {
                return Ok(found);
            }
            failed_helper = failed_helper.or(found.failed_helper);
        }
        Ok(FoundCredentials { failed_helper, ..FoundCredentials::default() })
    }

    fn find_in(&self, config: &ConfigFile, registry: &str, repository: &str) -> FoundCredentials {
        let keys = keys(registry, repository);
        let helper = keys.iter().find_map(|key| config.helpers.get(key).map(|helper| (helper.as_str(), key.as_str())));
        let stored = (!config.store.is_empty()).then(|| (config.store.as_str(), store_key(registry)));
        let mut failed_helper = None;
        if let Some((helper, key)) = helper.or(stored) {
            match self.ask(helper, key) {
                Some(credentials) => return FoundCredentials { credentials, failed_helper: None },
                None => failed_helper = Some(helper.to_owned()),
            }
        }
        let is_known = |key: &str, wanted: &str| {
            let key = key.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
            let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
            key == wanted
        };
        let entry = keys.iter().find_map(|wanted| {
            config.auths.get(wanted).or_else(|| {
                let mut known: Vec<_> = config.auths.iter().filter(|(key, _)| is_known(key, wanted)).collect();
                known.sort_by_key(|(key, _)| *key);
                known.first().map(|(_, entry)| *entry)
            })
        });
        let credentials = entry.and_then(credentials_in).unwrap_or_default();
        FoundCredentials { credentials, failed_helper }
    }

    /// Asks a credential helper. A helper without credentials fails, and its message differs between helpers.
    fn ask(&self, helper: &str, registry: &str) -> Option<Credentials> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !helper.chars().all(is_name) {
            return None;
        }
        let path = find_program(&format!("docker-credential-{helper}"), self.path.clone())?;
        let environment = variables().collect();
        let arguments = vec!["get".to_owned()];
        let program = Program { path, arguments, environment, time: TIME, answer: MAX_ANSWER, memory: MEMORY };
        let answer = program.run(registry.as_bytes().to_vec()).ok()?;
        let HelperAnswer { username, secret } = serde_json::from_slice(&answer).ok()?;
        match username.as_str() {
            _ if secret.is_empty() => None,
            TOKEN_USER => Some(Credentials::Identity(secret.into())),
            _ => Some(Credentials::Basic(username, secret.into())),
        }
    }
}

/// The names under which a file may have credentials, the most specific first.
fn keys(registry: &str, repository: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut path = repository;
    loop {
        keys.push(format!("{registry}/{path}"));
        match path.rsplit_once('/') {
            Some((parent, _)) => path = parent,
            None => break,
        }
    }
    keys.push(registry.to_owned());
    if DOCKER_HUB.contains(&registry) {
        keys.push(DOCKER_HUB_KEY.to_owned());
        keys.extend(DOCKER_HUB.map(str::to_owned));
    }
    keys
}

/// The name of a registry for a helper that has all credentials.
fn store_key(registry: &str) -> &str {
    if DOCKER_HUB.contains(&registry) { DOCKER_HUB_KEY } else { registry }
}

fn credentials_in(entry: &Entry) -> Option<Credentials> {
    if !entry.registrytoken.is_empty() {
        return Some(Credentials::Bearer(entry.registrytoken.clone().into()));
    }
    if !entry.identitytoken.is_empty() {
        return Some(Credentials::Identity(entry.identitytoken.clone().into()));
    }
    let decoded = STANDARD.decode(entry.auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.unwrap_or_default();
    let (user, password) = match decoded.trim_end_matches('\0').split_once(':') {
        Some((user, password)) => (user.to_owned(), password.to_owned()),
        None => (entry.username.clone(), entry.password.clone()),
    };
    (!user.is_empty() && !password.is_empty()).then(|| Credentials::Basic(user, password.into()))
}

fn files(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from);
    let home = folder("HOME").or_else(|| folder("USERPROFILE"));
    let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let docker = folder("DOCKER_CONFIG").or_else(|| below_home(".docker")).map(|docker| docker.join("config.json"));
    let podman = folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json"));
    let settings = folder("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
    let helm_home = folder("HELM_CONFIG_HOME").or_else(|| settings.map(|settings| settings.join("helm")));
    let helm = folder("HELM_REGISTRY_CONFIG").or_else(|| helm_home.map(|helm| helm.join("registry/config.json")));
    [folder("REGISTRY_AUTH_FILE"), docker, podman, helm].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::ExposeSecret;

    use super::*;

    fn shown(found: &FoundCredentials) -> String {
        match &found.credentials {
            Credentials::Anonymous => "anonymous".to_owned(),
            Credentials::Basic(user, password) => format!("{user}:{}", password.expose_secret()),
            Credentials::Identity(token) => format!("identity {}", token.expose_secret()),
            Credentials::Bearer(token) => format!("bearer {}", token.expose_secret()),
        }
    }

    fn find(config: &str, registry: &str, repository: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(&file, config).unwrap();
        let files = CredentialFiles { files: vec![folder.path().join("none"), file], path: None };
        shown(&files.find(registry, repository).unwrap())
    }

    #[test]
    fn credentials_are_found_by_registry_and_repository() {
        // "u:p" and "org:p"
        let config = r#"{"auths": {"ghcr.io": {"auth": "dTpw"}, "quay.io/org": {"auth": "b3JnOnA="}, "quay.io": {},
            "https://reg.example.com/v2/": {"username": "u", "password": "q"},
            "https://index.docker.io/v1/": {"identitytoken": "t"}, "own.io": {"registrytoken": "r"}}}"#;
        for (registry, repository, expected) in [
            ("ghcr.io", "a/b", "u:p"),
            ("quay.io", "org/a/b", "org:p"),
            ("quay.io", "other/a", "anonymous"),
            ("reg.example.com", "a", "u:q"),
            ("docker.io", "library/nginx", "identity t"),
            ("own.io", "a", "bearer r"),
            ("example.com", "a", "anonymous"),
        ] {
            assert_eq!(find(config, registry, repository), expected, "{registry}/{repository}");
        }
    }

    #[test]
    fn unreadable_file_is_an_error_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(&file, r#"{"auths": {"a": {"auth": hunter2}}}"#).unwrap();
        let error = CredentialFiles { files: vec![file], path: None }.find("a", "b").unwrap_err().to_string();
        assert!(error.contains("config.json") && !error.contains("hunter2"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn helpers_are_asked_by_registry_then_for_all() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let helper = |name: &str, script: &str| {
            let place = folder.path().join(format!("docker-credential-{name}"));
            fs::write(&place, format!("#!/bin/sh\nread registry\n{script}\n")).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        };
        helper("one", "[ $1 = get ] && echo \"{\\\"Username\\\": \\\"$registry\\\", \\\"Secret\\\": \\\"s\\\"}\"");
        helper("two", "echo '{\"Username\": \"<token>\", \"Secret\": \"s\"}'");
        helper("none", "echo credentials not found in native keychain; exit 1");
        let find = |config: &str, registry: &str| {
            let file = folder.path().join("config.json");
            fs::write(&file, config).unwrap();
            let files = CredentialFiles { files: vec![file], path: Some(folder.path().into()) };
            files.find(registry, "a").unwrap()
        };
        let both = r#"{"credHelpers": {"a.io": "one"}, "credsStore": "two", "auths": {"a.io": {}}}"#;
        assert_eq!(shown(&find(both, "a.io")), "a.io:s");
        assert_eq!(shown(&find(both, "b.io")), "identity s");
        let none = find(r#"{"credsStore": "none"}"#, "b.io");
        assert_eq!((shown(&none), none.failed_helper.as_deref()), ("anonymous".to_owned(), Some("none")));
        assert_eq!(shown(&find(r#"{"credsStore": "../one"}"#, "b.io")), "anonymous");
    }

    #[test]
    fn files_of_docker_podman_and_helm_are_asked_in_this_order() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/u".into()),
            "XDG_RUNTIME_DIR" => Some("/run/u".into()),
            "REGISTRY_AUTH_FILE" => Some("/own".into()),
            _ => None,
        };
        let expected = [
            "/own",
            "/home/u/.docker/config.json",
            "/run/u/containers/auth.json",
            "/home/u/.config/helm/registry/config.json",
        ];
        assert_eq!(files(&variable), expected.map(PathBuf::from));
    }
}
