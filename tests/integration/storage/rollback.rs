//! `pushback storage plan` and `pushback storage rollback`: what would be done is what is done, and the way back keeps
//! everything or names what it cannot keep.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::crd::TestCrd;
use crate::support::{Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_plan_tells_the_steps_and_the_fields_and_writes_nothing,
        ApiServer: a_definition_in_debt_is_planned_without_files,
        ApiServer: the_definitions_of_the_release_before_come_back_with_their_objects,
        ApiServer: going_back_names_what_would_be_lost_and_a_plan_takes_it_along,
        ApiServer: rollback_with_a_folder_reads_the_manifests_below_it,
        ApiServer: suggest_with_a_name_drafts_a_plan_for_the_crd_on_the_cluster,
    ]
}

fn spec(fields: &[&str]) -> Value {
    fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({"type": "string"})))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A folder with a file for these documents.
struct Files(tempfile::TempDir);

impl Files {
    fn new(documents: &[Value]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text: Vec<String> = documents.iter().map(Value::to_string).collect();
        fs::write(folder.path().join("crds.yaml"), text.join("\n---\n")).expect("a file");
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("crds.yaml")
    }
}

fn storage(crd: &TestCrd, command: &str, files: &Files, more: &[&str]) -> Ran {
    let file = files.path();
    let file = file.to_str().expect("a path");
    crd.pushback().run(&[&["storage", command, "-f", file][..], more].concat())
}

/// Objects of `v1`, each with both fields.
fn at_v1(prefix: &str, fields: &[&str], objects: usize) -> TestCrd {
    let crd = TestCrd::new(prefix);
    crd.put(&[("v1", true, true, spec(fields))]);
    for number in 0..objects {
        let values: serde_json::Map<_, _> = fields.iter().map(|field| ((*field).to_owned(), json!("x"))).collect();
        let mut object = crd.object("v1", &format!("cog-{number}"), &values.into());
        object["metadata"]["labels"] = json!({"team": "a"});
        crd.api().apply_with(&object, "fieldManager=owner&force=true").ok();
    }
    crd
}

/// uid, labels and content of every object in a version.
fn contents(crd: &TestCrd, version: &str) -> Vec<Value> {
    let objects = crd.api().list(&format!("/apis/{}/{version}/namespaces/{}/cogs", crd.group, crd.namespace));
    let row = |object: &Value| json!([object["metadata"]["uid"], object["metadata"]["labels"], object["spec"]]);
    objects.iter().map(row).collect()
}

fn a_plan_tells_the_steps_and_the_fields_and_writes_nothing() {
    let crd = at_v1("plan", &["size", "colour"], 3);
    let before = crd.live()["metadata"]["resourceVersion"].clone();
    let wanted = Files::new(&[crd.manifest(&[("v2", true, true, spec(&["size", "shape"]))])]);
    let ran = storage(&crd, "plan", &wanted, &["--exit-status"]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    let name = crd.name();
    let expected = format!(
        "{name}: 3 objects; stored in v1, afterwards in v2
  1. write a definition with v1 and v2, which stores v2
  2. rewrite 3 objects at v2, and prove that none is left behind
  3. take v1 off status.storedVersions
  4. write the wanted definition
  VERSIONS  FIELD        BECOMES  OBJECTS  WHAT
  v1 -> v2  spec.colour  -        3        lost: no such field, such as {}/cog-0
  1 field that v2 has in addition (--all)
  refused: stored objects cannot be carried over to v2: 3 of 3 objects would lose fields: spec.colour (3, such as {0}/cog-0)
",
        crd.namespace
    );
    assert_eq!(ran.stdout.trim(), expected.trim());
    // The same fields: nothing stands against it.
    let wanted = Files::new(&[crd.manifest(&[("v2", true, true, spec(&["size", "colour"]))])]);
    let ran = storage(&crd, "plan", &wanted, &["--exit-status", "-o", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let planned = &report["definitions"][0];
    let steps: Vec<&str> =
        planned["steps"].as_array().into_iter().flatten().filter_map(|step| step["step"].as_str()).collect();
    assert_eq!((ran.code, steps), (3, vec!["bridge", "move", "prune", "write"]), "{report}");
    assert_eq!((&planned["objects"], &planned["policy"]), (&json!(3), &json!("bridge")));
    // What is live already needs nothing.
    let same = Files::new(&[crd.manifest(&[("v1", true, true, spec(&["size", "colour"]))])]);
    let ran = storage(&crd, "plan", &same, &["--exit-status"]);
    assert_eq!((ran.code, ran.stdout.trim()), (2, format!("{name}: nothing is to be done").as_str()), "{}", ran.stderr);
    assert_eq!(crd.live()["metadata"]["resourceVersion"], before, "nothing was written");
}

fn a_definition_in_debt_is_planned_without_files() {
    let crd = at_v1("plan-debt", &["size"], 2);
    crd.put(&[("v1", true, false, spec(&["size"])), ("v2", true, true, spec(&["size"]))]);
    let name = crd.name();
    let ran = crd.pushback().run(&["storage", "plan", &name, "--exit-status"]);
    let expected = format!(
        "{name}: 2 objects; stored in v1, v2, afterwards in v2
  1. rewrite 2 objects at v2, and prove that none is left behind
  2. take v1 off status.storedVersions

next: pushback storage migrate {name}"
    );
    assert_eq!((ran.code, ran.stdout.trim()), (3, expected.as_str()), "{}", ran.stderr);
    let ran = crd.pushback().run(&["storage", "migrate", &name]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.pushback().run(&["storage", "plan", &name, "--exit-status"]).code, 2);
}

fn the_definitions_of_the_release_before_come_back_with_their_objects() {
    let crd = at_v1("rollback", &["size"], 5);
    let before = contents(&crd, "v1");
    let old = crd.manifest(&[("v1", true, true, spec(&["size"]))]);
    let new = crd.manifest(&[("v2", true, true, spec(&["size"]))]);
    let forth = storage(&crd, "rollback", &Files::new(&[new]), &["--yes"]);
    assert_eq!(forth.code, 0, "{}{}", forth.stdout, forth.stderr);
    assert_eq!(crd.in_etcd(), "v2: 5");
    let files = Files::new(&[old]);
    let dry = storage(&crd, "rollback", &files, &["--dry-run"]);
    assert_eq!((dry.code, dry.stdout.trim()), (0, "Nothing was written."), "{}", dry.stderr);
    assert!(dry.stderr.contains("write a definition with v2 and v1, which stores v1"), "{}", dry.stderr);
    assert_eq!(crd.in_etcd(), "v2: 5");
    let back = storage(&crd, "rollback", &files, &["--yes"]);
    assert_eq!(back.code, 0, "{}{}", back.stdout, back.stderr);
    assert_eq!(back.stdout.trim(), format!("{}: written; 5 objects stored in v1", crd.name()));
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 5", json!(["v1"])));
    assert_eq!(contents(&crd, "v1"), before);
    assert_eq!(crd.live()["spec"]["versions"].as_array().map(Vec::len), Some(1));
    let again = storage(&crd, "rollback", &files, &["--yes"]);
    assert_eq!((again.code, again.stdout.trim()), (0, "Nothing was written."), "{}", again.stderr);
}

fn going_back_names_what_would_be_lost_and_a_plan_takes_it_along() {
    let crd = at_v1("rollback-lossy", &["size", "color"], 2);
    let old = crd.manifest(&[("v0", true, true, spec(&["size", "colour"]))]);
    let live = crd.live();
    let lossy = storage(&crd, "rollback", &Files::new(std::slice::from_ref(&old)), &["--yes"]);
    assert_eq!(lossy.code, 10, "{}{}", lossy.stdout, lossy.stderr);
    assert!(lossy.stderr.contains("2 of 2 objects would lose fields: spec.color (2"), "{}", lossy.stderr);
    assert!(lossy.stderr.contains("pushback storage suggest"), "{}", lossy.stderr);
    assert_eq!(crd.live()["spec"], live["spec"], "nothing was written");
    let plan = json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": crd.name()},
        "steps": [{"from": "v0", "to": "v1", "renames": {"spec.colour": "spec.color"}}],
    });
    let files = Files::new(&[old, plan]);
    let planned = storage(&crd, "plan", &files, &[]);
    assert!(planned.stdout.contains("v0 -> v1  spec.colour  spec.color  -        another name"), "{}", planned.stdout);
    let backup = tempfile::tempdir().expect("a folder");
    let folder = backup.path().to_str().expect("a path");
    let back = storage(&crd, "rollback", &files, &["--yes", "--storage-backup", folder]);
    assert_eq!(back.code, 0, "{}{}", back.stdout, back.stderr);
    assert_eq!(crd.in_etcd(), "v0: 2");
    let specs: Vec<Value> = contents(&crd, "v0").into_iter().map(|row| row[2].clone()).collect();
    assert_eq!(specs, vec![json!({"size": "x", "colour": "x"}); 2]);
    let kept = backup.path().join(crd.name()).join(&crd.namespace).join("cog-1.json");
    assert!(fs::read_to_string(kept).expect("a backup").contains("\"color\""));
}

fn rollback_with_a_folder_reads_the_manifests_below_it() {
    let crd = at_v1("rollback-folder", &["size"], 2);
    let forth = Files::new(&[crd.manifest(&[("v2", true, true, spec(&["size"]))])]);
    storage(&crd, "rollback", &forth, &["--yes"]).expect(0);
    assert_eq!(crd.in_etcd(), "v2: 2");
    let release = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = release.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("crds/cogs.yaml", &crd.manifest(&[("v1", true, true, spec(&["size"]))]).to_string());
    write("operator.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: operator}\n");
    write("notes.txt", "not: [a manifest");
    let folder = release.path().to_str().expect("a path");
    crd.pushback().run(&["storage", "rollback", "-f", folder, "--yes"]).expect(0);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 2", json!(["v1"])));
    // A folder that is read only in part would leave a CRD as it is, unnoticed.
    std::os::unix::fs::symlink("missing", release.path().join("gone.yaml")).expect("a link");
    crd.pushback().run(&["storage", "rollback", "-f", folder, "--yes"]).expect(1);
}

fn suggest_with_a_name_drafts_a_plan_for_the_crd_on_the_cluster() {
    let crd = TestCrd::new("suggest");
    crd.put(&[("v1", true, true, spec(&["size", "colour"])), ("v2", true, false, spec(&["size", "color"]))]);
    let ran = crd.pushback().run(&["storage", "suggest", &crd.name()]).expect(0);
    let draft: Value = serde_yaml::from_str(&ran.stdout).expect("YAML");
    assert_eq!((&draft["kind"], &draft["metadata"]["name"]), (&json!("ConversionPlan"), &json!(crd.name())));
    assert_eq!(draft["steps"][0]["renames"]["spec.colour"], "spec.color", "{}", ran.stdout);
    crd.pushback().run(&["storage", "suggest", "none.example.com"]).expect(1);
    crd.pushback().run(&["storage", "suggest"]).expect(1);
}
