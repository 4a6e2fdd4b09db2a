//! Paths that may be meant instead of one that does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pushback_objects::suggest::nearest;

use super::files::{is_manifest, shown};
use super::git::{GitFile, GitTree};

/// Most paths that are suggested.
const SHOWN: usize = 3;

/// Most entries of folders that are looked at, and how deep.
const MAX_ENTRIES: usize = 2000;
const MAX_DEPTH: usize = 4;

/// The known paths most similar to `wanted`, the most similar one first.
fn most_similar(wanted: &str, mut known: BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    while found.len() < SHOWN {
        let same_name = known.iter().find(|path| name(path) == name(wanted)).cloned();
        let next = nearest(wanted, known.iter().map(String::as_str)).map(str::to_owned).or(same_name);
        let Some(next) = next else { break };
        known.remove(&next);
        found.push(next);
    }
    found
}

/// Folders, and files if a file is wanted, that a ref has and that are similar to a path.
pub(super) fn in_git(reference: &str, path: &str) -> Vec<String> {
    let files = GitTree::open(Path::new("."), reference, "").and_then(|tree| tree.files()).unwrap_or_default();
    most_similar(path.trim_matches('/'), known_paths(&files, is_manifest(Path::new(path))))
}

fn known_paths(files: &[GitFile], with_files: bool) -> BTreeSet<String> {
    let manifests = || files.iter().map(|file| file.path.as_path()).filter(|path| is_manifest(path));
    let folders = manifests().flat_map(|path| path.ancestors().skip(1)).filter(|path| !path.as_os_str().is_empty());
    let wanted = manifests().filter(|_| with_files);
    folders.chain(wanted).map(shown).collect()
}

/// Folders and files near a path of this machine that are similar to it.
pub(super) fn in_folder(path: &Path) -> Vec<String> {
    let Some(above) = path.ancestors().skip(1).find(|above| above.as_os_str().is_empty() || above.is_dir()) else {
        return Vec::new();
    };
    let mut known = BTreeSet::new();
    let mut open: Vec<(PathBuf, usize)> = vec![(above.to_owned(), 0)];
    let mut entries = 0;
    while let Some((folder, depth)) = open.pop() {
        let real = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        for entry in fs::read_dir(real).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES {
                return most_similar(&shown(path), known);
            }
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let below = folder.join(&name);
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                known.insert(shown(&below));
                if depth < MAX_DEPTH {
                    open.push((below, depth + 1));
                }
            } else if is_manifest(path) && is_manifest(&below) {
                known.insert(shown(&below));
            }
        }
    }
    most_similar(&shown(path), known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_paths_are_suggested() {
        let known = ["config/crd", "config/rbac", "deploy/crds", "docs"].map(str::to_owned);
        let similar = |wanted: &str| most_similar(wanted, known.iter().cloned().collect());
        assert_eq!(similar("config/crds").first().map(String::as_str), Some("config/crd"));
        assert_eq!(similar("charts/x/crds"), ["deploy/crds"]);
        assert!(similar("zzz").is_empty());
    }

    #[test]
    fn folders_beside_a_misspelt_one_are_suggested() {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["live/crd", "other"] {
            fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        let similar = in_folder(&directory.path().join("live/crds"));
        assert_eq!(similar, [shown(&directory.path().join("live/crd"))]);
    }
}
