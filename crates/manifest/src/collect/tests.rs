//! Valid input. Refused input is in `hostile`.

mod hostile;

use std::fs;
use std::path::Path;

use serde_json::json;

use super::path::path;
use super::*;
use crate::KeptManifests;

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ";

fn options(stdin: &str) -> LoadOptions {
    LoadOptions { stdin: Some(stdin.as_bytes().to_vec()), ..LoadOptions::default() }
}

fn load_text(text: &str) -> Result<Input, Vec<InputError>> {
    load(&["-".to_owned()], &options(text)).map_err(Into::into)
}

fn read(text: &str) -> Input {
    load_text(text).unwrap()
}

fn names(input: &Input) -> Vec<&str> {
    input.manifests.iter().map(|manifest| manifest.object.name.as_str()).collect()
}

fn shown(warnings: &[InputWarning]) -> Vec<String> {
    warnings.iter().map(|warning| format!("{} {}: {}", warning.position, warning.code, warning.message)).collect()
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn lists_are_taken_apart_and_items_keep_their_places() {
    let input = read(
        "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- kind: List\n  apiVersion: v1\n  items:\n  - apiVersion: v1\n    kind: Secret\n    metadata:\n      name: b\n---\napiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: c}\n---\nkind: List\nitems:\n",
    );
    assert_eq!(names(&input), ["a", "b", "c"]);
    assert_eq!(input.manifests[1].positions.locate(&path(&["metadata", "name"])).to_string(), "-:11:7");
    assert_eq!(input.manifests[2].object.kind, "ConfigMap");
    assert_eq!(input.manifests[2].object.version, "v1");
}

#[test]
fn manifests_that_are_kept_for_later_are_the_same() {
    let numbers =
        "[0, -0.0, 0.1, 1e-7, 1.0, 9223372036854775808, 18446744073709551615, 123456789012345678901234567890]";
    let text = format!(
        "{CONFIG_MAP}a\nspec: {{z: {numbers}, b: [null, true, \"\\0\\u2028é\", {{}}], a: {{}}}}\n---\n{CONFIG_MAP}b\nspec: {}{}\n",
        "[".repeat(500),
        "]".repeat(500)
    );
    let input = read(&text);
    let kept = KeptManifests::of(&input.manifests).manifests();
    for (kept, manifest) in kept.iter().zip(&input.manifests) {
        // As text: the order of keys counts, and -0.0 is no 0.
        assert_eq!(kept.value.to_string(), manifest.value.to_string());
        assert_eq!((&kept.object, &kept.positions), (&manifest.object, &manifest.positions));
    }
    assert_eq!(kept.len(), 2);
}

#[test]
fn documents_without_content_are_passed_over() {
    let input = read(&format!("---\n# c\n---\nnull\n---\n{CONFIG_MAP}a\n---\n"));
    assert_eq!(names(&input), ["a"]);
    assert!(input.warnings.is_empty());
}

#[test]
fn what_the_server_writes_is_left_out_and_told_where_it_had_a_value() {
    let input = read(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  uid: x\n  creationTimestamp: null\n  namespace: ''\n  managedFields: [{a: 1}]\nspec:\n  template:\n    metadata:\n      creationTimestamp: null\n      labels: {}\nstatus: {}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\nstatus:\n  loadBalancer: {}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: c}\nstatus:\n  replicas: 1\n",
    );
    assert_eq!(
        input.manifests[0].value,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"metadata": {"labels": {}}}}})
    );
    assert_eq!(input.manifests[1].value.get("status"), None);
    assert_eq!(
        shown(&input.warnings),
        [
            "-:5:3 stripped-field: metadata.uid, metadata.managedFields are written by the server alone; they are left out",
            "-:25:1 stripped-field: status is written by the server alone; it is left out",
        ]
    );
}

#[test]
fn string_data_becomes_data_and_wins() {
    let input = read(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: b2xk, other: eA==}\nstringData: {k: new, j: 'y'}\n",
    );
    let value = &input.manifests[0].value;
    assert_eq!(value["data"], json!({"k": "bmV3", "other": "eA==", "j": "eQ=="}));
    assert_eq!(value.get("stringData"), None);
}

#[test]
fn config_documents_are_kept_apart_and_labelled_config_maps_are_both() {
    let input = read(&format!(
        "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nwaitRules: []\n---\napiVersion: pushback.dev/v1alpha1\nkind: Config\n---\n{CONFIG_MAP}c\n  labels: {{kapp.k14s.io/config: ''}}\n---\napiVersion: v1\nkind: Config\nmetadata: {{name: other}}\n"
    ));
    assert_eq!(names(&input), ["c", "other"]);
    let kinds: Vec<String> = input.configs.iter().map(|config| config.object.api_version()).collect();
    assert_eq!(kinds, ["kapp.k14s.io/v1alpha1", "pushback.dev/v1alpha1", "v1"]);
}

#[test]
fn an_object_given_twice_with_the_same_content_counts_once() {
    let input = read(&format!("{CONFIG_MAP}a\n---\n{CONFIG_MAP}\"a\"\n---\n{CONFIG_MAP}a\n  namespace: x\n"));
    assert_eq!(names(&input), ["a", "a"]);
    assert_eq!(
        shown(&input.warnings),
        ["-:6:1 duplicate-object: ConfigMap a is given a second time, with the same content as at -:1:1"]
    );
}

#[test]
fn a_directory_is_read_in_the_order_of_paths_and_only_its_manifests() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for name in ["b.yaml", "a/z.yml", "a/b/c.json", "..data/hidden.yaml", "c.YAML"] {
        let object = name.replace(['/', '.'], "-").to_lowercase();
        write(
            root,
            name,
            &format!("{{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {{\"name\": \"{object}\"}}}}"),
        );
    }
    write(root, "README.md", "\tno manifest");
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("b.yaml"), root.join("link.yaml")).unwrap();
    let input = load(&[root.to_str().unwrap().to_owned()], &LoadOptions::default()).unwrap();
    assert_eq!(names(&input), ["a-b-c-json", "a-z-yml", "b-yaml", "c-yaml"]);
    assert_eq!(input.manifests[2].positions.file(), root.join("b.yaml").to_str().unwrap());
}

#[test]
fn inputs_keep_their_order_and_any_ending_is_read_when_it_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let first = write(directory.path(), "z.txt", &format!("{CONFIG_MAP}z\n"));
    let second = write(directory.path(), "a", &format!("{CONFIG_MAP}a\n"));
    let input = load(&[first, "-".to_owned(), second], &options(&format!("{CONFIG_MAP}m\n"))).unwrap();
    assert_eq!(names(&input), ["z", "m", "a"]);
}

#[test]
fn an_empty_input_is_taken_only_when_that_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().to_str().unwrap().to_owned();
    let allowed = LoadOptions { allow_empty: true, ..options("# nothing\n") };
    let input = load(&["-".to_owned(), empty.clone()], &allowed).unwrap();
    assert!(input.manifests.is_empty());
    assert_eq!(
        shown(&input.warnings),
        [format!("{empty} empty-directory: the directory holds no .yaml, .yml or .json file")]
    );
    assert!(load(&[], &allowed).is_ok());
    assert!(load(&[], &LoadOptions::default()).is_err());
}

#[test]
fn config_files_hold_config_documents_only() {
    let directory = tempfile::tempdir().unwrap();
    let good = write(directory.path(), "c.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\non: 1\n");
    let bad = write(directory.path(), "d.yaml", &format!("{CONFIG_MAP}a\n"));
    let Input { configs, warnings, .. } = load_config_files(std::slice::from_ref(&good)).unwrap();
    assert_eq!(configs[0].value["true"], json!(1));
    assert_eq!(warnings.len(), 1);
    let errors = load_config_files(&[good, bad.clone()]).unwrap_err();
    assert_eq!(errors[0].to_string(), format!("{bad}:1:1: expected a Config document or a ConversionPlan"));
}
