//! Pairs of releases: those in `tests/data`, and those of `PUSHBACK_PAIRS`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use pushback_manifest::yaml;
use serde_json::Value;

use crate::support::Pushback;

/// Files of one side, by name.
pub(super) type Side = BTreeMap<String, String>;

/// Two sides.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) old: Side,
    pub(super) new: Side,
}

impl Pair {
    pub(super) fn reversed(&self) -> Self {
        Self { name: format!("{} backwards", self.name), old: self.new.clone(), new: self.old.clone() }
    }

    /// Whether each side is a single CRD of the collection, or about as much.
    pub(super) fn is_small(&self) -> bool {
        [&self.old, &self.new].iter().all(|side| side.values().map(String::len).sum::<usize>() < 60_000)
    }

    /// Writes the sides to the folders `old` and `new`.
    pub(super) fn write(&self, pushback: &Pushback) {
        for (folder, side) in [("old", &self.old), ("new", &self.new)] {
            for (name, content) in side {
                pushback.write(&format!("{folder}/{name}"), content);
            }
        }
    }
}

/// All pairs of consecutive releases.
pub(super) fn pairs() -> Vec<Pair> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut pairs = of_projects(&data.join("apps"));
    pairs.extend(of_projects(&data.join("crd-verdicts")));
    for root in std::env::var_os("PUSHBACK_PAIRS").iter().flat_map(std::env::split_paths) {
        pairs.extend(of_projects(&root));
    }
    pairs
}

/// Each folder of a root is a project, with its releases in folders or packed files; or a case with `old.yaml` and `new.yaml`.
fn of_projects(root: &Path) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for project in children(root).into_iter().filter(|path| path.is_dir()) {
        let mut releases = children(&project);
        releases.retain(|path| path.is_dir() || is_manifest(path));
        releases.sort_by_key(|path| (numbers(path), !name(path).starts_with("old."), path.clone()));
        for two in releases.windows(2) {
            let [old, new] = two else { continue };
            let named = format!("{} {} to {}", name(&project), name(old), name(new));
            pairs.push(Pair { name: named, old: side(old), new: side(new) });
        }
    }
    pairs
}

/// All documents of a text.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let loaded = yaml::load("pair", text.as_bytes(), &yaml::Limits::default());
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    loaded.documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect()
}

fn side(path: &Path) -> Side {
    if path.is_file() {
        return Side::from([("all.yaml".to_owned(), read(path))]);
    }
    let mut side = Side::new();
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        for child in children(&folder) {
            if child.is_dir() {
                open.push(child);
            } else if is_manifest(&child) {
                let below = child.strip_prefix(path).expect("a file below").to_string_lossy().into_owned();
                side.insert(below, read(&child));
            }
        }
    }
    side
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    if name(path).ends_with(".gz") {
        GzDecoder::new(&*bytes).read_to_string(&mut text).expect("packed YAML");
        return text;
    }
    String::from_utf8(bytes).expect("text")
}

fn is_manifest(path: &Path) -> bool {
    let name = name(path);
    [".yaml", ".yml", ".json", ".yaml.gz"].iter().any(|ending| name.ends_with(ending))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn numbers(path: &Path) -> Vec<u64> {
    let name = name(path);
    let stem = name.trim_end_matches(".yaml.gz");
    stem.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut children: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    children.sort();
    children
}
