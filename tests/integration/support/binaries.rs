//! Where the cluster's programs come from: `KUBEBUILDER_ASSETS` for etcd and the API server, Go
//! modules built by `tests/cluster/build` for everything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::go_toolchain;

/// What a test says that has no cluster to run on.
pub(crate) const NOTHING_AVAILABLE: &str = "this test needs a Kubernetes control plane, which is built with Go 1.26; that \
    is neither installed, nor to be had for this platform from a module proxy (GOPROXY). Install it, or set \
    KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver; PUSHBACK_TEST_CLUSTER=skip leaves such tests out";

/// Which clusters can be had here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// Go is there, or can be fetched: all components.
    Whole,
    /// Only `KUBEBUILDER_ASSETS` is there.
    ApiServer,
    /// Neither.
    Nothing,
    /// The user wants none.
    Skipped,
}

impl Availability {
    /// Looks at the environment; builds and fetches nothing.
    pub(crate) fn detect() -> Result<Self, String> {
        match std::env::var("PUSHBACK_TEST_CLUSTER").as_deref() {
            Err(_) | Ok("") => {}
            Ok("skip") => return Ok(Self::Skipped),
            Ok(other) => {
                return Err(format!("PUSHBACK_TEST_CLUSTER={other:?} is not known; the only value is \"skip\""));
            }
        }
        Ok(match assets() {
            _ if go_toolchain::is_installed() => Self::Whole,
            Some(_) => Self::ApiServer,
            None if go_toolchain::can_be_fetched() => Self::Whole,
            None => Self::Nothing,
        })
    }
}

/// The directory that `KUBEBUILDER_ASSETS` names.
pub(crate) fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The command line (program, first arguments) of each component.
#[derive(Debug)]
pub(crate) struct Binaries {
    built: Option<PathBuf>,
}

impl Binaries {
    /// Builds what is missing, once in a run.
    pub(crate) fn get(everything: bool) -> Result<Self, String> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        if !everything && assets().is_some() {
            return Ok(Self { built: None });
        }
        let built = BUILT.get_or_init(build).clone()?;
        Ok(Self { built: Some(built) })
    }

    /// The directory of what was built.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.built.as_deref()
    }

    /// How `etcd`, `kube-apiserver`, `kubectl` and the others are called.
    pub(crate) fn command(&self, component: &str) -> Result<Vec<String>, String> {
        if let (Some(assets), "etcd" | "kube-apiserver") = (assets(), component) {
            return Ok(vec![path_text(&assets.join(component))?]);
        }
        let built = self.built.as_deref().ok_or_else(|| format!("{component} was not built"))?;
        match component {
            "kwok" => Ok(vec![path_text(&built.join("kwok"))?]),
            _ => Ok(vec![path_text(&built.join("control-plane"))?, component.to_owned()]),
        }
    }

    /// The stage files that tell kwok how Nodes and Pods live, sorted.
    pub(crate) fn stages(&self) -> Result<Vec<String>, String> {
        let directory = self.built.as_deref().ok_or("kwok was not built")?.join("stages");
        let entries = std::fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut stages = entries
            .map(|entry| path_text(&entry.map_err(|error| format!("{}: {error}", directory.display()))?.path()))
            .collect::<Result<Vec<_>, _>>()?;
        stages.sort();
        Ok(stages)
    }
}

/// The directory of Helm and kustomize, which are built once.
pub(crate) fn renderers() -> PathBuf {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| run_script(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/renderers")));
    built.clone().unwrap_or_else(|error| panic!("{error}"))
}

fn build() -> Result<PathBuf, String> {
    run_script(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/build"))
}

/// Runs a script that prints the directory of what it builds; its progress goes to this process's stderr.
fn run_script(script: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(script);
    if !go_toolchain::is_installed() {
        let programs = go_toolchain::programs()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path)));
        command.env("PATH", path.map_err(|error| format!("PATH: {error}"))?).env_remove("GOROOT");
        command.env("GOTOOLCHAIN", "local");
    }
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(|error| format!("{script}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{script} ended with {}; its output says why", output.status));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    Ok(PathBuf::from(printed.trim_end()))
}

/// Paths go into scripts and kubeconfigs, which are text.
pub(crate) fn path_text(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
