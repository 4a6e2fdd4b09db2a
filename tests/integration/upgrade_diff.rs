//! `upgrade diff` and `validate-version` through the real binary: real models of two products, every kind of source,
//! every spelling, what gates a pipeline, and what is said of models that cannot be read.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: real_models_pair_as_the_published_formula_pairs_them,
        Nothing: every_spelling_and_every_source_gives_the_same_report,
        Nothing: the_exit_code_follows_what_is_asked_for,
        Nothing: a_report_goes_where_it_is_asked_for,
        Nothing: manifests_need_no_model,
        Nothing: everything_wrong_with_a_model_is_told_at_once,
        Nothing: what_is_no_model_is_refused,
        Nothing: the_flags_of_releases_point_to_the_command_for_them,
        Nothing: a_folder_of_models_is_checked_before_it_is_compared,
    ]
}

const GOOD: &str = "\
operator: {name: o, namespace: shop, version: '1.0', platform: p, olmChannel: c}
components:
- name: a
  controller: K
  managedResources:
  - {apiVersion: apps/v1, kind: Deployment, name: d, namespace: shop}
recovery: {reconcileTimeout: 300s, maxReconcileCycles: 10}
";

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ws.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: W, plural: ws}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

/// The model with one resource fewer or more: `old.yaml` has a Service that `new.yaml` has not.
fn two_releases() -> Pushback {
    let pushback = Pushback::new();
    let service = "  - {apiVersion: v1, kind: Service, name: s, namespace: shop}\nrecovery";
    pushback.write("old.yaml", GOOD.replace("recovery", service)).write("new.yaml", GOOD.replace("1.0", "1.1"));
    pushback
}

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).to_string_lossy().into_owned()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn real_models_pair_as_the_published_formula_pairs_them() {
    let pushback = Pushback::new();
    let (old, new) = (data("knowledge/odh-v2.10"), data("knowledge/rhoai-v3.3"));
    let arguments = ["upgrade", "diff", "--from", &old, "--to", &new, "--matching=published", "--format=json"];
    let ran = pushback.run(&arguments).expect(10);
    let report = json(&ran.stdout);
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let pair = match row["score"].as_f64() {
            Some(score) => format!(" <- {} {score:.3}", text("renamedFrom")),
            None => String::new(),
        };
        format!("{} {}/{}{pair}\n", text("matchType"), text("operator"), text("componentName"))
    };
    let rows: String = report["componentChanges"].as_array().into_iter().flatten().map(row).collect();
    assert_snapshot!(rows, @r"
    removed codeflare/codeflare-operator-manager
    fuzzy dashboard/rhods-dashboard <- odh-dashboard 1.000
    removed data-science-pipelines/data-science-pipelines-operator
    removed data-science-pipelines/ds-pipelines-webhook
    exact feast/feast-operator-controller-manager
    exact kserve/kserve-controller-manager
    exact kserve/kserve-localmodel-controller-manager
    exact kserve/kserve-localmodelnode-agent
    exact kserve/llmisvc-controller-manager
    removed kueue/kueue-controller-manager
    fuzzy llamastack/llama-stack-k8s-operator-controller-manager <- llamastack-controller-manager 0.917
    exact model-registry/model-registry-operator
    removed modelmesh/modelmesh-controller
    exact odh-model-controller/odh-model-controller
    exact opendatahub-operator/opendatahub-operator
    fuzzy ray/kuberay-operator <- ray-operator-controller-manager 0.850
    fuzzy training-operator/kubeflow-training-operator <- training-operator-controller-manager 0.900
    exact trustyai/trustyai-service-operator-controller-manager
    fuzzy workbenches/notebook-controller <- kf-notebook-controller 1.000
    exact workbenches/odh-notebook-controller
    ");
    let head = ["sourceVersion", "targetVersion", "platform"].map(|key| report[key].as_str().unwrap_or_default());
    assert_eq!((report["schemaVersion"].as_u64(), head), (Some(1), ["2.10.0", "3.3.1", "odh"]));
    let counts = |key: &str| report["summary"][key].as_u64();
    let components = ["componentsAdded", "componentsRemoved", "componentsModified", "componentsRenamed"].map(counts);
    assert_eq!(components, [Some(0), Some(5), Some(15), Some(5)]);
    let changes = |severity: &str| {
        let rows = report["componentChanges"].as_array().into_iter().flatten();
        let changes = rows.flat_map(|row| row["changes"].as_array().into_iter().flatten());
        u64::try_from(changes.filter(|change| change["severity"] == severity).count()).ok()
    };
    assert_eq!(counts("breakingChanges"), changes("breaking"));
    assert_eq!(counts("warnings"), changes("warning"));
    assert_eq!(counts("infoChanges"), changes("info"));
    // Twice the same bytes.
    assert_eq!(pushback.run(&arguments).stdout, ran.stdout);
}

fn every_spelling_and_every_source_gives_the_same_report() {
    let pushback = two_releases();
    pushback.write("folder/deep/old.yml", pushback.read("old.yaml")).write("folder/readme.md", "no model");
    pushback.commit();
    // Positions name the source; nothing else does.
    let shown = |old: &str, flags: [&str; 2], input: &str| {
        let arguments = ["upgrade", "diff", flags[0], old, flags[1], "new.yaml", "--format=json"];
        let ran = pushback.run_with_input(&arguments, input.as_bytes()).expect(0);
        let mut report = json(&ran.stdout);
        let rows = report["componentChanges"].as_array_mut().expect("rows");
        for change in rows.iter_mut().flat_map(|row| row["changes"].as_array_mut().expect("changes")) {
            change.as_object_mut().expect("a change").remove("position");
        }
        report
    };
    let expected = shown("old.yaml", ["--from", "--to"], "");
    assert_eq!(expected["componentChanges"][0]["changes"][0]["type"], "ResourceRemoved");
    for flags in [["--old", "--new"], ["--source", "--target"], ["--from", "--target"]] {
        assert_eq!(shown("old.yaml", flags, ""), expected, "{flags:?}");
    }
    for old in ["folder", "folder/deep/old.yml", "git:main:old.yaml", "git:HEAD:folder"] {
        assert_eq!(shown(old, ["--from", "--to"], ""), expected, "{old}");
    }
    assert_eq!(shown("-", ["--from", "--to"], &pushback.read("old.yaml")), expected);
    // Several documents of one operator, and a definition beside them.
    let second = GOOD.replace("name: a", "name: b");
    pushback.write("old.yaml", format!("{}---\n{second}", pushback.read("old.yaml")));
    pushback.write("new.yaml", format!("{}---\n{}", pushback.read("new.yaml"), second.replace("1.0", "1.1")));
    assert_eq!(shown("old.yaml", ["--from", "--to"], ""), expected);
}

fn the_exit_code_follows_what_is_asked_for() {
    let pushback = two_releases();
    let code = |more: &[&str]| {
        pushback.run(&[&["upgrade", "diff", "--from", "old.yaml", "--to", "new.yaml"], more].concat()).code
    };
    // The worst change is a warning.
    let codes = ["breaking", "warning", "info", "never"].map(|severity| code(&["--fail-on", severity]));
    assert_eq!((code(&[]), codes), (0, [0, 10, 10, 0]));
    pushback.write("new.yaml", GOOD.replace("namespace: shop", "namespace: other"));
    let codes = ["breaking", "warning", "info", "never"].map(|severity| code(&["--fail-on", severity]));
    assert_eq!((code(&[]), codes), (10, [10, 10, 10, 0]));
    pushback.write("new.yaml", pushback.read("old.yaml"));
    assert_eq!(code(&["--fail-on", "info"]), 0);
}

fn a_report_goes_where_it_is_asked_for() {
    let pushback = two_releases();
    let run =
        |more: &[&str]| pushback.run(&[&["upgrade", "diff", "--from", "old.yaml", "--to", "new.yaml"], more].concat());
    assert_snapshot!(run(&[]).expect(0).stdout, @"
    1.0 -> 1.1 on p
    1 component modified
    1 change warning

    o/a
      SEVERITY  CHANGE           WHERE      WHAT
      warning   ResourceRemoved  Service/s  no longer managed: unless it is deleted, it is left behind
    ");
    assert_eq!(run(&["--min-severity", "breaking"]).expect(0).stdout, run(&["--breaking"]).expect(0).stdout);
    assert!(run(&["--min-severity", "warning"]).expect(0).stdout.contains("ResourceRemoved"));
    let ran = run(&["--format=json", "--output", "r.json"]).expect(0);
    assert_eq!(ran.stdout, "");
    assert_eq!(json(&pushback.read("r.json")), json(&run(&["--format=json"]).stdout));
    assert!(run(&["--format=markdown"]).expect(0).stdout.starts_with("## Upgrade 1.0"));
    assert!(run(&["--format=yaml"]).expect(0).stdout.contains("type: ResourceRemoved"));
    // Only what is breaking is listed; the counts are those of all.
    let report = json(&run(&["--breaking", "--format=json"]).expect(0).stdout);
    assert_eq!(
        (report["componentChanges"].as_array().map(Vec::len), &report["summary"]["warnings"]),
        (Some(0), &1.into())
    );
    // A format where the path belongs.
    let ran = run(&["--output", "json"]).expect(1);
    assert_snapshot!(ran.complaints(), @r#"
    error: --output is a path in this command, and "json" is a format
    hint: say --format json; for a file of that name: --output ./json
    "#);
    assert_eq!(run(&["--output", "nowhere/r.json"]).code, 1);
}

fn manifests_need_no_model() {
    let pushback = Pushback::new();
    let deployment = |image: &str, selector: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec:\n  selector: \
             {{matchLabels: {{app: {selector}}}}}\n  template:\n    metadata: {{labels: {{app: {selector}}}}}\n    spec: \
             {{containers: [{{name: web, image: '{image}'}}]}}\n"
        )
    };
    pushback.write("old.yaml", deployment("r/web:1", "a")).write("image.yaml", deployment("r/web:2", "a"));
    pushback.write("selector.yaml", deployment("r/web:1", "b"));
    let types = |new: &str, code: i32| {
        let arguments = ["upgrade", "diff", "--from", "old.yaml", "--to", new, "--format=json"];
        let report = json(&pushback.run(&arguments).expect(code).stdout);
        let changes = report["componentChanges"][0]["changes"].as_array().cloned().unwrap_or_default();
        changes.iter().map(|change| change["type"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types("image.yaml", 0), ["ImageChanged"]);
    assert!(types("selector.yaml", 10).contains(&"SelectorChanged".to_owned()));
}

fn everything_wrong_with_a_model_is_told_at_once() {
    let pushback = Pushback::new();
    let bad = "\
operator:
  name: o
  namspace: shop
  version: 2.10
components:
- name: a
  controller: K
  managedResources:
  - {apiVersion: apps/v1, kind: Deployment, name: d}
  - {apiVersion: apps/v1, kind: Deployment, name: d}
  dependencies: [a]
  webhooks:
  - {name: w, type: validatng, path: /}
  steadyState:
    checks:
    - {type: conditionTrue, apiVersion: v1, kind: Pod, name: p}
- name: a
  controller: [K]
  managedResources: []
recovery: {reconcileTimeout: 300, maxReconcileCycles: 0}
";
    pushback.write("bad.yaml", bad).write("good.yaml", GOOD);
    let ran = pushback.run(&["upgrade", "diff", "--from", "bad.yaml", "--to", "good.yaml"]).expect(1);
    assert_snapshot!(ran.complaints(), @r#"
    error: bad.yaml:1:1: operator: missing key `namespace`
    error: bad.yaml:3:3: operator.namspace: unknown key
    hint: did you mean `namespace`?
    error: bad.yaml:4:3: operator.version: expected a string, found the number 2.1
    hint: write it in quotes
    error: bad.yaml:6:3: components[0]: component "a" depends on itself
    hint: remove it from dependencies
    error: bad.yaml:10:5: Deployment d is given a second time, first at bad.yaml:9:5
    hint: remove one of them
    error: bad.yaml:13:15: components[0].webhooks[0].type: expected `validating` or `mutating`, found "validatng"
    hint: did you mean `validating`?
    error: bad.yaml:16:7: components[0].steadyState.checks[0]: missing key `conditionType`
    error: bad.yaml:17:3: component "a" is given a second time, first at bad.yaml:6:3
    hint: give it a name of its own
    error: bad.yaml:18:3: components[1].controller: expected a string, found a list
    error: bad.yaml:19:3: components[1].managedResources: expected at least one managed resource, found an empty list
    error: bad.yaml:20:12: recovery.reconcileTimeout: expected a string, found the number 300
    hint: write it in quotes: "300"
    error: bad.yaml:20:35: recovery.maxReconcileCycles: expected a whole number from 1 up, found the number 0
    "#);
    // Both sides at once, and documents that contradict each other.
    pushback.write("both/1.yaml", GOOD).write("both/2.yaml", GOOD.replace("namespace: shop,", "namespace: other,"));
    let ran = pushback.run(&["upgrade", "diff", "--from", "both", "--to", "bad.yaml"]).expect(1);
    assert!(
        ran.stderr.contains("operator \"o\" has namespace \"other\" here and \"shop\" at both/1.yaml:1:1"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("component \"a\" of operator \"o\" is already given at both/1.yaml:3:3"), "{ran:?}");
    assert!(ran.stderr.contains("bad.yaml:3:3: operator.namspace"), "{ran:?}");
}

fn what_is_no_model_is_refused() {
    let pushback = Pushback::new();
    pushback.write("good.yaml", GOOD).write("stranger.yaml", "a: 1\n").write("empty/readme.md", "nothing");
    pushback.write("large.yaml", format!("{GOOD}# {}\n", "x".repeat(1 << 20)));
    pushback
        .write("deep.yaml", format!("operator: {{name: o}}\ncomponents: {}{}\n", "[".repeat(5_000), "]".repeat(5_000)));
    let mut told = String::new();
    for old in ["stranger.yaml", "large.yaml", "deep.yaml", "empty", "nowhere"] {
        let ran = pushback.run(&["upgrade", "diff", "--from", old, "--to", "good.yaml"]).expect(1);
        told += &ran.complaints();
        told.push('\n');
    }
    let twice = pushback.run(&["upgrade", "diff", "--from", "-", "--to", "-"]).expect(1);
    assert_snapshot!(told + &twice.complaints(), @r"
    error: stranger.yaml:1:1: apiVersion is missing
    hint: Add it, such as `apiVersion: apps/v1`.
    hint: A model is a document with `operator:` and `components:`.
    error: stranger.yaml:1:1: kind is missing
    hint: Add it, such as `kind: Deployment`.
    error: stranger.yaml:1:1: metadata.name is missing
    hint: Add `metadata:` with `name:`.

    error: large.yaml: larger than 1 MiB, the limit of a file with a model
    hint: Split it: documents of one operator are merged.

    error: deep.yaml:2:1014: the document is nested deeper than 1000 levels
    hint: No Kubernetes object needs this; check how the file was generated.

    error: empty: expected Kubernetes objects, found 1 file without any
    hint: If they are rendered, as by kustomize or Helm, name the result: `--from rendered.yaml`.
    hint: Otherwise name the folder that holds the objects.
    hint: For a first release, which has no base, add --new-base.

    error: nowhere: no such file or directory
    hint: Check the path; it is relative to the working directory.
    hint: For a first release, which has no base, add --new-base.

    error: both releases are read from standard input, which can be read only once
    hint: give one of them as a file, a folder or git:REF:PATH
    ");
}

fn the_flags_of_releases_point_to_the_command_for_them() {
    let pushback = Pushback::new();
    for flags in [["--source", "--target"], ["--old", "--new"], ["--from", "--to"]] {
        let ran = pushback.run(&["diff", flags[0], "a", flags[1], "b"]).expect(1);
        assert!(
            ran.stderr.contains("hint: two releases of an operator are compared by `pushback upgrade diff"),
            "{ran:?}"
        );
    }
    let ran = pushback.run(&["diff", "--sorce", "a"]).expect(1);
    assert!(!ran.stderr.contains("upgrade diff"), "{ran:?}");
}

fn a_folder_of_models_is_checked_before_it_is_compared() {
    let pushback = Pushback::new();
    pushback.write("p-v1/o.yaml", GOOD).write("p-v1/crds/ws.yaml", DEFINITION);
    assert_snapshot!(pushback.run(&["upgrade", "validate-version", "p-v1"]).expect(0).stdout, @r"
    p-v1
      ok     every model can be read
      ok     every model names version, platform and olmChannel
      ok     definitions stand in crds/
      ok     the name of the directory is the version of every model
      ok     models of one operator do not contradict each other

    0 problems
    ");
    // As a command of its own, and as data.
    let report =
        json(&pushback.run(&["validate-version", "--knowledge-dir", "p-v1", "--format=json"]).expect(0).stdout);
    assert_eq!((report["valid"].as_bool(), report["checks"].as_array().map(Vec::len)), (Some(true), Some(5)));
    // A definition beside the models is none in crds/.
    pushback.write("v2/o.yaml", GOOD).write("v2/ws.yaml", DEFINITION);
    let ran = pushback.run(&["upgrade", "validate-version", "v2"]).expect(1);
    assert!(ran.stdout.contains("v2: there is no CustomResourceDefinition in crds/"), "{ran:?}");
    assert!(ran.stdout.contains("operator \"o\" has version \"1.0\", and the directory is called \"v2\""), "{ran:?}");
    let ran = pushback.run(&["upgrade", "validate-version", "v2/o.yaml"]).expect(1);
    assert_snapshot!(ran.complaints(), @r"
    error: v2/o.yaml: a file; expected the directory with the models of one version
    hint: Name its directory.
    ");
    // The real models have no definitions beside them, and nothing else is wrong with them.
    for (name, directory) in [("odh", "knowledge/odh-v2.10"), ("rhoai", "knowledge/rhoai-v3.3")] {
        let ran = pushback.run(&["validate-version", &data(directory), "--format=json"]).expect(1);
        let report = json(&ran.stdout);
        let checks = report["checks"].as_array().into_iter().flatten();
        let failed = checks.filter(|check| check["problems"].as_array().is_some_and(|list| !list.is_empty()));
        let failed: Vec<&str> = failed.filter_map(|check| check["name"].as_str()).collect();
        assert_eq!(failed, ["crds"], "{name}");
    }
}
