//! Where a finding stands as hosts of repositories want it: a path below the top of the sources, with `/` in it.

use std::path::{Component, Path};

/// The path that a position's file has below `working_directory`; `None` for standard input, URLs, and files elsewhere.
#[must_use]
pub fn source_path(file: &str, working_directory: &Path) -> Option<String> {
    if file.is_empty() || file == "-" || file.contains("://") || file.starts_with("/dev/") || file.starts_with("/proc/")
    {
        return None;
    }
    // What was read from a git ref counts from the top of the repository.
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
