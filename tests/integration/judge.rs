//! `judge`: its verdicts are those of `check`, bad lines, and the examples that call it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use crate::crd_pairs;
use crate::support::case::show;
use crate::support::pushback::finish;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: judgement_of_each_pair_is_that_of_check,
        Nothing: bad_line_is_an_error_response_and_exit_code_1,
        Nothing: examples_print_the_verdict,
    ]
}

fn request(old: &Value, new: &Value) -> Value {
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "JudgeRequest", "old": old, "new": new})
}

/// Check, verdict, version, path and fingerprint of each finding about a CRD, by its name.
type FindingsByCrd = BTreeMap<String, BTreeSet<String>>;

fn add(judged: &mut FindingsByCrd, findings: &Value) {
    for finding in findings.as_array().into_iter().flatten() {
        if finding["rule"] == "CRDUpgradeSafety" {
            let keys = ["check", "verdict", "severity", "version", "path", "fingerprint"];
            let line: Vec<String> = keys.iter().map(|key| finding[*key].to_string()).collect();
            let name = finding["object"]["name"].as_str().unwrap_or_default().to_owned();
            judged.entry(name).or_default().insert(line.join(" "));
        }
    }
}

fn judgement_of_each_pair_is_that_of_check() {
    let mut pairs = crd_pairs::all_crds();
    // CRDs with different names are different objects, which a request cannot compare.
    // Files with invalid labels are not read.
    let is_plain = |crd: &Value| crd["metadata"].as_object().is_some_and(|metadata| metadata.len() == 1);
    pairs.retain(|(old, new)| old["metadata"] == new["metadata"] && is_plain(new));
    assert!(pairs.len() > 800);
    let pushback = Pushback::new();
    let mut requests = String::new();
    for (index, (old, new)) in pairs.iter_mut().enumerate() {
        // Files have no status.
        old.as_object_mut().map(|old| old.shift_remove("status"));
        pushback.write(&format!("old/{index}.yaml"), old.to_string());
        pushback.write(&format!("new/{index}.yaml"), new.to_string());
        requests += &format!("{}\n", request(old, new));
    }
    let answered = pushback.run_with_input(&["judge"], requests.as_bytes()).expect(0);
    let responses = answered.events();
    assert_eq!(responses.len(), pairs.len());
    let mut by_judge = FindingsByCrd::new();
    for response in &responses {
        let verdicts: BTreeSet<&str> =
            response["changes"].as_array().into_iter().flatten().filter_map(|it| it["verdict"].as_str()).collect();
        let worst = ["breaking", "unknown"].into_iter().find(|verdict| verdicts.contains(verdict)).unwrap_or("safe");
        assert_eq!(response["verdict"], worst, "{response}");
        add(&mut by_judge, &response["changes"]);
    }
    let report = pushback.run(&["check", "-f", "new", "--cluster", "dir:old", "-o", "json"]).expect(10).json();
    let mut by_check = FindingsByCrd::new();
    add(&mut by_check, &report["findings"]);
    let names: BTreeSet<&String> = by_judge.keys().chain(by_check.keys()).collect();
    let different: Vec<String> = names
        .into_iter()
        .filter(|name| by_judge.get(*name) != by_check.get(*name))
        .map(|name| format!("{name}\n  judge {:?}\n  check {:?}", by_judge.get(name), by_check.get(name)))
        .collect();
    assert!(different.is_empty(), "{} CRDs differ:\n{}", different.len(), different.join("\n"));
}

fn bad_line_is_an_error_response_and_exit_code_1() {
    let crd = crd_pairs::all_crds().remove(0).1;
    let input = format!("{{\n{}\n", request(&Value::Null, &crd));
    let responses = Pushback::new().run_with_input(&["judge"], input.as_bytes()).expect(1).events();
    assert_eq!(responses[0]["error"]["kind"], "syntax");
    assert_eq!(responses[0]["error"]["position"]["line"], 1);
    assert_eq!(responses[1]["verdict"], "safe");
    assert!(Pushback::new().run_with_input(&["judge"], b"").expect(0).stdout.is_empty());
}

/// The examples call the program itself. A language that is not installed is left out, with a line that says so.
fn examples_print_the_verdict() {
    let folder = format!("{}/examples/judge", env!("CARGO_MANIFEST_DIR"));
    for (language, arguments) in
        [("python3", vec!["judge.py"]), ("node", vec!["judge.mjs"]), ("go", vec!["run", "judge.go"])]
    {
        let is_installed = Command::new(language).arg(if language == "go" { "version" } else { "--version" }).output();
        if is_installed.is_err() {
            show(&format!("left out: the example in {language}, which is not installed"));
            continue;
        }
        let mut command = Command::new(language);
        command
            .args(&arguments)
            .args([env!("CARGO_BIN_EXE_pushback"), "old.json", "new.json"])
            .env("GOPROXY", "off")
            .current_dir(&folder);
        let ran = finish(command, b"").expect(0);
        assert_eq!(ran.stdout, "breaking\nspec.size type\n", "{language}: {}", ran.stderr);
    }
}
