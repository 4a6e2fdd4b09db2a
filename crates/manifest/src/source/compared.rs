//! Finds the files of a side of a comparison: both sides follow the same rules, on this machine and in a git ref.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pushback_crd::definition::listed;
use pushback_objects::Position;
use pushback_objects::invocation::quoted;
use serde_json::Value;

use super::{FoundSources, NO_SUCH_FILE, OCI, rendering};
use crate::files::{check_size, is_manifest, shown};
use crate::git::{GitFile, GitTree};
use crate::input::{InputError, InputWarning, error_in};
use crate::layout::{self, Followed, Layout, LayoutError, Reading, Renderer, Unrendered, kustomization};
use crate::options::{ComparedSide, LoadOptions, SideRole};
use crate::{similar, yaml};

/// Files named one by one in a message.
const NAMED: usize = 5;

/// The place of a folder, for messages: its name, and how it is rendered.
struct Place<'a> {
    /// Ref and path in it, for a git ref; name and no path for an artifact.
    git: Option<(&'a str, &'a str)>,
    /// Displayed name of a file in it.
    shown: &'a dyn Fn(&Path) -> String,
    /// The folder on this machine.
    folder: &'a Path,
    side: ComparedSide,
}

/// Returns whether a folder has a kustomization or is a chart.
pub(super) fn defines_its_files(folder: &Path) -> bool {
    kustomization::NAMES.into_iter().chain([layout::CHART]).any(|name| folder.join(name).is_file())
}

/// Selects the files of a directory of this machine; `None` after an error.
pub(super) fn select_in_folder(
    root: &Path,
    files: Vec<PathBuf>,
    side: ComparedSide,
    options: &LoadOptions,
    found: &mut FoundSources,
) -> Option<Vec<(PathBuf, Reading)>> {
    let relative = |path: &Path| path.strip_prefix(root).map_or_else(|_| path.to_owned(), Path::to_owned);
    let paths: BTreeSet<PathBuf> = files.iter().map(|path| relative(path)).collect();
    let read = |path: &Path| {
        let place = root.join(path);
        let bytes = fs::metadata(&place).map_err(|error| error.to_string()).and_then(|metadata| {
            check_size(&shown(&place), metadata.len())?;
            fs::read(&place).map_err(|error| error.to_string())
        });
        document(&shown(&place), &bytes?)
    };
    let shown = |path: &Path| shown(&root.join(path));
    let place = Place { git: None, shown: &shown, folder: root, side };
    let layout = place.select(&paths, &read, options, found)?;
    Some(files.into_iter().filter_map(|path| layout.reads(&relative(&path)).map(|reading| (path, reading))).collect())
}

/// Selects the files of a folder of a git ref; `None` after an error.
pub(super) fn select_in_git(
    tree: &GitTree,
    of_ref: (&str, &str),
    side: ComparedSide,
    options: &LoadOptions,
    found: &mut FoundSources,
) -> Option<Vec<(GitFile, Reading)>> {
    let shown = |path: &Path| format!("git:{}", tree.shown(path));
    let files = match tree.files() {
        Ok(files) => files,
        Err(error) => {
            found.errors.push(error_in(&shown(Path::new("")), error.0, &[]));
            return None;
        }
    };
    let known: BTreeMap<&Path, &GitFile> = files.iter().map(|file| (file.path.as_path(), file)).collect();
    let paths: BTreeSet<PathBuf> = known.keys().map(|path| path.to_path_buf()).collect();
    let read = |path: &Path| {
        let file = known.get(path).map(|file| (*file).clone()).into_iter().collect();
        let mut read = tree.read(file).map_err(|error| error.0)?;
        document(&shown(path), &read.pop().map(|file| file.bytes).unwrap_or_default())
    };
    let place = Place { git: Some(of_ref), shown: &shown, folder: Path::new(of_ref.1), side };
    let layout = place.select(&paths, &read, options, found)?;
    Some(files.into_iter().filter_map(|file| layout.reads(&file.path).map(|reading| (file, reading))).collect())
}

/// Selects the files of an artifact; `None` after an error.
pub(super) fn select_in_artifact(
    name: &str,
    files: &BTreeMap<&Path, &[u8]>,
    side: ComparedSide,
    options: &LoadOptions,
    found: &mut FoundSources,
) -> Option<Vec<(PathBuf, Reading)>> {
    let shown = |path: &Path| format!("{name}/{}", shown(path));
    let paths: BTreeSet<PathBuf> = files.keys().map(|path| path.to_path_buf()).collect();
    let read = |path: &Path| document(&shown(path), files.get(path).copied().unwrap_or_default());
    let place = Place { git: Some((name, "")), shown: &shown, folder: Path::new(""), side };
    let layout = place.select(&paths, &read, options, found)?;
    Some(paths.into_iter().filter_map(|path| layout.reads(&path).map(|reading| (path, reading))).collect())
}

/// The document of a kustomization.
fn document(name: &str, bytes: &[u8]) -> Result<Value, String> {
    let loaded = yaml::load(name, bytes, &yaml::Limits::default())
        .map_err(|error| format!("line {}: {}", error.position.line, error.message))?;
    let mut documents = loaded.documents.into_iter().map(|document| document.value).filter(|value| !value.is_null());
    let first = documents.next().unwrap_or_default();
    match documents.next() {
        None if first.is_object() || first.is_null() => Ok(first),
        None => Err("expected a map".to_owned()),
        Some(_) => Err("expected one document, found several".to_owned()),
    }
}

impl Place<'_> {
    /// Selects, has folders rendered, and reports what is left out.
    fn select(
        &self,
        paths: &BTreeSet<PathBuf>,
        read: &dyn Fn(&Path) -> Result<Value, String>,
        options: &LoadOptions,
        found: &mut FoundSources,
    ) -> Option<Layout> {
        found.files_in_folders += paths.len();
        found.manifests_in_folders += paths.iter().filter(|path| is_manifest(path)).count();
        let layout = match layout::select(paths, read) {
            Ok(layout) => layout,
            Err(LayoutError { file, message }) => {
                let hint = "Correct it: it defines which files belong to the set.";
                found.errors.push(error_in(&(self.shown)(&file), message, &[hint]));
                return None;
            }
        };
        found.warnings.extend(layout.followed.iter().filter_map(|followed| self.left_out(followed)));
        for unrendered in &layout.unrendered {
            let Some(render) = &options.render else {
                found.must_be_rendered = true;
                found.errors.push(self.unrendered(unrendered));
                return None;
            };
            let folder = match unrendered.folder() {
                below if below.as_os_str().is_empty() => self.folder.to_owned(),
                below => self.folder.join(below),
            };
            match rendering::render(
                unrendered.renderer,
                &folder,
                self.git.map(|(reference, _)| reference),
                render,
                found,
            ) {
                Ok(rendered) => found.add_rendered(rendered, true),
                Err(error) => {
                    let by_hand = error.lacks_program.then(|| self.unrendered(unrendered).hints);
                    let mut error = rendering::error_of(&(self.shown)(&unrendered.file), error);
                    error.hints.extend(by_hand.into_iter().flatten());
                    found.errors.push(error);
                    return None;
                }
            }
        }
        Some(layout)
    }

    /// The warning about files that a kustomization does not list.
    fn left_out(&self, followed: &Followed) -> Option<InputWarning> {
        let files: Vec<String> = followed.unlisted.iter().map(|path| shown(path)).collect();
        (!files.is_empty()).then(|| InputWarning {
            code: "kustomization",
            message: format!("files that it does not list are left out: {}", listed(&files, NAMED)),
            position: Position { file: (self.shown)(&followed.file), line: 0, column: 0 },
        })
    }

    /// The error for a folder that has to be rendered, with the commands that render it.
    fn unrendered(&self, unrendered: &Unrendered) -> InputError {
        let below = self.folder.join(unrendered.folder());
        let (role, option) = (self.side.role, self.side.option);
        let rendered = if role == SideRole::New { "new.yaml" } else { "base.yaml" };
        let name = match unrendered.renderer {
            Renderer::Kustomize => "a kustomization",
            Renderer::Helm => "a Helm chart",
        };
        let render = |folder: &str| match unrendered.renderer {
            Renderer::Kustomize => format!("kubectl kustomize {folder} > {rendered}"),
            Renderer::Helm => format!("helm template --include-crds release {folder} > {rendered}"),
        };
        let command = match self.git {
            None => render(&quoted(&folder_name(&below))),
            Some((reference, _)) if reference.starts_with(OCI) => {
                let folder = format!("artifact/{}", quoted(&folder_name(&below)));
                format!("oras pull -o artifact {} && {}", quoted(&reference[OCI.len()..]), render(&folder))
            }
            Some((reference, _)) => {
                let folder = format!("\"$base\"/{}", quoted(&folder_name(&below)));
                let checkout =
                    format!("base=$(mktemp -d) && git worktree add --detach \"$base\" {}", quoted(reference));
                format!("{checkout} && {}", render(&folder))
            }
        };
        let message = format!("{name} that must be rendered before it is compared: {}", unrendered.reason);
        let hint = format!("Render it: `{command}`; then name the result: `{option}{rendered}`.");
        let both = "Render both sides in the same way.";
        error_in(&(self.shown)(&unrendered.file), message, &[&hint, both])
    }
}

/// A folder as an argument of a program.
fn folder_name(path: &Path) -> String {
    let text: Vec<String> = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let text = text.join("/").replace("//", "/");
    if text.is_empty() { ".".to_owned() } else { text.trim_start_matches("./").to_owned() }
}

/// A path that a git ref does not contain.
pub(super) fn missing_in_git(
    input: &str,
    (reference, path): (&str, &str),
    compared: Option<ComparedSide>,
    found: &mut FoundSources,
) {
    let similar: Vec<String> =
        similar::in_git(reference, path).into_iter().map(|path| format!("git:{reference}:{path}")).collect();
    missing(input, format!("{reference} does not contain the path {path}"), &similar, compared, found);
}

/// An artifact that its registry does not have.
pub(super) fn missing_artifact(input: &str, message: String, compared: Option<ComparedSide>, found: &mut FoundSources) {
    missing(input, message, &[], compared, found);
}

/// A path that does not exist on this machine.
pub(super) fn missing_path(input: &str, compared: Option<ComparedSide>, found: &mut FoundSources) {
    match compared {
        Some(_) => {
            missing(input, NO_SUCH_FILE.to_owned(), &similar::in_folder(Path::new(input)), compared, found);
        }
        None => found.errors.push(error_in(
            input,
            NO_SUCH_FILE,
            &["Check the path; it is relative to the working directory."],
        )),
    }
}

fn missing(input: &str, message: String, similar: &[String], compared: Option<ComparedSide>, found: &mut FoundSources) {
    let role = compared.map(|side| side.role);
    if role == Some(SideRole::Base { may_be_missing: true }) {
        return found.missing.push(input.to_owned());
    }
    let mut hints = Vec::new();
    hints.push(match similar {
        [] if input.starts_with(OCI) => "Check the repository and the tag.".to_owned(),
        [] if input.starts_with("git:") => "Check the path; it is relative to the root of the repository.".to_owned(),
        [] => "Check the path; it is relative to the working directory.".to_owned(),
        similar => format!("Similar paths: {}.", similar.join(", ")),
    });
    if matches!(role, Some(SideRole::Base { .. })) {
        hints.push("For a first release, which has no base, add --new-base.".to_owned());
    }
    let hints: Vec<&str> = hints.iter().map(String::as_str).collect();
    found.errors.push(error_in(input, message, &hints));
}
