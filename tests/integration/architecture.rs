//! The crates in docs/contributing/architecture.md: the table lists each below those that it depends on, and the list of
//! dependencies is made from `cargo metadata`. Cargo itself enforces the boundaries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: table_lists_every_crate_below_those_that_it_depends_on,
        Nothing: list_shows_the_dependencies_of_every_crate,
    ]
}

const START: &str = "<!-- Made by a test; UPDATE_DOCS=1 renews it. -->\n\n```\n";
const END: &str = "```\n\n<!-- The end of what the test makes. -->";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/contributing/architecture.md")
}

/// Names and folders of the crates, in the order of the table.
fn listed(page: &str) -> Vec<(String, String)> {
    let (table, _) = page.split_once("\n## ").expect("a heading below the table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("`, in `"));
    rows.filter_map(|(name, rest)| Some((name.to_owned(), rest.split_once('`')?.0.to_owned()))).collect()
}

/// Name and folder of each crate, with those of the workspace that it depends on outside its tests.
fn crates() -> BTreeMap<(String, String), BTreeSet<String>> {
    let run = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    let names: BTreeSet<String> = packages.iter().map(|package| text(&package["name"])).collect();
    let read = |package: &Value| {
        let folder = Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let folder = folder.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("a folder of the project");
        let folder = if folder.as_os_str().is_empty() { "src".to_owned() } else { folder.display().to_string() };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let needed = dependencies.filter(|it| it["kind"].is_null()).map(|it| text(&it["name"]));
        ((text(&package["name"]), folder), needed.filter(|name| names.contains(name)).collect())
    };
    packages.iter().map(read).collect()
}

fn table_lists_every_crate_below_those_that_it_depends_on() {
    let listed = listed(&std::fs::read_to_string(page()).expect("the page"));
    let crates = crates();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>(), crates.keys().collect());
    for (index, listed_crate) in listed.iter().enumerate() {
        let later: Vec<&String> =
            listed[index..].iter().map(|(name, _)| name).filter(|name| crates[listed_crate].contains(*name)).collect();
        assert!(later.is_empty(), "{listed_crate:?} depends on {later:?}, which come later");
    }
}

/// A line for each crate with those that it needs itself: not those that others of them need anyway.
fn dependencies(listed: &[(String, String)]) -> String {
    let crates = crates();
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut text = String::new();
    for listed_crate in listed {
        let own: BTreeSet<&str> = crates[listed_crate].iter().map(String::as_str).collect();
        let beyond: BTreeSet<&str> = own.iter().flat_map(|name| &reached[name]).copied().collect();
        let short = |name: &str| name.strip_prefix("pushback-").unwrap_or("the program").to_owned();
        let direct: Vec<String> = own.difference(&beyond).map(|name| short(name)).collect();
        let line = format!("{:12}{}", short(&listed_crate.0), direct.join(", "));
        text += &format!("{}\n", line.trim_end());
        reached.insert(&listed_crate.0, own.union(&beyond).copied().collect());
    }
    text
}

fn list_shows_the_dependencies_of_every_crate() {
    let text = std::fs::read_to_string(page()).expect("the page");
    let made = dependencies(&listed(&text));
    let (before, rest) = text.split_once(START).expect("the start of the list");
    let (shown, after) = rest.split_once(END).expect("the end of the list");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), [before, START, &made, END, after].concat()).expect("the page is written");
        return;
    }
    assert_eq!(shown, made, "stale: UPDATE_DOCS=1 cargo test --test integration -- architecture");
}
