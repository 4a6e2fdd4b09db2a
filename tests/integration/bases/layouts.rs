//! Layouts of real projects, compared by the documented gates and by the shipped action and scripts.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{config_map, crd, git};
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Renderers: the_documented_gates_work_on_every_layout,
        Renderers: the_shipped_action_and_script_work_on_every_layout,
        Renderers: the_shipped_action_and_script_refuse_a_removed_crd,
        Renderers: the_shipped_action_decides_about_the_base,
        Nothing: a_kustomization_names_what_it_does_not_list,
        Nothing: documents_that_are_not_objects_are_left_out_with_one_note,
        Renderers: variants_of_a_crd_are_compared_file_by_file,
        Nothing: both_sides_are_read_by_the_same_rules,
    ]
}

/// A project: the folder of its CRDs, and its files with these fields in the CRD.
type Layout = (&'static str, &'static str, fn(&Pushback, &[&str]));

const PATCH: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.ex.com, annotations: {cert-manager.io/inject-ca-from: system/serving}}
";

const CONFIGURATION: &str = "nameReference:\n- kind: Service\n  version: v1\n";

fn kubebuilder(pushback: &Pushback, fields: &[&str]) {
    pushback
        .write(
            "config/crd/kustomization.yaml",
            "resources:\n- bases/foos.yaml\n- bases/bars.yaml\npatches:\n- path: patches/webhook_in_foos.yaml\n\
             configurations:\n- kustomizeconfig.yaml\n",
        )
        .write("config/crd/kustomizeconfig.yaml", CONFIGURATION)
        .write("config/crd/patches/webhook_in_foos.yaml", PATCH)
        .write("config/crd/bases/foos.yaml", crd("foos", fields))
        .write("config/crd/bases/bars.yaml", crd("bars", &["a"]));
}

fn old_kubebuilder(pushback: &Pushback, fields: &[&str]) {
    let api = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\ncommonLabels: {ex.com/v1: v1}\n";
    pushback
        .write(
            "config/crd/kustomization.yaml",
            format!("{api}resources:\n- bases/foos.yaml\npatchesStrategicMerge:\n- patches/webhook_in_foos.yaml\n- |-\n  apiVersion: apiextensions.k8s.io/v1\n  kind: CustomResourceDefinition\n  metadata: {{name: foos.ex.com, labels: {{a: b}}}}\n"),
        )
        .write("config/crd/patches/webhook_in_foos.yaml", PATCH)
        .write("config/crd/patches/cainjection_in_foos.yaml", PATCH)
        .write("config/crd/bases/foos.yaml", crd("foos", fields));
}

fn common_folder(pushback: &Pushback, fields: &[&str]) {
    pushback
        .write("config/crd/kustomization.yaml", "resources:\n- common\n- bases/foos.yaml\n")
        .write("config/crd/common/kustomization.yaml", "resources:\n- bars.yaml\n")
        .write("config/crd/common/bars.yaml", crd("bars", &["a"]))
        .write("config/crd/bases/foos.yaml", crd("foos", fields));
}

fn variants(pushback: &Pushback, fields: &[&str]) {
    for (variant, file) in [("full", "foos.yaml"), ("minimal", "foos.yaml")] {
        let fields = if variant == "full" { fields } else { &[] };
        pushback
            .write(
                &format!("config/crd/{variant}/kustomization.yaml"),
                "resources:\n- foos.yaml\npatches:\n- path: patch.yaml\n",
            )
            .write(&format!("config/crd/{variant}/patch.yaml"), PATCH)
            .write(&format!("config/crd/{variant}/{file}"), crd("foos", fields));
    }
}

fn bundle(pushback: &Pushback, fields: &[&str]) {
    pushback
        .write(
            "bundle/metadata/annotations.yaml",
            "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n",
        )
        .write("bundle/manifests/foos.ex.com.crd.yaml", crd("foos", fields))
        .write("bundle/manifests/map.yaml", config_map("map"));
}

fn chart(pushback: &Pushback, fields: &[&str]) {
    pushback
        .write("charts/op/Chart.yaml", "apiVersion: v2\nname: op\nversion: 1.0.0\n")
        .write("charts/op/values.yaml", "size: 1\n")
        .write("charts/op/templates/a.yaml", "kind: {{ .Values.kind }}\n")
        .write("charts/op/crds/foos.yaml", crd("foos", fields));
}

fn sdk(pushback: &Pushback, fields: &[&str]) {
    pushback
        .write("deploy/crds/v1/foos_crd.yaml", crd("foos", fields))
        .write("deploy/crds/legacy/foos_crd.yaml", crd("foos", &["a"]))
        .write("deploy/crds/values.yaml", "- op: add\n  path: /a\n")
        .write("deploy/crds/kind.yaml", "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n");
}

const LAYOUTS: [Layout; 7] = [
    ("kubebuilder", "config/crd", kubebuilder),
    ("old kubebuilder", "config/crd", old_kubebuilder),
    ("common folder", "config/crd", common_folder),
    ("variants", "config/crd", variants),
    ("bundle", "bundle", bundle),
    ("chart", "charts/op/crds", chart),
    ("sdk", "deploy/crds", sdk),
];

/// A repository of a layout, whose branch `main` is also that of `origin`.
fn repository(write: fn(&Pushback, &[&str])) -> Pushback {
    let pushback = Pushback::new()
        .with_renderers()
        .with("GITHUB_BASE_REF", "main")
        .with("GITHUB_STEP_SUMMARY", "summary.md")
        .with("GITHUB_OUTPUT", "output.txt");
    write(&pushback, &["a", "b"]);
    pushback.commit();
    git(&pushback, &["remote", "add", "origin", "."]);
    fetch(&pushback);
    pushback
}

fn fetch(pushback: &Pushback) {
    git(pushback, &["fetch", "--quiet", "origin"]);
}

fn the_documented_gates_work_on_every_layout() {
    for (name, folder, write) in LAYOUTS {
        let pushback = repository(write);
        let base = format!("git:main:{folder}");
        let gates: [&[&str]; 4] = [
            &["upgrade", "diff-crds", "--old", &base, "--new", folder],
            &["diff-crds", "--old", &base, "--new", folder, "--format", "json"],
            &["upgrade", "diff", "--from", &base, "--to", folder],
            &["check", "-f", folder, "--cluster", &base, "--preflight=CRDUpgradeSafety"],
        ];
        let codes = || -> Vec<i32> {
            let run = |gate: &&[&str]| {
                let ran = pushback.run(gate);
                assert!(matches!(ran.code, 0 | 10), "{name} {gate:?}: {}", ran.stderr);
                ran.code
            };
            gates.iter().map(run).collect()
        };
        assert_eq!(codes(), [0; 4], "{name}: nothing has changed");
        write(&pushback, &["a", "b", "c"]);
        assert_eq!(codes(), [0; 4], "{name}: a field more");
        write(&pushback, &["a"]);
        assert_eq!(codes(), [10; 4], "{name}: a field less");
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Runs the check of the action.
fn run_action(pushback: &Pushback, settings: &str) -> Ran {
    pushback.run_in_shell(&format!(
        "PATH=\"${{0%/*}}:$PATH\"; export PATH; {settings} sh '{}/action/check'",
        root().display()
    ))
}

/// Runs the script of the examples.
fn run_script(pushback: &Pushback, settings: &str) -> Ran {
    pushback.run_in_shell(&format!(
        "PATH=\"${{0%/*}}:$PATH\"; export PATH; {settings} sh '{}/examples/release-pipeline/pull-request.sh'",
        root().display()
    ))
}

fn both(pushback: &Pushback, folder: &str) -> [i32; 2] {
    let settings = format!("MANIFESTS={folder}");
    [run_action(pushback, &settings).code, run_script(pushback, &settings).code]
}

fn the_shipped_action_and_script_work_on_every_layout() {
    for (name, folder, write) in LAYOUTS {
        let pushback = repository(write);
        assert_eq!(both(&pushback, folder), [0, 0], "{name}: nothing has changed");
        write(&pushback, &["a"]);
        assert_eq!(both(&pushback, folder), [10, 10], "{name}: a field less");
        let report: Value = pushback.read_json("reports/check.json");
        let waiver = format!(
            "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightWaivers:\n- rule: CRDUpgradeSafety\n  fingerprint: {}\n  \
             reason: looked up\n",
            report["findings"][0]["fingerprint"].as_str().expect("a fingerprint")
        );
        pushback.write("waivers.yaml", &waiver);
        let ran = run_action(&pushback, &format!("MANIFESTS={folder} CONFIG=waivers.yaml"));
        assert_eq!(ran.code, 0, "{name}: a waiver of the policy: {}{}", ran.stdout, ran.stderr);
        // A waiver of the pull request itself does not count before it is in the base.
        write(&pushback, &["a", "b"]);
        pushback.write(&format!("{folder}/waivers.yaml"), waiver);
        write(&pushback, &["a"]);
        assert_eq!(both(&pushback, folder), [10, 10], "{name}: an own waiver");
        write(&pushback, &["a", "b"]);
        pushback.commit();
        fetch(&pushback);
        write(&pushback, &["a"]);
        assert_eq!(both(&pushback, folder), [0, 0], "{name}: a waiver of the base");
    }
}

/// Writes another CRD to every file of the CRD `foos`.
fn remove_crd(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            remove_crd(&path);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        let is_crd = text.contains(&crd("foos", &[])[..120]);
        // Patches of it go with it.
        let text = if is_crd { crd("left", &[]) } else { text.replace("name: foos.ex.com", "name: left.ex.com") };
        std::fs::write(&path, text).expect("a file");
    }
}

fn the_shipped_action_and_script_refuse_a_removed_crd() {
    for (name, folder, write) in LAYOUTS {
        let pushback = repository(write);
        remove_crd(&pushback.directory().join(folder));
        assert_eq!(both(&pushback, folder), [10, 10], "{name}");
        let report: Value = pushback.read_json("reports/check.json");
        let findings = report["findings"].as_array().expect("findings");
        assert!(findings.iter().any(|finding| finding["check"] == "crdDeletion"), "{name}: {findings:#?}");
    }
}

fn the_shipped_action_decides_about_the_base() {
    for (name, folder, write) in LAYOUTS {
        // A first release.
        let empty: fn(&Pushback, &[&str]) = |pushback, _| {
            pushback.write("README.md", "#");
        };
        let pushback = repository(empty);
        write(&pushback, &["a", "b"]);
        assert_eq!(both(&pushback, folder), [0, 0], "{name}: a first release");
        // A folder that has moved, as it is and with a broken CRD.
        let pushback = repository(write);
        let parent = Path::new(folder).parent().map(|parent| parent.display().to_string()).unwrap_or_default();
        let moved = if parent.is_empty() { "moved".to_owned() } else { format!("{parent}/moved") };
        git(&pushback, &["mv", folder, &moved]);
        assert_eq!(both(&pushback, &moved), [0, 0], "{name}: moved");
        std::fs::remove_dir_all(pushback.directory().join(&moved)).expect("a folder");
        write(&pushback, &["a"]);
        pushback.shell("mv", &[folder, &moved]);
        assert_eq!(both(&pushback, &moved), [10, 10], "{name}: moved with a field less");
        // A base that is named must exist.
        let ran = run_action(&pushback, &format!("MANIFESTS={moved} BASE=git:origin/main:nothing"));
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
    }
}

fn a_kustomization_names_what_it_does_not_list() {
    let pushback = Pushback::new().without_renderers();
    common_folder(&pushback, &["a", "b"]);
    pushback.commit();
    pushback.write("config/crd/samples/a.yaml", config_map("a"));
    for command in [
        ["check", "-f", "config/crd", "--cluster", "git:main:config/crd"],
        ["diff-crds", "--new", "config/crd", "--old", "git:main:config/crd"],
    ] {
        let ran = pushback.run(&command).expect(0);
        let warnings: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("left out")).collect();
        assert_eq!(warnings.len(), 1, "{command:?}: {}", ran.stderr);
        assert!(warnings[0].contains("samples/a.yaml"), "{}", ran.stderr);
    }
    // A CRD that the kustomization no longer lists is removed, although its file is there.
    pushback.write("config/crd/kustomization.yaml", "resources:\n- bases/foos.yaml\n");
    pushback.run(&["diff-crds", "--old", "git:main:config/crd", "--new", "config/crd"]).expect(10);
    // A file that is listed must exist.
    pushback.write("config/crd/kustomization.yaml", "resources:\n- bases/gone.yaml\n");
    pushback.run(&["diff-crds", "--old", "git:main:config/crd", "--new", "config/crd"]).expect(1);
    pushback.run(&["check", "-f", "config/crd", "--cluster", "git:main:config/crd"]).expect(1);
}

fn documents_that_are_not_objects_are_left_out_with_one_note() {
    let pushback = repository(sdk);
    let ran = pushback.run(&["diff-crds", "--old", "git:main:deploy/crds", "--new", "deploy/crds"]).expect(0);
    assert_eq!(ran.stderr.matches("2 documents are not Kubernetes objects").count(), 2, "{}", ran.stderr);
    // What is applied is still read strictly, and an incomplete object is an error.
    pushback.run(&["check", "-a", "x", "-f", "deploy/crds", "--cluster", "dir:deploy/crds"]).expect(1);
    pushback.write("deploy/crds/a.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    pushback.run(&["diff-crds", "--old", "git:main:deploy/crds", "--new", "deploy/crds"]).expect(1);
    pushback.run(&["check", "-f", "deploy/crds", "--cluster", "git:main:deploy/crds"]).expect(1);
}

fn variants_of_a_crd_are_compared_file_by_file() {
    let pushback = repository(variants);
    let check = ["check", "-f", "config/crd", "--cluster", "git:main:config/crd", "--report=json=r.json"];
    let crds = ["diff-crds", "--old", "git:main:config/crd", "--new", "config/crd"];
    let diff = ["upgrade", "diff", "--from", "git:main:config/crd", "--to", "config/crd"];
    // Each variant alone, then both.
    for (full, minimal) in [(&["a"][..], &[][..]), (&["a", "b"], &["x"]), (&["a"], &["x"])] {
        pushback.write("config/crd/full/foos.yaml", crd("foos", full));
        pushback.write("config/crd/minimal/foos.yaml", crd("foos", minimal));
        let code = if full.len() == 1 { 10 } else { 0 };
        for command in [&check[..], &crds, &diff] {
            pushback.run(command).expect(code);
        }
    }
    pushback.write("config/crd/full/foos.yaml", crd("foos", &["a", "b"]));
    pushback.write("config/crd/minimal/foos.yaml", crd("foos", &[]).replace("Namespaced", "Cluster"));
    for command in [&check[..], &crds, &diff] {
        pushback.run(command).expect(10);
    }
    let report = pushback.run(&check).expect(10);
    assert!(report.stdout.contains("config/crd/minimal/foos.yaml"), "{}", report.stdout);
    let finding = &pushback.read_json("r.json")["findings"][0];
    assert_eq!(finding["position"]["file"], "config/crd/minimal/foos.yaml");
    // Another object in two files is still an error.
    pushback
        .write("config/crd/one.yaml", config_map("a"))
        .write("config/crd/two.yaml", config_map("a").replace("a: b", "c: d"));
    pushback.run(&check).expect(1);
}

fn both_sides_are_read_by_the_same_rules() {
    let pushback = Pushback::new();
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n";
    let nested = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: d, creationTimestamp: null}\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: x}\n";
    pushback
        .write("deploy/a.yaml", config_map("a"))
        .write("deploy/.hidden.yaml", config_map("hidden"))
        .write("deploy/.github/b.yaml", "not: an object\n")
        .write("deploy/list.yaml", list)
        .write("deploy/nested.yml", nested)
        .write("deploy/secret.json", "{}")
        .write("deploy/secret.yaml", secret);
    pushback.commit();
    for (new, base) in [
        ("deploy", "git:main:deploy"),
        ("git:main:deploy", "dir:deploy"),
        ("deploy", "dir:deploy"),
        ("git:main:deploy", "git:main:deploy"),
        ("git:main:deploy", "git:HEAD:deploy"),
    ] {
        for more in [&[][..], &["-n", "shop"], &["--into-ns", "shop"]] {
            let check = ["check", "-f", new, "--cluster", base, "--output", "json"];
            let changes = &pushback.run(&[&check, more].concat()).expect(0).json()["changes"];
            assert_eq!(changes["noop"], 4, "{new} {base} {more:?}: {changes}");
            assert_eq!([&changes["create"], &changes["update"], &changes["delete"]], [&Value::from(0); 3], "{changes}");
        }
    }
}
