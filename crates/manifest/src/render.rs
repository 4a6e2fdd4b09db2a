//! Renders kustomizations and Helm charts with the user's own programs, in the same way on both sides of a comparison.
//! Programs run without network and plugins, and for a bounded time; positions lead to source files where possible.

mod chart;
mod checkout;
mod kustomize;
mod template_lines;
mod trace;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pushback_registry::Digest;
use pushback_system::program::{Program, find_program};

pub(super) use self::chart::{ChartName, render_chart};
pub(super) use self::checkout::Checkout;
pub(super) use self::kustomize::render_kustomization;
pub(super) use self::trace::Trace;
use super::files::shown;
use super::limits::Limits;

/// Time in which a program has to render a folder.
const TIME: Duration = Duration::from_secs(120);

/// Memory of a program.
const MEMORY: u64 = 2 << 30;

/// A proxy that refuses connections: programs that fetch over HTTP respect it.
const NO_PROXY_ANSWERS: &str = "http://127.0.0.1:9";

/// Options for folders that have to be rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Let a kustomization fetch bases and charts from other machines.
    pub allow_remote_bases: bool,
    /// Options of Helm.
    pub helm: HelmOptions,
}

/// Options of `helm template`, the same for both sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelmOptions {
    /// Files of values; in a git ref those of the ref.
    pub values: Vec<String>,
    /// Values, `KEY=VALUE`.
    pub set: Vec<String>,
    /// The release name; without it the name of the chart.
    pub release: Option<String>,
    /// The namespace of the release.
    pub namespace: Option<String>,
    /// The Kubernetes version for which the chart is rendered.
    pub kubernetes_version: Option<String>,
    /// API versions that the cluster serves, such as `monitoring.coreos.com/v1/ServiceMonitor`.
    pub api_versions: Vec<String>,
}

/// A folder or chart that was rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFolder {
    /// The folder or chart, as messages name it.
    pub folder: String,
    /// Program and version: `kustomize v5.7.1`.
    pub program: String,
}

/// A source whose objects depend on more than its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedSource {
    /// A folder or chart that a program has rendered.
    Rendered(RenderedFolder),
    /// An artifact of a registry.
    Artifact {
        /// Its name, as the user has given it: `oci://ghcr.io/org/app:v1`.
        name: String,
        /// The digest that the name led to.
        digest: Digest,
    },
}

impl fmt::Display for ResolvedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rendered(folder) => fmt::Display::fmt(folder, f),
            Self::Artifact { name, digest } => write!(f, "{name} is {digest}"),
        }
    }
}

impl fmt::Display for RenderedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is rendered with {}", self.folder, self.program)
    }
}

/// The text that a program has printed for a folder or chart.
#[derive(Debug)]
pub(super) struct RenderedText {
    /// The text that the program has printed.
    pub(super) bytes: Vec<u8>,
    /// The way from positions in this text to source files.
    pub(super) trace: Trace,
    /// The folder and the program.
    pub(super) folder: RenderedFolder,
    /// Prefix that names the text: `kustomize:`.
    pub(super) scheme: &'static str,
}

/// The reason why a folder was not rendered: of the whole folder, or of a file in it.
#[derive(Debug)]
pub(super) struct RenderError {
    /// The file as messages name it; empty for the file that makes rendering necessary.
    pub(super) file: String,
    pub(super) message: String,
    pub(super) hints: Vec<String>,
    /// True if the program is missing; the result of another machine would do.
    pub(super) lacks_program: bool,
}

impl RenderError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { file: String::new(), message: message.into(), hints: Vec::new(), lacks_program: false }
    }

    /// The error that no program is on the PATH.
    fn of_missing(programs: &str, hint: &str) -> Self {
        let message = format!("it must be rendered, and {programs} is on the PATH");
        Self { lacks_program: true, ..Self::new(message) }.with_hint(hint)
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Files on this machine, or of a git ref or an artifact in a checkout made for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SourceTree<'a> {
    /// Files where the user has them.
    Local,
    /// Files of a ref or an artifact.
    Ref(&'a Checkout),
}

impl SourceTree<'_> {
    /// Returns the path of a file for messages.
    fn shown(self, path: &Path) -> String {
        match self {
            Self::Local => shown(path),
            Self::Ref(checkout) => checkout.shown(path),
        }
    }

    /// Replaces the folder of a checkout in the message of a program.
    fn without_checkout(self, message: &str) -> String {
        match self {
            Self::Local => message.to_owned(),
            Self::Ref(checkout) => checkout.rename_in(message),
        }
    }
}

/// A program on the PATH that renders, with its version.
#[derive(Clone, Debug)]
struct Renderer {
    /// Its absolute path.
    path: PathBuf,
    /// Name and version.
    named: String,
}

impl Renderer {
    /// Finds the first of these programs on the PATH, and asks for its version.
    fn find(programs: &[(&'static str, &[&str])]) -> Option<Self> {
        let folders = std::env::var_os("PATH");
        let found = |name: &str| find_program(name, folders.clone());
        let (name, path, arguments) = programs.iter().find_map(|(name, of)| Some((*name, found(name)?, *of)))?;
        let program = program(path.clone(), arguments.iter().map(|it| (*it).to_owned()).collect(), sealed(&[]));
        let version = program.run(Vec::new()).map(|answer| version_in(&answer)).unwrap_or_default();
        let named = format!("{name} {version}").trim_end().to_owned();
        Some(Self { path, named })
    }

    /// Returns what the program prints.
    fn run(&self, arguments: Vec<String>, environment: Vec<(String, OsString)>) -> Result<Vec<u8>, String> {
        program(self.path.clone(), arguments, environment).run(Vec::new())
    }
}

fn program(path: PathBuf, arguments: Vec<String>, environment: Vec<(String, OsString)>) -> Program {
    let answer = Limits::default().bytes as u64;
    Program { path, arguments, environment, time: TIME, answer, memory: MEMORY }
}

/// Returns the version in what a program prints about itself: `v5.7.1`, or the JSON of kubectl.
fn version_in(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) {
        return json["clientVersion"]["gitVersion"].as_str().unwrap_or_default().to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    text.trim().chars().take_while(|c| is_plain(*c)).take(40).collect()
}

/// Environment without network, plugins and the user's settings.
fn sealed(more: &[(&str, &Path)]) -> Vec<(String, OsString)> {
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let fixed = [("GIT_ALLOW_PROTOCOL", "none"), ("GIT_TERMINAL_PROMPT", "0"), ("HELM_NO_PLUGINS", "1")];
    let proxies = proxies.into_iter().map(|name| (name, NO_PROXY_ANSWERS));
    let texts = proxies.chain(fixed).map(|(name, value)| (name.to_owned(), value.into()));
    texts.chain(more.iter().map(|(name, path)| ((*name).to_owned(), path.as_os_str().to_owned()))).collect()
}

/// The user's own environment as far as programs need it to fetch: proxies, registries, PATH.
fn open() -> Vec<(String, OsString)> {
    let is_wanted = |name: &str| {
        let plain = ["HOME", "PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSH_AUTH_SOCK", "DOCKER_CONFIG"];
        plain.contains(&name)
            || name.to_ascii_uppercase().ends_with("_PROXY")
            || name.starts_with("XDG_")
            || name.starts_with("HELM_")
    };
    let own = pushback_system::environment::variables().filter(|(name, _)| is_wanted(name));
    let fixed = [("GIT_TERMINAL_PROMPT", "0"), ("HELM_NO_PLUGINS", "1")];
    own.chain(fixed.map(|(name, value)| (name.to_owned(), value.into()))).collect()
}

/// Resolves `.` and `..` in a path by its text.
fn resolve_dots(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match resolved.components().next_back() {
                Some(Component::Normal(_)) => drop(resolved.pop()),
                _ => resolved.push(".."),
            },
            other => resolved.push(other),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_all_programs() {
        for (answer, version) in [
            ("v5.7.1\n", "v5.7.1"),
            ("v3.19.0+g3d8990f\n", "v3.19.0+g3d8990f"),
            (r#"{"clientVersion": {"gitVersion": "v1.36.3"}, "kustomizeVersion": "v5.8.0"}"#, "v1.36.3"),
            ("\u{1b}[31mred", ""),
            ("", ""),
        ] {
            assert_eq!(version_in(answer.as_bytes()), version);
        }
    }

    #[test]
    fn dots_of_a_path_are_resolved_by_its_text() {
        for (path, resolved) in [
            ("overlays/prod/../../base/./a.yaml", "base/a.yaml"),
            ("./a", "a"),
            ("../base", "../base"),
            ("a/../../b", "../b"),
            ("/a/../b", "/b"),
        ] {
            assert_eq!(resolve_dots(Path::new(path)), Path::new(resolved));
        }
    }
}
