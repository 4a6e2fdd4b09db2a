//! The files of a git ref, read from the object store through the `git` program, never by a checkout.
//! The ref is resolved once, so that every read sees the same commit.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use super::files::{SourceFile, check_size, is_manifest, shown};

/// git's own message, so that it is not repeated.
const NO_REPOSITORY: &str = "not a git repository";

/// Bytes of all files of a ref together.
const MAX_BYTES: u64 = 256 << 20;

/// Bytes of all files of a ref that are written for a program.
const MAX_CHECKOUT: u64 = 1 << 30;

/// Bytes of the list of the files of a ref. A folder that contains another one ten times, ten levels deep, has ten
/// thousand million files and takes a few kilobytes.
const MAX_LISTING: u64 = 64 << 20;

/// A repository's own configuration can name programs, chosen by whoever created the repository. The commands used here
/// only read objects; git then starts a program only to fetch an object that a partial clone lacks.
const SEALED: [(&str, &str); 3] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    // Versions of git without that variable find no protocol allowed, whatever `protocol.*` says: no ssh command, no
    // remote helper, no `ext::`.
    ("GIT_ALLOW_PROTOCOL", ""),
    // Read the commit itself, not a replacement on this machine.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
];

/// Settings that name programs, which no command here needs.
const INERT: [&str; 3] = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.alternateRefsCommand="];

/// Why git failed, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GitError(pub String);

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitFile {
    /// Path below the folder that was opened.
    pub path: PathBuf,
    /// Object name of its content.
    object: String,
}

/// A folder or a single file in a commit.
#[derive(Debug)]
pub struct GitTree {
    repository: PathBuf,
    /// Ref and path as displayed: `main`, or `main:deploy/live`.
    label: String,
    /// Object name of the tree or blob.
    object: String,
    /// The file's name, if this is a single file.
    file: Option<PathBuf>,
    /// Whether the ref lacks the path.
    absent: bool,
}

impl GitTree {
    /// Opens a ref of the repository that contains `repository`; `sub_path` is relative to the repository's root.
    ///
    /// # Errors
    /// There is no git, no repository, no such ref or no such path in it.
    pub fn open(repository: &Path, reference: &str, sub_path: &str) -> Result<Self, GitError> {
        let opened = Self::open_or_absent(repository, reference, sub_path)?;
        if opened.absent {
            return Err(GitError(format!("git {}: the ref has no such path", opened.label)));
        }
        Ok(opened)
    }

    /// As [`Self::open`], but if the ref lacks the path, the result is empty.
    ///
    /// # Errors
    /// There is no git, no repository or no such ref, or the content cannot be listed.
    pub fn open_or_absent(repository: &Path, reference: &str, sub_path: &str) -> Result<Self, GitError> {
        let refused = |message: String| Err(GitError(message));
        // Git would read a leading dash as an option. A colon would select a path; spaces are invalid.
        if reference.is_empty() || reference.starts_with('-') || sub_path.starts_with('-') || reference.contains(':') {
            return refused(format!("{reference:?} with path {sub_path:?} is not a git ref and folder"));
        }
        let parts: Vec<&str> = sub_path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return refused(format!("{sub_path:?} leads out of the repository"));
        }
        let label = if parts.is_empty() { reference.to_owned() } else { format!("{reference}:{}", parts.join("/")) };
        let repository = repository.to_owned();
        let mut opened = Self { repository, label, object: String::new(), file: None, absent: false };
        opened.run(&["rev-parse", "--git-dir"]).map_err(|error| opened.failed(NO_REPOSITORY, &error))?;
        let commit = format!("{reference}^{{tree}}");
        opened.object = opened.resolve(&commit).map_err(|error| {
            let GitError(message) = opened.failed("the repository has no such ref", &error);
            GitError(format!("{message}{}", opened.shallow_hint()))
        })?;
        if let Some(name) = parts.last() {
            let path = format!("{}:{}", opened.object, parts.join("/"));
            opened.object = match opened.resolve(&path) {
                Ok(object) => object,
                // An object missing from a partial clone does not mean that the ref lacks the path: the listing fails
                // then.
                Err(_) if opened.lists_nothing(&parts.join("/")) => {
                    opened.absent = true;
                    return Ok(opened);
                }
                Err(error) => return Err(opened.failed("the path cannot be read", &error)),
            };
            let kind = opened.run(&["cat-file", "-t", &opened.object]).unwrap_or_default();
            match kind.trim_ascii() {
                b"tree" => {}
                b"blob" => opened.file = Some(PathBuf::from(name)),
                _ => return refused(format!("git {}: it is neither a folder nor a file", opened.label)),
            }
        }
        Ok(opened)
    }

    /// Whether the ref exists and lacks the path.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.absent
    }

    /// The top folder of the working tree; `None` in a bare repository.
    #[must_use]
    pub fn top_level(&self) -> Option<PathBuf> {
        let output = self.run(&["rev-parse", "--show-toplevel"]).ok()?;
        let text = String::from_utf8(output).ok()?;
        Some(PathBuf::from(text.trim_end_matches('\n'))).filter(|path| !path.as_os_str().is_empty())
    }

    fn lists_nothing(&self, path: &str) -> bool {
        self.run(&["ls-tree", "-z", "--full-tree", &self.object, "--", path]).is_ok_and(|listed| listed.is_empty())
    }

    /// The hint that fetches the refs and commits that a checkout of depth 1 omits.
    fn shallow_hint(&self) -> &'static str {
        let shallow = self.run(&["rev-parse", "--is-shallow-repository"]);
        match shallow.as_deref().map(<[u8]>::trim_ascii) {
            Ok(b"true") => {
                "; this clone is shallow: `git fetch --unshallow` brings the rest (`fetch-depth: 0` in actions/checkout)"
            }
            _ => "",
        }
    }

    /// `main:deploy/live`.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Path of a file, for display.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        if self.file.is_some() {
            return self.label.clone();
        }
        let separator = if self.label.contains(':') { '/' } else { ':' };
        format!("{}{separator}{}", self.label, shown(path))
    }

    /// Every YAML and JSON file, sorted by path; a single file whatever its extension. Symbolic links and submodules
    /// are skipped: they have no content of their own here.
    ///
    /// # Errors
    /// Git cannot read the content, or it is too large.
    pub fn read_all(&self) -> Result<Vec<SourceFile>, GitError> {
        let files = self.files()?.into_iter().filter(|file| self.file.is_some() || is_manifest(&file.path));
        self.read(files.collect())
    }

    /// Every file whose name does not start with a dot, and the app records, sorted by path.
    ///
    /// # Errors
    /// Git cannot list them.
    pub fn files(&self) -> Result<Vec<GitFile>, GitError> {
        if self.absent {
            return Ok(Vec::new());
        }
        if let Some(file) = &self.file {
            return Ok(vec![GitFile { path: file.clone(), object: self.object.clone() }]);
        }
        self.entries(is_visible)
    }

    /// Files with these paths, sorted.
    fn entries(&self, is_wanted: fn(&str) -> bool) -> Result<Vec<GitFile>, GitError> {
        let listing = self.listing().map_err(|error| self.failed("cannot be listed", &error))?;
        let mut files = Vec::new();
        for entry in listing.split(|byte| *byte == 0) {
            let entry = String::from_utf8_lossy(entry);
            let Some((head, path)) = entry.split_once('\t') else { continue };
            let fields: Vec<&str> = head.split(' ').collect();
            if let [mode, "blob", object] = fields[..]
                && mode.starts_with("100")
                && is_wanted(path)
            {
                files.push(GitFile { path: PathBuf::from(path), object: object.to_owned() });
            }
        }
        files.sort();
        Ok(files)
    }

    /// Returns whether this is a single file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// The files below this folder that contain one of these texts, sorted by path.
    ///
    /// # Errors
    /// Git cannot search them.
    pub fn files_with(&self, texts: &[String]) -> Result<Vec<GitFile>, GitError> {
        if texts.is_empty() || self.absent || self.file.is_some() {
            return Ok(Vec::new());
        }
        // Listed first: a ref with too many files is refused before it is searched.
        let files = self.files()?;
        let patterns = texts.iter().flat_map(|text| ["-e", text.as_str()]);
        let arguments: Vec<&str> = ["grep", "-l", "-z", "-F", "--no-textconv", "--full-name", "--no-color"]
            .into_iter()
            .chain(patterns)
            .chain([self.object.as_str()])
            .collect();
        let output = self.command(&arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|error| self.failed("cannot be searched", &error))?;
        // 1: no file contains any of them.
        if !matches!(output.status.code(), Some(0 | 1)) {
            let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(self.failed("cannot be searched", &io::Error::other(words)));
        }
        let prefix = format!("{}:", self.object);
        let entries = output.stdout.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let found: std::collections::BTreeSet<PathBuf> =
            entries.filter_map(|entry| entry.strip_prefix(&prefix).map(PathBuf::from)).collect();
        Ok(files.into_iter().filter(|file| found.contains(&file.path)).collect())
    }

    /// Reads these files.
    ///
    /// # Errors
    /// Git cannot read the content, or it is too large.
    pub fn read(&self, files: Vec<GitFile>) -> Result<Vec<SourceFile>, GitError> {
        let blobs = files.into_iter().map(|file| (file.path, file.object)).collect();
        self.read_blobs(blobs).map_err(|error| self.failed("cannot be read", &error))
    }

    /// Writes the files below a folder, those with a dot in front included. Symbolic links and submodules are left out.
    ///
    /// # Errors
    /// Git cannot read the content, it is too large, or it cannot be written.
    pub(crate) fn write_to(&self, folder: &Path) -> Result<(), GitError> {
        let failed = |error: &io::Error| self.failed("cannot be checked out", error);
        let files = self.entries(|_| true)?;
        let mut folders = HashSet::new();
        self.each_blob(
            files.into_iter().map(|file| (file.path, file.object)).collect(),
            MAX_CHECKOUT,
            |path, content| {
                let place = folder.join(&path);
                // A tree object can hold any name.
                if !path.components().all(|part| matches!(part, Component::Normal(_))) {
                    return Err(io::Error::other(format!("{} is not a path below the folder", shown(&path))));
                }
                if let Some(parent) = place.parent()
                    && folders.insert(parent.to_owned())
                {
                    fs::create_dir_all(parent)?;
                }
                io::copy(content, &mut fs::File::create_new(place)?).map(drop)
            },
        )
        .map_err(|error| failed(&error))
    }

    fn read_blobs(&self, blobs: Vec<(PathBuf, String)>) -> io::Result<Vec<SourceFile>> {
        let mut files = Vec::with_capacity(blobs.len());
        self.each_blob(blobs, MAX_BYTES, |path, content| {
            check_size(&shown(&path), content.limit()).map_err(io::Error::other)?;
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            files.push(SourceFile { path, bytes });
            Ok(())
        })?;
        Ok(files)
    }

    /// Gives all contents to `take`, which reads each to its end, through one process. A separate thread writes the
    /// names, to avoid a deadlock.
    fn each_blob(
        &self,
        blobs: Vec<(PathBuf, String)>,
        most: u64,
        mut take: impl FnMut(PathBuf, &mut io::Take<&mut BufReader<ChildStdout>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut child = self
            .command(&["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("git has no pipes"));
        };
        let names: String = blobs.iter().map(|(_, object)| format!("{object}\n")).collect();
        let writer = std::thread::spawn(move || input.write_all(names.as_bytes()));
        let mut output = BufReader::new(output);
        let mut total = 0_u64;
        let read = || {
            for (path, object) in blobs {
                let mut head = String::new();
                output.read_line(&mut head)?;
                let size: Option<u64> =
                    head.trim_end().strip_prefix(&format!("{object} blob ")).and_then(|size| size.parse().ok());
                let size = size.ok_or_else(|| {
                    let fetched = "in a partial clone, `git archive` of this ref fetches what is missing";
                    io::Error::other(format!("object {object} is missing; {fetched}"))
                })?;
                total += size;
                if total > most {
                    return Err(io::Error::other(format!("more than {} MiB in all", most >> 20)));
                }
                take(path, &mut output.by_ref().take(size))?;
                let mut end = [0];
                output.read_exact(&mut end)?;
            }
            Ok(())
        };
        let result: io::Result<()> = read();
        if result.is_err() {
            let _ = child.kill();
        }
        let _ = writer.join();
        let _ = child.wait();
        result
    }

    fn resolve(&self, revision: &str) -> io::Result<String> {
        let output = self.run(&["rev-parse", "--verify", "--quiet", revision])?;
        let object = String::from_utf8_lossy(&output).trim().to_owned();
        let valid = object.len() >= 40 && object.bytes().all(|byte| byte.is_ascii_hexdigit());
        if valid { Ok(object) } else { Err(io::Error::other("git named no object")) }
    }

    /// Standard output of a git command, or an error if it failed.
    fn run(&self, arguments: &[&str]) -> io::Result<Vec<u8>> {
        let output = self.command(arguments).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let line = words.lines().next().unwrap_or_default().trim_start_matches("fatal: ").to_owned();
        Err(io::Error::other(line))
    }

    /// Lists every file below the folder, as `ls-tree` does.
    fn listing(&self) -> io::Result<Vec<u8>> {
        let mut command = self.command(&["ls-tree", "-r", "-z", "--full-tree", &self.object]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut listing = Vec::new();
        let read = child.stdout.take().map(|output| output.take(MAX_LISTING + 1).read_to_end(&mut listing));
        let is_cut = listing.len() as u64 > MAX_LISTING;
        if is_cut || matches!(read, Some(Err(_))) {
            let _ = child.kill();
        }
        let status = child.wait()?;
        read.transpose()?;
        if is_cut {
            return Err(io::Error::other("it has too many files"));
        }
        if !status.success() {
            return Err(io::Error::other(format!("git ended with {status}")));
        }
        Ok(listing)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("--no-pager").args(INERT.iter().flat_map(|setting| ["-c", setting]));
        command.arg("-C").arg(&self.repository).args(arguments).envs(SEALED);
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command
    }

    fn failed(&self, what: &str, error: &io::Error) -> GitError {
        let reason = error.to_string();
        let message = if error.kind() == io::ErrorKind::NotFound {
            "the git program is not installed, or not on the PATH".to_owned()
        } else if reason.is_empty() || reason.starts_with(what) {
            format!("git {}: {what}", self.label)
        } else {
            format!("git {}: {what}: {}", self.label, shown(Path::new(&reason)))
        };
        GitError(message)
    }
}

/// The same files as in a folder: none whose name starts with a dot, except the app records at the top.
fn is_visible(path: &str) -> bool {
    let path = path.strip_prefix(".pushback/").unwrap_or(path);
    path.split('/').all(|part| !part.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(repository: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        git(root, &["init", "--quiet", "--initial-branch=main"]);
        for (path, text) in [
            ("live/a b.yaml", "a: 1\n"),
            ("live/sub/ü.yml", "b: 2"),
            ("live/.x/c.yaml", "c: 3\n"),
            ("live/.pushback/n/app.yaml", "r: 1\n"),
            ("live/empty.yaml", ""),
            ("live/readme.md", "#"),
            ("top.yaml", "t: 1\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "--message=one"]);
        directory
    }

    #[test]
    fn a_folder_of_a_ref_is_read_as_committed() {
        let directory = repository();
        let tree = GitTree::open(directory.path(), "main", "./live/").unwrap();
        fs::write(directory.path().join("live/a b.yaml"), "a: changed\n").unwrap();
        git(directory.path(), &["commit", "--quiet", "--all", "--message=two"]);
        let files: Vec<(String, String)> = tree
            .read_all()
            .unwrap()
            .into_iter()
            .map(|file| (file.path.to_string_lossy().into_owned(), String::from_utf8(file.bytes).unwrap()))
            .collect();
        let expected =
            [(".pushback/n/app.yaml", "r: 1\n"), ("a b.yaml", "a: 1\n"), ("empty.yaml", ""), ("sub/ü.yml", "b: 2")];
        assert_eq!(files, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
        assert_eq!(tree.shown(Path::new("a b.yaml")), "main:live/a b.yaml");
        let whole = GitTree::open(directory.path(), "HEAD~1", "").unwrap();
        assert_eq!(whole.read_all().unwrap().len(), 4);
    }

    #[test]
    fn ref_with_a_tree_bomb_is_refused() {
        let directory = repository();
        let object = |arguments: &[&str], input: &str| {
            let mut command = Command::new("git");
            command.arg("-C").arg(directory.path()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
        };
        let blob = object(&["hash-object", "-w", "--stdin"], "a: 1\n");
        let mut tree = object(&["mktree"], &format!("100644 blob {blob}\ta.yaml\n"));
        for _ in 0..10 {
            let entries: String = (0..10).map(|index| format!("040000 tree {tree}\t{index}\n")).collect();
            tree = object(&["mktree"], &entries);
        }
        let opened = GitTree::open(directory.path(), &tree, "").unwrap();
        for error in [opened.files().unwrap_err(), opened.files_with(&["a".to_owned()]).unwrap_err()] {
            assert_eq!(error.to_string(), format!("git {tree}: cannot be listed: it has too many files"));
        }
    }

    #[test]
    fn a_single_file_of_a_ref_is_read_whatever_its_ending() {
        let directory = repository();
        let tree = GitTree::open(directory.path(), "main", "live/readme.md").unwrap();
        let files = tree.read_all().unwrap();
        assert_eq!((files.len(), files[0].bytes.as_slice()), (1, &b"#"[..]));
        assert_eq!(tree.shown(&files[0].path), "main:live/readme.md");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_that_the_repositorys_configuration_names_is_run() {
        use std::os::unix::fs::PermissionsExt;
        let directory = repository();
        let root = directory.path();
        let marker = root.join("ran");
        let script = root.join("script");
        fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\nexit 1\n", marker.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(root.join("hooks")).unwrap();
        for hook in ["reference-transaction", "post-checkout", "pre-auto-gc", "post-index-change"] {
            fs::copy(&script, root.join("hooks").join(hook)).unwrap();
        }
        let script = script.display().to_string();
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("protocol.allow", "always"),
            ("protocol.ext.allow", "always"),
            ("core.hooksPath", &root.join("hooks").display().to_string()),
            ("filter.x.smudge", &script),
            ("filter.x.clean", &script),
            ("filter.x.process", &script),
            ("filter.x.required", "true"),
            ("diff.x.textconv", &script),
        ] {
            git(root, &["config", key, value]);
        }
        for key in [
            "core.fsmonitor",
            "core.sshCommand",
            "core.gitProxy",
            "core.pager",
            "core.editor",
            "core.askPass",
            "core.alternateRefsCommand",
            "credential.helper",
            "diff.external",
            "gpg.program",
            "pager.cat-file",
            "pager.ls-tree",
            "remote.origin.uploadpack",
            "uploadpack.packObjectsHook",
            "alias.cat-file",
        ] {
            git(root, &["config", key, &script]);
        }
        fs::write(root.join(".git/info/attributes"), "* filter=x diff=x\n").unwrap();
        let whole = GitTree::open(root, "main", "live").unwrap();
        assert_eq!(whole.read_all().unwrap().len(), 4);
        assert!(!marker.exists(), "{}", fs::read_to_string(&marker).unwrap_or_default());

        // For missing objects, git follows its configuration to fetch them.
        let objects = ["main:live/empty.yaml", "main:live", "main^{tree}"];
        for (object, url) in
            objects.iter().zip([format!("ext::{script} %S"), "ssh://host/r".to_owned(), script.clone()])
        {
            git(root, &["config", "remote.origin.url", &url]);
            let name = GitTree {
                repository: root.to_owned(),
                label: String::new(),
                object: String::new(),
                file: None,
                absent: false,
            }
            .resolve(object)
            .unwrap();
            fs::remove_file(root.join(".git/objects").join(&name[..2]).join(&name[2..])).unwrap();
            let read = GitTree::open(root, "main", "live").and_then(|tree| tree.read_all());
            assert!(read.is_err(), "{object}");
            assert!(!marker.exists(), "{object}: {}", fs::read_to_string(&marker).unwrap_or_default());
        }
    }

    #[test]
    fn what_is_not_there_or_looks_like_an_option_is_refused() {
        let directory = repository();
        let open = |reference: &str, path: &str| GitTree::open(directory.path(), reference, path).unwrap_err();
        for (reference, path, part) in [
            ("absent", "", "no such ref"),
            ("main", "absent", "no such path"),
            ("main", "top.yaml/x", "no such path"),
            ("main", "live/../..", "leads out"),
            ("--output=x", "", "not a git ref"),
            ("main", "-x", "not a git ref"),
            ("", "", "not a git ref"),
        ] {
            let error = open(reference, path);
            assert!(error.0.contains(part), "{error}");
        }
        let empty = tempfile::tempdir().unwrap();
        let error = GitTree::open(empty.path(), "main", "").unwrap_err();
        assert!(error.0.contains("not a git repository"), "{error}");
    }
}
