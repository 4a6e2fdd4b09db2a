//! Compares docs/architecture.md with the code: it lists every crate and room, a crate depends only on crates above it,
//! and no two rooms need each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_map_lists_the_rooms_in_their_order,
        Nothing: a_crate_depends_only_on_crates_above_it_on_the_map,
        Nothing: the_picture_shows_the_crates,
        Nothing: no_two_rooms_need_each_other,
        Nothing: a_room_needs_only_rooms_above_it_on_the_map,
    ]
}

/// The source folders of all crates.
fn crates() -> Vec<String> {
    let below = std::fs::read_dir(root().join("crates")).expect("the folder of the crates");
    let names = below.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let folders = names.map(|name| format!("crates/{name}/src"));
    ["src", "preflight/src"].map(str::to_owned).into_iter().chain(folders).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the project")
}

fn rooms(crate_root: &str) -> Vec<String> {
    let text = read(Path::new(crate_root).join("lib.rs"));
    let names = text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    names.map(|name| name.trim_end_matches(';').to_owned()).collect()
}

/// The rooms that the map lists.
fn map() -> Vec<String> {
    let map = read("docs/architecture.md");
    let (_, table) = map.split_once("## Rooms of `pushback`").expect("the heading of the rooms");
    let (table, _) = table.split_once("\n## ").expect("the next heading");
    let listed = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    listed.map(|(room, _)| room.to_owned()).collect()
}

fn the_map_lists_the_rooms_in_their_order() {
    assert_eq!(map(), rooms("src"));
}

/// The crates that the map lists, each with its folder.
fn listed_crates() -> Vec<(String, String)> {
    let map = read("docs/architecture.md");
    let (table, _) = map.split_once("\n## ").expect("a heading below the crates");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("`, in `"));
    let named = rows.filter_map(|(name, rest)| Some((name.to_owned(), rest.split_once('`')?.0.to_owned())));
    named.collect()
}

fn a_crate_depends_only_on_crates_above_it_on_the_map() {
    let listed = listed_crates();
    let folders: BTreeSet<String> = listed.iter().map(|(_, folder)| folder.clone()).collect();
    let sources: BTreeSet<String> =
        crates().into_iter().map(|folder| folder.trim_end_matches("/src").to_owned()).collect();
    assert_eq!(folders, sources);
    for (index, (name, folder)) in listed.iter().enumerate() {
        let needs = dependencies(folder, &listed);
        let later: Vec<&String> =
            listed[index..].iter().map(|(later, _)| later).filter(|later| needs.contains(later)).collect();
        assert!(later.is_empty(), "{name} depends on {later:?}, which come later");
    }
}

/// The crates of the workspace that a crate depends on.
fn dependencies(folder: &str, all: &[(String, String)]) -> Vec<String> {
    let manifest = read(Path::new(folder.trim_end_matches("src")).join("Cargo.toml"));
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").expect("dependencies");
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let named: BTreeSet<&str> = dependencies.lines().filter_map(|line| line.split(['.', ' ']).next()).collect();
    all.iter().map(|(name, _)| name.clone()).filter(|name| named.contains(name.as_str())).collect()
}

/// The source of the picture: an arrow from a crate to each that it depends on, without arrows that follow from others.
fn drawn() -> String {
    let listed = listed_crates();
    let needs: BTreeMap<&str, Vec<String>> =
        listed.iter().map(|(name, folder)| (name.as_str(), dependencies(folder, &listed))).collect();
    let mut reached: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut text = "// The picture of docs/architecture.md: dot -Tsvg docs/architecture.dot -o docs/architecture.svg\n\
                    digraph architecture {\n    rankdir = BT\n    node [shape = box, style = rounded, fontname = \"sans-serif\"]\n"
        .to_owned();
    for (name, _) in &listed {
        let own = &needs[name.as_str()];
        let beyond: BTreeSet<&String> = own.iter().flat_map(|need| &reached[need.as_str()]).collect();
        let label = name.strip_prefix("pushback-").unwrap_or("the program");
        text += &format!("    \"{name}\" [label = \"{label}\"]\n");
        for need in own.iter().filter(|need| !beyond.contains(need)) {
            text += &format!("    \"{name}\" -> \"{need}\"\n");
        }
        let all = own.iter().chain(beyond).cloned().collect();
        reached.insert(name, all);
    }
    text + "}\n"
}

/// Both the source of the picture and what was drawn from it.
fn the_picture_shows_the_crates() {
    let path = root().join("docs/architecture.dot");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, drawn()).expect("the picture's source is written");
    }
    let source = read("docs/architecture.dot");
    assert!(source == drawn(), "stale: UPDATE_DOCS=1 cargo test --test integration -- architecture");
    // Graphviz writes a hyphen as a reference.
    let picture = read("docs/architecture.svg").replace("&#45;", "-").replace("&gt;", ">");
    let labels: Vec<&str> = source.split("label = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let arrows = source.lines().filter(|line| line.contains(" -> ")).map(|line| line.trim().replace(['"', ' '], ""));
    let titles = arrows.map(|arrow| format!("<title>{arrow}</title>"));
    let shown = labels.iter().map(|label| format!(">{label}<")).chain(titles);
    let stale: Vec<String> = shown.filter(|piece| !picture.contains(piece)).collect();
    assert!(stale.is_empty(), "dot -Tsvg docs/architecture.dot -o docs/architecture.svg: {stale:?}");
}

/// The crate whose rooms `live` and `kapp` need each other: the reporter chooses the renderer.
const WITH_CIRCLE: &str = "crates/terminal/src";

fn no_two_rooms_need_each_other() {
    for crate_root in crates().into_iter().filter(|it| it != WITH_CIRCLE) {
        let rooms: BTreeSet<String> = rooms(&crate_root).into_iter().collect();
        let needs: BTreeMap<&str, BTreeSet<&str>> =
            rooms.iter().map(|room| (room.as_str(), needed(&crate_root, room, &rooms))).collect();
        for room in needs.keys() {
            if let Some(way) = way_back(&needs, room) {
                panic!("{crate_root}: {}", way.join(" needs "));
            }
        }
    }
}

fn a_room_needs_only_rooms_above_it_on_the_map() {
    let listed = map();
    let all: BTreeSet<String> = listed.iter().cloned().collect();
    for (index, room) in listed.iter().enumerate() {
        let later: Vec<&str> =
            needed("src", room, &all).into_iter().filter(|need| listed[index..].iter().any(|it| it == need)).collect();
        assert!(later.is_empty(), "{room} needs {later:?}, which come later");
    }
}

/// The rooms that the production code of a room names.
fn needed<'r>(crate_root: &str, room: &str, rooms: &'r BTreeSet<String>) -> BTreeSet<&'r str> {
    let folder = root().join(crate_root);
    let mut files = vec![folder.join(format!("{room}.rs"))];
    add_files(&folder.join(room), &mut files);
    let mut needed = BTreeSet::new();
    for file in files.iter().filter(|file| !is_of_tests(file)) {
        let text = std::fs::read_to_string(file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = lines.flat_map(|line| line.split("crate::").skip(1)).map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(rest.len());
            &rest[..end]
        });
        needed.extend(named.filter(|name| *name != room).filter_map(|name| rooms.get(name)).map(String::as_str));
    }
    needed
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

fn is_of_tests(file: &Path) -> bool {
    let is_named = |part: &str| matches!(part, "tests" | "tests.rs" | "fixture.rs" | "testing");
    file.iter().filter_map(|part| part.to_str()).any(is_named)
}

/// A way that leads from a room to itself.
fn way_back<'r>(needs: &BTreeMap<&'r str, BTreeSet<&'r str>>, start: &'r str) -> Option<Vec<&'r str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(room) = open.pop() {
        for next in needs.get(room).into_iter().flatten() {
            if *next == start {
                let mut way = vec![start, room];
                while let Some(before) = way.last().and_then(|last| from.get(last)) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(next) {
                from.insert(next, room);
                open.push(next);
            }
        }
    }
    None
}
