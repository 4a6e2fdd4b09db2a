//! Reads a kustomization: the files that it lists, and the fields that make rendering necessary.

use std::path::{Component, Path, PathBuf};

use pushback_objects::ObjectExt;
use serde_json::Value;

/// Names of a kustomization, in kustomize's order.
pub(crate) const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Fields that add and change nothing in the listed objects.
const INERT: [&str; 9] = [
    "apiVersion",
    "kind",
    "metadata",
    "buildMetadata",
    "configurations",
    "crds",
    "generatorOptions",
    "openapi",
    "sortOptions",
];

/// Returns whether a path is that of a kustomization.
pub(super) fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
}

/// Returns whether a document is a kustomization, or a component of one.
pub(crate) fn is_document(value: &Value) -> bool {
    value.text("/apiVersion").starts_with("kustomize.config.k8s.io/")
}

/// The content of a kustomization that matters for reading it without its program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kustomization {
    /// Entries of `resources`, in order.
    pub(super) resources: Vec<String>,
    /// Files that configure kustomize.
    pub(super) configurations: Vec<String>,
    /// The first field that only rendering can apply.
    pub(super) unsupported: Option<String>,
}

impl Kustomization {
    /// Parses a document.
    pub(super) fn parse(document: &Value) -> Self {
        let mut parsed = Self::default();
        let fields = document.as_object().into_iter().flatten().filter(|(_, value)| !is_blank(value));
        for (name, value) in fields {
            match name.as_str() {
                "resources" | "bases" => parsed.resources.extend(texts(value)),
                "configurations" => parsed.configurations.extend(texts(value)),
                _ if INERT.contains(&name.as_str()) || parsed.unsupported.is_some() => {}
                _ => parsed.unsupported = Some(name.clone()),
            }
        }
        parsed
    }
}

/// Returns whether an entry, which is not a path here, leads to another machine.
pub(crate) fn is_remote(entry: &str) -> bool {
    entry.contains("://") || entry.contains('@') || entry.contains('?') || is_host(entry)
}

/// Returns whether an entry starts with the name of a host, such as `github.com/owner/name`.
fn is_host(entry: &str) -> bool {
    entry.split_once('/').is_some_and(|(host, rest)| host.contains('.') && !host.starts_with('.') && rest.contains('/'))
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The texts of a list; another value is printed, so that no entry is ignored.
fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        other => vec![text(other)],
    }
}

/// The path of an entry below the top folder; `None` if the entry leads out of the kustomization's `folder`.
pub(super) fn below(folder: &Path, entry: &str) -> Option<PathBuf> {
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for part in Path::new(entry).components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| folder.join(parts.iter().collect::<PathBuf>()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blank_fields_are_ignored() {
        let parsed = Kustomization::parse(&json!({
            "resources": ["bases/a.yaml"], "patches": [], "configurations": ["kustomizeconfig.yaml"], "generators": [],
            "images": null, "namePrefix": "",
        }));
        assert_eq!((parsed.resources, parsed.unsupported), (vec!["bases/a.yaml".to_owned()], None));
    }

    #[test]
    fn fields_that_need_rendering_are_found() {
        for field in [
            "components",
            "configMapGenerator",
            "generators",
            "helmCharts",
            "images",
            "namePrefix",
            "nameSuffix",
            "namespace",
            "replacements",
            "replicas",
            "secretGenerator",
            "transformers",
            "validators",
            "vars",
            "patches",
            "patchesStrategicMerge",
            "patchesJson6902",
            "labels",
            "commonLabels",
            "commonAnnotations",
            "anything",
        ] {
            let parsed = Kustomization::parse(&json!({"resources": ["a.yaml"], field: ["x"]}));
            assert_eq!(parsed.unsupported.as_deref(), Some(field));
        }
    }

    #[test]
    fn an_entry_stays_below_its_kustomization_or_has_no_path() {
        let folder = Path::new("crd");
        assert_eq!(below(folder, "./bases/a.yaml"), Some(PathBuf::from("crd/bases/a.yaml")));
        assert_eq!(below(folder, "bases/../a.yaml"), Some(PathBuf::from("crd/a.yaml")));
        for entry in ["../a.yaml", "bases/../../a.yaml", "/etc/a.yaml", ".", ""] {
            assert_eq!(below(folder, entry), None, "{entry}");
        }
    }
}
