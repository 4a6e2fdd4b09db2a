//! Finds the kubeconfig and converts one context of it to the client library's configuration.
//! Its content never appears in a message: a kubeconfig is full of credentials.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig, KubeconfigError};
use pushback_system::bounded_file::is_inherited_pipe;
use pushback_system::environment::reason;
use pushback_system::proxy;
use pushback_system::redact::Secrets;
use secrecy::ExposeSecret;

use super::connect::ConnectOptions;
use super::exec::Plugin;
use crate::{ClusterError, ErrorKind};

/// Maximum size of a kubeconfig; those of fleets with certificates for hundreds of clusters stay below it.
const MAX_KUBECONFIG: u64 = 16 << 20;

/// Maximum size of a certificate, key or token file.
const MAX_CREDENTIAL: u64 = 4 << 20;

/// A resolved context.
#[derive(Debug)]
pub(super) struct Target {
    /// The configuration without the plugin.
    pub(super) config: Config,
    /// The user's credential plugin.
    pub(super) plugin: Option<Plugin>,
    /// Its credentials, to be masked in every message.
    pub(super) secrets: Secrets,
    /// The context's name, or `in-cluster`.
    pub(super) context: String,
    /// The context and its kubeconfig, in words.
    pub(super) origin: String,
}

/// Finds and resolves the context that the options select.
pub(super) fn resolve(options: &ConnectOptions) -> Result<Target, ClusterError> {
    let mut target = match find(options)? {
        Origin::Kubeconfig(kubeconfig, origin) => of_kubeconfig(kubeconfig, &origin, options)?,
        Origin::InCluster => in_cluster(options)?,
    };
    let config = &mut target.config;
    // Retries are decided in this module, by verb.
    config.default_retry = false;
    if let Some(user) = &options.impersonate {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_uid = None;
        config.auth_info.impersonate_user_extra = None;
        config.auth_info.impersonate_groups = None;
    }
    if !options.impersonate_groups.is_empty() {
        if config.auth_info.impersonate.is_none() {
            return Err(configuration("a group to impersonate is given, but no user; give the user too (--as)"));
        }
        config.auth_info.impersonate_groups = Some(options.impersonate_groups.clone());
    }
    Ok(target)
}

/// The names of the contexts, where there is a kubeconfig that can be read.
#[must_use]
pub fn contexts(options: &ConnectOptions) -> Vec<String> {
    match find(options) {
        Ok(Origin::Kubeconfig(kubeconfig, _)) => kubeconfig.contexts.into_iter().map(|context| context.name).collect(),
        _ => Vec::new(),
    }
}

enum Origin {
    Kubeconfig(Box<Kubeconfig>, String),
    InCluster,
}

fn find(options: &ConnectOptions) -> Result<Origin, ClusterError> {
    if let Some(yaml) = &options.kubeconfig_yaml {
        let yaml = with_server(yaml, options.environment)?;
        let kubeconfig = Kubeconfig::from_yaml(&yaml).map_err(|error| unreadable(&error, "the given kubeconfig"))?;
        return Ok(Origin::Kubeconfig(Box::new(kubeconfig), "the given kubeconfig".to_owned()));
    }
    if let Some(path) = &options.kubeconfig {
        let kubeconfig = read(path)?
            .ok_or_else(|| configuration(format!("cannot read {}: no such file or directory", shown(path))))?;
        return Ok(Origin::Kubeconfig(Box::new(kubeconfig), shown(path)));
    }
    let environment = options.environment;
    let (looked_at, paths) = match environment("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(value) => {
            let paths: Vec<PathBuf> =
                std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect();
            let names: Vec<String> = paths.iter().map(|path| shown(path)).collect();
            (format!("$KUBECONFIG ({})", names.join(", ")), paths)
        }
        None => match home(environment) {
            Some(home) => {
                let path = home.join(".kube").join("config");
                (format!("$KUBECONFIG (not set), {}", shown(&path)), vec![path])
            }
            None => ("$KUBECONFIG (not set), the home directory (unknown)".to_owned(), Vec::new()),
        },
    };
    if let Some((kubeconfig, origin)) = read_all(&paths)? {
        return Ok(Origin::Kubeconfig(Box::new(kubeconfig), origin));
    }
    if options.context.is_none() && environment("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty()) {
        return Ok(Origin::InCluster);
    }
    Err(configuration(format!("no kubeconfig found: looked at {looked_at}; give --kubeconfig or set KUBECONFIG")))
}

/// The text with the server of the cluster that it is used in, where it names none: kapp-controller gives such a text.
fn with_server(yaml: &str, environment: fn(&str) -> Option<OsString>) -> Result<Cow<'_, str>, ClusterError> {
    const PLACE: &str = "${KAPP_KUBERNETES_SERVICE_HOST_PORT}";
    if !yaml.contains(PLACE) {
        return Ok(Cow::Borrowed(yaml));
    }
    let variable =
        |name| environment(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
    let (Some(host), Some(port)) = (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT")) else {
        return Err(configuration(format!(
            "the given kubeconfig has {PLACE}, but KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        )));
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Ok(Cow::Owned(yaml.replace(PLACE, &format!("{host}:{port}"))))
}

/// Reads and merges the files that exist; for equal names, the first entry wins.
fn read_all(paths: &[PathBuf]) -> Result<Option<(Kubeconfig, String)>, ClusterError> {
    let mut merged: Option<(Kubeconfig, Vec<String>)> = None;
    for path in paths {
        let Some(kubeconfig) = read(path)? else { continue };
        merged = Some(match merged {
            None => (kubeconfig, vec![shown(path)]),
            Some((first, mut names)) => {
                let both = first.merge(kubeconfig).map_err(|error| unreadable(&error, &shown(path)))?;
                names.push(shown(path));
                (both, names)
            }
        });
    }
    Ok(merged.map(|(kubeconfig, names)| (kubeconfig, names.join(", "))))
}

/// Reads one file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Kubeconfig>, ClusterError> {
    let origin = shown(path);
    if is_inherited_pipe(path) {
        let mut text = String::new();
        let failed = |error: io::Error| configuration(format!("cannot read {origin}: {}", reason(&error)));
        let pipe = File::open(path).map_err(failed)?;
        pipe.take(MAX_KUBECONFIG + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_KUBECONFIG {
            return Err(too_long(&origin, MAX_KUBECONFIG));
        }
        return Kubeconfig::from_yaml(&text).map(Some).map_err(|error| unreadable(&error, &origin));
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => check_file(path, "the kubeconfig", MAX_KUBECONFIG)?,
    }
    Kubeconfig::read_from(path).map(Some).map_err(|error| unreadable(&error, &origin))
}

/// Checks that a file can be read to its end: a kubeconfig may name a pipe without a writer, or a device.
fn check_file(path: &Path, what: &str, longest: u64) -> Result<(), ClusterError> {
    let name = format!("{what} {}", shown(path));
    match fs::metadata(path) {
        Err(error) => Err(configuration(format!("cannot read {name}: {}", reason(&error)))),
        Ok(metadata) if !metadata.is_file() => Err(configuration(format!("{name} is no regular file"))),
        Ok(metadata) if metadata.len() > longest => Err(too_long(&name, longest)),
        Ok(_) => Ok(()),
    }
}

fn too_long(name: &str, longest: u64) -> ClusterError {
    configuration(format!("{name} is larger than {} MiB", longest >> 20))
}

/// Checks every file that the kubeconfig makes us or the client library read.
fn check_files(cluster: &Cluster, user: &AuthInfo) -> Result<(), ClusterError> {
    let files = [
        ("the certificate authority", cluster.certificate_authority.as_ref(), &cluster.certificate_authority_data),
        ("the client certificate", user.client_certificate.as_ref(), &user.client_certificate_data),
    ];
    for (what, path, inline) in files {
        if let (Some(path), None) = (path, inline) {
            check_file(Path::new(path), what, MAX_CREDENTIAL)?;
        }
    }
    let key = user.client_key.as_ref().filter(|_| user.client_key_data.is_none());
    let token = user.token_file.as_ref().filter(|_| user.token.is_none());
    for (what, path) in [("the client key", key), ("the token file", token)] {
        if let Some(path) = path {
            check_file(Path::new(path), what, MAX_CREDENTIAL)?;
        }
    }
    Ok(())
}

fn of_kubeconfig(kubeconfig: Box<Kubeconfig>, origin: &str, options: &ConnectOptions) -> Result<Target, ClusterError> {
    let kubeconfig = *kubeconfig;
    let known = || {
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        if names.is_empty() { "it has none".to_owned() } else { format!("known: {}", names.join(", ")) }
    };
    let name = match (&options.context, kubeconfig.current_context.as_deref()) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) if !name.is_empty() => name.to_owned(),
        (None, _) => {
            return Err(configuration(format!(
                "no context is current in {origin}; give --kubeconfig-context ({})",
                known()
            )));
        }
    };
    let context = kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == name)
        .ok_or_else(|| configuration(format!("there is no context \"{name}\" in {origin}; {}", known())))?
        .context
        .clone()
        .unwrap_or_default();
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster)
        .and_then(|cluster| cluster.cluster.clone())
        .ok_or_else(|| {
            let cluster = &context.cluster;
            configuration(format!("context \"{name}\" names the cluster \"{cluster}\", which is not in {origin}"))
        })?;
    // An unknown user means no user, as in kubectl.
    let mut user = context
        .user
        .as_deref()
        .and_then(|user| kubeconfig.auth_infos.iter().find(|known| known.name == user))
        .and_then(|user| user.auth_info.clone())
        .unwrap_or_default();
    // Other credentials of the user take precedence over the plugin.
    let mut exec = user.exec.take().filter(|_| !has_credentials(&user));
    refuse_old_provider(&user, origin)?;
    check_files(&cluster, &user)?;
    // The client library panics on it.
    if user.token.as_ref().is_some_and(|token| HeaderValue::from_str(token.expose_secret()).is_err()) {
        let user = context.user.as_deref().unwrap_or_default();
        let message = format!("the token of user \"{user}\" in {origin} has a line break or another control character");
        return Err(configuration(message));
    }
    let info = ExecAuthCluster::try_from(&cluster).map_err(|error| unreadable(&error, origin))?;
    let mut config = Config::new(server(&cluster, &user, &name)?);
    if let Some(bundle) = &info.certificate_authority_data {
        config.root_cert = Some(certificates(bundle, &context.cluster)?);
    }
    if let Some(exec) = exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        exec.cluster = Some(info);
    }
    if let Some(namespace) = context.namespace.filter(|namespace| !namespace.is_empty()) {
        config.default_namespace = namespace;
    }
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.disable_compression = cluster.disable_compression.unwrap_or(false);
    config.tls_server_name = cluster.tls_server_name.filter(|name| !name.is_empty());
    config.proxy_url =
        proxy::choose(&config.cluster_url, cluster.proxy_url.as_deref(), options.environment).map_err(configuration)?;
    let secrets = credentials(&user, config.proxy_url.as_ref());
    config.auth_info = user;
    let owner = || format!("user \"{}\" of {origin}", context.user.as_deref().unwrap_or_default());
    let plugin = exec.map(|exec| Plugin::find(exec, owner(), options)).transpose()?;
    let origin = format!("context {name} in {origin}; another one is chosen with --kubeconfig-context");
    Ok(Target { config, plugin, secrets, context: name, origin })
}

/// Secrets that are sent to a server or proxy, which might echo them.
fn credentials(user: &AuthInfo, proxy: Option<&Uri>) -> Secrets {
    let mut values = Vec::new();
    values.extend(user.token.as_ref().map(|token| token.expose_secret().to_owned()));
    values.extend(user.token_file.as_ref().and_then(|path| fs::read_to_string(path).ok()));
    if let Some(password) = &user.password {
        let password = password.expose_secret();
        values.push(format!("{}:{password}", user.username.as_deref().unwrap_or_default()));
        values.push(password.to_owned());
    }
    // `id-token` is sent; the others go to the identity provider, which might echo them too.
    let of_provider = user.auth_provider.iter().flat_map(|provider| &provider.config);
    let of_provider = of_provider.filter(|(key, _)| key.ends_with("-token") || key.ends_with("-secret"));
    values.extend(of_provider.map(|(_, value)| value.to_owned()));
    let proxy = proxy.and_then(Uri::authority).and_then(|authority| authority.as_str().rsplit_once('@'));
    if let Some((of_proxy, _)) = proxy {
        values.push(of_proxy.to_owned());
        values.extend(of_proxy.split_once(':').map(|(_, password)| password.to_owned()));
    }
    let values: Vec<String> = values.iter().map(|value| value.trim().to_owned()).collect();
    Secrets::of_credentials(&values)
}

/// The client library still runs the program of the provider `gcp`, silently and without a timeout; kubectl has refused
/// both old providers since 1.26.
fn refuse_old_provider(user: &AuthInfo, origin: &str) -> Result<(), ClusterError> {
    match &user.auth_provider {
        Some(provider) if provider.name != "oidc" => Err(configuration(format!(
            "the auth-provider {:?} in {origin} is not supported, as in kubectl since 1.26; use its credential plugin \
             (exec), such as gke-gcloud-auth-plugin or kubelogin",
            provider.name
        ))),
        _ => Ok(()),
    }
}

fn has_credentials(user: &AuthInfo) -> bool {
    user.token.is_some()
        || user.token_file.is_some()
        || (user.username.is_some() && user.password.is_some())
        || user.auth_provider.is_some()
}

/// The server's address; without a scheme it is `https` if there is a CA or client certificate.
fn server(cluster: &Cluster, user: &AuthInfo, context: &str) -> Result<Uri, ClusterError> {
    let text = cluster.server.as_deref().unwrap_or_default().trim();
    if text.is_empty() {
        return Err(configuration(format!("the cluster of context \"{context}\" has no server")));
    }
    let tls = cluster.certificate_authority.is_some()
        || cluster.certificate_authority_data.is_some()
        || cluster.insecure_skip_tls_verify == Some(true)
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some();
    let text = match text.contains("://") {
        true => text.to_owned(),
        false if tls => format!("https://{text}"),
        false => format!("http://{text}"),
    };
    text.parse::<Uri>()
        .ok()
        .filter(|uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")))
        .ok_or_else(|| {
            configuration(format!("the server of context \"{context}\" is not an address such as https://host:6443"))
        })
}

fn certificates(bundle: &[u8], cluster: &str) -> Result<Vec<Vec<u8>>, ClusterError> {
    let broken = || configuration(format!("the certificate authority of cluster \"{cluster}\" is not PEM"));
    let found: Vec<Vec<u8>> = pem::parse_many(bundle)
        .map_err(|_| broken())?
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(pem::Pem::into_contents)
        .collect();
    if found.is_empty() { Err(broken()) } else { Ok(found) }
}

fn in_cluster(options: &ConnectOptions) -> Result<Target, ClusterError> {
    let mut config = Config::incluster()
        .map_err(|error| configuration(format!("running in a Pod, but its service account cannot be used: {error}")))?;
    config.proxy_url = proxy::choose(&config.cluster_url, None, options.environment).map_err(configuration)?;
    let secrets = credentials(&config.auth_info, config.proxy_url.as_ref());
    let origin = "the service account of this Pod".to_owned();
    Ok(Target { config, plugin: None, secrets, context: "in-cluster".to_owned(), origin })
}

fn home(environment: fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    ["HOME", "USERPROFILE"].iter().find_map(|name| environment(name)).filter(|home| !home.is_empty()).map(PathBuf::from)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn configuration(message: impl Into<String>) -> ClusterError {
    ClusterError::new(ErrorKind::Configuration, message)
}

/// The parser's message quotes the file, so only the position is reported.
fn unreadable(error: &KubeconfigError, origin: &str) -> ClusterError {
    let what = match error {
        KubeconfigError::ReadConfig(error, _) => format!("cannot read {origin}: {}", reason(error)),
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("{origin}:{}:{}: not a kubeconfig", at.line(), at.column()),
            None => format!("{origin}: not a kubeconfig"),
        },
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            format!("{origin} is of another kind or API version than the files before it")
        }
        KubeconfigError::LoadCertificateAuthority(kube::config::LoadDataError::ReadFile(error, path)) => {
            format!("cannot read the certificate authority {}: {error}", path.display())
        }
        KubeconfigError::LoadCertificateAuthority(_) => {
            format!("the certificate-authority-data in {origin} is not base64")
        }
        _ => format!("{origin} cannot be used"),
    };
    configuration(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_CONTEXTS: &str = "
clusters:
- {name: one, cluster: {server: 'https://one:6443', insecure-skip-tls-verify: true}}
- {name: two, cluster: {server: two.example.com, certificate-authority-data: aHVudGVyMg==, proxy-url: 'http://jump:3128'}}
contexts:
- {name: a, context: {cluster: one, user: u, namespace: shop}}
- {name: b, context: {cluster: two}}
- {name: c, context: {cluster: three}}
current-context: a
users:
- {name: u, user: {exec: {command: login, apiVersion: client.authentication.k8s.io/v1, provideClusterInfo: true}}}
";

    fn options(yaml: &str) -> ConnectOptions {
        ConnectOptions { kubeconfig_yaml: Some(yaml.to_owned()), environment: |_| None, ..ConnectOptions::default() }
    }

    fn message(options: &ConnectOptions) -> String {
        let error = resolve(options).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        error.message
    }

    #[test]
    fn the_current_context_is_taken_with_its_namespace_and_plugin() {
        let target = resolve(&options(TWO_CONTEXTS)).unwrap();
        assert_eq!(target.context, "a");
        assert_eq!(target.config.cluster_url, "https://one:6443");
        assert_eq!(target.config.default_namespace, "shop");
        assert!(target.config.accept_invalid_certs && !target.config.default_retry);
        assert!(target.config.auth_info.exec.is_none());
        let plugin = target.plugin.unwrap();
        assert_eq!(
            plugin.announcement(),
            "running the credential plugin login, for user \"u\" of the given kubeconfig"
        );
        assert_eq!(plugin.config.cluster.unwrap().server.as_deref(), Some("https://one:6443"));
    }

    #[test]
    fn what_is_wrong_with_a_context_is_said_with_what_is_there() {
        let with_context = |name: &str| ConnectOptions { context: Some(name.to_owned()), ..options(TWO_CONTEXTS) };
        assert_eq!(message(&with_context("x")), "there is no context \"x\" in the given kubeconfig; known: a, b, c");
        assert_eq!(
            message(&with_context("c")),
            "context \"c\" names the cluster \"three\", which is not in the given kubeconfig"
        );
        assert_eq!(message(&with_context("b")), "the certificate authority of cluster \"two\" is not PEM");
        assert_eq!(
            message(&options("contexts: []")),
            "no context is current in the given kubeconfig; give --kubeconfig-context (it has none)"
        );
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_read_is_not_quoted() {
        for yaml in
            ["users: [{name: u, user: {token: {hunter2: 1}}}]", "users: hunter2", "users: [\"hunter2", "- hunter2"]
        {
            let message = message(&options(yaml));
            assert!(message.starts_with("the given kubeconfig") && message.ends_with("not a kubeconfig"), "{message}");
        }
    }

    #[test]
    fn no_kubeconfig_anywhere_says_where_it_was_looked_for() {
        fn environment(name: &str) -> Option<OsString> {
            (name == "HOME").then(|| "/nowhere".into())
        }
        let options = ConnectOptions { environment, ..ConnectOptions::default() };
        assert_eq!(
            message(&options),
            "no kubeconfig found: looked at $KUBECONFIG (not set), /nowhere/.kube/config; \
             give --kubeconfig or set KUBECONFIG"
        );
    }

    #[test]
    fn several_files_are_merged_and_missing_ones_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        std::fs::write(&first, "current-context: b\ncontexts: [{name: a, context: {cluster: one}}]\n").unwrap();
        std::fs::write(&second, TWO_CONTEXTS).unwrap();
        let (kubeconfig, origin) = read_all(&[first, folder.path().join("missing"), second]).unwrap().unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("b"));
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(kubeconfig.contexts[0].context.as_ref().unwrap().namespace.is_none());
        assert!(origin.contains("first, ") && !origin.contains("missing"), "{origin}");
    }

    #[test]
    fn to_act_as_a_group_needs_a_user() {
        let group = ConnectOptions { impersonate_groups: vec!["g".to_owned()], ..options(TWO_CONTEXTS) };
        assert_eq!(message(&group), "a group to impersonate is given, but no user; give the user too (--as)");
        let both = ConnectOptions { impersonate: Some("u".to_owned()), ..group };
        let auth = resolve(&both).unwrap().config.auth_info;
        assert_eq!((auth.impersonate.as_deref(), auth.impersonate_groups), (Some("u"), Some(vec!["g".to_owned()])));
    }

    #[test]
    fn an_address_without_a_scheme_is_https_where_there_is_anything_to_verify() {
        let server = |fields: &str| {
            let yaml = format!(
                "current-context: a\ncontexts: [{{name: a, context: {{cluster: one}}}}]\n\
                 clusters: [{{name: one, cluster: {{{fields}}}}}]\n"
            );
            resolve(&options(&yaml)).map(|target| target.config.cluster_url.to_string())
        };
        assert_eq!(server("server: 'host:6443', insecure-skip-tls-verify: true").unwrap(), "https://host:6443/");
        assert_eq!(server("server: 'host:8080'").unwrap(), "http://host:8080/");
        assert_eq!(
            server("server: 'ftp://host'").unwrap_err().message,
            "the server of context \"a\" is not an address such as https://host:6443"
        );
        assert_eq!(server("server: ''").unwrap_err().message, "the cluster of context \"a\" has no server");
    }

    /// A kubeconfig with additional fields in its user and cluster.
    fn with_fields(cluster: &str, user: &str) -> String {
        format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: one, user: u}}}}]\n\
             clusters: [{{name: one, cluster: {{server: 'https://host:6443'{cluster}}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[test]
    fn files_that_cannot_be_read_to_their_end_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(MAX_CREDENTIAL + 1).unwrap();
        let (large, missing) = (large.display(), folder.path().join("missing").display().to_string());
        let place = folder.path().display();
        for (cluster, user, expected) in [
            (
                format!(", certificate-authority: {missing}"),
                String::new(),
                format!("cannot read the certificate authority {missing}: no such file or directory"),
            ),
            (
                String::new(),
                format!("client-certificate: {large}"),
                format!("the client certificate {large} is larger than 4 MiB"),
            ),
            (String::new(), format!("client-key: {place}"), format!("the client key {place} is no regular file")),
            (
                String::new(),
                "tokenFile: /dev/zero".to_owned(),
                "the token file /dev/zero is no regular file".to_owned(),
            ),
        ] {
            assert_eq!(message(&options(&with_fields(&cluster, &user))), expected);
        }
        let huge = folder.path().join("kubeconfig");
        File::create(&huge).unwrap().set_len(MAX_KUBECONFIG + 1).unwrap();
        let named = |path: &Path| ConnectOptions { kubeconfig: Some(path.to_owned()), ..ConnectOptions::default() };
        assert_eq!(message(&named(&huge)), format!("the kubeconfig {} is larger than 16 MiB", huge.display()));
        assert_eq!(message(&named(Path::new("/dev/zero"))), "the kubeconfig /dev/zero is no regular file");
    }

    #[test]
    fn token_that_no_header_can_hold_is_refused() {
        let message = message(&options(&with_fields("", "token: \"hunter2\\nhunter2\"")));
        assert!(message.starts_with("the token of user "), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }

    #[test]
    fn the_program_of_an_old_auth_provider_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let ran = folder.path().join("ran");
        let provider =
            format!("auth-provider: {{name: gcp, config: {{cmd-path: touch, cmd-args: {}}}}}", ran.display());
        let message = message(&options(&with_fields("", &provider)));
        assert!(message.starts_with("the auth-provider \"gcp\" in the given kubeconfig is not supported"), "{message}");
        assert!(!ran.exists());
    }

    #[test]
    fn a_kubeconfig_that_multiplies_itself_is_refused() {
        let mut yaml = "a: &a0 [hunter2, hunter2, hunter2, hunter2]\n".to_owned();
        for level in 1..20 {
            yaml.push_str(&format!("b{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", ")));
        }
        let message = message(&options(&yaml));
        assert!(message.ends_with("not a kubeconfig") || message.contains("no context"), "{message}");
        assert!(!message.contains("hunter2"));
    }
}
