//! A suite of experiments as a folder of YAML files: written completely or not at all, never over files of others or
//! over experiments that somebody has edited.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use pushback_manifest::yaml::{self, Limits};
use pushback_objects::ObjectExt;
use pushback_preflight::experiment::suite::{self, MANIFEST_FILE, Suite};
use pushback_system::path_safety::check_folder;
use serde_json::Value;

/// Most files examined before a folder counts as somebody else's.
const MOST_FILES: usize = 10_000;
/// Largest size in bytes of a file in a suite.
const LARGEST_FILE: u64 = 4 << 20;
/// Most names tried for the temporary folder.
const TEMPORARY_NAMES: u32 = 16;

/// Why a suite was not written.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The path holds something else.
    #[error("{path} {what}", path = path.display())]
    Occupied {
        /// Path of the file or folder.
        path: PathBuf,
        /// What it holds.
        what: &'static str,
    },
    /// The file system's error.
    #[error("cannot write {path}: {reason}", path = path.display(), reason = pushback_system::environment::reason(source))]
    Write {
        /// Path of the file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The files of a suite as paths and text, in manifest order.
#[must_use]
pub fn texts(suite: &Suite) -> Vec<(String, String)> {
    suite.files().into_iter().map(|(file, value)| (file, text(&value))).collect()
}

/// YAML without folded lines.
fn text(value: &Value) -> String {
    let options = serde_yaml::ser_options! { folded_wrap_chars: 1_000_000_000 };
    serde_yaml::to_string_with_options(value, options).unwrap_or_else(|_| format!("{value:#}\n"))
}

/// Inputs with each suite folder replaced by its manifest and the experiments listed in it, in order: exports next to
/// them are for other tools.
#[must_use]
pub fn expanded(inputs: &[String]) -> Vec<String> {
    let files = |input: &String| -> Option<Vec<String>> {
        let folder = Path::new(input);
        let manifest = folder.join(MANIFEST_FILE);
        let document = read(&manifest).filter(is_manifest)?;
        let listed = document.get("experiments").and_then(Value::as_array).into_iter().flatten();
        let names = listed.map(|entry| Path::new(entry.text("/file")));
        // Only files directly next to the manifest or below it.
        let plain = names.filter(|name| name.components().all(|part| matches!(part, Component::Normal(_))));
        let experiments = plain.map(|name| folder.join(name));
        Some(
            [manifest.clone()].into_iter().chain(experiments).map(|path| path.to_string_lossy().into_owned()).collect(),
        )
    };
    inputs.iter().flat_map(|input| files(input).unwrap_or_else(|| vec![input.clone()])).collect()
}

/// Writes a suite to a folder. An earlier suite there is replaced, if nobody has edited its experiments.
///
/// # Errors
/// The folder holds something else, or cannot be written. Previous contents are kept.
pub fn write(folder: &Path, suite: &Suite) -> Result<(), SuiteError> {
    let failed = |path: &Path, source: io::Error| SuiteError::Write { path: path.to_owned(), source };
    check_folder(folder).map_err(|error| failed(folder, error))?;
    let folder = match fs::canonicalize(folder) {
        Ok(real) => {
            may_be_replaced(&real, folder)?;
            real
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            absolute(folder).map_err(|error| failed(folder, error))?
        }
        Err(error) => return Err(failed(folder, error)),
    };
    let parent = folder.parent().ok_or_else(|| failed(&folder, io::ErrorKind::InvalidInput.into()))?;
    fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
    let new = beside(&folder, "new").map_err(|error| failed(&folder, error))?;
    let written = fill(&new, suite).and_then(|()| exchange(&new, &folder));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&new);
    }
    written.map_err(|error| failed(&folder, error))
}

/// An absolute path of a folder that need not exist yet, usable by a rename.
fn absolute(folder: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(folder)?;
    match path.components().next_back() {
        Some(Component::Normal(_)) => Ok(path),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn fill(folder: &Path, suite: &Suite) -> io::Result<()> {
    for (file, text) in texts(suite) {
        let path = folder.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = File::create_new(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    Ok(())
}

/// Replaces the old folder by the new one. If the second step fails, the first is undone.
fn exchange(new: &Path, folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return fs::rename(new, folder);
    }
    let old = beside(folder, "old")?;
    fs::remove_dir(&old)?;
    fs::rename(folder, &old)?;
    if let Err(error) = fs::rename(new, folder) {
        fs::rename(&old, folder)?;
        return Err(error);
    }
    fs::remove_dir_all(&old)
}

/// Creates a folder next to another one, since a rename within one file system is atomic.
fn beside(folder: &Path, what: &str) -> io::Result<PathBuf> {
    let name = folder.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..TEMPORARY_NAMES {
        let path = folder.with_file_name(format!(".{name}.{what}-{}-{attempt}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Checks that a folder contains only files of an earlier suite, unedited.
fn may_be_replaced(folder: &Path, shown: &Path) -> Result<(), SuiteError> {
    let occupied = |file: &str, what| SuiteError::Occupied { path: shown.join(file), what };
    if !folder.is_dir() {
        return Err(SuiteError::Occupied { path: shown.to_owned(), what: "is a file; a suite is a folder" });
    }
    let mut files = BTreeSet::new();
    list(folder, folder, &mut files).map_err(|source| SuiteError::Write { path: shown.to_owned(), source })?;
    if files.is_empty() {
        return Ok(());
    }
    let Some(listed) = read(&folder.join(MANIFEST_FILE)).and_then(|manifest| listed(&manifest)) else {
        let first = files.first().map(String::as_str).unwrap_or_default();
        return Err(occupied(first, "is in the way: the folder holds other files than a suite"));
    };
    for file in &files {
        let Some(digest) = listed.get(file) else {
            return Err(occupied(file, "is no file of the suite in this folder"));
        };
        let is_edited = digest
            .as_ref()
            .is_some_and(|digest| read(&folder.join(file)).is_none_or(|document| suite::digest(&document) != *digest));
        if is_edited {
            return Err(occupied(file, "was edited since it was generated"));
        }
    }
    Ok(())
}

/// Lists all files below a folder, with `/` between names. Other entries count as files.
fn list(root: &Path, folder: &Path, files: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if files.len() >= MOST_FILES {
            break;
        }
        let path = entry.path();
        // Only the folders that an export makes; links are not followed.
        if entry.file_type()?.is_dir() && folder == root {
            list(root, &path, files)?;
        } else {
            let relative = path.strip_prefix(root).unwrap_or(&path).components();
            let names: Vec<_> = relative.map(|part| part.as_os_str().to_string_lossy()).collect();
            files.insert(names.join("/"));
        }
    }
    Ok(())
}

/// The only document of a file; `None` if it cannot be read as such.
fn read(path: &Path) -> Option<Value> {
    if fs::metadata(path).ok()?.len() > LARGEST_FILE {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let mut loaded = yaml::load(&path.to_string_lossy(), &bytes, &Limits::default()).ok()?;
    let document = loaded.documents.pop()?;
    loaded.documents.is_empty().then_some(document.value)
}

fn is_manifest(document: &Value) -> bool {
    (document.text("/apiVersion"), document.text("/kind")) == (suite::API_VERSION, suite::KIND)
}

/// Files listed in a manifest, with the digests of experiments; `None` if it is not a suite's manifest.
fn listed(manifest: &Value) -> Option<BTreeMap<String, Option<String>>> {
    if !is_manifest(manifest) {
        return None;
    }
    let entries = |key: &str| manifest.get(key).and_then(Value::as_array).into_iter().flatten();
    let experiments =
        entries("experiments").map(|entry| (entry.text("/file").to_owned(), Some(entry.text("/digest").to_owned())));
    let exported = entries("exports").flat_map(|export| export.get("files").and_then(Value::as_array)).flatten();
    let exported = exported.filter_map(Value::as_str).map(|file| (file.to_owned(), None));
    Some(experiments.chain(exported).chain([(MANIFEST_FILE.to_owned(), None)]).collect())
}

#[cfg(test)]
mod tests {
    use pushback_preflight::experiment::suite::SuiteExperiment;

    use super::*;

    fn suite(name: &str) -> Suite {
        let mut entry = SuiteExperiment { file: format!("{name}.yaml"), ..SuiteExperiment::default() };
        entry.experiment.name = name.to_owned();
        Suite { experiments: vec![entry], ..Suite::default() }
    }

    fn files(folder: &Path) -> Vec<String> {
        let mut files = BTreeSet::new();
        list(folder, folder, &mut files).unwrap();
        files.into_iter().collect()
    }

    #[test]
    fn an_earlier_suite_is_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/suite");
        write(&folder, &suite("one")).unwrap();
        assert_eq!(files(&folder), ["one.yaml", "suite-manifest.yaml"]);
        write(&folder, &suite("two")).unwrap();
        assert_eq!(files(&folder), ["suite-manifest.yaml", "two.yaml"]);
        assert_eq!(fs::read_dir(root.path().join("deep")).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_suite_stands_for_its_experiments() {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join("suite"), &suite("one")).unwrap();
        let inputs = ["suite", "other"].map(|name| root.path().join(name).to_string_lossy().into_owned());
        let names: Vec<String> =
            expanded(&inputs).iter().map(|path| path.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(names, ["suite-manifest.yaml", "one.yaml", "other"]);
    }

    #[test]
    fn an_empty_folder_is_filled() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &suite("one")).unwrap();
        assert_eq!(files(root.path()).len(), 2);
    }

    #[test]
    fn other_files_are_never_replaced() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("suite");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mine.txt"), "mine").unwrap();
        let refused = |folder: &Path| write(folder, &suite("one")).unwrap_err().to_string();
        assert!(refused(&folder).ends_with("mine.txt is in the way: the folder holds other files than a suite"));
        assert!(refused(&folder.join("mine.txt")).ends_with("mine.txt is a file; a suite is a folder"));
        fs::remove_file(folder.join("mine.txt")).unwrap();
        write(&folder, &suite("one")).unwrap();
        fs::write(folder.join("notes.md"), "mine").unwrap();
        assert!(refused(&folder).ends_with("notes.md is no file of the suite in this folder"));
        assert_eq!(files(&folder), ["notes.md", "one.yaml", "suite-manifest.yaml"]);
    }

    #[test]
    fn what_somebody_filled_in_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("suite");
        write(&folder, &suite("one")).unwrap();
        let path = folder.join("one.yaml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("# a comment changes nothing\n{text}")).unwrap();
        write(&folder, &suite("one")).unwrap();
        fs::write(&path, text.replace("name: one", "name: other")).unwrap();
        let error = write(&folder, &suite("two")).unwrap_err().to_string();
        assert!(error.ends_with("one.yaml was edited since it was generated"), "{error}");
        assert!(fs::read_to_string(&path).unwrap().contains("name: other"));
    }
}
