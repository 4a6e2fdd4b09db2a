//! The commit of the folder that manifests come from, read from the repository's files: its configuration, with its remotes,
//! is never opened. Whether the manifests are those of the commit, git's object store says.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::excerpt::Sources;
use super::git::GitTree;

/// Most bytes of a file of a repository that is read; packed references are the largest.
const MAX_BYTES: u64 = 16 << 20;

/// Where an input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// The commit.
    pub commit: String,
    /// Whether the input is not what the commit has.
    pub modified: bool,
}

impl Revision {
    /// The revision of the input that was read from these paths; `None` unless they are files of one repository.
    #[must_use]
    pub fn of(inputs: &[String], sources: &Sources) -> Option<Self> {
        let commit = commit_of(inputs)?;
        let files = inputs.iter().map(|input| files_of(&commit, input)).collect::<Option<Vec<_>>>();
        // Without git nobody can say.
        let modified = files.is_some_and(|files| !sources.are_exactly(&files.into_iter().flatten().collect()));
        Some(Self { commit, modified })
    }
}

/// The manifests that a commit has below a path, each under the path that it has on this machine.
fn files_of(commit: &str, input: &str) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let path = fs::canonicalize(input).ok()?;
    let root = repository_of(input)?.parent()?.to_owned();
    let below = path.strip_prefix(&root).ok()?.to_str()?.to_owned();
    let tree = GitTree::open_or_absent(&root, commit, &below).ok()?;
    let files = tree.read_all().ok()?.into_iter();
    let place = |file: &Path| if path.is_dir() { path.join(file) } else { path.clone() };
    Some(files.map(|file| (place(&file.path), file.bytes)).collect())
}

/// The commit that is checked out where these inputs are; `None` unless all of them are files of one repository.
#[must_use]
pub fn commit_of(inputs: &[String]) -> Option<String> {
    let mut found = inputs.iter().map(|input| repository_of(input));
    let first = found.next()??;
    if found.any(|other| other.as_ref() != Some(&first)) {
        return None;
    }
    head(&first)
}

/// Whether an input is a path of this machine.
#[must_use]
pub fn is_path(input: &str) -> bool {
    input != "-" && !input.contains("://") && !input.starts_with("git:") && Path::new(input).exists()
}

/// The `.git` of the repository that a path is in.
fn repository_of(input: &str) -> Option<PathBuf> {
    let path = Some(input).filter(|input| is_path(input)).and_then(|input| fs::canonicalize(input).ok())?;
    path.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())
}

/// The commit that is checked out.
fn head(git: &Path) -> Option<String> {
    let folder = if git.is_dir() {
        git.to_owned()
    } else {
        // A worktree or a submodule says where its own data is.
        git.parent()?.join(text(git)?.strip_prefix("gitdir: ")?)
    };
    let head = text(&folder.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return commit(&head) };
    if !name.starts_with("refs/") || name.split('/').any(|part| part == "..") {
        return None;
    }
    let shared = text(&folder.join("commondir")).map_or_else(|| folder.clone(), |common| folder.join(common));
    let loose = [&folder, &shared].into_iter().find_map(|folder| text(&folder.join(name)));
    let packed = || {
        let packed = text(&shared.join("packed-refs"))?;
        packed.lines().find_map(|line| Some(line.strip_suffix(name)?.strip_suffix(' ')?.to_owned()))
    };
    commit(&loose.or_else(packed)?)
}

/// A commit's name: nothing else may get from a file into a record.
#[must_use]
pub fn commit(text: &str) -> Option<String> {
    let is_name = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| text.to_ascii_lowercase())
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a folder"))
        }

        fn write(&self, path: &str, text: &str) -> String {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
            path.to_string_lossy().into_owned()
        }
    }

    #[test]
    fn the_commit_is_the_one_that_is_checked_out() {
        let folder = Folder::new();
        let input = folder.write("repository/shop/app.yaml", "");
        assert_eq!(commit_of(std::slice::from_ref(&input)), None);
        folder.write("repository/.git/HEAD", "ref: refs/heads/main\n");
        folder.write(
            "repository/.git/packed-refs",
            &format!("# pack-refs\n{TWO} refs/heads/not-main\n{ONE} refs/heads/main\n"),
        );
        assert_eq!(commit_of(std::slice::from_ref(&input)).as_deref(), Some(ONE));
        folder.write("repository/.git/refs/heads/main", &format!("{TWO}\n"));
        assert_eq!(commit_of(std::slice::from_ref(&input)).as_deref(), Some(TWO));
        folder.write("repository/.git/HEAD", &format!("{ONE}\n"));
        assert_eq!(commit_of(std::slice::from_ref(&input)).as_deref(), Some(ONE));

        // A worktree, whose branches are in the repository.
        let other = folder.write("worktree/app.yaml", "");
        folder.write("worktree/.git", "gitdir: ../repository/.git/worktrees/w\n");
        folder.write("repository/.git/worktrees/w/HEAD", "ref: refs/heads/main\n");
        folder.write("repository/.git/worktrees/w/commondir", "../..\n");
        assert_eq!(commit_of(std::slice::from_ref(&other)).as_deref(), Some(TWO));
        assert_eq!(commit_of(&[input.clone(), other]), None);
        assert_eq!(commit_of(&[input, "-".to_owned()]), None);
    }

    #[test]
    fn only_the_name_of_a_commit_gets_out_of_a_repository() {
        let folder = Folder::new();
        let input = folder.write("app.yaml", "");
        for head in ["ref: refs/../../secret", "ref: /etc/passwd", "password", ""] {
            folder.write("secret", ONE);
            folder.write(".git/HEAD", head);
            assert_eq!(commit_of(std::slice::from_ref(&input)), None, "{head}");
        }
    }
}
