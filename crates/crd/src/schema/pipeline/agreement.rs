//! Compares the pipeline with the API server's own code, on many random schemas and objects. Needs the program
//! `tests/cluster/oracle`, built, and its path in `PUSHBACK_ORACLE`; otherwise the tests do nothing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::*;
use crate::path::PathSegment;
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

/// The value as the server serialises it: whole floats without a fraction, keys sorted.
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

/// The paths in the server's errors; `None` if an error has no path.
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

/// The first disagreement, if there is one.
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
    // The server's errors for combinators have no path, and rules are compared by verdict only.
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

#[test]
fn random_definitions_are_refused_only_where_the_server_refuses_them() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (mut wrong, mut missed) = (Vec::new(), Vec::new());
    let (mut total, mut refused, mut unknown) = (0, 0, 0);
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
            (false, false) if ours.iter().all(|problem| !problem.is_certain) => unknown += 1,
            (false, false) => wrong.push(shown),
            // Rules see a whole number written with a fraction of 0 as an integer.
            (true, true) if theirs.to_string().contains("expected int, got float64") => {}
            (true, true) => missed.push(shown),
            _ => {}
        }
    }
    #[expect(clippy::print_stderr, reason = "what was compared is the point of running this")]
    {
        eprintln!("{total} definitions, {refused} refused, {} of them not seen, {unknown} unknown", missed.len());
    }
    let shown = wrong.iter().chain(&missed).take(8).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(
        wrong.is_empty() && missed.is_empty(),
        "{} wrong, {} missed of {total}:\n{shown}",
        wrong.len(),
        missed.len()
    );
}

/// Definitions from the file in `PUSHBACK_DEFINITIONS`, one question per line.
#[test]
fn given_definitions_are_refused_only_where_the_server_refuses_them() {
    let (Some(mut oracle), Some(path)) = (Oracle::start(), std::env::var_os("PUSHBACK_DEFINITIONS")) else { return };
    let mut wrong = Vec::new();
    for line in std::fs::read_to_string(path).expect("the definitions").lines() {
        let question: Value = serde_json::from_str(line).expect("a question");
        let definition = &question["definition"];
        let (ours, theirs) = (problems(definition), oracle.ask(&question));
        let name = &definition["metadata"]["name"];
        let shown = format!("{name}\ntheirs: {theirs}\nours: {ours:?}");
        if ours.is_empty() != theirs["errors"].is_null() {
            wrong.push(shown);
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A schema with a field of every kind, for rules to read.
fn of_every_kind() -> Value {
    let text = |most: u64| json!({"type": "string", "maxLength": most});
    json!({"type": "object", "required": ["s"], "properties": {
        "s": text(10), "long": {"type": "string"}, "e": {"type": "string", "enum": ["a", "bcd"]},
        "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
        "ios": {"x-kubernetes-int-or-string": true}, "by": {"type": "string", "format": "byte", "maxLength": 20},
        "du": {"type": "string", "format": "duration"}, "ti": {"type": "string", "format": "date-time"},
        "da": {"type": "string", "format": "date"}, "namespace": text(5), "a-b": text(7),
        "l": {"type": "array", "items": text(8), "maxItems": 5},
        "ll": {"type": "array", "items": {"type": "string"}},
        "li": {"type": "array", "items": {"type": "integer"}, "maxItems": 6},
        "lo": {"type": "array", "maxItems": 4, "items": {"type": "object", "required": ["k"], "properties": {
            "k": text(3), "v": {"type": "integer"}, "in": {"type": "array", "maxItems": 2, "items": text(4)}}}},
        "m": {"type": "object", "additionalProperties": text(9), "maxProperties": 3},
        "mm": {"type": "object", "additionalProperties": {"type": "integer"}},
        "mo": {"type": "object", "maxProperties": 2, "additionalProperties": {
            "type": "object", "properties": {"k": text(3), "n": {"type": "number"}}}},
        "o": {"type": "object", "properties": {"x": text(6), "y": {"type": "integer"}}},
        "p": {"type": "object", "properties": {"x": text(6), "y": {"type": "integer"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "r": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }})
}

/// Typical rules, and others that do not compile.
const RULES: &str = include_str!("agreement/rules.txt");

#[test]
fn rules_cost_what_the_server_estimates_or_are_refused_by_both() {
    use crate::schema::cel::{Declaration, Gives, Objection, cost_of};
    let Some(mut oracle) = Oracle::start() else { return };
    let schema = of_every_kind();
    let declaration = Declaration::of(&schema, true).expect("an object");
    let mut wrong = Vec::new();
    let mut counts = [0; 3];
    let mut rules: Vec<String> = RULES.lines().filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect();
    rules.extend(combined(rounds()));
    for rule in &rules {
        let theirs = oracle.ask(&json!({"schema": schema, "rule": rule}));
        let ours = cost_of(rule, &declaration, false, Gives::Truth);
        let cost = theirs["cost"].as_u64();
        let is_same = match &ours {
            Ok(ours) => cost == Some(*ours),
            Err(Objection::Refused(_)) => theirs["errors"].is_array(),
            Err(Objection::Unknown(_)) => true,
        };
        counts[usize::from(ours.is_err()) + usize::from(matches!(ours, Err(Objection::Unknown(_))))] += 1;
        if !is_same {
            wrong.push(format!("{rule}\n  ours {ours:?}\n  theirs {theirs}"));
        }
    }
    #[expect(clippy::print_stderr, reason = "what was compared is the point of running this")]
    {
        eprintln!("{} rules: {} priced, {} refused, {} unknown", rules.len(), counts[0], counts[1], counts[2]);
    }
    let shown = wrong.iter().take(25).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {}:\n{shown}", wrong.len(), rules.len());
}

/// Random combinations of parts of rules; most do not compile.
fn combined(count: u64) -> Vec<String> {
    const PARTS: [&str; 40] = [
        "self.s",
        "self.long",
        "self.e",
        "self.i",
        "self.n",
        "self.b",
        "self.ios",
        "self.by",
        "self.du",
        "self.ti",
        "self.l",
        "self.ll",
        "self.li",
        "self.lo",
        "self.m",
        "self.mm",
        "self.mo",
        "self.o",
        "self.p",
        "self.o.x",
        "self.lo[0].k",
        "self.m['a']",
        "self.?s",
        "self.o.?x.orValue('')",
        "1",
        "2.5",
        "'a'",
        "true",
        "null",
        "[1, 2]",
        "['a']",
        "{'a': 1}",
        "b'a'",
        "quantity('1')",
        "duration('1s')",
        "oldSelf.s",
        "self.metadata.name",
        "self.r.kind",
        "dyn(self.s)",
        "size(self.l)",
    ];
    const JOINTS: [&str; 24] = [
        "X == Y",
        "X != Y",
        "X < Y",
        "X >= Y",
        "X in Y",
        "X + Y == Y",
        "X - Y > Y",
        "X && Y",
        "X || !Y",
        "X ? Y : X",
        "X.all(x, x == Y)",
        "X.exists(x, x in Y)",
        "X.map(x, x + Y).size() > 0",
        "X.filter(x, x != Y).size() < 2",
        "X.exists_one(x, x.contains(Y))",
        "X.startsWith(Y)",
        "X.matches(Y)",
        "size(X) > size(Y)",
        "X[Y] == 1",
        "X.indexOf(Y) > 0",
        "has(self.o.x) && X.split(Y).all(x, x.size() > 1)",
        "X.all(i, v, i != Y && v == X)",
        "X.sum() == Y",
        "[X, Y].size() > 0",
    ];
    let mut rules = Vec::new();
    for seed in 0..count {
        let mut generator = Generator::new(seed);
        let mut pick = |from: &[&'static str]| from[generator.below(from.len())];
        let mut joint = || pick(&JOINTS).replace('X', pick(&PARTS)).replace('Y', pick(&PARTS));
        let rule = joint();
        rules.push(if seed % 3 == 0 { format!("{rule} && {}", joint()) } else { rule });
    }
    rules
}
