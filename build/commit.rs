//! The commit of a checkout, read from git's own files: git need not be there when it is built. What is unpacked from a
//! package has it in a file of cargo's.

use std::fs;
use std::path::{Path, PathBuf};

/// The commit, and the files that say so.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) commit: Option<String>,
    pub(crate) read: Vec<PathBuf>,
}

/// The commit that a folder has checked out; none where it is neither a checkout nor a package.
pub(crate) fn of_checkout(folder: &Path) -> Found {
    of_package(&folder.join(".cargo_vcs_info.json")).or_else(|| of_git(folder)).unwrap_or_default()
}

/// `{"git": {"sha1": "…"}, …}`, which cargo puts into packages.
fn of_package(path: &Path) -> Option<Found> {
    let text = fs::read_to_string(path).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1).and_then(object_id);
    Some(Found { commit, read: vec![path.to_owned()] })
}

fn of_git(folder: &Path) -> Option<Found> {
    let git = git_directory(&folder.join(".git"))?;
    // Of a second working tree: the references are those of the first one.
    let common = fs::read_to_string(git.join("commondir")).map_or_else(|_| git.clone(), |path| git.join(path.trim()));
    let head = git.join("HEAD");
    let text = fs::read_to_string(&head).ok()?;
    let Some(reference) = text.trim().strip_prefix("ref: ") else {
        return Some(Found { commit: object_id(text.trim()), read: vec![head] });
    };
    let (loose, packed) = (common.join(reference), common.join("packed-refs"));
    let of_loose = fs::read_to_string(&loose).ok().and_then(|text| object_id(text.trim()));
    let commit = of_loose.or_else(|| {
        let text = fs::read_to_string(&packed).ok()?;
        text.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' ').and_then(object_id))
    });
    // A path that is missing would have the script run at every build.
    let read = [head, loose, packed].into_iter().filter(|path| path.exists()).collect();
    Some(Found { commit, read })
}

/// `.git` itself, or where the file of this name leads.
fn git_directory(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = fs::read_to_string(path).ok()?;
    Some(path.parent()?.join(text.trim().strip_prefix("gitdir: ")?))
}

fn object_id(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.chars().all(|c| c.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}
