//! Links of all documents: what they name is there, headings too; and the table of contents of the book leaves nothing out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_link_leads_somewhere,
        Nothing: the_book_has_every_document,
    ]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Markdown file of the project, by its path from the root.
fn documents() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open: Vec<PathBuf> = ["docs", "examples"].map(PathBuf::from).into();
    let mut add = |path: PathBuf| {
        let text = std::fs::read_to_string(root().join(&path)).expect("a document");
        found.insert(path, text);
    };
    let at_root = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"];
    at_root.into_iter().for_each(|name| add(name.into()));
    while let Some(folder) = open.pop() {
        for entry in root().join(&folder).read_dir().expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                add(path);
            }
        }
    }
    found
}

/// Without code, in which brackets are no links.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !line.starts_with("    ") {
            prose += line;
            prose.push('\n');
        }
    }
    Regex::new("`[^`\n]*`").expect("a pattern").replace_all(&prose, "code").into_owned()
}

/// The anchors of a document, as both GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut in_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if in_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = seen.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name.clone() } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
}

/// A path without `..`.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(resolved.pop(), "{} leads out of the project", path.display()),
            part => resolved.push(part),
        }
    }
    resolved
}

fn every_link_leads_somewhere() {
    let documents = documents();
    let link = Regex::new(r#"\]\(([^)\s]+)\)|(?:src|href)="([^"]+)""#).expect("a pattern");
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        documents.iter().map(|(path, text)| (path.as_path(), anchors(text))).collect();
    let (mut count, mut broken) = (0, Vec::new());
    for (path, text) in &documents {
        for found in link.captures_iter(&prose(text)) {
            let target = found.get(1).or(found.get(2)).expect("a target").as_str();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
            let named = if file.is_empty() { path.clone() } else { resolved(&path.with_file_name("").join(file)) };
            if !root().join(&named).exists() {
                broken.push(format!("{}: {target} does not exist", path.display()));
            } else if let Some(anchor) = anchor
                && let Some(headings) = anchors.get(named.as_path())
                && !headings.contains(anchor)
            {
                broken.push(format!("{}: {target}: no such heading", path.display()));
            }
        }
    }
    assert!(count > 200, "only {count} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn the_book_has_every_document() {
    let documents = documents();
    let summary = &documents[Path::new("docs/SUMMARY.md")];
    let link = Regex::new(r"\]\(([^)]+)\)").expect("a pattern");
    let listed: Vec<PathBuf> =
        link.captures_iter(summary).map(|found| resolved(&Path::new("docs").join(&found[1]))).collect();
    let once: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let is_of_book = |path: &Path| path != Path::new("docs/SUMMARY.md");
    let missing: Vec<&PathBuf> = documents.keys().filter(|path| is_of_book(path) && !once.contains(path)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}
