//! Finds, in a git ref, objects that the ref has under another path than the one that is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pushback_crd::definition::listed;
use pushback_objects::{ObjectKey, Position};

use super::collect::{self, LoadError};
use super::files::{is_manifest, shown};
use super::git::{GitError, GitTree};
use super::input::{Input, InputWarning, Manifest};
use super::options::{ComparedSide, LoadOptions};

/// Folders named one by one in a message.
const NAMED: usize = 5;

/// Objects of a base that were found under another path.
#[derive(Debug, Default)]
pub struct MovedBase {
    /// The objects, each identity once.
    pub manifests: Vec<Manifest>,
    /// Further CRDs of the same names, from other files.
    pub variants: Vec<Manifest>,
    /// Config documents of the folder that the objects have moved from.
    pub configs: Vec<Manifest>,
    /// Warnings that name the files that were found.
    pub warnings: Vec<InputWarning>,
}

/// Finds the objects of `manifests` in a ref that does not contain `path`. If all of the folder that held them is gone
/// from the working tree, the rest of that folder is part of the base too: it was deleted.
///
/// # Errors
/// Git cannot be read.
pub fn find(
    (reference, path): (&str, &str),
    manifests: &[&Manifest],
    side: ComparedSide,
) -> Result<MovedBase, GitError> {
    let tree = GitTree::open(Path::new("."), reference, "")?;
    let names: BTreeSet<String> = manifests.iter().map(|manifest| manifest.object.name.clone()).collect();
    let keys: BTreeSet<ObjectKey> = manifests.iter().map(|manifest| key_of(manifest)).collect();
    let files = tree.files_with(&names.into_iter().collect::<Vec<_>>())?;
    let files = files.into_iter().filter(|file| is_manifest(&file.path)).collect();
    let gone = GoneFiles { top: tree.top_level() };
    let mut candidates: BTreeMap<ObjectKey, Vec<Candidate>> = BTreeMap::new();
    for file in tree.read(files)? {
        let name = format!("git:{}", tree.shown(&file.path));
        // A file that cannot be read, such as a chart's template, holds no object.
        let Ok(read) = collect::load_text(&name, file.bytes, side) else { continue };
        for manifest in read.manifests {
            let key = key_of(&manifest);
            if keys.contains(&key) {
                candidates.entry(key).or_default().push((file.path.clone(), manifest));
            }
        }
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    for manifest in manifests {
        let like = PathBuf::from(manifest.positions.file());
        let Some(known) = candidates.get_mut(&key_of(manifest)) else { continue };
        let best = |(_, (file, _)): &(usize, &Candidate)| (gone.is_gone(file), similarity(file, path, &like));
        // A further variant of a CRD takes another file, if there is one.
        if let Some((index, _)) = known.iter().enumerate().max_by_key(best) {
            let (file, manifest) = known.remove(index);
            chosen.push(Chosen { file, manifest, like });
        }
    }
    let mut found = MovedBase::default();
    if chosen.is_empty() {
        return Ok(found);
    }
    let folders: BTreeSet<&Path> =
        chosen.iter().map(|Chosen { file, .. }| file.parent().unwrap_or(Path::new(""))).collect();
    let folders: Vec<String> = folders.iter().map(|folder| format!("git:{}", tree.shown(folder))).collect();
    let count = chosen.len();
    let subject = if count == 1 {
        "1 object is compared as moved: it is".to_owned()
    } else {
        format!("{count} objects are compared as moved: they are")
    };
    found.warnings.push(InputWarning {
        code: "moved",
        message: format!("{subject} under {}", listed(&folders, NAMED)),
        position: Position { file: format!("git:{reference}:{path}"), line: 0, column: 0 },
    });
    let mut rest = Vec::new();
    if let Some(root) = root_of(&chosen) {
        match rest_of(reference, &root, &gone, side) {
            Ok((objects, configs)) => (rest, found.configs) = (objects, configs),
            Err(error) => found.warnings.push(InputWarning {
                code: "moved",
                message: format!("the rest of the folder is not compared: {}", first_error(&error)),
                position: Position { file: format!("git:{reference}:{}", shown(&root)), line: 0, column: 0 },
            }),
        }
    }
    let mut known = BTreeSet::new();
    let mut places = BTreeSet::new();
    for manifest in chosen.into_iter().map(|chosen| chosen.manifest).chain(rest) {
        if !places.insert((manifest.positions.file().to_owned(), key_of(&manifest))) {
            continue;
        }
        match (known.insert(key_of(&manifest)), keys.contains(&key_of(&manifest))) {
            (true, _) => found.manifests.push(manifest),
            (false, true) if manifest.object.is_definition() => found.variants.push(manifest),
            (false, _) => {}
        }
    }
    Ok(found)
}

/// A file, and an object in it.
type Candidate = (PathBuf, Manifest);

/// An object of the base.
struct Chosen {
    file: PathBuf,
    manifest: Manifest,
    /// File of the object that it is compared with.
    like: PathBuf,
}

/// The identity of an object; one without a namespace is in `default`, or cluster-scoped: both have one identity here.
fn key_of(manifest: &Manifest) -> ObjectKey {
    let mut key = manifest.object.key();
    if key.namespace == "default" {
        key.namespace.clear();
    }
    key
}

/// Measures how well a file fits: equal trailing names with the new file first, then equal leading names with the path.
fn similarity(file: &Path, path: &str, like: &Path) -> (usize, usize) {
    let tail = file.iter().rev().zip(like.iter().rev()).take_while(|(one, other)| one == other).count();
    let head = file.iter().zip(Path::new(path).iter()).take_while(|(one, other)| one == other).count();
    (tail, head)
}

/// The folder that most of the objects have moved from: the path above what old and new file have in common.
fn root_of(chosen: &[Chosen]) -> Option<PathBuf> {
    let mut roots: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for Chosen { file, like, .. } in chosen {
        let common = file.iter().rev().zip(like.iter().rev()).take_while(|(one, other)| one == other).count();
        let root = file.ancestors().nth(common.max(1))?;
        *roots.entry(root.to_owned()).or_default() += 1;
    }
    let (root, _) = roots.into_iter().max_by_key(|(_, count)| *count)?;
    (!root.as_os_str().is_empty()).then_some(root)
}

fn first_error(error: &LoadError) -> String {
    error.errors.first().map(ToString::to_string).unwrap_or_default()
}

/// Reads the objects of a folder whose files are gone from the working tree, CRDs of one name included, and the Config
/// documents of the folder.
fn rest_of(
    reference: &str,
    root: &Path,
    gone: &GoneFiles,
    side: ComparedSide,
) -> Result<(Vec<Manifest>, Vec<Manifest>), LoadError> {
    let input = format!("git:{reference}:{}", shown(root));
    let options = LoadOptions { compared: Some(side), ..LoadOptions::default() };
    let Input { manifests, variants, configs, .. } = collect::load(&[input], &options)?;
    let prefix = format!("git:{reference}:");
    let is_gone = |manifest: &Manifest| {
        let file = manifest.positions.file();
        file.strip_prefix(&prefix).is_some_and(|file| gone.is_gone(Path::new(file)))
    };
    Ok((manifests.into_iter().chain(variants).filter(is_gone).collect(), configs))
}

/// Files of the repository that the working tree no longer has.
struct GoneFiles {
    /// The top folder of the working tree; `None` without one.
    top: Option<PathBuf>,
}

impl GoneFiles {
    fn is_gone(&self, file: &Path) -> bool {
        self.top.as_ref().is_some_and(|top| fs::symlink_metadata(top.join(file)).is_err())
    }
}
