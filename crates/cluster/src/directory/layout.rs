//! Where a new object is stored: one file per object, at a path derived from its identity alone.
//! File names are distinct on every common file system and cannot leave the folder.

use std::path::{Path, PathBuf};

use pushback_objects::{ObjectKey, hex};
use sha2::{Digest, Sha256};

/// Folder of the app records, below the root.
pub const RECORDS: &str = ".pushback";
/// Folder of cluster-scoped objects; not a valid namespace name.
const CLUSTER_SCOPED: &str = "_cluster";
/// File names have at most 255 bytes on most systems; this leaves room for the extension and a number.
const MAX_NAME: usize = 200;

/// `shop/deployment.apps_web.yaml`, `_cluster/namespace_shop.yaml`.
pub(super) fn object_path(key: &ObjectKey) -> PathBuf {
    let folder = if key.namespace.is_empty() { CLUSTER_SCOPED.to_owned() } else { segment(&key.namespace) };
    let kind = key.kind.to_lowercase();
    let kind = if key.group.is_empty() { kind } else { format!("{kind}.{}", key.group) };
    // Kinds and groups have no underscore, so the first one ends them.
    let kind = escape(&kind, |c| c != '_');
    Path::new(&folder).join(file_name(&format!("{kind}_{}", escape(&key.name, |_| true))))
}

/// `.pushback/shop/web.yaml`.
pub(super) fn record_path(key: &ObjectKey) -> PathBuf {
    Path::new(RECORDS).join(segment(&key.namespace)).join(file_name(&escape(&key.name, |_| true)))
}

/// The n-th alternative, if the path is taken by another file.
pub(super) fn alternative(path: &Path, number: u32) -> PathBuf {
    if number < 2 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}~{number}.yaml"))
}

fn segment(name: &str) -> String {
    bounded(&not_reserved(escape(name, |_| true)))
}

fn file_name(escaped: &str) -> String {
    bounded(&not_reserved(escaped.to_owned())) + ".yaml"
}

/// Percent-encodes all but lower-case letters, digits and `-._`: capitals, because some systems ignore case, and a dot
/// at either end. `%` is in no Kubernetes name, so no two names collide.
fn escape(name: &str, keep: impl Fn(char) -> bool) -> String {
    let last = name.len().saturating_sub(1);
    let mut escaped = String::with_capacity(name.len());
    for (index, byte) in name.bytes().enumerate() {
        let plain = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => true,
            b'.' => index != 0 && index != last,
            _ => false,
        };
        if plain && keep(char::from(byte)) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02x}"));
        }
    }
    escaped
}

/// Encodes the first letter of Windows device names, with any extension, and makes an empty name non-empty.
fn not_reserved(name: String) -> String {
    let stem = name.split('.').next().unwrap_or_default();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|digit| digit.len() == 1 && digit != "0" && digit.as_bytes()[0].is_ascii_digit())
    };
    let reserved = matches!(stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt");
    match name.bytes().next() {
        None => "%".to_owned(),
        Some(first) if reserved => format!("%{first:02x}{}", &name[1..]),
        Some(_) => name,
    }
}

/// Truncates a long name and appends a digest of the whole.
fn bounded(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let digest = hex::encode(&Sha256::digest(name.as_bytes())[..8]);
    format!("{}~{digest}", &name[..MAX_NAME - 17])
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    fn place(group: &str, kind: &str, namespace: &str, name: &str) -> String {
        object_path(&key(group, kind, namespace, name)).to_string_lossy().replace('\\', "/")
    }

    #[test]
    fn places_are_readable_and_fit_every_file_system() {
        assert_eq!(place("apps", "Deployment", "shop", "web"), "shop/deployment.apps_web.yaml");
        assert_eq!(place("", "Namespace", "", "shop"), "_cluster/namespace_shop.yaml");
        assert_eq!(
            place("rbac.authorization.k8s.io", "ClusterRole", "", "system:Foo"),
            "_cluster/clusterrole.rbac.authorization.k8s.io_system%3a%46oo.yaml"
        );
        assert_eq!(place("x.io", "Con", "aux", "a"), "%61ux/%63on.x.io_a.yaml");
        assert_eq!(place("", "Pod", "..", "../../etc/passwd"), "%2e%2e/pod_%2e.%2f..%2fetc%2fpasswd.yaml");
        let long = place("", "ConfigMap", "n", &"x".repeat(253));
        assert!(long.len() < 215 && long.contains('~'), "{long}");
        assert_ne!(long, place("", "ConfigMap", "n", &"x".repeat(252)));
    }

    proptest! {
        #[test]
        fn no_name_leads_out_of_the_folder_and_no_two_meet(
            one in ("[a-z.-]{0,6}", "[A-Za-z_]{1,6}", "\\PC{0,8}", "\\PC{0,300}"),
            two in ("[a-z._-]{0,6}", "[A-Za-z_]{1,6}", "[aA.:/\\\\]{0,4}", "[aA.:/_\\\\~%]{0,4}"),
        ) {
            let keys = [key(&one.0, &one.1, &one.2, &one.3), key(&two.0, &two.1, &two.2, &two.3)];
            for key in &keys {
                let path = object_path(key);
                prop_assert_eq!(path.components().count(), 2);
                prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
                prop_assert!(path.components().all(|part| part.as_os_str().len() < 250));
                prop_assert!(!path.to_string_lossy().starts_with('.'));
            }
            let folded = |key: &ObjectKey| (key.group.clone(), key.kind.to_lowercase(), key.namespace.clone(), key.name.clone());
            if folded(&keys[0]) != folded(&keys[1]) {
                prop_assert_ne!(object_path(&keys[0]), object_path(&keys[1]));
            }
        }
    }
}
