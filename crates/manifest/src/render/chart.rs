//! Renders a chart with `helm template`: a folder, an archive, or a chart of a repository or registry that the user names.
//! A folder's own dependencies are never fetched; only a chart that the user names may come from another machine.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::kustomize::absolute;
use super::template_lines::TemplateLines;
use super::trace::Trace;
use super::{HelmOptions, RenderError, RenderedFolder, RenderedText, Renderer, SourceTree, open, sealed};
use crate::source::HELM;

/// The chart of `helm:CHART[@VERSION]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChartName {
    chart: String,
    version: Option<String>,
}

impl ChartName {
    /// Parses what follows `helm:`.
    ///
    /// # Errors
    /// It names no chart.
    pub(crate) fn parse(text: &str) -> Result<Self, RenderError> {
        let (chart, version) = match text.rsplit_once('@') {
            Some((chart, version)) if !version.contains('/') => (chart, Some(version)),
            _ => (text, None),
        };
        if chart.is_empty() || chart.starts_with('-') || version == Some("") {
            let message = "expected helm:CHART or helm:CHART@VERSION, where CHART is a folder, an archive, REPOSITORY/NAME or \
                           an oci:// address";
            return Err(RenderError::new(message));
        }
        Ok(Self { chart: chart.to_owned(), version: version.map(str::to_owned) })
    }

    /// The chart in a folder, whatever the folder is called.
    pub(crate) fn of_folder(folder: &str) -> Self {
        Self { chart: if folder.is_empty() { "." } else { folder }.to_owned(), version: None }
    }

    /// The address in a registry, and the version, if this is a chart of a registry.
    pub(crate) fn in_registry(&self) -> Option<(&str, Option<&str>)> {
        Some((self.chart.strip_prefix("oci://")?, self.version.as_deref()))
    }

    /// The chart as a path.
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.chart)
    }

    /// The last part of the name, without the ending of an archive.
    fn last(&self) -> &str {
        let chart = self.chart.trim_end_matches('/');
        let last = chart.rsplit('/').next().unwrap_or(chart);
        last.trim_end_matches(".tgz")
    }
}

impl fmt::Display for ChartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chart)?;
        self.version.iter().try_for_each(|version| write!(f, "@{version}"))
    }
}

fn find_helm() -> Option<&'static Renderer> {
    static FOUND: OnceLock<Option<Renderer>> = OnceLock::new();
    FOUND.get_or_init(|| Renderer::find(&[("helm", &["version", "--template", "{{.Version}}"])])).as_ref()
}

/// Renders a chart. In a ref, the path of the chart and of files of values is one of the ref.
///
/// # Errors
/// Helm is not on the PATH or fails, or a file of values does not exist.
pub(crate) fn render_chart(
    name: &ChartName,
    tree: SourceTree<'_>,
    options: &HelmOptions,
) -> Result<RenderedText, RenderError> {
    let Some(helm) = find_helm() else {
        return Err(RenderError::of_missing("no helm", "Install Helm 3 or 4."));
    };
    let local = match tree {
        SourceTree::Local => Some(name.path().to_owned()).filter(|path| path.exists()),
        SourceTree::Ref(checkout) => Some(checkout.path(name.path())),
    };
    if let (Some(_), Some(version)) = (&local, &name.version) {
        let message = format!("{} is on this machine, so it has no version {version} to choose", name.chart);
        return Err(RenderError::new(message).with_hint("Leave out the version."));
    }
    let home = tempfile::tempdir().map_err(|error| RenderError::new(format!("no temporary folder: {error}")))?;
    let folders =
        ["HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|variable| (variable, home.path()));
    let (chart, environment) = match &local {
        Some(path) => (absolute(path)?, sealed(&folders)),
        None => (name.chart.clone(), open()),
    };
    let of_checkout = match (tree, &local) {
        (SourceTree::Ref(checkout), Some(path)) => checkout.release(path).map(release_name),
        _ => None,
    };
    let release = options.release.clone().or(of_checkout).unwrap_or_else(|| local_name(name, local.as_deref()));
    let mut arguments =
        vec!["template".to_owned(), format!("--namespace={}", options.namespace.as_deref().unwrap_or("default"))];
    arguments.push("--include-crds".to_owned());
    arguments.extend(name.version.iter().map(|version| format!("--version={version}")));
    for file in &options.values {
        arguments.push(format!("--values={}", values_file(file, tree)?));
    }
    arguments.extend(options.set.iter().map(|set| format!("--set={set}")));
    arguments.extend(options.kubernetes_version.iter().map(|version| format!("--kube-version={version}")));
    arguments.extend(options.api_versions.iter().map(|version| format!("--api-versions={version}")));
    arguments.extend(["--".to_owned(), release, chart]);
    let bytes = helm.run(arguments, environment).map_err(|error| {
        RenderError::new(format!("{} cannot render it: {}", helm.named, tree.without_checkout(&error)))
    })?;
    let trace = match &local {
        Some(path) if path.is_dir() => TemplateLines::read(&bytes, path, |file| tree.shown(file)),
        _ => TemplateLines::default(),
    };
    let folder = match &local {
        Some(path) => tree.shown(path),
        None => name.to_string(),
    };
    let folder = RenderedFolder { folder, program: helm.named.clone() };
    Ok(RenderedText { bytes, trace: Trace::Lines(trace), folder, scheme: HELM })
}

/// Default name of the release: that of the chart's folder or archive.
fn local_name(name: &ChartName, local: Option<&Path>) -> String {
    let of_folder = || local.and_then(|path| fs::canonicalize(path).ok());
    let folder = of_folder().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    release_name(&folder.unwrap_or_else(|| name.last().to_owned()))
}

/// Makes the name of a release of that of a folder.
fn release_name(text: &str) -> String {
    let text: String =
        text.to_ascii_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let text = text.trim_matches('-');
    if text.is_empty() { "release".to_owned() } else { text.chars().take(53).collect() }
}

/// The path of a file of values: one of the ref if the chart is.
fn values_file(file: &str, tree: SourceTree<'_>) -> Result<String, RenderError> {
    let place = match tree {
        SourceTree::Local => PathBuf::from(file),
        SourceTree::Ref(checkout) => checkout.values_file(Path::new(file)),
    };
    if !place.is_file() {
        let message = format!("the file of values {} does not exist", tree.shown(&place));
        return Err(RenderError::new(message).with_hint(
            "Paths of --values are relative to the working directory; in a git ref, to the repository's root.",
        ));
    }
    absolute(&place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_named_with_or_without_a_version() {
        for (text, chart, version) in [
            ("charts/op", "charts/op", None),
            ("ingress-nginx/ingress-nginx@4.10.0", "ingress-nginx/ingress-nginx", Some("4.10.0")),
            ("oci://ghcr.io/org/chart@1.2.3", "oci://ghcr.io/org/chart", Some("1.2.3")),
            ("oci://user@host/chart", "oci://user@host/chart", None),
        ] {
            let name = ChartName::parse(text).unwrap();
            assert_eq!((name.chart.as_str(), name.version.as_deref()), (chart, version));
            assert_eq!(name.to_string(), text);
        }
        for text in ["", "@1.0", "chart@", "--post-renderer=x"] {
            assert!(ChartName::parse(text).is_err(), "{text}");
        }
    }
}
