//! The pipeline against the API server's own code, on many random schemas and objects. Needs the program
//! `tests/cluster/oracle`, built, and its path in `PUSHBACK_ORACLE`; without it nothing runs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::*;
use crate::schema::invalid::problems;
use crate::schema::testing::{Generator, resource};

pub(in crate::schema) struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    pub(in crate::schema) fn start() -> Option<Self> {
        let path = std::env::var_os("PUSHBACK_ORACLE")?;
        let mut child =
            Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the oracle starts");
        let input = child.stdin.take().expect("standard input");
        let output = BufReader::new(child.stdout.take().expect("standard output"));
        Some(Self { child, input, output })
    }

    pub(in crate::schema) fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.input, "{question}").expect("the oracle reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the oracle answers");
        serde_json::from_str(&line).expect("an answer")
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.child.kill().expect("the oracle runs");
        self.child.wait().expect("the oracle ends");
    }
}

fn rounds() -> u64 {
    std::env::var("PUSHBACK_ORACLE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// How the server would write it: whole floats without a fraction, keys sorted.
pub(in crate::schema) fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number::Numeric::of(number) {
            number::Numeric::Float(float) => number::to_integer(float)
                .filter(|_| float.fract() == 0.0)
                .map_or_else(|| json!(float), |integer| json!(integer)),
            number::Numeric::Integer(integer) => json!(integer),
        },
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), normal(value))).collect(),
        value => value.clone(),
    }
}

fn judge(schema: &Schema, question: &Value) -> Admission {
    let resource = resource(schema);
    match (&question["old"], &question["read"]) {
        (Value::Null, Value::Null) => create(&resource, Server::default(), &question["object"]),
        (Value::Null, _) => read(&resource, &question["object"]),
        (old, _) => update(&resource, Server::default(), old, &question["object"]),
    }
}

/// The paths that the server names; `None` where it leaves one out.
fn blamed(theirs: &Value) -> Option<BTreeSet<String>> {
    let errors = theirs["errors"].as_array()?;
    let paths: BTreeSet<String> = errors
        .iter()
        .filter_map(|error| error["path"].as_str())
        .map(|path| path.replace('[', ".").replace(']', ""))
        .collect();
    (!paths.contains("") && !paths.contains("<nil>")).then_some(paths)
}

fn plain(path: &[PathSegment]) -> String {
    let segments = path.iter().map(|segment| match segment {
        PathSegment::Key(key) => key.clone(),
        PathSegment::Index(index) => index.to_string(),
    });
    segments.collect::<Vec<_>>().join(".")
}

/// What differs, if anything.
fn disagreement(ours: &Admission, theirs: &Value) -> Option<String> {
    if theirs["failure"].is_string() {
        return None;
    }
    let refused = !theirs["errors"].is_null();
    match ours.accepted() {
        Some(accepted) if accepted == refused => return Some(format!("ours: {:?}", ours.errors)),
        _ => {}
    }
    let blamed = blamed(theirs);
    let ours_blamed: BTreeSet<String> = ours.errors.iter().map(|error| plain(&error.path)).collect();
    // Combinations have no place in the server's answer, and rules are compared by their verdict.
    let is_combined = ours.errors.iter().any(|error| ["anyOf", "oneOf", "not", "allOf"].contains(&error.keyword));
    if !is_combined && ours.unevaluated.is_empty() && blamed.as_ref().is_some_and(|blamed| *blamed != ours_blamed) {
        return Some(format!("ours: {:?}", ours.errors));
    }
    (!theirs["object"].is_null() && normal(&theirs["object"]) != normal(&ours.object))
        .then(|| format!("ours: {}", ours.object))
}

#[test]
fn random_objects_are_judged_as_the_server_judges_them() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut disagreements = Vec::new();
    let (mut total, mut accepted, mut failed, mut undecided) = (0, 0, 0, 0);
    for seed in 0..rounds() {
        let mut generator = Generator::new(seed);
        let text = generator.schema();
        let schema = Schema::of(&text);
        for turn in 0..8 {
            let object = generator.object_of(&text);
            let mut question = json!({"schema": text, "object": object});
            match turn {
                0 => question["read"] = true.into(),
                1..4 => {
                    question["old"] = object.clone();
                    question["object"]["spec"] = generator.change(&text["properties"]["spec"], &object["spec"]);
                }
                _ => {}
            }
            let theirs = oracle.ask(&question);
            let ours = judge(&schema, &question);
            total += 1;
            accepted += usize::from(theirs["errors"].is_null());
            failed += usize::from(theirs["failure"].is_string());
            undecided += usize::from(ours.accepted().is_none());
            if let Some(difference) = disagreement(&ours, &theirs) {
                disagreements.push(format!("seed {seed}\n{question}\ntheirs: {theirs}\n{difference}"));
            }
        }
    }
    #[expect(clippy::print_stderr, reason = "what was compared is the point of running this")]
    {
        eprintln!("{total} questions, {accepted} accepted, {failed} not answered, {undecided} undecided");
    }
    let shown = disagreements.iter().take(8).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(disagreements.is_empty(), "{} of {total}:\n{shown}", disagreements.len());
}

#[test]
fn random_texts_have_the_formats_that_the_server_says() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut disagreements = BTreeSet::new();
    let mut generator = Generator::new(1);
    let mut counts = (0, 0);
    for _ in 0..rounds() * 10 {
        let (name, text) = generator.formatted();
        let theirs = oracle.ask(&json!({"format": name, "text": text}));
        let ours = format_is_valid(name, &text, Server::default());
        counts = (counts.0 + 1, counts.1 + usize::from(theirs["valid"] == true));
        if ours.is_some_and(|valid| theirs["valid"] != valid) {
            disagreements.insert(format!("{name} {text:?} theirs {}", theirs["valid"]));
        }
    }
    #[expect(clippy::print_stderr, reason = "what was compared is the point of running this")]
    {
        eprintln!("{} texts, {} valid", counts.0, counts.1);
    }
    let shown = disagreements.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(disagreements.is_empty(), "{}:\n{shown}", disagreements.len());
}

fn is_about_rule(error: &Value) -> bool {
    let says = |key: &str, word: &str| error[key].as_str().is_some_and(|text| text.contains(word));
    says("path", "x-kubernetes-validations") || says("detail", "rule")
}

#[test]
fn random_definitions_are_refused_only_where_the_server_refuses_them() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (mut wrong, mut missed) = (Vec::new(), Vec::new());
    let (mut total, mut refused) = (0, 0);
    for seed in 0..rounds() * 4 {
        let mut generator = Generator::new(seed);
        let mut schema = generator.schema();
        for _ in 0..generator.below(3) {
            schema = generator.damaged(&schema);
        }
        let mut version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        if generator.chance(20) {
            version["subresources"] = json!({"status": {}});
        }
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "tests.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "tests", "kind": "Test"},
                "versions": [version]},
        });
        let theirs = oracle.ask(&json!({"definition": definition}));
        if theirs["failure"].is_string() {
            continue;
        }
        let ours = problems(&definition);
        let is_refused = !theirs["errors"].is_null();
        total += 1;
        refused += usize::from(is_refused);
        let shown = format!("seed {seed}\n{}\ntheirs: {theirs}\nours: {ours:?}", definition["spec"]["versions"][0]);
        match (ours.is_empty(), is_refused) {
            (false, false) => wrong.push(shown),
            // The types of rules are not checked here.
            (true, true) if theirs["errors"].as_array().is_some_and(|errors| errors.iter().all(is_about_rule)) => {}
            (true, true) => missed.push(shown),
            _ => {}
        }
    }
    #[expect(clippy::print_stderr, reason = "what was compared is the point of running this")]
    {
        eprintln!("{total} definitions, {refused} refused, {} of them not seen", missed.len());
    }
    let shown = wrong.iter().chain(&missed).take(8).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(
        wrong.is_empty() && missed.is_empty(),
        "{} wrong, {} missed of {total}:\n{shown}",
        wrong.len(),
        missed.len()
    );
}

/// Definitions from a file that `PUSHBACK_DEFINITIONS` names, one question a line.
#[test]
fn given_definitions_are_refused_only_where_the_server_refuses_them() {
    let (Some(mut oracle), Some(path)) = (Oracle::start(), std::env::var_os("PUSHBACK_DEFINITIONS")) else { return };
    for line in std::fs::read_to_string(path).expect("the definitions").lines() {
        let question: Value = serde_json::from_str(line).expect("a question");
        let definition = &question["definition"];
        let (ours, theirs) = (problems(definition), oracle.ask(&question));
        let name = &definition["metadata"]["name"];
        assert_eq!(ours.is_empty(), theirs["errors"].is_null(), "{name}\ntheirs: {theirs}\nours: {ours:?}");
    }
}
