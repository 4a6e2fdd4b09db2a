//! One run at a time per app in a folder: a file lock on this machine, outside the folder.
//! The system releases it when its holder ends, for whatever reason; a text file next to it names the holder.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pushback_manifest::files::shown;
use pushback_objects::hex;
use pushback_system::environment::{Environment, wall_clock};
use pushback_system::path_safety::check_private;
use sha2::{Digest, Sha256};

use crate::{ClusterError, ErrorKind};

/// A held lock; released on drop.
#[derive(Debug)]
pub(super) struct Guard {
    /// The locked file.
    file: File,
    holder: PathBuf,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Before the lock is released: afterwards the text may be the next holder's.
        let _ = fs::remove_file(&self.holder);
        // Closing is not enough: a child process that is being started has the file open too, until its exec.
        let _ = self.file.unlock();
    }
}

/// Takes the lock of an app, or reports its holder. `directory` stores the locks; `None` for the user's own.
///
/// # Errors
/// `Locked` while another holder is alive; `Configuration` if no lock file can be created.
pub(super) fn acquire(
    directory: Option<&Path>,
    root: &Path,
    namespace: &str,
    app: &str,
) -> Result<Guard, ClusterError> {
    let candidates = directory.map_or_else(lock_directories, |directory| vec![directory.to_owned()]);
    let failed = |error: io::Error| {
        ClusterError::new(ErrorKind::Configuration, format!("the lock of app {app:?} cannot be kept: {error}"))
    };
    let mut usable = Err(io::Error::other("no place for it"));
    for candidate in candidates {
        usable = private_folder(&candidate).map(|()| candidate);
        if usable.is_ok() {
            break;
        }
    }
    let path = usable.map_err(failed)?.join(lock_name(root, namespace, app));
    let holder = path.with_extension("holder");
    let file = private_file(&path, false).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            let _ = private_file(&holder, true).and_then(|mut file| file.write_all(holder_text().as_bytes()));
            Ok(Guard { file, holder })
        }
        Err(TryLockError::WouldBlock) => {
            // The holder writes it right after it takes the lock, so it may be missing for a moment.
            let text = fs::read_to_string(&holder).unwrap_or_default();
            let text = match text.trim() {
                "" => "another process".to_owned(),
                text => shown(Path::new(&text.chars().take(200).collect::<String>())),
            };
            let message = format!("app {app:?} in {} is being changed by {text}", shown(root));
            Err(ClusterError::new(ErrorKind::Locked, message))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Opens a file for writing, and creates it if missing, accessible only to its owner.
fn private_file(path: &Path, truncate: bool) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(truncate).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
        options.mode(0o600).custom_flags(no_link);
    }
    options.open(path)
}

/// Creates the folder if missing. One that others can write to, or replace through a folder above it, is refused: they
/// could remove the lock, or redirect our write.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    check_private(path)
}

/// One name per app and folder, whatever path leads to the folder.
fn lock_name(root: &Path, namespace: &str, app: &str) -> String {
    let mut digest = Sha256::new();
    for part in [real_path(root).as_os_str().as_encoded_bytes(), namespace.as_bytes(), app.as_bytes()] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    format!("{}.lock", hex::encode(&digest.finalize()[..16]))
}

/// The real path, also of a folder that does not exist yet.
fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let Some((ancestor, real)) = existing else { return path };
    // By components: joining an empty path would append a separator.
    real.components().chain(path.strip_prefix(ancestor).unwrap_or(Path::new("")).components()).collect()
}

/// Possible folders for locks, the best first. The cache comes before the runtime directory: a cron job lacks the
/// latter, and must find the lock of a login session.
fn lock_directories() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let below = |path: PathBuf| path.join("pushback").join("locks");
    let home_cache = std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".cache"));
    let mut directories: Vec<PathBuf> =
        [variable("XDG_CACHE_HOME"), variable("LOCALAPPDATA"), home_cache, variable("XDG_RUNTIME_DIR")]
            .into_iter()
            .flatten()
            .map(below)
            .collect();
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw().to_string();
    #[cfg(not(unix))]
    let user = "user";
    directories.push(std::env::temp_dir().join(format!("pushback-{user}")).join("locks"));
    directories
}

/// `process 4711 on build-1 since 2026-11-21T09:26:10Z`.
fn holder_text() -> String {
    let Environment { host, process, .. } = Environment::real();
    let since = wall_clock().round(jiff::Unit::Second).unwrap_or_else(|_| wall_clock());
    format!("process {process} on {host} since {since}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_has_it() {
        let locks = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        let acquire = |app: &str| acquire(Some(locks.path()), root.path(), "shop", app);
        let held = acquire("web").unwrap();
        let error = acquire("web").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Locked);
        assert!(error.message.contains(&format!("process {} on ", std::process::id())), "{error}");
        assert!(acquire("api").is_ok());
        drop(held);
        assert!(acquire("web").is_ok());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_is_released_also_while_a_child_that_is_being_started_has_its_file_open() {
        let locks = tempfile::tempdir().unwrap();
        let acquire = || acquire(Some(locks.path()), locks.path(), "shop", "web");
        let held = acquire().unwrap();
        let inherited = held.file.try_clone().unwrap();
        drop(held);
        assert!(acquire().is_ok());
        drop(inherited);
    }

    #[cfg(unix)]
    #[test]
    fn everything_in_the_folder_of_locks_is_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let locks = place.path().join("locks");
        let _held = acquire(Some(&locks), place.path(), "shop", "web").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&locks), 0o700);
        let modes: Vec<u32> = fs::read_dir(&locks).unwrap().map(|entry| mode(&entry.unwrap().path())).collect();
        assert_eq!(modes, [0o600, 0o600]);
    }

    #[cfg(unix)]
    #[test]
    fn locks_are_kept_where_nobody_else_can_exchange_them() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let shared = tempfile::tempdir().unwrap();
        let victim = shared.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        fs::create_dir(shared.path().join("locks")).unwrap();
        let locks = shared.path().join("locks");
        let acquire = || acquire(Some(&locks), Path::new("/x"), "n", "a").map_err(|error| error.message);
        // A planted link in place of the lock or its holder file.
        let lock = locks.join(lock_name(Path::new("/x"), "n", "a"));
        symlink(&victim, lock.with_extension("holder")).unwrap();
        drop(acquire().unwrap());
        symlink(&victim, &lock).unwrap_or_else(|_| {
            fs::remove_file(&lock).unwrap();
            symlink(&victim, &lock).unwrap();
        });
        assert!(acquire().is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        // Another user with write access to the folder above may replace the folder.
        fs::remove_file(&lock).unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = acquire().unwrap_err();
        assert!(refused.contains("everybody may write to "), "{refused}");
    }

    #[test]
    fn a_place_that_is_no_folder_is_not_used() {
        let locks = tempfile::tempdir().unwrap();
        let place = locks.path().join("locks");
        fs::write(&place, "").unwrap();
        assert_eq!(acquire(Some(&place), locks.path(), "n", "a").unwrap_err().kind, ErrorKind::Configuration);
    }

    #[test]
    fn one_folder_has_one_lock_by_every_path() {
        let directory = tempfile::tempdir().unwrap();
        let name = |path: &str| lock_name(&directory.path().join(path), "n", "a");
        let before = name("live/deep");
        fs::create_dir_all(directory.path().join("live/deep")).unwrap();
        assert_eq!(before, name("live/deep"));
        assert_eq!(before, name("live/../live/deep"));
        assert_ne!(before, name("live"));
        assert_ne!(lock_name(Path::new("/x"), "a", "bc"), lock_name(Path::new("/x"), "ab", "c"));
    }
}
