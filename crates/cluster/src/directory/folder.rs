//! The files below a folder: reads them all, replaces one atomically, removes one.
//! Nothing outside the folder is read or written, whatever names or symbolic links say.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use pushback_manifest::files::{SourceFile, check_size, is_manifest, shown};
use pushback_system::environment::reason;

use super::layout::RECORDS;
use crate::{ClusterError, ErrorKind};

/// A folder that is read and written.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

/// The state of a directory walk: what was found, and what is still to be visited.
#[derive(Default)]
struct Walk {
    /// Paths below the root, each with its real path: resolving the path of each folder again would take time with the
    /// cube of the depth.
    folders: VecDeque<(PathBuf, PathBuf)>,
    links: VecDeque<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// Real path → path below the root, so that a file with two names is read only once.
    files: BTreeMap<PathBuf, PathBuf>,
}

impl Folder {
    /// Opens the folder at a path.
    ///
    /// # Errors
    /// `Configuration` if the path exists and is not a folder. A missing folder is empty.
    pub(super) fn new(root: &Path) -> Result<Self, ClusterError> {
        match fs::metadata(root) {
            Ok(metadata) if !metadata.is_dir() => {
                let message = format!("{} is not a folder", shown(root));
                Err(ClusterError::new(ErrorKind::Configuration, message))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(not_readable(root, &error)),
            _ => Ok(Self { root: root.to_owned() }),
        }
    }

    /// Path of a file, for display.
    pub(super) fn shown(&self, path: &Path) -> String {
        shown(&self.root.join(path))
    }

    /// Every YAML and JSON file, sorted by path. Names that start with a dot are skipped, except the app records.
    pub(super) fn read_all(&self) -> Result<Vec<SourceFile>, ClusterError> {
        let root = match self.root.canonicalize() {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(not_readable(&self.root, &error)),
        };
        let mut walk = Walk::default();
        walk.folders.push_back((PathBuf::new(), root.clone()));
        loop {
            // Links are visited last, so that a file which also has a real name keeps it.
            if let Some((folder, real)) = walk.folders.pop_front() {
                self.walk_folder(&mut walk, &folder, &real)?;
            } else if let Some(link) = walk.links.pop_front() {
                self.walk_link(&mut walk, &root, link)?;
            } else {
                break;
            }
        }
        let mut files: Vec<(PathBuf, PathBuf)> = walk.files.into_iter().map(|(real, path)| (path, real)).collect();
        files.sort();
        let read = |(path, real): (PathBuf, PathBuf)| {
            let place = self.root.join(&path);
            let bytes = read_whole(&place, &real)?;
            Ok(SourceFile { path, bytes })
        };
        files.into_iter().map(read).collect()
    }

    fn walk_folder(&self, walk: &mut Walk, folder: &Path, real: &Path) -> Result<(), ClusterError> {
        let place = self.root.join(folder);
        let failed = |error: io::Error| not_readable(&place, &error);
        if !walk.seen.insert(real.to_owned()) {
            return Ok(());
        }
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let records = folder.as_os_str().is_empty() && name == RECORDS;
            if name.as_encoded_bytes().starts_with(b".") && !records {
                continue;
            }
            let path = folder.join(&name);
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                walk.folders.push_back((path, real.join(name)));
            } else if kind.is_symlink() {
                walk.links.push_back(path);
            } else if kind.is_file() && is_manifest(&path) {
                walk.files.insert(real.join(name), path);
            }
        }
        Ok(())
    }

    /// A dangling link is empty. A link that leaves the folder is not read, but is an error: otherwise its objects
    /// would be missing.
    fn walk_link(&self, walk: &mut Walk, root: &Path, link: PathBuf) -> Result<(), ClusterError> {
        let Ok(real) = self.root.join(&link).canonicalize() else { return Ok(()) };
        let Ok(metadata) = fs::metadata(&real) else { return Ok(()) };
        if !(metadata.is_dir() || metadata.is_file() && is_manifest(&link)) {
            return Ok(());
        }
        if !real.starts_with(root) {
            return Err(self.outside(&link));
        }
        if metadata.is_dir() {
            walk.folders.push_back((link, real));
        } else {
            walk.files.entry(real).or_insert(link);
        }
        Ok(())
    }

    /// Reads one file; `None` if it does not exist.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ClusterError> {
        let place = self.root.join(path);
        let real = self.root.canonicalize().and_then(|root| Ok((root, place.canonicalize()?)));
        match real.and_then(|(root, real)| Ok((real.starts_with(root), fs::read(real)?))) {
            Ok((true, bytes)) => Ok(Some(bytes)),
            Ok((false, _)) => Err(self.outside(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(not_readable(&place, &error)),
        }
    }

    /// The metadata of whatever is at a path.
    pub(super) fn metadata(&self, path: &Path) -> Option<fs::Metadata> {
        fs::symlink_metadata(self.root.join(path)).ok()
    }

    /// Writes a file atomically: readers see the old or the new content, even after a power cut. An existing file keeps
    /// its permissions; a new `private` one is accessible only to its owner.
    pub(super) fn write(&self, path: &Path, text: &str, private: bool) -> Result<(), ClusterError> {
        let failed = |error: io::Error| not_writable(&self.root.join(path), &error);
        let real = self.resolve(path, true)?;
        let parent = real.parent().unwrap_or(&self.root);
        let permissions = fs::metadata(&real).ok().map(|metadata| metadata.permissions());
        let (temporary, mut file) = temporary_file(parent, private || permissions.is_some()).map_err(failed)?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions)))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&temporary, &real));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(failed(error));
        }
        sync_folder(parent).map_err(failed)
    }

    /// Removes a file and, with `and_folders`, folders that this leaves empty. The root stays.
    pub(super) fn remove(&self, path: &Path, and_folders: bool) -> Result<(), ClusterError> {
        let place = self.root.join(path);
        let failed = |error: io::Error| not_writable(&place, &error);
        let real = self.resolve(path, false)?;
        fs::remove_file(&real).map_err(failed)?;
        if fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_symlink()) {
            fs::remove_file(&place).map_err(failed)?;
        }
        sync_folder(real.parent().unwrap_or(&self.root)).map_err(failed)?;
        let mut folder = path.parent().filter(|_| and_folders);
        while let Some(name) = folder.filter(|name| !name.as_os_str().is_empty()) {
            // Fails if the folder is not empty, which ends the loop.
            if fs::remove_dir(self.root.join(name)).is_err() {
                break;
            }
            folder = name.parent();
        }
        Ok(())
    }

    /// The real path of a path below the root; creates its folders if `create` is set.
    fn resolve(&self, path: &Path, create: bool) -> Result<PathBuf, ClusterError> {
        let failed = |error: io::Error| not_writable(&self.root.join(path), &error);
        if create {
            fs::create_dir_all(&self.root).map_err(failed)?;
        }
        let root = self.root.canonicalize().map_err(failed)?;
        let mut place = root.clone();
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(self.outside(path)) };
            place.push(name);
            match fs::symlink_metadata(&place) {
                Ok(metadata) if metadata.is_symlink() => {
                    place = place.canonicalize().map_err(failed)?;
                    if !place.starts_with(&root) {
                        return Err(self.outside(path));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && create => {
                    if parts.peek().is_some() {
                        fs::create_dir(&place).map_err(failed)?;
                    }
                }
                Err(error) => return Err(failed(error)),
                Ok(_) => {}
            }
        }
        Ok(place)
    }

    fn outside(&self, path: &Path) -> ClusterError {
        let shown = self.shown(path);
        let message = format!(
            "{shown}: leads out of the folder through a symbolic link, and is neither read nor written; put what it names \
             into the folder, or choose a folder that holds both (--follow-links is for -f, which only reads)"
        );
        ClusterError::new(ErrorKind::Unsupported, message)
    }
}

/// A single file as a read-only folder.
#[derive(Debug)]
pub(super) struct SingleFile {
    path: PathBuf,
}

impl SingleFile {
    /// Opens the file at a path.
    ///
    /// # Errors
    /// `Configuration` if there is no such file: a comparison with nothing is never intended.
    pub(super) fn new(path: &Path) -> Result<Self, ClusterError> {
        let metadata = fs::metadata(path).map_err(|error| not_readable(path, &error))?;
        if metadata.is_file() {
            return Ok(Self { path: path.to_owned() });
        }
        let message = format!("{} is not a file", shown(path));
        Err(ClusterError::new(ErrorKind::Configuration, message))
    }

    /// Its path, for display.
    pub(super) fn shown(&self) -> String {
        shown(&self.path)
    }

    /// The file, whatever its extension.
    pub(super) fn read_all(&self) -> Result<Vec<SourceFile>, ClusterError> {
        let bytes = read_whole(&self.path, &self.path)?;
        Ok(vec![SourceFile { path: self.path.clone(), bytes }])
    }
}

/// Reads a file of acceptable size; `place` is its displayed name.
fn read_whole(place: &Path, real: &Path) -> Result<Vec<u8>, ClusterError> {
    let failed = |error: io::Error| not_readable(place, &error);
    // Checked before reading: it may be as large as the disk.
    let size = fs::metadata(real).map_err(failed)?.len();
    check_size(&shown(place), size).map_err(|message| ClusterError::new(ErrorKind::Configuration, message))?;
    fs::read(real).map_err(failed)
}

/// Creates a file next to the one that it will replace. Its name starts with a dot, so that a leftover is never read.
fn temporary_file(folder: &Path, private: bool) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if private { 0o600 } else { 0o666 });
    #[cfg(not(unix))]
    let _ = private;
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!(".pushback-{}-{number}.tmp", std::process::id()));
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            other => return other.map(|file| (path, file)),
        }
    }
}

/// Makes a rename durable. Only Unix can open a folder for that.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn not_readable(path: &Path, error: &io::Error) -> ClusterError {
    ClusterError::new(ErrorKind::Configuration, format!("{}: cannot be read: {}", shown(path), reason(error)))
}

fn not_writable(path: &Path, error: &io::Error) -> ClusterError {
    // Never retried: a full disk is reported at once.
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Forbidden,
        _ => ErrorKind::Disk,
    };
    ClusterError::new(kind, format!("{}: cannot be written: {}", shown(path), reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Folder) -> Vec<String> {
        let files = folder.read_all().unwrap();
        files.into_iter().map(|file| file.path.to_string_lossy().replace('\\', "/")).collect()
    }

    fn put(root: &Path, path: &str) {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), "a: 1\n").unwrap();
    }

    #[test]
    fn manifests_are_found_at_any_depth_and_dot_names_are_not() {
        let directory = tempfile::tempdir().unwrap();
        for path in [
            "z.yaml",
            "a/b/c.yml",
            "a/d.JSON",
            "a/readme.md",
            ".git/x.yaml",
            ".hidden.yaml",
            "a/.pushback/x.yaml",
            ".pushback/n/app.yaml",
        ] {
            put(directory.path(), path);
        }
        let folder = Folder::new(directory.path()).unwrap();
        assert_eq!(paths(&folder), [".pushback/n/app.yaml", "a/b/c.yml", "a/d.JSON", "z.yaml"]);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_empty_and_a_file_is_none() {
        let directory = tempfile::tempdir().unwrap();
        assert!(paths(&Folder::new(&directory.path().join("absent/deep")).unwrap()).is_empty());
        put(directory.path(), "a.yaml");
        assert_eq!(Folder::new(&directory.path().join("a.yaml")).unwrap_err().kind, ErrorKind::Configuration);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_read_once_and_never_lead_outside() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = directory.path();
        put(outside.path(), "secret.yaml");
        put(root, "real/a.yaml");
        put(root, "..data/b.yaml");
        symlink(root, root.join("real/loop")).unwrap();
        symlink(root.join("real/a.yaml"), root.join("0.yaml")).unwrap();
        symlink(root.join("..data/b.yaml"), root.join("b.yaml")).unwrap();
        symlink(root.join("absent.yaml"), root.join("dangling.yaml")).unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink(outside.path().join("secret.yaml"), root.join("out.yaml")).unwrap();
        let folder = Folder::new(root).unwrap();
        for path in ["out.yaml", "out"] {
            let error = folder.read_all().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported);
            assert!(error.message.contains("leads out of the folder through a symbolic link"), "{error}");
            fs::rename(root.join(path), root.join(format!(".{path}"))).unwrap();
        }
        assert_eq!(paths(&folder), ["b.yaml", "real/a.yaml"]);
        for path in ["out.yaml", "out"] {
            fs::rename(root.join(format!(".{path}")), root.join(path)).unwrap();
        }

        for path in ["out.yaml", "out/new.yaml", "../new.yaml"] {
            assert_eq!(folder.write(Path::new(path), "x", false).unwrap_err().kind, ErrorKind::Unsupported, "{path}");
        }
        assert_eq!(folder.remove(Path::new("out.yaml"), false).unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(fs::read_to_string(outside.path().join("secret.yaml")).unwrap(), "a: 1\n");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);

        folder.write(Path::new("b.yaml"), "b: 2\n", false).unwrap();
        assert_eq!(fs::read_to_string(root.join("..data/b.yaml")).unwrap(), "b: 2\n");
        assert!(fs::symlink_metadata(root.join("b.yaml")).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept_and_new_private_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(directory.path()).unwrap();
        let mode = |path: &str| fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
        folder.write(Path::new("a/secret.yaml"), "x", true).unwrap();
        assert_eq!(mode("a/secret.yaml"), 0o600);
        fs::set_permissions(directory.path().join("a/secret.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
        folder.write(Path::new("a/secret.yaml"), "y", true).unwrap();
        assert_eq!(mode("a/secret.yaml"), 0o640);
        assert_eq!(fs::read_dir(directory.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn removing_the_last_file_removes_its_folders_but_not_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(directory.path()).unwrap();
        put(directory.path(), "a/b/c.yaml");
        put(directory.path(), "a/keep.txt");
        folder.remove(Path::new("a/b/c.yaml"), true).unwrap();
        assert!(!directory.path().join("a/b").exists() && directory.path().join("a/keep.txt").exists());
        put(directory.path(), "d.yaml");
        folder.remove(Path::new("d.yaml"), true).unwrap();
        assert!(directory.path().exists());
    }
}
