//! What gates a pipeline: the commands that docs/upgrade-testing.md gives for the gates of real projects, run as they are
//! written; a live app as one side; the published form of a change; the switches that all comparisons share.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_documented_gate_passes_what_is_harmless_and_fails_what_breaks,
        Nothing: a_live_app_is_a_side,
        ApiServer: a_live_app_is_what_it_was_deployed_from,
        Nothing: a_live_app_that_is_not_there_is_told,
        Nothing: a_change_of_a_definition_has_the_published_form,
        Nothing: a_required_field_with_a_default_is_switched_alike_everywhere,
        Nothing: simulate_pairs_as_it_is_told,
        Nothing: a_severity_is_read_in_either_case_and_a_failed_gate_says_why,
    ]
}

/// A definition whose `spec` has these fields, and requires these.
fn definition(fields: &str, required: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.ex.com}}\nspec:\n  \
         group: ex.com\n  scope: Namespaced\n  names: {{kind: Widget, plural: widgets}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec:\n            type: object\n            required: [{required}]\n            properties:\n              \
         {fields}\n"
    )
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: shop}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      containers: [{name: main, image: 'registry.example/operator:1', args: [--level=info]}]
";

const MODEL: &str = "\
operator: {name: operator, namespace: shop, version: '1.0', platform: p, olmChannel: c}
components:
- name: operator
  controller: Widget
  managedResources:
  - {apiVersion: apps/v1, kind: Deployment, name: operator, namespace: shop}
recovery: {reconcileTimeout: 300s, maxReconcileCycles: 10}
";

/// A repository whose branch `main` holds manifests, definitions in a nested folder, and a model.
fn repository() -> Pushback {
    let pushback = Pushback::new();
    pushback
        .write("config/manager/operator.yaml", DEPLOYMENT)
        .write("config/crd/bases/widgets.yaml", definition("size: {type: integer, minimum: 1}", ""))
        .write("knowledge/operator.yaml", MODEL);
    pushback.commit();
    pushback
}

/// The commands of the section about gates, as they are written.
fn documented() -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/upgrade-testing.md");
    let text = std::fs::read_to_string(docs).expect("a page");
    let section = text.split("\n## ").find(|section| section.starts_with("Gates of a pipeline\n")).expect("a section");
    let cells = section.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split('`').nth_back(1));
    cells.filter(|cell| cell.starts_with("pushback ")).map(ToOwned::to_owned).collect()
}

fn every_documented_gate_passes_what_is_harmless_and_fails_what_breaks() {
    let commands = documented();
    assert_eq!(commands.len(), 9, "{commands:#?}");
    let codes = |pushback: &Pushback| -> Vec<i32> {
        let run = |command: &String| {
            let arguments: Vec<&str> = command.split(' ').skip(1).collect();
            let ran = pushback.run(&arguments);
            assert!(matches!(ran.code, 0 | 10), "{command}: {}", ran.stderr);
            ran.code
        };
        commands.iter().map(run).collect()
    };
    let pushback = repository();
    assert_eq!(codes(&pushback), [0; 9], "nothing has changed");
    // A field more, and another argument.
    pushback
        .write("config/manager/operator.yaml", DEPLOYMENT.replace("level=info", "level=debug"))
        .write(
            "config/crd/bases/widgets.yaml",
            definition("size: {type: integer, minimum: 1}\n              colour: {type: string}", ""),
        )
        .write("knowledge/operator.yaml", MODEL.replace("1.0", "1.1"));
    assert_eq!(codes(&pushback), [0; 9], "what harms nobody");
    // A bound that rejects what is stored, another selector, another namespace.
    pushback
        .write("config/manager/operator.yaml", DEPLOYMENT.replace("app: operator", "app: other"))
        .write("config/crd/bases/widgets.yaml", definition("size: {type: integer, minimum: 2}", ""))
        .write("knowledge/operator.yaml", MODEL.replace("namespace: shop, version", "namespace: store, version"));
    assert_eq!(codes(&pushback), [10; 9], "what breaks");
}

fn a_live_app_is_a_side() {
    let pushback = repository();
    let apply = ["apply", "-a", "shop", "-f", "config", "--cluster", "dir:live", "--yes"];
    pushback.run(&apply).expect(0);
    let diff = |more: &[&str]| {
        let arguments = ["upgrade", "diff", "--cluster", "dir:live", "--format", "json"];
        pushback.run(&[&arguments, more].concat())
    };
    for sides in [["--from", "app:shop", "--to", "config"], ["--from", "config", "--to", "app:default/shop"]] {
        let same = diff(&sides).expect(0).json();
        assert_eq!((&same["componentChanges"], &same["crdChanges"]), (&json!([]), &json!([])), "{sides:?}");
    }
    pushback
        .write("config/manager/operator.yaml", DEPLOYMENT.replace("app: operator", "app: other"))
        .write("config/crd/bases/widgets.yaml", definition("weight: {type: integer}", ""));
    let report = diff(&["--from", "app:shop", "--to", "config"]).expect(10).json();
    let types = |changes: &Value| -> Vec<String> {
        let changes = changes.as_array().into_iter().flatten();
        changes.map(|change| change["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert!(types(&report["componentChanges"][0]["changes"]).contains(&"SelectorChanged".to_owned()), "{report}");
    assert_eq!(report["componentChanges"][0]["operator"], "shop");
    assert_eq!(types(&report["crdChanges"]), ["FieldRemoved", "FieldAdded"], "{report}");
    assert_eq!(report["crdChanges"][0]["position"]["file"], "app:shop");
    // The other commands take it too.
    let crds = ["diff-crds", "--cluster", "dir:live", "--old", "app:shop", "--new", "config/crd"];
    pushback.run(&crds).expect(10);
    let simulate =
        ["upgrade", "simulate", "--cluster", "dir:live", "--from", "app:shop", "--to", "config", "--dry-run"];
    assert!(pushback.run(&simulate).expect(0).stdout.contains("kind: UpgradeSuite"));
}

fn a_live_app_is_what_it_was_deployed_from() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("live-side");
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: operator}\nspec: {selector: {app: operator}, ports: [{port: 80}]}\n";
    let deployment = DEPLOYMENT.replace(", namespace: shop", "");
    let pushback = Pushback::on(cluster);
    pushback.write("release/all.yaml", format!("{deployment}---\n{service}"));
    let apply = ["apply", "-a", "shop", "-n", &namespace, "-f", "release", "--wait=false", "--yes"];
    pushback.run(&apply).expect(0);
    let app = format!("app:{namespace}/shop");
    let diff = ["upgrade", "diff", "--from", &app, "--to", "release", "--format", "json"];
    let same = pushback.run(&diff).expect(0).json();
    assert_eq!(same["componentChanges"], json!([]), "{same}");
}

fn a_live_app_that_is_not_there_is_told() {
    let pushback = repository();
    let complaints = |app: &str| {
        pushback
            .run(&["upgrade", "diff", "--cluster", "dir:live", "--from", app, "--to", "config"])
            .expect(1)
            .complaints()
    };
    insta::assert_snapshot!(
        [complaints("app:shop"), complaints("app:"), complaints("app:shop/"), complaints("app:Shop")].join("\n"),
        @r"
    error: app shop does not exist in namespace default
    hint: `pushback list -A` shows all apps

    error: app:: expected app:NAME or app:NAMESPACE/NAME
    hint: `pushback list -A` shows all apps

    error: app:shop/: expected app:NAME or app:NAMESPACE/NAME
    hint: `pushback list -A` shows all apps

    error: app:Shop: expected lower-case letters, digits, - and ., at most 240, with a letter or digit at both ends
    "
    );
}

fn a_change_of_a_definition_has_the_published_form() {
    let pushback = repository();
    pushback.write("config/crd/bases/widgets.yaml", definition("colour: {type: string}", ""));
    let diff = ["upgrade", "diff", "--from", "git:main:config", "--to", "config", "--format", "json"];
    let report = pushback.run(&diff).expect(10).json();
    let changes = report["crdChanges"].as_array().expect("changes");
    let removed = changes.iter().find(|change| change["type"] == "FieldRemoved").expect("a field that is gone");
    // The keys that are published, and those that are ours.
    assert_eq!(
        [&removed["path"], &removed["type"], &removed["severity"], &removed["oldSchema"], &removed["newSchema"]],
        [
            &json!("spec.size"),
            &json!("FieldRemoved"),
            &json!("breaking"),
            &json!({"type": "integer", "minimum": 1}),
            &Value::Null
        ]
    );
    assert_eq!(
        [&removed["verdict"], &removed["crdName"], &removed["version"]],
        [&json!("breaking"), &json!("widgets.ex.com"), &json!("v1")]
    );
    assert_eq!(removed["position"]["file"], "git:main:config/crd/bases/widgets.yaml");
    assert!(removed["position"]["line"].as_u64().is_some_and(|line| line > 1), "{removed}");
    assert!(removed["id"].as_str().is_some_and(|id| id.len() == 16), "{removed}");
    // The component that owns the definition has it too, as the published report shows it, and it counts once.
    let own = report["componentChanges"][0]["changes"].as_array().expect("changes").iter();
    let own: Vec<&Value> = own.filter(|change| change["id"] == removed["id"]).collect();
    assert_eq!(own.len(), 1, "{report}");
    assert_eq!(
        [&own[0]["type"], &own[0]["severity"], &own[0]["path"]],
        [&json!("CRDSchemaChange"), &json!("breaking"), &json!("spec.size")]
    );
    assert_eq!(report["summary"]["breakingChanges"], 1);
}

fn a_required_field_with_a_default_is_switched_alike_everywhere() {
    let pushback = repository();
    let field = "size: {type: integer, minimum: 1, default: 1}";
    pushback.write("old/crd.yaml", definition(field, "")).write("new/crd.yaml", definition(field, "size"));
    for command in [&["upgrade", "diff"][..], &["diff-crds"]] {
        let sides = ["--from", "old", "--to", "new"];
        pushback.run(&[command, &sides].concat()).expect(10);
        pushback.run(&[command, &sides, &["--required-with-default", "warning"]].concat()).expect(0);
    }
    // A suite tests what breaks, and has people review what may be of interest.
    pushback.write("old/operator.yaml", DEPLOYMENT).write("new/operator.yaml", DEPLOYMENT);
    let simulate = |more: &[&str]| {
        let arguments = ["upgrade", "simulate", "--from", "old", "--to", "new", "--dry-run", "--format", "json"];
        let suite = pushback.run(&[&arguments, more].concat()).expect(0).json();
        ["experiments", "manual"].map(|part| {
            let entries = suite[part].as_array().expect("entries").iter();
            entries.filter(|entry| entry["changeType"] == "RequiredAdded").count()
        })
    };
    assert_eq!(simulate(&[]), [1, 0]);
    assert_eq!(simulate(&["--required-with-default=warning"]), [0, 1]);
}

fn simulate_pairs_as_it_is_told() {
    let pushback = Pushback::new();
    let renamed = MODEL.replace("- name: operator", "- name: quite-another");
    pushback.write("old.yaml", MODEL.replace("shop}\nrecovery", "shop, labels: {app: a}}\nrecovery"));
    pushback.write("new.yaml", renamed.replace("shop}\nrecovery", "shop, labels: {app: b}}\nrecovery"));
    let simulate = |how: &str| {
        let arguments = ["upgrade", "simulate", "--from", "old.yaml", "--to", "new.yaml", "--dry-run", "--format=json"];
        pushback.run(&[&arguments[..], &["--matching", how]].concat()).expect(0).stdout
    };
    assert!(simulate("published").contains("ComponentRenamed"));
    assert!(simulate("guarded").contains("ComponentAdded"));
}

fn a_severity_is_read_in_either_case_and_a_failed_gate_says_why() {
    let pushback = Pushback::new();
    pushback.write("old.yaml", definition("size: {type: integer, minimum: 1}", ""));
    pushback.write("new.yaml", definition("size: {type: integer, minimum: 2}", ""));
    let sides = ["--from", "old.yaml", "--to", "new.yaml"];
    for (command, what) in
        [(&["upgrade", "diff-crds"][..], "1 change is breaking"), (&["upgrade", "diff"], "1 change is breaking")]
    {
        for fail_on in ["Breaking", "breaking", "WARNING"] {
            let gate = ["--fail-on", fail_on];
            let printed = pushback.run(&[command, &sides, &gate].concat()).expect(10);
            let written = pushback.run(&[command, &sides, &gate, &["--output", "report.md"]].concat()).expect(10);
            assert_eq!(written.stdout, "");
            let least = fail_on.to_lowercase();
            let said = match least.as_str() {
                "breaking" => format!("Refused by --fail-on breaking: {what}.\n"),
                _ => format!("Refused by --fail-on {least}: {what}.\n"),
            };
            assert_eq!((printed.stderr, written.stderr), (said.clone(), said), "{command:?}");
        }
        let passed =
            pushback.run(&[command, &sides, &["--fail-on", "Never", "--output", "report.md"]].concat()).expect(0);
        assert_eq!(passed.stderr, "");
    }
}
