//! Runs the cases of `cases.txt`: small releases and their expected differences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pushback_objects::duration;
use pushback_objects::object::{ObjectRef, split_api_version};
use serde_json::Value;

use super::super::super::model::{CheckKind, SteadyStateCheck};
use super::super::super::model::{Resource, Webhook};
use super::super::*;
use super::resource;

const CASES: &str = include_str!("../cases.txt");

#[test]
fn every_case_comes_out_as_written() {
    let mut written = String::new();
    let mut count = 0;
    for part in CASES.split_inclusive("\n\n") {
        let Some(case) = part.trim_end().strip_prefix("== ") else {
            written += part;
            continue;
        };
        count += 1;
        let asked: Vec<&str> = case.lines().filter(|line| !line.starts_with('>')).collect();
        let _ = writeln!(written, "== {}", asked.join("\n"));
        for line in outcome(&asked[1..]) {
            let _ = writeln!(written, "> {line}");
        }
        written.push('\n');
    }
    let written = written.trim_end().to_owned() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/compare/cases.txt");
        std::fs::write(path, &written).unwrap();
    } else {
        assert!(written == CASES, "{}", similar::TextDiff::from_lines(CASES, &written).unified_diff());
    }
    assert!(count >= 80, "{count}");
}

/// One line for each component and each of its changes.
fn outcome(lines: &[&str]) -> Vec<String> {
    let (mut old, mut new) = (Side::default(), Side::default());
    let mut options = Options { matching: Some(Matching::Published), ..Options::default() };
    for line in lines {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("-", facts) => old.component(facts),
            ("+", facts) => new.component(facts),
            ("-o", facts) => old.operator(facts),
            ("+o", facts) => new.operator(facts),
            ("matching:", "guarded") => options.matching = Some(Matching::Guarded),
            _ => panic!("no line of a case: {line}"),
        }
    }
    let diff = compare(&old.release(), &new.release(), options);
    let mut told = Vec::new();
    for row in &diff.component_changes {
        let how = serde_json::to_value(row.match_type).unwrap();
        let mut line = format!("{} {}/{}", how.as_str().unwrap(), row.operator, row.component_name);
        if let Some(from) = &row.renamed_from {
            let _ = write!(line, " <- {from}");
        }
        if let Some(score) = row.score {
            let _ = write!(line, " {score:.4}");
        }
        told.push(line);
        for change in &row.changes {
            let severity = change.severity.as_str();
            let where_ = format!("{} {}", change.change_type.name(), change.path);
            told.push(format!("  {severity} {}: {}", where_.trim_end(), change.message));
        }
    }
    if told.is_empty() {
        told.push("nothing".to_owned());
    }
    told
}

#[derive(Default)]
struct Side {
    operators: BTreeMap<String, Operator>,
}

impl Side {
    fn named(&mut self, name: &str) -> &mut Operator {
        self.operators.entry(name.to_owned()).or_insert_with(|| Operator {
            name: name.to_owned(),
            namespace: "n".to_owned(),
            ..Operator::default()
        })
    }

    fn operator(&mut self, facts: &str) {
        let mut words = facts.split(' ');
        let operator = self.named(words.next().unwrap());
        for word in words {
            match word.split_once('=').unwrap() {
                ("namespace", name) => operator.namespace = name.to_owned(),
                ("timeout", seconds) => operator.recovery.reconcile_timeout_seconds = seconds.parse().unwrap(),
                ("cycles", count) => operator.recovery.max_reconcile_cycles = count.parse().unwrap(),
                _ => panic!("no fact of an operator: {word}"),
            }
        }
    }

    fn component(&mut self, facts: &str) {
        let mut words = facts.split(' ');
        let name = words.next().unwrap();
        let (operator, name) = name.split_once('/').unwrap_or(("o", name));
        let mut component = Component { name: name.to_owned(), controller: "K".to_owned(), ..Component::default() };
        for word in words {
            fact(&mut component, word);
        }
        self.named(operator).components.push(component);
    }

    fn release(self) -> Release {
        Release { operators: self.operators.into_values().collect(), ..Release::default() }
    }
}

fn fact(component: &mut Component, word: &str) {
    let text = |value: &str| value.to_owned();
    match word.split_once('=') {
        Some(("controller", value)) => component.controller = text(value),
        Some(("finalizer", value)) => component.finalizers.push(text(value)),
        Some(("depends", value)) => component.dependencies.push(text(value)),
        Some(("specific", value)) => {
            component.specific.insert(text(value));
        }
        Some(("webhook", value)) => {
            let parts: Vec<&str> = value.split('/').collect();
            let (kind, name, path) = (text(parts[0]), text(parts[1]), format!("/{}", parts[2]));
            component.webhooks.push(Webhook { name, kind, path, ..Webhook::default() });
        }
        Some(("steady", value)) => {
            let parts: Vec<&str> = value.split('/').collect();
            let kind = CheckKind::ConditionTrue { condition: text(parts[2]) };
            let object = ObjectRef { kind: text(parts[0]), name: text(parts[1]), ..ObjectRef::default() };
            component.steady_state.checks.push(SteadyStateCheck { kind, object, ..SteadyStateCheck::default() });
        }
        Some(("within", value)) => {
            component.steady_state.timeout_seconds = duration::seconds(&format!("{value}s")).unwrap();
        }
        Some(("spec", value)) => {
            let spec: Value = serde_json::from_str(value).unwrap();
            component.resources.last_mut().unwrap().expected_spec = spec.as_object().unwrap().clone();
        }
        Some(("owner", value)) => component.resources.last_mut().unwrap().owner_kind = text(value),
        _ => component.resources.push(managed(word)),
    }
}

/// Parses `Kind/namespace/name{group/version}:label=value`.
fn managed(word: &str) -> Resource {
    let (head, api_version) = match word.split_once('{') {
        Some((head, rest)) => (head.to_owned() + rest.split_once('}').unwrap().1, rest.split_once('}').unwrap().0),
        None => (word.to_owned(), ""),
    };
    let (head, labels) = head.split_once(':').unwrap_or((&head, ""));
    let parts: Vec<&str> = head.split('/').collect();
    let (namespace, name) = if parts.len() == 3 { (parts[1], parts[2]) } else { ("", *parts.get(1).unwrap_or(&"x")) };
    let mut found = resource(parts[0], namespace, name);
    if !api_version.is_empty() {
        let (group, version) = split_api_version(api_version);
        (found.object.group, found.object.version) = (group.to_owned(), version.to_owned());
    }
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (key, value) = label.split_once('=').unwrap();
        found.labels.insert(key.to_owned(), value.to_owned());
    }
    found.selector = found.labels.clone();
    found
}
