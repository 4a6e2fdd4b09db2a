//! `tests/data/failures.yaml` lists what can go wrong and what comes of it, each with the tests that show it.
//! `docs/contributing/failures.md` is made of it (`UPDATE_DOCS=1`), so that the page cannot promise what nobody tests.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use crate::support::{TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_situation_names_tests_that_exist,
        Nothing: the_page_of_failures_is_up_to_date,
        Nothing: every_test_of_a_failure_is_in_the_list,
    ]
}

/// Situations of one kind.
#[derive(Deserialize)]
struct Chapter {
    title: String,
    situations: Vec<Situation>,
}

/// Something that goes wrong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Situation {
    /// Completes "When …".
    when: String,
    /// What a run then does.
    then: String,
    /// Its exit codes.
    code: String,
    /// Integration tests by name, unit tests as `file::name`.
    tests: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn chapters() -> Vec<Chapter> {
    serde_yaml::from_str(include_str!("../../data/failures.yaml")).expect("a list of situations")
}

fn situations() -> Vec<Situation> {
    chapters().into_iter().flat_map(|chapter| chapter.situations).collect()
}

fn every_situation_names_tests_that_exist() {
    let known: BTreeSet<String> = crate::all_tests().iter().map(TestCase::name).collect();
    for situation in situations() {
        assert!(!situation.tests.is_empty(), "nothing shows what happens when {}", situation.when);
        for name in &situation.tests {
            let exists = match name.split_once(".rs::") {
                Some((file, test)) => std::fs::read_to_string(root().join(format!("{file}.rs")))
                    .is_ok_and(|text| text.contains(&format!("fn {test}("))),
                None => known.contains(name),
            };
            assert!(exists, "when {}: there is no test {name}", situation.when);
        }
    }
}

fn every_test_of_a_failure_is_in_the_list() {
    let named: BTreeSet<String> = situations().into_iter().flat_map(|situation| situation.tests).collect();
    let all = crate::all_tests();
    let forgotten: Vec<String> = all
        .iter()
        .map(TestCase::name)
        .filter(|name| name.starts_with("failures::") && !name.starts_with("failures::documented::"))
        .filter(|name| !named.contains(name))
        .collect();
    assert!(forgotten.is_empty(), "these show something that tests/data/failures.yaml does not say: {forgotten:?}");
}

fn page() -> String {
    let mut page = "\
# What happens when something goes wrong

Every run ends with one of the [exit codes](../../README.md#exit-codes) and never with a panic. It prints no Secret, changes
only objects of the app, and releases the app or lets its lock expire. The same command continues it. After exit codes 1, 10
and 13 nothing was written. [failures.yaml](../../tests/data/failures.yaml) names the tests of each line.
"
    .to_owned();
    for chapter in chapters() {
        write!(page, "\n## {}\n\n| When | Then | Exit code |\n|---|---|---|\n", chapter.title).expect("text");
        for Situation { when, then, code, .. } in &chapter.situations {
            writeln!(page, "| {when} | {then} | {code} |").expect("text");
        }
    }
    page
}

fn the_page_of_failures_is_up_to_date() {
    let path = root().join("docs/contributing/failures.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("the page is written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/contributing/failures.md is stale: UPDATE_DOCS=1 cargo test --test integration -- failures"
    );
}
