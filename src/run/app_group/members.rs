//! The apps of a group: those of the directories, and those whose records say so.

use std::path::{Path, PathBuf};

use pushback_app::identity::{QUALIFIED_SUFFIX, RECORD_LABEL};
use pushback_app::record::config_map_kind;
use pushback_cluster::{Cluster, ClusterError, ListQuery, list_all};
use pushback_events::{GroupApp, RunFailure};
use pushback_objects::ObjectExt;
use pushback_system::environment::reason;

use super::super::error::CommandError;

/// Label of the records of a group's apps.
pub const GROUP_LABEL: &str = "kapp.k14s.io/app-group";
/// Most characters of a label's value.
const LABEL_VALUE: usize = 63;
/// Most characters of an app's name.
const APP_NAME: usize = 240;

/// An app of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// App name.
    pub name: String,
    /// The directory that it is applied from; `None` if it is deleted.
    pub directory: Option<PathBuf>,
    /// Why it can be planned only when its turn has come, if so.
    pub later: Option<String>,
}

impl Member {
    /// An app that is deleted.
    pub(super) fn deleted(name: String) -> Self {
        Self { name, directory: None, later: None }
    }
}

impl From<&Member> for GroupApp {
    fn from(member: &Member) -> Self {
        Self {
            app: member.name.clone(),
            directory: member.directory.as_ref().map(|path| path.display().to_string()),
            later: member.later.clone(),
        }
    }
}

/// Checks the name of a group, which is also the value of a label and the start of its apps' names.
///
/// # Errors
/// It is none.
pub fn group_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if text.len() <= LABEL_VALUE && text.chars().all(plain) && edge(text.chars().next()) && edge(text.chars().last()) {
        return Ok(text.to_owned());
    }
    Err("expected lower-case letters, digits, - and ., at most 63, with a letter or digit at both ends".to_owned())
}

/// Whether symbolic links may lead out of the directory of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// They are followed.
    Followed,
    /// One that leads out is an error.
    Inside,
}

/// An app for each directory in this one, by name; hidden ones are left out.
///
/// # Errors
/// The directory cannot be read, or one in it has a name that no app can have, or is a link that leads out.
pub(super) fn of_directories(group: &str, directory: &str, links: Links) -> Result<Vec<Member>, CommandError> {
    let unread = |error: std::io::Error| {
        let message = format!("directory {directory} cannot be read: {}", reason(&error));
        CommandError::usage(message).because(RunFailure::Flag { flag: "--directory", value: directory.to_owned() })
    };
    let root = Path::new(directory).canonicalize().map_err(unread)?;
    let mut members = Vec::new();
    for entry in Path::new(directory).read_dir().map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !path.is_dir() || name.starts_with('.') {
            continue;
        }
        if links == Links::Inside && !path.canonicalize().map_err(unread)?.starts_with(&root) {
            let message = format!("{}: the symbolic link leads out of {directory}", path.display());
            let hint =
                "use --follow-links if all links in the directory can be trusted, or replace the link by its target";
            return Err(CommandError::usage_with_hint(message, hint));
        }
        let app = format!("{group}-{name}");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        if app.len() > APP_NAME || !name.chars().all(plain) || !name.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            let message = format!("{}: {app} is no name for an app", path.display());
            let hint = "names of directories are parts of names: lower-case letters, digits, - and .";
            return Err(CommandError::usage_with_hint(message, hint));
        }
        members.push(Member { name: app, directory: Some(path), later: None });
    }
    members.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(members)
}

/// Names of the apps whose records belong to the group, sorted.
///
/// # Errors
/// The cluster's error.
pub(super) async fn recorded(cluster: &dyn Cluster, namespace: &str, group: &str) -> Result<Vec<String>, ClusterError> {
    let selector = format!("{RECORD_LABEL},{GROUP_LABEL}={group}");
    let page = list_all(cluster, &ListQuery::new(config_map_kind(), Some(namespace), &selector)).await?;
    let name = |record: &std::sync::Arc<serde_json::Value>| {
        let name = record.name();
        name.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(name).to_owned()
    };
    let mut names: Vec<String> = page.items.iter().map(name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_a_directory_that_is_not_hidden() {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["web", "db", ".git"] {
            std::fs::create_dir(place.path().join(name)).expect("a directory");
        }
        std::fs::write(place.path().join("README.md"), "").expect("a file");
        let path = place.path().display().to_string();
        let names = || {
            of_directories("shop", &path, Links::Inside)
                .map(|all| all.into_iter().map(|member| member.name).collect::<Vec<_>>())
        };
        assert_eq!(names().expect("names"), ["shop-db", "shop-web"]);
        std::fs::create_dir(place.path().join("Big")).expect("a directory");
        assert!(names().expect_err("no name").message().contains("shop-Big is no name for an app"));
        assert!(of_directories("shop", "/nonexistent", Links::Inside).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn link_out_of_the_directory_is_an_app_only_if_links_are_followed() {
        let place = tempfile::tempdir().expect("a directory");
        let (group, outside) = (place.path().join("group"), place.path().join("outside"));
        for path in [&group, &outside, &group.join("db"), &group.join("db/nested")] {
            std::fs::create_dir(path).expect("a directory");
        }
        std::os::unix::fs::symlink("db", group.join("same")).expect("a link");
        let path = group.display().to_string();
        let count = |links| of_directories("shop", &path, links).map(|members| members.len());
        assert_eq!(count(Links::Inside).expect("apps"), 2);
        for (name, target) in [("out", outside.as_path()), ("up", Path::new("../outside")), ("above", Path::new(".."))]
        {
            let link = group.join(name);
            std::os::unix::fs::symlink(target, &link).expect("a link");
            let refused = count(Links::Inside).expect_err("a link that leads out");
            assert!(refused.message().contains("the symbolic link leads out of"), "{}", refused.message());
            assert_eq!(count(Links::Followed).expect("apps"), 3);
            std::fs::remove_file(&link).expect("a link");
        }
    }

    #[test]
    fn the_name_of_a_group_is_the_value_of_a_label() {
        assert!(group_name("shop").is_ok() && group_name(&"a".repeat(63)).is_ok());
        for wrong in [String::new(), "Shop".to_owned(), "-a".to_owned(), "a".repeat(64)] {
            assert!(group_name(&wrong).is_err(), "{wrong}");
        }
    }
}
