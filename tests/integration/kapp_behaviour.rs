//! `docs/contributing/kapp-behaviour.md` lists what kapp does, with the test of each: every test that it names exists, and no row
//! stands there twice.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![Nothing: every_behaviour_names_a_test_that_exists]
}

const PAGE: &str = "docs/contributing/kapp-behaviour.md";
const AT_LEAST: usize = 200;
const VERDICTS: [&str; 3] = ["better: ", "different: ", "left out: "];

fn every_behaviour_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join(PAGE)).expect(PAGE);
    let integration: BTreeSet<String> = crate::all_tests().iter().map(TestCase::name).collect();
    // A row of a table differs, an item of a list is the same.
    let row = Regex::new(r"^\| (?P<statement>.+) \| (?P<verdict>.+) \| `(?P<test>[^`]+)` \|$").expect("a pattern");
    let item = Regex::new(r"^- (?P<statement>.+): `(?P<test>[^`]+)`$").expect("a pattern");
    let (mut statements, mut wrong) = (BTreeSet::new(), Vec::new());
    for line in page.lines().filter(|line| is_row(line) || line.starts_with("- ")) {
        let pattern = if is_row(line) { &row } else { &item };
        let Some(cells) = pattern.captures(line) else {
            wrong.push(format!("not a statement, a verdict if it differs, and a test: {line}"));
            continue;
        };
        let (statement, verdict, test) = (&cells["statement"], cells.name("verdict"), &cells["test"]);
        if !statements.insert(statement.to_owned()) {
            wrong.push(format!("twice: {statement}"));
        }
        if verdict.is_some_and(|verdict| !VERDICTS.iter().any(|known| verdict.as_str().starts_with(known))) {
            wrong.push(format!("no verdict: {line}"));
        }
        let exists = match test.split_once(".rs::") {
            Some((file, function)) => is_unit_test(&root.join(format!("{file}.rs")), function),
            None => integration.contains(test),
        };
        if !exists {
            wrong.push(format!("no such test: {test}"));
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
    assert!(statements.len() >= AT_LEAST, "{PAGE} has {} rows", statements.len());
}

fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| kapp |")
}

fn is_unit_test(file: &Path, function: &str) -> bool {
    let test = Regex::new(&format!(r"#\[test\]\s+fn {function}\(")).expect("a pattern");
    std::fs::read_to_string(file).is_ok_and(|text| test.is_match(&text))
}
