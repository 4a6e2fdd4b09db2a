//! Selects the files of a folder that define its objects, in the same way for both sides of a comparison.
//! A kustomization that only lists files below its folder defines the set. A chart, or any other kustomization, is
//! rendered. Pure: paths and the content of kustomizations in, a selection out.

pub(crate) mod kustomization;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::kustomization::{Kustomization, below, is_remote};
use super::files::is_manifest;

pub(crate) use self::kustomization::is_document as is_kustomization_document;

/// The file that makes a folder a chart.
pub(super) const CHART: &str = "Chart.yaml";

/// The program that renders a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renderer {
    /// kustomize, which kubectl contains.
    Kustomize,
    /// Helm.
    Helm,
}

/// A folder whose objects are known only after rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unrendered {
    /// The kustomization or chart file.
    pub(super) file: PathBuf,
    /// The program.
    pub(super) renderer: Renderer,
    /// The reason for rendering.
    pub(super) reason: String,
}

impl Unrendered {
    /// The folder to render.
    pub(super) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }
}

/// A kustomization that cannot be read, or lists a file that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LayoutError {
    /// The kustomization.
    pub(super) file: PathBuf,
    /// The error.
    pub(super) message: String,
}

/// A kustomization whose listed files are read as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// The kustomization.
    pub(super) file: PathBuf,
    /// Manifests below its folder that it does not list.
    pub(super) unlisted: Vec<PathBuf>,
    /// Files that it lists, itself or through other kustomizations.
    pub(super) files: BTreeSet<PathBuf>,
}

/// The files that define the objects of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Files to read, sorted.
    pub(super) files: BTreeSet<PathBuf>,
    /// Kustomizations that define a part of them.
    pub(super) followed: Vec<Followed>,
    /// Folders that have to be rendered.
    pub(super) unrendered: Vec<Unrendered>,
}

impl Layout {
    /// Returns the documents of a file to read, if any: only the policy if no kustomization lists it.
    pub(super) fn reads(&self, path: &Path) -> Option<Reading> {
        if self.files.contains(path) {
            return Some(Reading::Objects);
        }
        if self.followed.iter().any(|followed| followed.unlisted.iter().any(|unlisted| unlisted == path)) {
            return Some(Reading::Policy);
        }
        let is_kustomization = |it: &&Unrendered| it.renderer == Renderer::Kustomize;
        let mut folders = self.unrendered.iter().filter(is_kustomization).map(Unrendered::folder);
        let is_below = is_manifest(path) && folders.any(|folder| path.starts_with(folder));
        is_below.then_some(Reading::Configs)
    }
}

/// The documents of a file that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Everything.
    Objects,
    /// Config documents, and ConfigMaps that carry one.
    Policy,
    /// Config documents, which a kustomization cannot list. What it lists, its program prints.
    Configs,
}

/// Selects among the files of a folder; `read` returns the document of a kustomization.
///
/// # Errors
/// A kustomization in it is invalid.
pub(super) fn select(
    paths: &BTreeSet<PathBuf>,
    read: &dyn Fn(&Path) -> Result<Value, String>,
) -> Result<Layout, LayoutError> {
    let kustomizations: BTreeMap<&Path, &Path> = paths
        .iter()
        .rev()
        .filter(|path| kustomization::is_kustomization(path))
        .filter_map(|path| Some((path.parent()?, path.as_path())))
        .collect();
    let walk = Walk { paths, kustomizations, read };
    let mut layout = Layout::default();
    walk.folder(Path::new(""), &mut layout)?;
    Ok(layout)
}

struct Walk<'a> {
    paths: &'a BTreeSet<PathBuf>,
    /// Folder → kustomization.
    kustomizations: BTreeMap<&'a Path, &'a Path>,
    read: &'a dyn Fn(&Path) -> Result<Value, String>,
}

impl Walk<'_> {
    /// Adds what a folder holds. A kustomization governs everything below it.
    fn folder(&self, folder: &Path, layout: &mut Layout) -> Result<(), LayoutError> {
        if let Some(file) = self.kustomizations.get(folder) {
            return self.governed(folder, file, layout);
        }
        let chart = folder.join(CHART);
        if self.paths.contains(&chart) {
            let reason = "its templates are not Kubernetes objects".to_owned();
            layout.unrendered.push(Unrendered { file: chart, renderer: Renderer::Helm, reason });
            return Ok(());
        }
        let mut folders = BTreeSet::new();
        for path in self.paths.iter().filter_map(|path| path.strip_prefix(folder).ok()) {
            let mut parts = path.components();
            match (parts.next(), parts.next()) {
                (Some(child), Some(_)) => drop(folders.insert(folder.join(child))),
                (Some(_), None) if is_manifest(path) => drop(layout.files.insert(folder.join(path))),
                _ => {}
            }
        }
        folders.iter().try_for_each(|folder| self.folder(folder, layout))
    }

    fn governed(&self, folder: &Path, file: &Path, layout: &mut Layout) -> Result<(), LayoutError> {
        let mut followed = Followed { file: file.to_owned(), ..Followed::default() };
        let mut mentioned = BTreeSet::new();
        if let Some(reason) = self.follow(folder, file, &mut followed, &mut mentioned, &mut Vec::new())? {
            let renderer = Renderer::Kustomize;
            layout.unrendered.push(Unrendered { file: file.to_owned(), renderer, reason });
            return Ok(());
        }
        let is_unlisted = |path: &&PathBuf| {
            path.starts_with(folder)
                && is_manifest(path)
                && !kustomization::is_kustomization(path)
                && !followed.files.contains(*path)
                && !mentioned.contains(*path)
        };
        followed.unlisted = self.paths.iter().filter(is_unlisted).cloned().collect();
        layout.files.extend(followed.files.iter().cloned());
        layout.followed.push(followed);
        Ok(())
    }

    /// Follows the entries of a kustomization, and returns the reason if it has to be rendered. `mentioned` collects
    /// configurations.
    fn follow(
        &self,
        folder: &Path,
        file: &Path,
        followed: &mut Followed,
        mentioned: &mut BTreeSet<PathBuf>,
        above: &mut Vec<PathBuf>,
    ) -> Result<Option<String>, LayoutError> {
        let invalid = |message: String| LayoutError { file: file.to_owned(), message };
        if above.iter().any(|known| known == folder) {
            return Err(invalid("it includes itself".to_owned()));
        }
        let parsed = Kustomization::parse(&(self.read)(file).map_err(invalid)?);
        if let Some(field) = parsed.unsupported {
            return Ok(Some(format!("it has the field `{field}`")));
        }
        mentioned.extend(parsed.configurations.iter().filter_map(|entry| below(folder, entry)));
        above.push(folder.to_owned());
        for entry in &parsed.resources {
            let Some(path) = below(folder, entry) else {
                return Ok(Some(format!("it lists {entry}, which is not below its folder")));
            };
            if self.paths.contains(&path) {
                followed.files.insert(path);
            } else if let Some(inner) = self.kustomizations.get(path.as_path()) {
                if let Some(reason) = self.follow(&path, inner, followed, mentioned, above)? {
                    return Ok(Some(reason));
                }
            } else if is_remote(entry) {
                return Ok(Some(format!("it lists {entry}, which is remote")));
            } else if self.paths.iter().any(|known| known.starts_with(&path)) {
                return Err(invalid(format!("it lists the folder {entry}, which has no kustomization")));
            } else {
                return Err(invalid(format!("it lists {entry}, which does not exist")));
            }
        }
        above.pop();
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn select_among(files: &[(&str, Value)]) -> Result<Layout, LayoutError> {
        let paths = files.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let read = |wanted: &Path| {
            let file = files.iter().find(|(path, _)| Path::new(path) == wanted);
            file.map(|(_, value)| value.clone()).ok_or_else(|| "not there".to_owned())
        };
        select(&paths, &read)
    }

    fn listing(resources: &[&str]) -> Value {
        json!({"resources": resources})
    }

    fn names(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<String> {
        paths.into_iter().map(|path| path.as_ref().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_kustomization_that_lists_files_defines_the_set() {
        let layout = select_among(&[
            ("kustomization.yaml", json!({"resources": ["bases/a.yaml", "common"], "sortOptions": {"order": "fifo"}})),
            ("bases/a.yaml", Value::Null),
            ("bases/b.yaml", Value::Null),
            ("common/kustomization.yml", json!({"resources": ["c.txt"], "configurations": ["k.yaml"]})),
            ("common/c.txt", Value::Null),
            ("common/k.yaml", Value::Null),
            ("patches/p.yaml", Value::Null),
        ])
        .unwrap();
        assert_eq!(names(&layout.files), ["bases/a.yaml", "common/c.txt"]);
        let [followed] = &layout.followed[..] else { panic!("{layout:?}") };
        assert_eq!(names(&followed.unlisted), ["bases/b.yaml", "patches/p.yaml"]);
    }

    #[test]
    fn without_a_kustomization_all_manifests_are_read_and_inner_sets_are_followed() {
        let layout = select_among(&[
            ("a.yaml", Value::Null),
            ("full/kustomization.yaml", listing(&["c.yaml"])),
            ("full/c.yaml", Value::Null),
            ("full/patch.yaml", Value::Null),
            ("minimal/c.yaml", Value::Null),
        ])
        .unwrap();
        assert_eq!(names(&layout.files), ["a.yaml", "full/c.yaml", "minimal/c.yaml"]);
    }

    #[test]
    fn charts_and_overlays_have_to_be_rendered() {
        for (files, renderer, folder) in [
            (vec![("Chart.yaml", Value::Null), ("crds/a.yaml", Value::Null)], Renderer::Helm, ""),
            (vec![("x/Chart.yaml", Value::Null)], Renderer::Helm, "x"),
            (vec![("kustomization.yaml", listing(&["../crd"]))], Renderer::Kustomize, ""),
            (
                vec![("default/Kustomization", listing(&["../crd"])), ("a.yaml", Value::Null)],
                Renderer::Kustomize,
                "default",
            ),
            (vec![("kustomization.yaml", listing(&["https://example.com/a.yaml"]))], Renderer::Kustomize, ""),
            (vec![("kustomization.yaml", listing(&["github.com/owner/name"]))], Renderer::Kustomize, ""),
            (
                vec![("kustomization.yaml", listing(&["in"])), ("in/kustomization.yaml", json!({"namespace": "x"}))],
                Renderer::Kustomize,
                "",
            ),
            (vec![("kustomization.yaml", json!({"patches": [{"path": "p.yaml"}]}))], Renderer::Kustomize, ""),
            (vec![("kustomization.yaml", json!({"labels": [{"pairs": {"a": "b"}}]}))], Renderer::Kustomize, ""),
        ] {
            match select_among(&files) {
                Ok(Layout { unrendered, .. }) if !unrendered.is_empty() => {
                    assert_eq!(
                        (unrendered[0].renderer, unrendered[0].folder()),
                        (renderer, Path::new(folder)),
                        "{files:?}"
                    );
                }
                other => panic!("{files:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_missing_entry_and_a_circle_are_invalid() {
        for files in [
            vec![("kustomization.yaml", listing(&["a.yaml"]))],
            vec![("kustomization.yaml", listing(&["bases"])), ("bases/a.yaml", Value::Null)],
            vec![
                ("kustomization.yaml", listing(&["in"])),
                ("in/kustomization.yaml", listing(&["more"])),
                ("in/more/kustomization.yaml", listing(&["gone.yaml"])),
            ],
        ] {
            assert!(select_among(&files).is_err(), "{files:?}");
        }
    }

    #[test]
    fn a_chart_that_a_kustomization_does_not_list_is_left_out() {
        let layout = select_among(&[
            ("kustomization.yaml", listing(&["a.yaml"])),
            ("a.yaml", Value::Null),
            ("chart/Chart.yaml", Value::Null),
        ])
        .unwrap();
        assert_eq!(names(&layout.files), ["a.yaml"]);
    }
}
