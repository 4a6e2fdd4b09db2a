//! `pushback storage convert`, `schema`, `suggest`, `golden` and `test` as a user runs them, on the kind with ten versions.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: manifests_are_converted_in_place_and_nothing_else_changes,
        Nothing: standard_input_is_converted_also_within_a_list,
        Nothing: what_would_be_lost_is_refused_and_nothing_is_written,
        Nothing: an_annotation_brings_everything_back,
        Nothing: a_plan_that_is_wrong_is_told_with_its_lines,
        Nothing: the_storage_schema_in_a_definition_keeps_the_bag,
        Nothing: a_draft_names_what_a_field_may_have_become,
        Nothing: goldens_are_recorded_and_compared,
        Nothing: lossy_plan_fails_its_test_with_the_smallest_objects,
        Nothing: exact_plan_passes_its_test_with_any_number_of_samples,
        Nothing: recorded_conversions_are_written_compared_and_checked,
        Nothing: test_of_a_wrong_input_says_what_is_expected,
    ]
}

fn data(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conversion/person");
    std::fs::read_to_string(folder.join(file)).expect("a file of the project")
}

const PERSON: &str = "\
# somebody
apiVersion: crm.example.com/v20180808
kind: Person
metadata: {name: ada, namespace: team}
spec:
  id: 7 # a number
  knownAs: Ada
";

const OTHER: &str = "# another kind\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {on: \"yes\"}\n";

/// A place with definition, plan and a folder of manifests.
fn place() -> Pushback {
    let pushback = Pushback::new();
    pushback.write("crd.yaml", data("definition.yaml")).write("plan.yaml", data("plan.yaml"));
    pushback.write("manifests/people.yaml", format!("{OTHER}---\n{PERSON}"));
    pushback.write("manifests/deep/other.yaml", OTHER).write("manifests/.git/config.yaml", PERSON);
    pushback
}

const PLAN: [&str; 4] = ["--plan", "plan.yaml", "--crd", "crd.yaml"];

fn convert<'a>(to: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["storage", "convert", "--to", to], PLAN.as_slice(), more].concat()
}

fn manifests_are_converted_in_place_and_nothing_else_changes() {
    let pushback = place();
    let ran = pushback.run(&convert("v20190909", &["--in-place", "manifests"])).expect(0);
    assert_eq!(ran.stderr, "1 object converted to v20190909 in 1 file\n");
    assert_eq!(ran.stdout, "");
    assert_eq!(pushback.read("manifests/deep/other.yaml"), OTHER);
    assert_eq!(pushback.read("manifests/.git/config.yaml"), PERSON);
    let text = pushback.read("manifests/people.yaml");
    let (before, person) = text.split_once("---\n").expect("two documents");
    assert_eq!(before, OTHER);
    assert!(person.starts_with("# somebody\napiVersion: crm.example.com/v20190909\n"), "{person}");
    let again = pushback.run(&convert("v20190909", &["--in-place", "manifests"])).expect(0);
    assert_eq!(again.stderr, "0 objects converted to v20190909\n");
    assert_eq!(pushback.read("manifests/people.yaml"), text);
}

fn standard_input_is_converted_also_within_a_list() {
    let pushback = place();
    let ran = pushback.run_with_input(&convert("v20190909", &["-"]), PERSON.as_bytes()).expect(0);
    assert!(ran.stdout.starts_with("# somebody\napiVersion: crm.example.com/v20190909\n"), "{}", ran.stdout);
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "crm.example.com/v20140404", "kind": "Person", "metadata": {"name": "a"}, "spec": {"alphaKey": "k"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    ]}"#;
    pushback.write("list.json", list);
    let ran = pushback.run(&convert("v20190909", &["list.json"])).expect(0);
    let converted: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(converted["items"][0]["apiVersion"], "crm.example.com/v20190909");
    assert_eq!(converted["items"][0]["spec"], serde_json::json!({"sortKey": "k"}));
    assert_eq!(converted["items"][1]["kind"], "Secret");
    assert_eq!(converted["apiVersion"], "v1");
}

fn what_would_be_lost_is_refused_and_nothing_is_written() {
    let pushback = place();
    let located = PERSON.replace("  knownAs: Ada", "  mailingAddress: {country: UK, city: London}\n  nickname: A");
    pushback.write("manifests/people.yaml", &located);
    let arguments = convert("v20150505", &["--in-place", "manifests"]);
    let ran = pushback.run(&arguments).expect(1);
    for expected in [
        "Person team/ada: spec.mailingAddress would be lost: the version has no field for it",
        "Person team/ada: spec.nickname would be lost: the version of the object has no such field",
        "manifests/people.yaml:2",
        "--allow-loss",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    assert_eq!(pushback.read("manifests/people.yaml"), located);
    let ran = pushback.run(&[arguments.as_slice(), &["--allow-loss"]].concat()).expect(0);
    assert!(ran.stderr.contains("spec.mailingAddress: the version has no field for it"), "{}", ran.stderr);
    assert!(!pushback.read("manifests/people.yaml").contains("mailingAddress"));
}

fn an_annotation_brings_everything_back() {
    let pushback = place();
    pushback
        .write("plan.yaml", data("plan.yaml").replace("  unassessed: error", "  unassessed: error\n  bag: annotation"));
    pushback.write(
        "person.json",
        r#"{"apiVersion": "crm.example.com/v20180808", "kind": "Person", "metadata": {"name": "a"},
        "spec": {"id": 7, "mailingAddress": {"country": "UK", "city": "London"}}}"#,
    );
    let old: Value = serde_json::from_str(&pushback.read("person.json")).expect("JSON");
    pushback.run(&convert("v20110101", &["--in-place", "person.json"])).expect(0);
    let between: Value = serde_json::from_str(&pushback.read("person.json")).expect("JSON");
    assert_eq!(between["spec"], serde_json::json!({"id": 7}));
    assert!(between["metadata"]["annotations"]["pushback.dev/property-bag"].is_string());
    pushback.run(&convert("v20180808", &["--in-place", "person.json"])).expect(0);
    let back: Value = serde_json::from_str(&pushback.read("person.json")).expect("JSON");
    assert_eq!(back, old);
}

fn a_plan_that_is_wrong_is_told_with_its_lines() {
    let pushback = place();
    pushback
        .write("plan.yaml", data("plan.yaml").replace("spec.alphaKey: spec.sortKey", "spec.alphaKeys: spec.sortKey"));
    let ran = pushback.run(&convert("v20190909", &["manifests"])).expect(1);
    assert!(ran.stderr.contains("v20140404 has no field spec.alphaKeys"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean spec.alphaKey?"), "{}", ran.stderr);
    let line = data("plan.yaml").lines().position(|line| line.contains("alphaKey")).expect("a line") + 1;
    assert!(ran.stderr.contains(&format!("plan.yaml:{line}:")), "{}", ran.stderr);
    let ran = place().run(&convert("v9", &["manifests"])).expect(1);
    assert!(ran.stderr.contains("people.crm.example.com has no version \"v9\""), "{}", ran.stderr);
    let ran = place().run(&convert("v20190909", &["absent.yaml"])).expect(1);
    assert!(ran.stderr.contains("absent.yaml: it cannot be read"), "{}", ran.stderr);
}

fn the_storage_schema_in_a_definition_keeps_the_bag() {
    let pushback = place();
    let ran = pushback.run(&[&["storage", "schema", "-o", "json"], PLAN.as_slice()].concat()).expect(0);
    let schema: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let text = pushback.run(&[&["storage", "schema"], PLAN.as_slice()].concat()).expect(0).stdout;
    assert_eq!(serde_yaml::from_str::<Value>(&text).expect("YAML"), schema);
    let mut definition: Value = serde_yaml::from_str(&data("definition.yaml")).expect("YAML");
    definition["spec"]["versions"][9]["schema"]["openAPIV3Schema"] = schema;
    pushback.write("crd.yaml", definition.to_string());
    let located =
        PERSON.replace("v20180808", "v20170707").replace("  knownAs: Ada", "  mailingAddress: {street: Here}");
    pushback.write("person.yaml", &located);
    pushback.run(&convert("v20190909", &["--in-place", "person.yaml"])).expect(0);
    let text = pushback.read("person.yaml");
    assert!(text.contains("$propertyBag") && text.contains("fullAddress: Here"), "{text}");
    // The full address was made of the street, and the old version has no field for it.
    let ran = pushback.run(&convert("v20170707", &["--allow-loss", "person.yaml"])).expect(0);
    let back: Value = serde_yaml::from_str(&ran.stdout).expect("YAML");
    assert_eq!(back, serde_yaml::from_str::<Value>(&located).expect("YAML"));
}

fn a_draft_names_what_a_field_may_have_become() {
    let pushback = place();
    let ran = pushback.run(&["storage", "suggest", "--crd", "crd.yaml"]).expect(0);
    assert!(ran.stdout.contains("    spec.alphaKey: spec.sortKey # "), "{}", ran.stdout);
    assert!(ran.stdout.contains("    spec.mailingAddress.street: {assessed: false}"), "{}", ran.stdout);
    let draft: Value = serde_yaml::from_str(&ran.stdout).expect("YAML");
    assert!(draft["steps"].as_array().is_some_and(|steps| steps.len() >= 3), "{}", ran.stdout);
    assert_eq!(pushback.read("plan.yaml"), data("plan.yaml"));
}

fn goldens_are_recorded_and_compared() {
    let pushback = place();
    let bare = "apiVersion: pushback.dev/v1alpha1\nkind: ConversionPlan\nmetadata: {name: people.crm.example.com}\n\
                policy: {unassessed: stash}\n";
    pushback.write("bare.yaml", bare);
    let ran = pushback.run(&["storage", "golden", "none", "--crd", "crd.yaml", "--plan", "bare.yaml"]).expect(0);
    assert!(ran.stdout.contains("The plan has no hooks"), "{}", ran.stdout);
    let golden = |more: &[&str]| pushback.run(&[&["storage", "golden", "goldens"], PLAN.as_slice(), more].concat());
    let ran = golden(&[]).expect(1);
    assert!(ran.stderr.contains("goldens/v20110101-to-v20190909.yaml: there is no such file"), "{}", ran.stderr);
    golden(&["--update"]).expect(0);
    assert_eq!(golden(&[]).expect(0).stdout, "12 conversions as recorded\n");
    pushback.write("plan.yaml", data("plan.yaml").replace("cel: self.spec.knownAs", "cel: self.spec.knownAs + '?'"));
    let ran = golden(&[]).expect(1);
    let expected = "goldens/v20190909-to-v20130303.yaml: the conversion gives something else";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    pushback.write("goldens/v1-to-v2.yaml", "a: 1\n");
    assert!(
        golden(&["--update"]).expect(1).stderr.contains("v1-to-v2.yaml: no conversion with expressions is called so")
    );
}

/// A place with a plan that caps a number and invents a text.
fn lossy() -> Pushback {
    let pushback = Pushback::new();
    for file in ["crd.yaml", "plan.yaml", "object.yaml"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conversion/lossy");
        pushback.write(file, std::fs::read_to_string(folder.join(file)).expect("a file of the project"));
    }
    pushback
}

fn tested<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["storage", "test"], PLAN.as_slice(), more].concat()
}

/// A place with a plan that gives two fields another name.
fn exact() -> Pushback {
    let pushback = lossy();
    let plan = pushback.read("plan.yaml");
    let start = plan.split("  removed:").next().expect("the start").to_owned();
    pushback.write("plan.yaml", start + "  renames: {spec.count: spec.size, spec.name: spec.title}\n");
    pushback
}

fn lossy_plan_fails_its_test_with_the_smallest_objects() {
    let pushback = lossy();
    let ran = pushback.run(&tested(&["-o", "json"])).expect(10);
    let report = ran.json();
    assert_eq!((&report["outcome"], &report["versions"]), (&json!("failed"), &json!(["v1", "v2"])));
    let defect = |kind: &str| {
        let defects = report["defects"].as_array().expect("defects").iter();
        defects.filter(|defect| defect["from"] == "v1" && defect["kind"] == kind).cloned().collect::<Vec<Value>>()
    };
    let changed = defect("changed");
    assert_eq!(changed[0]["witness"]["spec"], json!({"count": 101}), "{report}");
    assert_eq!((&changed[0]["before"], &changed[0]["after"]), (&json!(101), &json!(100)));
    assert_eq!(defect("invented")[0]["path"], "spec.name", "{report}");
    let text = pushback.run(&tested(&[])).expect(10).stdout;
    assert!(
        text.contains("v1 through v2: spec.count changes from 101 to 100\n  {\"spec\":{\"count\":101}}\n"),
        "{text}"
    );
}

fn exact_plan_passes_its_test_with_any_number_of_samples() {
    let pushback = exact();
    let few = pushback.run(&tested(&["--samples", "20", "-o", "json"])).expect(0).json();
    assert_eq!((&few["outcome"], &few["objects"], &few["trips"]), (&json!("noDefects"), &json!(40), &json!(40)));
    let again = pushback.run(&tested(&["--samples", "20", "-o", "json"])).expect(0).json();
    assert_eq!(few, again);
    let more = pushback.run(&tested(&["--samples", "900"])).expect(0).stdout;
    assert!(more.ends_with("no defect found; samples are not a proof\n"), "{more}");
    // Ten versions, with expressions.
    let people = place();
    let report = people.run(&tested(&["--samples", "30", "-o", "json"])).json();
    assert_eq!(report["versions"].as_array().map(Vec::len), Some(10), "{report}");
}

fn recorded_conversions_are_written_compared_and_checked() {
    let pushback = exact();
    pushback.write("goldens/bob.v1.yaml", pushback.read("object.yaml"));
    let golden =
        |more: &[&str]| pushback.run(&[tested(&["--golden", "goldens", "--samples", "5"]), more.to_vec()].concat());
    let ran = golden(&[]).expect(10);
    assert!(ran.stdout.contains("goldens/bob.v1.v2.yaml: there is no such file; --update writes it"), "{}", ran.stdout);
    golden(&["--update"]).expect(0);
    let written: Value = serde_yaml::from_str(&pushback.read("goldens/bob.v1.v2.yaml")).expect("YAML");
    assert_eq!(written["spec"], json!({"size": 500, "title": "Bob"}));
    let report = golden(&["-o", "json"]).expect(0).json();
    assert_eq!(report["golden"], json!({"equal": 1, "written": [], "different": []}));
    pushback.write("goldens/bob.v1.v2.yaml", pushback.read("goldens/bob.v1.v2.yaml").replace("500", "501"));
    let report = golden(&["-o", "json"]).expect(10).json();
    assert_eq!(report["golden"]["different"].as_array().map(Vec::len), Some(1), "{report}");
    golden(&["--update"]).expect(0);
    pushback.write("goldens/ann.v2.v1.yaml", "a: 1\n");
    let ran = golden(&["--update"]).expect(10);
    assert!(ran.stdout.contains("goldens/ann.v2.v1.yaml: there is no object for it"), "{}", ran.stdout);
}

fn test_of_a_wrong_input_says_what_is_expected() {
    let pushback = exact();
    pushback.write("empty/readme.md", "");
    for (more, expected) in [
        (vec!["--golden", "empty"], "there is no object NAME.VERSION.yaml in it"),
        (vec!["--golden", "missing"], "missing: it cannot be read"),
        (vec!["--update"], "--golden"),
        (vec!["--samples", "0"], "0 is not in 1..=1000000"),
    ] {
        let ran = pushback.run(&tested(&more)).expect(1);
        assert!(ran.stderr.contains(expected), "{more:?}: {}", ran.stderr);
    }
    let one = pushback.read("crd.yaml").replacen("\"served\": true", "\"served\": false", 1);
    pushback.write("crd.yaml", one);
    let ran = pushback.run(&tested(&[])).expect(1);
    assert!(ran.stderr.contains("no two versions that are served or stored"), "{}", ran.stderr);
}
