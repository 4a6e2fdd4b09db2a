//! A finding's path as repository hosts expect it: relative to the root of the sources, with `/` separators.

use std::path::{Component, Path};

/// Path of a position's file relative to `working_directory`; `None` for standard input, URLs, and files outside it.
#[must_use]
pub fn source_path(file: &str, working_directory: &Path) -> Option<String> {
    if file.is_empty() || file == "-" || file.contains("://") || file.starts_with("/dev/") || file.starts_with("/proc/")
    {
        return None;
    }
    // Paths from a git ref are relative to the root of the repository.
    let path = match file.strip_prefix("git:") {
        Some(of_ref) => Path::new(of_ref.split_once(':')?.1),
        None => Path::new(file),
    };
    let path = if path.is_absolute() { path.strip_prefix(working_directory).ok()? } else { path };
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_working_directory_or_none() {
        let path = |file: &str| source_path(file, Path::new("/work/shop"));
        for (file, expected) in [
            ("crds/a b.yaml", Some("crds/a b.yaml")),
            ("./crds/../a.yaml", Some("a.yaml")),
            ("/work/shop/crds/a.yaml", Some("crds/a.yaml")),
            ("git:origin/main:crds/a.yaml", Some("crds/a.yaml")),
            ("/work/other/a.yaml", None),
            ("../a.yaml", None),
            ("-", None),
            ("/dev/fd/63", None),
            ("https://example.com/a.yaml", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(path(file).as_deref(), expected, "{file}");
        }
    }
}
