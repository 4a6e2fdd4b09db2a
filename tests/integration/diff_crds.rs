//! `upgrade diff-crds` as a user runs it: the published examples, where definitions come from, formats, exit codes, and what
//! is said of wrong input. With `PUSHBACK_CRDS`, the changes of real releases are counted.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pushback_crd::schema::invalid::problems;
use serde_json::{Value, json};

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_published_examples_are_told_as_published,
        Nothing: the_published_command_writes_the_json,
        Nothing: the_table_and_the_markdown_say_the_same,
        Nothing: every_spelling_and_every_kind_of_source_tells_the_same,
        Nothing: the_exit_code_is_what_fail_on_says,
        Nothing: a_proof_gates_where_the_published_lists_are_silent,
        Nothing: the_verdict_for_objects_gates_where_it_is_asked_to,
        Nothing: what_no_server_takes_is_safe_for_no_object,
        Nothing: what_no_server_takes_is_told_as_check_tells_it,
        Nothing: a_required_field_with_a_default_is_what_the_user_says,
        Nothing: wrong_input_is_told,
        Nothing: channels_of_a_release_are_compared_one_by_one,
        Nothing: releases_of_projects_are_told,
    ]
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/diff-crds")
}

fn example(name: &str, side: &str) -> String {
    data().join(format!("{name}-{side}.yaml")).display().to_string()
}

/// Severity, type, path and verdict of every change of a report.
fn told(report: &Value) -> Vec<String> {
    let text = |change: &Value, key: &str| change[key].as_str().unwrap_or_default().to_owned();
    all(report)
        .iter()
        .map(|change| {
            let [severity, kind, path, verdict] = ["severity", "type", "path", "verdict"].map(|key| text(change, key));
            format!("{severity} {kind} {path} {verdict}")
        })
        .collect()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

fn all(report: &Value) -> Vec<Value> {
    list(report, "crds")
        .flat_map(|crd| {
            let versions = list(crd, "apiVersions").flat_map(|version| list(version, "schemaChanges"));
            list(crd, "changes").chain(versions)
        })
        .cloned()
        .collect()
}

fn the_published_examples_are_told_as_published() {
    let pushback = Pushback::new();
    for (name, code, expected) in [
        (
            "breaking",
            10,
            &[
                "breaking TypeChanged spec.replicas breaking",
                "breaking RequiredAdded spec.replicas breaking",
                "breaking FieldRemoved spec.storage breaking",
            ][..],
        ),
        ("default", 0, &["warning DefaultChanged spec.replicas breaking"]),
        ("added", 0, &["info EnumValueAdded spec.region safe", "info FieldAdded spec.timeout safe"]),
        ("storage", 10, &["breaking FieldRemoved spec.storage breaking"]),
    ] {
        let (old, new) = (example(name, "old"), example(name, "new"));
        for side in [&old, &new] {
            let text = std::fs::read(side).expect("a fixture");
            let read = pushback_manifest::yaml::load(side, &text, &pushback_manifest::yaml::Limits::default());
            let documents = read.expect("YAML").documents;
            assert_eq!(problems(&documents[0].value), [], "{side}");
        }
        let ran = pushback.run(&["upgrade", "diff-crds", "--old", &old, "--new", &new, "--format", "json"]);
        assert_eq!(told(&ran.expect(code).json()), expected, "{name}");
    }
}

fn the_published_command_writes_the_json() {
    let pushback = Pushback::new();
    std::fs::copy(example("storage", "old"), pushback.directory().join("old.yaml")).expect("a copy");
    std::fs::copy(example("storage", "new"), pushback.directory().join("new.yaml")).expect("a copy");
    let command = ["diff-crds", "--old", "old.yaml", "--new", "new.yaml", "--format", "json"];
    let ran = pushback.run(&[&command[..], &["--output", "schema-diff.json"]].concat()).expect(10);
    assert_eq!(ran.stdout, "");
    insta::assert_snapshot!(pushback.read("schema-diff.json"), @r#"
    {
      "schemaVersion": 1,
      "summary": {
        "crdsAdded": 0,
        "crdsRemoved": 0,
        "crdsModified": 1,
        "breakingChanges": 1,
        "warnings": 0,
        "infoChanges": 0,
        "verdicts": {
          "safe": 0,
          "breaking": 1,
          "unknown": 0
        }
      },
      "crds": [
        {
          "crdName": "inferenceservices.serving.kserve.io",
          "changeType": "Modified",
          "changes": [],
          "apiVersions": [
            {
              "version": "v1beta1",
              "changeType": "Modified",
              "schemaChanges": [
                {
                  "path": "spec.storage",
                  "type": "FieldRemoved",
                  "severity": "breaking",
                  "oldSchema": {
                    "type": "object"
                  },
                  "newSchema": null,
                  "detail": "field of type object removed",
                  "verdict": "breaking",
                  "reason": "crd/inferenceservices.serving.kserve.io version/v1beta1 field/^.spec.storage may not be removed",
                  "crdName": "inferenceservices.serving.kserve.io",
                  "version": "v1beta1",
                  "id": "c18570efe8175b7b",
                  "position": {
                    "file": "old.yaml",
                    "line": 28,
                    "column": 15
                  }
                }
              ]
            }
          ]
        }
      ]
    }
    "#);
    assert_eq!(pushback.run(&command).expect(10).stdout, pushback.read("schema-diff.json"));
}

fn the_table_and_the_markdown_say_the_same() {
    let pushback = Pushback::new();
    let (old, new) = (example("breaking", "old"), example("breaking", "new"));
    let table = pushback.run(&["upgrade", "diff-crds", "--old", &old, "--new", &new]).expect(10);
    insta::assert_snapshot!(table.stdout, @"
    clusters.example.com
      SEVERITY  OBJECTS   VERSION  CHANGE         WHERE          WHAT
      breaking  breaking  v1       TypeChanged    spec.replicas  type changed from integer to string
      breaking  breaking  v1       RequiredAdded  spec.replicas  field is required from now on
      breaking  breaking  v1       FieldRemoved   spec.storage   field of type object removed

    definitions: 0 added, 0 removed, 1 modified
    changes: 3 breaking, 0 warning, 0 info
    objects: 3 breaking, 0 unknown, 0 safe
    ");
    let markdown = pushback.run(&["upgrade", "diff-crds", "--old", &old, "--new", &new, "--format", "markdown"]);
    insta::assert_snapshot!(markdown.expect(10).stdout, @"
    ## Definitions

    - definitions: 0 added, 0 removed, 1 modified
    - changes: 3 breaking, 0 warning, 0 info
    - objects: 3 breaking, 0 unknown, 0 safe

    ### `clusters.example.com`

    | Severity | Objects | Version | Change | Where | What |
    |---|---|---|---|---|---|
    | **breaking** | breaking | `v1` | TypeChanged | `spec.replicas` | type changed from integer to string |
    | **breaking** | breaking | `v1` | RequiredAdded | `spec.replicas` | field is required from now on |
    | **breaking** | breaking | `v1` | FieldRemoved | `spec.storage` | field of type object removed |
    ");
    let yaml = pushback.run(&["upgrade", "diff-crds", "--old", &old, "--new", &new, "--format", "yaml"]).expect(10);
    assert!(yaml.stdout.starts_with("schemaVersion: 1\nsummary:\n"), "{}", yaml.stdout);
    let same = pushback.run(&["upgrade", "diff-crds", "--old", &old, "--new", &old]).expect(0);
    insta::assert_snapshot!(same.stdout, @"
    definitions: 0 added, 0 removed, 0 modified
    changes: 0 breaking, 0 warning, 0 info
    objects: 0 breaking, 0 unknown, 0 safe
    ");
}

/// A definition of one version whose `spec` has this schema.
fn with_spec(spec: &Value) -> String {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": spec}}}});
    let names = json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
        "spec": {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]},
    })
    .to_string()
}

fn the_verdict_for_objects_gates_where_it_is_asked_to() {
    let pushback = Pushback::new();
    // A field is declared where any value was kept: an addition to the published lists, and a loss to objects.
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut named = open.clone();
    named["properties"] = json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}}});
    pushback.write("old.yaml", with_spec(&open)).write("new.yaml", with_spec(&named));
    let run = |more: &[&str]| {
        let arguments = ["upgrade", "diff-crds", "--old", "old.yaml", "--new", "new.yaml", "--format", "json"];
        pushback.run(&[&arguments[..], more].concat())
    };
    let report = run(&[]).expect(0).json();
    assert_eq!(report["summary"]["verdicts"]["breaking"], 1, "{report}");
    assert_eq!(report["summary"]["breakingChanges"], 0, "{report}");
    run(&["--fail-on-verdict", "breaking"]).expect(10);
    run(&["--fail-on-verdict", "unknown", "--fail-on", "never"]).expect(10);
    run(&["--fail-on-verdict", "never"]).expect(0);
}

fn what_no_server_takes_is_safe_for_no_object() {
    let pushback = Pushback::new();
    let with = |kind: &str| {
        with_spec(&json!({"type": "object", "properties": {"f": {"type": kind}},
            "x-kubernetes-validations": [{"rule": "self.f == 1"}]}))
    };
    pushback.write("old.yaml", with("integer")).write("new.yaml", with("number"));
    let arguments = ["upgrade", "diff-crds", "--old", "old.yaml", "--new", "new.yaml", "--format", "json"];
    let report = pushback.run(&[&arguments[..], &["--fail-on", "never"]].concat()).expect(0).json();
    assert_eq!(report["summary"]["verdicts"]["breaking"], 1, "{report}");
    assert!(report.to_string().contains("the API server would refuse the definition"), "{report}");
}

/// As `check` tells it: where no rule of the definition is at fault, too, and where nothing else changes.
fn what_no_server_takes_is_told_as_check_tells_it() {
    type Edit = fn(&mut Value);
    let pushback = Pushback::new();
    let old: Value =
        serde_yaml::from_str(&with_spec(&json!({"type": "object", "properties": {"f": {"type": "string"}}})))
            .expect("a definition");
    let edits: [(&str, Edit); 3] = [
        ("selectableFields[0].jsonPath", |version| version["selectableFields"] = json!([{"jsonPath": ".spec.none"}])),
        ("spec.properties.f", |version| {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["f"]["uniqueItems"] = json!(true);
        }),
        ("additionalPrinterColumns[0]", |version| {
            version["additionalPrinterColumns"] = json!([{"name": "f", "type": "nonsense", "jsonPath": ".spec.f"}]);
        }),
    ];
    for (place, edit) in edits {
        let mut new = old.clone();
        edit(&mut new["spec"]["versions"][0]);
        pushback.write("old.yaml", old.to_string()).write("new.yaml", new.to_string());
        let check = ["check", "-f", "new.yaml", "--cluster", "file:old.yaml", "--report", "json=report.json"];
        pushback.run(&check).expect(10);
        let findings = pushback.read_json("report.json")["findings"].take();
        let checked: Vec<Value> = findings
            .as_array()
            .expect("findings")
            .iter()
            .filter(|finding| finding["check"] == "invalid")
            .map(|finding| finding["message"].clone())
            .collect();
        assert!(checked.len() == 1, "{place}: {findings}");
        let diff = ["upgrade", "diff-crds", "--old", "old.yaml", "--new", "new.yaml", "--format", "json"];
        let report = pushback.run(&diff).expect(10).json();
        let message = serde_json::to_string(&checked[0]).expect("JSON");
        assert!(report.to_string().contains(&message), "{place}: {message}\n{report}");
        let shown = pushback.run(&diff[..6]).expect(10).stdout;
        assert!(shown.contains("the API server would refuse the definition"), "{place}: {shown}");
    }
}

fn every_spelling_and_every_kind_of_source_tells_the_same() {
    let pushback = Pushback::new();
    let read = |side: &str| std::fs::read_to_string(example("added", side)).expect("a fixture");
    let other = std::fs::read_to_string(example("storage", "old")).expect("a fixture");
    pushback
        .write("old/deep/crd.yaml", read("old"))
        .write("old/other.yaml", &other)
        .write("old.yaml", format!("{}---\n{other}", read("old")));
    pushback.commit();
    pushback.write("new.yaml", format!("{}---\n{other}", read("new")));
    let mut reports = Vec::new();
    for arguments in [
        ["upgrade", "diff-crds", "--old", "old", "--new", "new.yaml"],
        ["upgrade", "diff-crds", "--from", "old.yaml", "--to", "new.yaml"],
        ["upgrade", "diff-crds", "--source", "git:main:old", "--target", "new.yaml"],
        ["upgrade", "diff-crds", "--source-crds", "git:main:old.yaml", "--target-crds", "new.yaml"],
    ] {
        let arguments = [&arguments[..], &["--format", "json"]].concat();
        reports.push(told(&pushback.run(&arguments).expect(0).json()));
        reports.push(told(&pushback.run(&arguments[1..]).expect(0).json()));
    }
    let new = pushback.read("new.yaml");
    let piped =
        pushback.run_with_input(&["diff-crds", "--old", "old", "--new", "-", "--format", "json"], new.as_bytes());
    reports.push(told(&piped.expect(0).json()));
    reports.dedup();
    assert_eq!(reports, [["info EnumValueAdded spec.region safe", "info FieldAdded spec.timeout safe"]]);
}

fn the_exit_code_is_what_fail_on_says() {
    let pushback = Pushback::new();
    for (name, codes) in [("breaking", [10, 10, 10, 0]), ("default", [0, 10, 10, 0]), ("added", [0, 0, 10, 0])] {
        for (fail_on, code) in ["breaking", "warning", "info", "never"].into_iter().zip(codes) {
            let (old, new) = (example(name, "old"), example(name, "new"));
            let arguments = ["upgrade", "diff-crds", "--old", &old, "--new", &new, "--fail-on", fail_on];
            pushback.run(&arguments).expect(code);
        }
    }
}

fn a_proof_gates_where_the_published_lists_are_silent() {
    let pushback = Pushback::new();
    let old = std::fs::read_to_string(example("default", "old")).expect("a fixture");
    let limited =
        |minimum: i64| old.replace("type: integer", &format!("type: integer\n                minimum: {minimum}"));
    pushback.write("old.yaml", limited(0)).write("new.yaml", limited(1)).write("wider.yaml", limited(-1));
    let told_of = |new: &str, code| {
        told(&pushback.run(&["diff-crds", "--old", "old.yaml", "--new", new, "--format", "json"]).expect(code).json())
    };
    assert_eq!(told_of("new.yaml", 10), ["breaking ConstraintChanged spec.replicas breaking"]);
    assert_eq!(told_of("wider.yaml", 0), ["info ConstraintChanged spec.replicas safe"]);
}

fn a_required_field_with_a_default_is_what_the_user_says() {
    let pushback = Pushback::new();
    let old = std::fs::read_to_string(example("default", "old")).expect("a fixture");
    let new = format!("{old}            required: [replicas]\n");
    pushback.write("old.yaml", old).write("new.yaml", new);
    let command = ["diff-crds", "--old", "old.yaml", "--new", "new.yaml", "--format", "json"];
    let strict = pushback.run(&command).expect(10).json();
    assert_eq!(told(&strict), ["breaking RequiredAdded spec.replicas safe"]);
    let lenient = pushback.run(&[&command[..], &["--required-with-default", "warning"]].concat()).expect(0).json();
    assert_eq!(told(&lenient), ["warning RequiredAdded spec.replicas safe"]);
}

fn wrong_input_is_told() {
    let pushback = Pushback::new();
    let (one, other) = (example("breaking", "old"), example("storage", "old"));
    pushback
        .write("one.yaml", std::fs::read_to_string(one).expect("a fixture"))
        .write("other.yaml", std::fs::read_to_string(other).expect("a fixture"))
        .write("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n");
    let run = |old: &str, new: &str| pushback.run(&["diff-crds", "--old", old, "--new", new]).expect(1).complaints();
    insta::assert_snapshot!(run("one.yaml", "other.yaml"), @"
    error: the two files hold different definitions: clusters.example.com and inferenceservices.serving.kserve.io
    hint: compare files of the same definition, or folders
    ");
    insta::assert_snapshot!(run("map.yaml", "map.yaml"), @"
    error: neither map.yaml nor map.yaml holds a CustomResourceDefinition
    hint: name the files or folders that hold the definitions of the two releases
    ");
    insta::assert_snapshot!(run("absent.yaml", "one.yaml"), @"
    error: absent.yaml: no such file or directory
    hint: Check the path; it is relative to the working directory.
    hint: For a first release, which has no base, add --new-base.
    ");
    let ran = pushback.run(&["diff-crds", "--old", "one.yaml", "--new", "one.yaml", "--output", "json"]).expect(1);
    insta::assert_snapshot!(ran.complaints(), @r#"
    error: --output is a path in this command, and "json" is a format
    hint: say --format json; for a file of that name: --output ./json
    "#);
    // In folders, a definition that goes and another that comes are just that.
    pushback.write("a/one.yaml", pushback.read("one.yaml")).write("b/other.yaml", pushback.read("other.yaml"));
    let ran = pushback.run(&["diff-crds", "--old", "a", "--new", "b", "--format", "json"]).expect(10);
    assert_eq!(told(&ran.json()), ["breaking CRDRemoved  breaking", "info CRDAdded  safe"]);
}

/// Folders of releases, oldest first: those of `PUSHBACK_CRDS`, a folder of projects.
fn releases(project: &Path) -> Vec<PathBuf> {
    let mut releases: Vec<PathBuf> = folders(project);
    let number = |path: &Path| -> Vec<u64> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or_default()).collect()
    };
    releases.sort_by_key(|path| number(path));
    releases
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Files that are named `CHANNEL_…`, as the two channels of Gateway API, which have definitions of the same names, are
/// compared channel by channel. Channels that one side alone has are left out.
fn channels(pushback: &Pushback, (old, new): &(PathBuf, PathBuf)) -> Vec<(PathBuf, PathBuf)> {
    let by_channel = |folder: &Path| -> BTreeMap<String, Vec<PathBuf>> {
        let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for path in std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let channel = name.split_once('_').map_or("", |(channel, _)| channel);
            found.entry(channel.to_owned()).or_default().push(path);
        }
        found
    };
    let (before, mut after) = (by_channel(old), by_channel(new));
    if before.keys().chain(after.keys()).all(String::is_empty) {
        return vec![(old.clone(), new.clone())];
    }
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copied = |side: &Path, channel: &str, files: &[PathBuf]| {
        let project = side.parent().map(name).unwrap_or_default();
        let folder = pushback.directory().join(format!("{project}-{channel}/{}", name(side)));
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in files {
            std::fs::copy(file, folder.join(name(file))).expect("a copy");
        }
        folder
    };
    let both = before.into_iter().filter_map(|(channel, files)| {
        let others = after.remove(&channel)?;
        Some((copied(old, &channel, &files), copied(new, &channel, &others)))
    });
    both.collect()
}

fn channels_of_a_release_are_compared_one_by_one() {
    let pushback = Pushback::new();
    let (old, new) = (pushback.directory().join("p/v1"), pushback.directory().join("p/v2"));
    for side in ["v1", "v2"] {
        for channel in ["exp", "std"] {
            pushback.write(&format!("p/{side}/{channel}_a.yaml"), channel);
        }
    }
    pushback.write("p/v2/new_a.yaml", "new");
    let pairs = channels(&pushback, &(old.clone(), new.clone()));
    let files = |folder: &Path| std::fs::read_dir(folder).expect("a folder").count();
    let told: Vec<(bool, usize, usize)> = pairs
        .iter()
        .map(|(old, new)| (old.join("exp_a.yaml").exists() && new.join("exp_a.yaml").exists(), files(old), files(new)))
        .collect();
    assert_eq!(told, [(true, 1, 1), (false, 1, 1)], "{pairs:?}");
    // Files without channels stay where they are.
    pushback.write("q/v1/a.yaml", "a").write("q/v2/a.yaml", "a");
    let plain = (pushback.directory().join("q/v1"), pushback.directory().join("q/v2"));
    assert_eq!(channels(&pushback, &plain), [plain]);
}

fn releases_of_projects_are_told() {
    let pushback = Pushback::new();
    let pairs: Vec<(PathBuf, PathBuf)> = match std::env::var_os("PUSHBACK_CRDS") {
        Some(projects) => folders(Path::new(&projects))
            .iter()
            .flat_map(|project| {
                releases(project).windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect::<Vec<_>>()
            })
            .collect(),
        None => {
            let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/crds");
            vec![(crds.join("karpenter-0.37.7-nodeclaims.json"), crds.join("karpenter-1.0.9-nodeclaims.json"))]
        }
    };
    let pairs: Vec<(PathBuf, PathBuf)> = pairs.iter().flat_map(|pair| channels(&pushback, pair)).collect();
    assert_ne!(pairs, []);
    for (old, new) in pairs {
        let (from, to) = (old.display().to_string(), new.display().to_string());
        let run = |old: &str, new: &str| {
            pushback.run(&["diff-crds", "--old", old, "--new", new, "--format", "json", "--fail-on", "never"]).expect(0)
        };
        let report = run(&from, &to).json();
        let changes = all(&report);
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for change in &changes {
            *kinds.entry(change["type"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            assert!(change["position"]["line"].as_u64().is_some_and(|line| line > 0), "{change}");
        }
        assert_ne!(changes, Vec::<Value>::new(), "{from} {to}");
        assert_eq!(told(&run(&from, &from).json()), Vec::<String>::new(), "{from}");
        if std::env::var_os("PUSHBACK_SHOW").is_some() {
            let _ = writeln!(std::io::stderr(), "{from} {to}\n  {}\n  {kinds:?}", report["summary"]);
        }
    }
}
