//! The loader against kubectl's recorded results, against hostile bytes, and against what it must warn about.

use proptest::prelude::*;
use pushback_objects::PathSegment;
use serde_json::{Value, json};

use super::*;
use crate::{Input, InputWarning, LoadOptions};

const ANSWERS: &str = include_str!("../../../../tests/data/yaml/kubectl-1.32-answers.json");

/// Where this loader differs from kubectl 1.32 on purpose: name of the case, and why.
const DIFFERENCES: [(&str, &str); 3] = [
    ("dup-int-str", "`1` and `\"1\"` are one key; kubectl takes either by chance, here the last wins, with a warning"),
    ("sep-content", "`--- {…}` is YAML; kubectl's splitter only knows separators on lines of their own"),
    ("yaml-directive", "`%YAML 1.1` is YAML; kubectl's splitter cuts it off its document"),
];

fn whole_way(text: &str) -> Result<Input, String> {
    let options = LoadOptions { allow_empty: true, stdin: Some(text.as_bytes().to_vec()), ..LoadOptions::default() };
    crate::load(&["-".to_owned()], &options)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// The result in the form of the recorded ones.
fn answer(kind: &str, text: &str) -> Result<Value, String> {
    let input = whole_way(text)?;
    if kind == "v" {
        return Ok(input.manifests[0].value["v"].clone());
    }
    let documents = input.manifests.iter().map(|manifest| {
        let mut rest = manifest.value.clone();
        if let Some(fields) = rest.as_object_mut() {
            fields.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        }
        json!([manifest.object.name, rest])
    });
    Ok(documents.collect())
}

fn recorded(case: &Value) -> Result<Value, String> {
    let text = case["kubectl"].as_str().unwrap().trim();
    if text.starts_with("ERR") {
        return Err(text.to_owned());
    }
    let text = text.strip_prefix("DOCS").unwrap_or(text);
    Ok(if text.is_empty() { json!([]) } else { serde_json::from_str(text).unwrap() })
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

#[test]
fn every_difference_from_kubectl_is_known_and_explained() {
    let cases: Vec<Value> = serde_json::from_str(ANSWERS).unwrap();
    let mut unexplained = Vec::new();
    let mut differing = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let ours = answer(case["kind"].as_str().unwrap(), case["text"].as_str().unwrap());
        let agrees = match (&ours, &recorded(case)) {
            (Ok(ours), Ok(theirs)) => same(ours, theirs),
            (Err(_), Err(_)) => true,
            _ => false,
        };
        if !agrees {
            differing.push(name);
            if !DIFFERENCES.iter().any(|(known, _)| *known == name) {
                unexplained.push(format!("{name}: {ours:?}, kubectl: {}", case["kubectl"]));
            }
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    let known: Vec<&str> = DIFFERENCES.iter().map(|(name, _)| *name).collect();
    assert_eq!(differing, known, "a difference that is gone leaves the table");
    assert_eq!(cases.len(), 92);
}

fn loaded(text: &str) -> Loaded {
    load("a.yaml", text.as_bytes(), &Limits::default()).unwrap()
}

fn warnings(text: &str) -> Vec<String> {
    let show = |warning: &InputWarning| format!("{} {}: {}", warning.position, warning.code, warning.message);
    loaded(text).warnings.iter().map(show).collect()
}

fn line_and_column(document: &Document, path: &[PathSegment]) -> (u32, u32) {
    let position = document.positions.locate(path);
    (position.line, position.column)
}

#[test]
fn every_node_stands_where_its_key_or_item_is() {
    let loaded = loaded("# c\na:\n  - x\n  - {k: é, l: 1}\n---\n\"b\": 2\n");
    let at = |path: &[PathSegment]| line_and_column(&loaded.documents[0], path);
    assert_eq!(at(&[]), (2, 1));
    assert_eq!(at(&["a".into()]), (2, 1));
    assert_eq!(at(&["a".into(), 0.into()]), (3, 5));
    assert_eq!(at(&["a".into(), 1.into(), "l".into()]), (4, 12));
    assert_eq!(line_and_column(&loaded.documents[1], &["b".into()]), (6, 1));
}

#[test]
fn what_an_alias_brings_stands_where_the_alias_is() {
    let loaded = loaded("a: &x\n  k: {l: 1}\nb: *x\nc:\n  <<: *x\n  m: 2\n");
    let document = &loaded.documents[0];
    assert_eq!(document.value["b"], json!({"k": {"l": 1}}));
    assert_eq!(document.value["c"], json!({"k": {"l": 1}, "m": 2}));
    let at = |path: &[PathSegment]| line_and_column(document, path);
    assert_eq!(at(&["a".into(), "k".into(), "l".into()]), (2, 7));
    assert_eq!(at(&["b".into()]), (3, 1));
    assert_eq!(at(&["b".into(), "k".into(), "l".into()]), (3, 4));
    assert_eq!(at(&["c".into(), "k".into(), "l".into()]), (5, 7));
    assert_eq!(at(&["c".into(), "m".into()]), (6, 3));
}

#[test]
fn the_last_of_a_duplicate_key_wins_and_is_told() {
    let text = "a: {x: 1}\nb: 1\na: {z: 2}\n";
    let loaded = loaded(text);
    assert_eq!(loaded.documents[0].value, json!({"a": {"z": 2}, "b": 1}));
    assert_eq!(line_and_column(&loaded.documents[0], &["a".into(), "z".into()]), (3, 5));
    assert_eq!(
        warnings(text),
        ["a.yaml:3:1 yaml-duplicate-key: the key `a` is already given in line 1; the value here replaces it"]
    );
}

#[test]
fn merge_keys_are_read_where_they_stand() {
    let text = "x: &x {k: 1, j: 2}\nearly: {<<: *x, k: 3}\nlate: {k: 3, <<: *x}\nlist: {<<: [{k: 4}, *x]}\n";
    let value = &loaded(text).documents[0].value;
    assert_eq!(value["early"], json!({"k": 3, "j": 2}));
    assert_eq!(value["late"], json!({"k": 1, "j": 2}));
    assert_eq!(value["list"], json!({"k": 4, "j": 2}));
    assert_eq!(
        warnings(text),
        [
            "a.yaml:3:18 yaml-merge-override: the merge key replaces `k`, which line 3 gives; put `<<` first to keep that"
        ]
    );
}

#[test]
fn what_reads_differently_than_it_looks_is_told_once_and_only_then() {
    assert_eq!(
        warnings(
            "a: yes\non: 1\nb: [010, &n no, *n, 099]\ndefaultMode: 0644\nc: {mode: 0400}\nd: true\ne: 'yes'\nf: !!bool y\n"
        ),
        [
            "a.yaml:1:4 yaml-boolean: `yes` is read as true; quote it if it is meant as text",
            "a.yaml:2:1 yaml-boolean: the key `on` is read as \"true\"; quote it if it is meant as text",
            "a.yaml:3:5 yaml-octal: a number with a leading zero is read in base 8; quote it if it is meant as text",
            "a.yaml:3:13 yaml-boolean: `no` is read as false; quote it if it is meant as text",
            "a.yaml:3:21 yaml-octal: a number with a leading zero is read in base 10, without the zero; quote it if it is meant as text",
        ]
    );
    assert_eq!(
        warnings("a: 1\n...\nb: 2\n...\n---\nc: 3\n"),
        [
            "a.yaml:3:1 yaml-document-end: this document follows `...` without `---`; kubectl drops it silently, here it counts"
        ]
    );
}

#[test]
fn line_ends_marks_and_separators_do_not_matter() {
    for text in [
        "a: 1\r\n---\r\nb: |\r\n  x\r\n",
        "\u{feff}a: 1\n---\nb: |\n  x\n",
        "a: 1\n---\n\u{feff}b: |\n  x\n",
        "a: 1\n\u{feff}---\nb: |\n  x\n",
        "--- \na: 1\n--- # c\nb: |\n  x\n",
    ] {
        let values: Vec<Value> = loaded(text).documents.into_iter().map(|document| document.value).collect();
        assert_eq!(values, [json!({"a": 1}), json!({"b": "x\n"})], "{text:?}");
    }
}

#[test]
fn json_texts_follow_each_other_and_keep_their_places() {
    let loaded = loaded("{\"a\": [1.0, -2e3, \"\\u00e9\\/\"],\n\t\"b\": {\"c\": null}}{}\n{\"on\": true}\n");
    let values: Vec<&Value> = loaded.documents.iter().map(|document| &document.value).collect();
    assert_eq!(values, [&json!({"a": [1, -2000, "é/"], "b": {"c": null}}), &json!({}), &json!({"on": true})]);
    assert_eq!(line_and_column(&loaded.documents[0], &["b".into(), "c".into()]), (2, 8));
    assert_eq!(line_and_column(&loaded.documents[2], &["on".into()]), (3, 2));
    assert!(loaded.warnings.is_empty());
}

#[test]
fn a_flow_map_that_is_no_json_is_yaml() {
    assert_eq!(loaded("{a: yes, b: [x]}\n---\nc: 1\n").documents.len(), 2);
    assert_eq!(loaded("{\"a\": 1}\n---\n{\"b\": 2}\n").documents[1].value, json!({"b": 2}));
}

#[test]
fn limits_are_kept_and_named() {
    let limits = Limits { bytes: 1 << 20, depth: 3, nodes: 20, documents: 2, alias_bytes: 1 << 20 };
    let fails = |text: &str| load("a.yaml", text.as_bytes(), &limits).unwrap_err().to_string();
    assert_eq!(fails("a: [[[1]]]"), "a.yaml:1:6: the document is nested deeper than 3 levels");
    assert_eq!(fails("{\"a\": [[[1]]]}"), "a.yaml:1:9: the document is nested deeper than 3 levels");
    assert_eq!(fails("a: &a [1]\nb: &b [*a]\nc: [*b]"), "a.yaml:3:5: the document is nested deeper than 3 levels");
    assert_eq!(fails(&"- 1\n".repeat(20)), "a.yaml:20:3: the input has more than 20 nodes");
    assert_eq!(fails("1\n--- \n2\n---\n3\n"), "a.yaml:5:1: the file has more than 2 documents");
    assert_eq!(fails(&" ".repeat((1 << 20) + 1)), "a.yaml: the file is larger than 1 MiB");
    let many = format!("a: &a {}\nb: [*a, *a]", "x".repeat(600 << 10));
    assert_eq!(fails(&many), "a.yaml:2:9: aliases make the input grow by more than 1 MiB");
}

#[test]
fn the_deepest_allowed_document_can_be_copied_compared_and_dropped() {
    let depth = Limits::default().depth;
    for text in ["[".repeat(depth) + &"]".repeat(depth), "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth)] {
        let value = loaded(&text).documents.remove(0).value;
        assert!(value.clone() == value);
        assert!(value.to_string().len() >= 2 * depth);
        assert!(load("a.yaml", format!("{{\"a\": {text}}}").as_bytes(), &Limits::default()).is_err());
    }
}

#[test]
fn files_of_a_run_share_what_aliases_may_add() {
    let limits = Limits { alias_bytes: 1000, ..Limits::default() };
    let text = "a: &a [1, 2, 3]\nb: *a\n---\na: &a [1, 2, 3]\nb: *a\n";
    let mut usage = Usage::default();
    assert!(load_next("a.yaml", text.as_bytes(), &limits, &mut usage).is_ok());
    assert_eq!(usage, Usage { nodes: 16, alias_bytes: 2 * (4 * 64 + 3) });
    assert_eq!(
        load_next("b.yaml", text.as_bytes(), &limits, &mut usage).unwrap_err().to_string(),
        "b.yaml:5:4: aliases make the input grow by more than 1000 bytes"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,8}",
        prop::sample::select(vec![
            "yes",
            "on",
            "y",
            "n",
            "0644",
            "1_000",
            "0x1F",
            "0o17",
            "1e3",
            "1.0",
            ".inf",
            "~",
            "null",
            "<<",
            "",
            "=",
            "2001-12-14",
            "a: b",
            "- a",
            "#a",
            "{{ a }}",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "---",
            "...",
            " a ",
            "a\nb\n",
            "\ta",
            "é\u{1F600}",
            "12:30",
            "-",
            "?",
            ":",
            "|",
            ">",
            "\u{85}",
            "\u{feff}",
            "\u{1}",
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1.0e15..1.0e15_f64).prop_filter("integers come back as integers", |f| f.fract() != 0.0).prop_map(Value::from),
        text.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((text.clone(), inner), 0..5).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

/// Calls `check` with the path of every node.
fn for_each_path(value: &Value, path: &mut Vec<PathSegment>, check: &mut impl FnMut(&[PathSegment])) {
    check(path);
    let children: Vec<(PathSegment, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.into(), item)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, field)| (key.as_str().into(), field)).collect(),
        _ => Vec::new(),
    };
    for (segment, child) in children {
        path.push(segment);
        for_each_path(child, path, check);
        path.pop();
    }
}

fn assert_positions_are_within(text: &str, loaded: &Loaded) {
    let lines: Vec<usize> = text.split('\n').map(|line| line.chars().count()).collect();
    for document in &loaded.documents {
        for_each_path(&document.value, &mut Vec::new(), &mut |path| {
            let position = document.positions.locate(path);
            if position.line == 0 {
                assert!(document.value.is_null(), "only an empty document stands nowhere");
                return;
            }
            let width = lines.get(position.line as usize - 1).copied();
            assert!(width.is_some_and(|width| position.column as usize <= width + 1), "{path:?} at {position}");
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = load("a", &bytes, &Limits::default());
    }

    #[test]
    fn no_text_makes_it_panic_and_places_are_within(text in "[-a&*!<>:,?|#%@{}\\[\\]'\"\\\\.0-9 \t\r\n~é\u{feff}\u{2028}]{0,80}") {
        if let Ok(loaded) = load("a", text.as_bytes(), &Limits::default()) {
            // "\r\n" is one line break, and so is each of the two alone.
            assert_positions_are_within(&text.replace("\r\n", "\n").replace('\r', "\n"), &loaded);
        }
    }

    #[test]
    fn what_is_written_as_yaml_reads_back_the_same(value in any_json()) {
        let text = serde_yaml::to_string(&value).unwrap();
        let loaded = load("a", text.as_bytes(), &Limits::default()).unwrap();
        prop_assert_eq!(&loaded.documents[0].value, &value, "{}", text);
        assert_positions_are_within(&text, &loaded);
    }

    #[test]
    fn what_is_written_as_json_reads_back_the_same(value in any_json()) {
        for text in [json!({"a": value}).to_string(), serde_json::to_string_pretty(&json!({"a": value})).unwrap()] {
            let loaded = load("a", text.as_bytes(), &Limits::default()).unwrap();
            prop_assert_eq!(&loaded.documents[0].value["a"], &value, "{}", text);
            assert_positions_are_within(&text, &loaded);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// A server answers in JSON and must round as we do: an unchanged fraction must not look changed.
    #[test]
    fn a_fraction_is_the_same_in_the_input_and_in_an_answer(
        number in prop_oneof!["[1-9][0-9]{0,18}[.][0-9]{1,18}", "[1-9][.][0-9]{1,18}e-?[0-9]{1,2}"],
    ) {
        let answered: Value = serde_json::from_str(&number).expect("json");
        let read = loaded(&number).documents.remove(0).value;
        // A whole number is read as an integer, however it is written.
        prop_assert_eq!(read.as_f64(), answered.as_f64());
    }
}
