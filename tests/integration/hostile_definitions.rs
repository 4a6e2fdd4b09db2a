//! Definitions that mean no good, through the whole program: wide ones take memory in proportion to their size, deep ones
//! end with an answer, and names that are code somewhere are only names in whatever is written.

use serde_json::{Map, Value, json};

use crate::measure;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: memory_grows_with_the_definition_and_no_faster,
        Nothing: a_deep_definition_ends_with_an_answer,
        Nothing: names_that_are_code_somewhere_are_names_in_every_output,
    ]
}

/// Fields of the small definition; the large one has four times as many.
const FIELDS: usize = 300;
/// Four times the fields may take this many times the memory; what grows with the square would take 16 times.
const FOUR_TIMES: u64 = 5;

fn definition(spec: &Value) -> String {
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    });
    let names = json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
        "spec": {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]},
    })
    .to_string()
}

fn wide(count: usize, field: &Value) -> Value {
    let fields: Map<String, Value> = (0..count).map(|index| (format!("field{index:05}"), field.clone())).collect();
    json!({"type": "object", "properties": fields})
}

fn wide_and_required(count: usize, field: &Value) -> Value {
    let mut wide = wide(count, field);
    wide["required"] = (0..count).map(|index| Value::from(format!("field{index:05}"))).collect();
    wide
}

/// Peak memory of a check of two definitions on one line each.
fn peak(old: &Value, new: &Value) -> u64 {
    let pushback = Pushback::new();
    pushback.write("old/crd.json", definition(old)).write("new/crd.json", definition(new));
    // A refusal is no success, which is asked for where memory is measured.
    pushback.write(
        "config.yaml",
        "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\npreflightRules:\n\
         - {name: CRDUpgradeSafety, config: {mode: warn}}\n",
    );
    let place = |name: &str| pushback.directory().join(name).display().to_string();
    let cluster = format!("dir:{}", place("old"));
    let arguments = ["check", "-a", "x", "--cluster", &cluster, "-f", &place("new"), "--config", &place("config.yaml")];
    measure::run(env!("CARGO_BIN_EXE_pushback").as_ref(), &arguments, "none".as_ref()).peak
}

fn memory_grows_with_the_definition_and_no_faster() {
    let text = |keyword: &str, value: Value| json!({"type": "string", keyword: value});
    type Shape = fn(usize, &Value) -> Value;
    let shapes: [(&str, Shape, Value, Value); 4] = [
        ("each field is tightened", wide, text("maxLength", json!(100)), text("maxLength", json!(50))),
        ("each default changes", wide, text("default", json!("a")), text("default", json!("b"))),
        (
            "each field gets a pattern",
            wide,
            text("pattern", json!("^[a-z]+$")),
            text("pattern", json!("^[a-m]{1,30}$")),
        ),
        (
            "each field is required and tightened",
            wide_and_required,
            text("maxLength", json!(100)),
            text("maxLength", json!(50)),
        ),
    ];
    for (what, shape, old, new) in shapes {
        let [small, large] = [FIELDS, 4 * FIELDS].map(|count| peak(&shape(count, &old), &shape(count, &new)));
        assert!(large <= FOUR_TIMES * small, "{what}: {large} bytes of memory, {small} for a quarter of it");
    }
}

fn a_deep_definition_ends_with_an_answer() {
    let nested = |depth: usize, most: u32| {
        (0..depth).fold(
            json!({"type": "string", "maxLength": most}),
            |leaf, _| json!({"type": "object", "properties": {"a": leaf}}),
        )
    };
    for (depth, code, said) in [(128, 10, "maxLength"), (480, 10, "nested"), (500, 1, "nested deeper than 1000 levels")]
    {
        let pushback = Pushback::new();
        pushback
            .write("old/crd.json", definition(&nested(depth, 9)))
            .write("new/crd.json", definition(&nested(depth, 3)));
        let ran = pushback.run(&["check", "-f", "new", "--cluster", "dir:old", "--preflight=CRDUpgradeSafety"]);
        let ran = ran.expect(code);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(said), "{depth}: {}\n{}", ran.stdout, ran.stderr);
    }
}

fn names_that_are_code_somewhere_are_names_in_every_output() {
    let names = [
        "",
        ".",
        "a.b",
        "[*]",
        "'",
        "\"",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "\0",
        "\u{1b}[31mred",
        "\u{9b}2J",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "\u{202e}gnp",
        "\u{200b}",
        "\u{feff}",
        "../../../etc/passwd",
        "..",
        "*",
        "~0",
        "/",
        "<script>alert(1)</script>",
        "]]>",
        "|",
        "`",
        "::error::x",
        "%0A",
        "&amp;",
        "$(id)",
    ];
    let with = |most: u32| {
        let field = json!({"type": "string", "maxLength": most});
        let fields: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), field.clone())).collect();
        json!({"type": "object", "properties": fields})
    };
    let pushback = Pushback::new();
    pushback.write("old/crd.json", definition(&with(9))).write("new/crd.json", definition(&with(4)));
    std::fs::create_dir(pushback.directory().join("reports")).expect("a folder");
    let mut arguments = vec!["check", "-f", "new", "--cluster", "dir:old", "--preflight=CRDUpgradeSafety"];
    arguments.extend(["--witness-dir", "witnesses"]);
    let reports =
        ["json", "junit", "sarif", "markdown", "github", "html"].map(|format| format!("{format}=reports/{format}"));
    arguments.extend(reports.iter().flat_map(|report| ["--report", report]));
    let ran = pushback.run(&arguments).expect(10);
    let diff = pushback.run(&["upgrade", "diff-crds", "--old", "old", "--new", "new"]).expect(10);
    let mut written = pushback.tree("reports");
    assert_eq!(written.len(), 6);
    written.insert("standard output".to_owned(), ran.stdout);
    written.insert("standard error".to_owned(), ran.stderr);
    written.insert("diff-crds".to_owned(), diff.stdout);
    for (place, text) in &written {
        let acts = |character: &char| match character {
            '\n' => false,
            '\u{200b}' | '\u{2028}' | '\u{202e}' | '\u{feff}' => true,
            other => other.is_control(),
        };
        // Another line is what a name with a line break would need.
        let bad = text.chars().find(acts).or_else(|| text.contains("\n::error::x").then_some('\n'));
        assert_eq!(bad, None, "{place}:\n{text}");
    }
    let report: Value = serde_json::from_str(&written["json"]).expect("JSON");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(names.len()));
    let witnesses = pushback.tree("witnesses");
    assert_eq!(witnesses.len(), names.len());
    let is_plain = |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    assert_eq!(witnesses.keys().find(|name| !is_plain(name)), None);
}
