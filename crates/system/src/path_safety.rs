//! Which places are safe to write to: another user must not be able to redirect a write.
//! Guards against symbolic links that lead outside, and against links and folders owned by other users.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Checks that files may be created in a folder, which need not exist yet.
///
/// # Errors
/// A relative path leaves the working directory through a symbolic link; a link on the way, or the folder, belongs to
/// another user.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    check_folder_as(user(), folder)
}

fn check_folder_as(user: u32, folder: &Path) -> io::Result<()> {
    let (existing, real) = existing(folder)?;
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if folder.components().all(stays) && !real.starts_with(fs::canonicalize(".")?) {
        return Err(io::Error::other(format!(
            "{} leads out of the working directory through a symbolic link",
            existing.display()
        )));
    }
    check_links(user, &existing)?;
    // In a container the superuser writes into folders mounted from elsewhere. No other user's link is followed there,
    // and nothing is written in place.
    if user != 0 && !is_trusted(user, owner(&fs::metadata(&real)?)) {
        return Err(io::Error::other(format!(
            "the folder {} belongs to another user, who could exchange the file",
            existing.display()
        )));
    }
    Ok(())
}

/// Checks that nobody else can replace the content of a folder: neither it nor any folder above is writable to others.
///
/// # Errors
/// Another user, or everybody, may write to it or to a folder above it; a link on the way belongs to another user.
pub fn check_private(folder: &Path) -> io::Result<()> {
    let user = user();
    check_links(user, folder)?;
    let real = fs::canonicalize(folder)?;
    for above in real.ancestors() {
        let metadata = fs::metadata(above)?;
        if !is_trusted(user, owner(&metadata)) {
            return Err(io::Error::other(format!("{} belongs to another user", above.display())));
        }
        if is_world_writable(&metadata) {
            return Err(io::Error::other(format!("everybody may write to {}", above.display())));
        }
    }
    Ok(())
}

/// The real path of an existing file or folder. A symbolic link is followed if it stays within its folder.
///
/// # Errors
/// The link leaves its folder, or belongs to another user.
pub fn followed(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    if !fs::symlink_metadata(path)?.is_symlink() {
        return Ok(real);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !real.starts_with(fs::canonicalize(folder)?) {
        return Err(io::Error::other("it is a symbolic link that leads out of its folder"));
    }
    check_links(user(), path)?;
    Ok(real)
}

/// The nearest folder above that exists, and its real path.
fn existing(folder: &Path) -> io::Result<(PathBuf, PathBuf)> {
    for above in folder.ancestors() {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match fs::canonicalize(above) {
            Ok(real) => return Ok((above.to_owned(), real)),
            // A dangling link exists, and still leads somewhere.
            Err(error) if error.kind() != io::ErrorKind::NotFound || fs::symlink_metadata(above).is_ok() => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    Ok((PathBuf::from("."), fs::canonicalize(".")?))
}

/// Checks the owner of every link, because the owner decides where it leads.
fn check_links(user: u32, path: &Path) -> io::Result<()> {
    for above in path.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        let metadata = fs::symlink_metadata(above)?;
        if metadata.is_symlink() && !is_trusted(user, owner(&metadata)) {
            return Err(io::Error::other(format!("the symbolic link {} belongs to another user", above.display())));
        }
    }
    Ok(())
}

/// The superuser can do everything anyway.
fn is_trusted(user: u32, owner: u32) -> bool {
    owner == user || owner == 0
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(unix)]
fn owner(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

/// Whether everybody may add and remove files there: writable to all, without the sticky bit.
#[cfg(unix)]
fn is_world_writable(metadata: &fs::Metadata) -> bool {
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
    mode & 0o002 != 0 && mode & 0o1000 == 0
}

// Other platforms have no numeric owners; the folders used there are the user's own.
#[cfg(not(unix))]
fn user() -> u32 {
    0
}

#[cfg(not(unix))]
fn owner(_metadata: &fs::Metadata) -> u32 {
    0
}

#[cfg(not(unix))]
fn is_world_writable(_metadata: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    /// A folder that belongs neither to root nor to the returned user.
    fn of_another_user() -> (tempfile::TempDir, u32) {
        let folder = tempfile::tempdir().unwrap();
        if user() == 0 {
            chown(folder.path(), Some(4711), None).unwrap();
        }
        let owner = owner(&fs::metadata(folder.path()).unwrap());
        (folder, owner + 1)
    }

    #[test]
    fn a_folder_of_another_user_is_not_written_to() {
        let (folder, user) = of_another_user();
        let refused = |user: u32, path: &Path| check_folder_as(user, path).err().map(|error| error.to_string());
        for path in [folder.path().to_owned(), folder.path().join("not/there/yet")] {
            let said = refused(user, &path).expect("another user's");
            assert!(said.contains("belongs to another user, who could exchange the file"), "{said}");
            assert_eq!(refused(user - 1, &path), None, "its owner may");
            assert_eq!(refused(0, &path), None, "in a container the superuser may");
        }
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        let (folder, user) = of_another_user();
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        // Only root can give a link away, and only root's has to be.
        let _ = lchown(&link, Some(user - 1), None);
        assert!(check_links(user, &link).unwrap_err().to_string().contains("the symbolic link"));
        assert!(check_links(user - 1, &link).is_ok());
    }

    #[test]
    fn a_link_leads_no_further_than_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "").unwrap();
        fs::write(outside.path().join("real"), "").unwrap();
        symlink("real", at("inside")).unwrap();
        symlink(outside.path().join("real"), at("outside")).unwrap();
        assert_eq!(followed(&at("inside")).unwrap(), fs::canonicalize(at("real")).unwrap());
        assert_eq!(followed(&at("real")).unwrap(), fs::canonicalize(at("real")).unwrap());
        let refused = followed(&at("outside")).unwrap_err().to_string();
        assert_eq!(refused, "it is a symbolic link that leads out of its folder");
    }

    #[test]
    fn where_everybody_may_write_nothing_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let open = |mode: u32| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(check_private(&inner).is_ok());
        open(0o777);
        assert!(check_private(&inner).unwrap_err().to_string().starts_with("everybody may write to "));
        open(0o1777);
        assert!(check_private(&inner).is_ok());
    }
}
