//! The base of a comparison: one that is missing, that has moved, that holds no objects or has to be rendered, and the
//! layouts of real projects.

use crate::support::{Pushback, TestCase, cases};

mod layouts;

pub(crate) fn tests() -> Vec<TestCase> {
    let mut tests = cases![
        Nothing: a_missing_base_is_an_error_that_lists_similar_paths,
        Nothing: a_first_release_is_declared,
        Nothing: a_declared_first_release_with_a_base_warns,
        Nothing: apply_creates_a_missing_folder,
        Nothing: a_moved_folder_is_compared_even_if_a_first_release_is_declared,
        Nothing: moved_base_keeps_its_policy,
        Nothing: new_base_of_an_api_server_is_refused,
        Nothing: an_overlay_is_not_an_empty_base,
        Nothing: a_side_without_objects_is_an_error,
    ];
    tests.extend(layouts::tests());
    tests
}

/// A CRD whose `spec` has these fields.
fn crd(plural: &str, fields: &[&str]) -> String {
    let properties: String = fields.iter().map(|field| format!("\n              {field}: {{type: string}}")).collect();
    let properties = if properties.is_empty() { " {}".to_owned() } else { properties };
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {plural}.ex.com\nspec:\n  \
         group: ex.com\n  scope: Namespaced\n  names: {{kind: {plural}Kind, plural: {plural}}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec:\n            type: object\n            properties:{properties}\n"
    )
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
}

fn git(pushback: &Pushback, arguments: &[&str]) {
    pushback.shell("git", arguments);
}

/// `main` has a CRD in `config/crd/bases`.
fn repository() -> Pushback {
    let pushback = Pushback::new();
    pushback
        .write("config/crd/bases/foos.yaml", crd("foos", &["a", "b"]))
        .write("config/rbac/map.yaml", config_map("map"));
    pushback.commit();
    pushback
}

/// The commands that compare, each with an option for the new side and one for the base.
const COMPARISONS: [(&[&str], &str, &str); 5] = [
    (&["check"], "-f", "--cluster"),
    (&["diff"], "-f", "--cluster"),
    (&["upgrade", "diff"], "--to", "--from"),
    (&["upgrade", "diff-crds"], "--to", "--from"),
    (&["upgrade", "simulate", "--dry-run"], "--to", "--from"),
];

fn compare(pushback: &Pushback, index: usize, new: &str, base: &str, more: &[&str]) -> crate::support::pushback::Ran {
    let (command, new_option, base_option) = COMPARISONS[index];
    let base = match base_option {
        "--cluster" if !base.starts_with("git:") => format!("dir:{base}"),
        _ => base.to_owned(),
    };
    pushback.run(&[command, &[new_option, new, base_option, &base], more].concat())
}

fn a_missing_base_is_an_error_that_lists_similar_paths() {
    let pushback = repository();
    for (index, (command, ..)) in COMPARISONS.iter().enumerate() {
        for (base, similar) in [
            ("git:main:config/crds/bases", "git:main:config/crd/bases"),
            ("git:main:config/crd/base", "git:main:config/crd/bases"),
            ("git:main:config/crd/bases/foo.yaml", "git:main:config/crd/bases/foos.yaml"),
            ("config/crds", "config/crd"),
        ] {
            let ran = compare(&pushback, index, "config/crd", base, &[]).expect(1);
            assert!(ran.stderr.contains(similar), "{command:?} {base}: {}", ran.stderr);
            assert!(ran.stderr.contains("--new-base"), "{command:?} {base}: {}", ran.stderr);
        }
    }
    let plan = ["plan", "-a", "x", "-f", "config/crd", "--cluster", "dir:misspelt", "--out", "a.plan"];
    pushback.run(&plan).expect(1);
    for app in ["check", "diff"] {
        pushback.run(&[app, "-a", "x", "-f", "config/crd", "--cluster", "dir:misspelt"]).expect(1);
        pushback.run(&[app, "-a", "x", "-f", "config/crd", "--cluster", "git:main:misspelt"]).expect(1);
    }
    assert!(!pushback.directory().join("misspelt").exists());
    let ran = pushback.run(&["check", "-f", "config/crd", "--cluster", "git:main:config/crds"]).expect(1);
    insta::assert_snapshot!(ran.complaints(), @"
    error: git:main:config/crds: main does not contain the path config/crds
    hint: Similar paths: git:main:config/crd, git:main:config/crd/bases, git:main:config.
    hint: For a first release, which has no base, add --new-base.
    ");
}

fn a_first_release_is_declared() {
    let pushback = repository();
    pushback.write("new/bars.yaml", crd("bars", &["a"]));
    for (index, (command, ..)) in COMPARISONS.iter().enumerate() {
        for base in ["git:main:new", "live"] {
            let ran = compare(&pushback, index, "new", base, &["--new-base"]).expect(0);
            assert!(ran.stderr.contains("as --new-base declares"), "{command:?}: {}", ran.stderr);
        }
    }
    let report = ["check", "-f", "new", "--cluster", "git:main:new", "--new-base", "--output", "json"];
    assert_eq!(pushback.run(&report).expect(0).json()["changes"]["create"], 1);
    let plan = ["plan", "-a", "x", "-f", "new", "--cluster", "dir:live", "--out", "a.plan", "--new-base"];
    pushback.run(&plan).expect(0);
    pushback.run(&["apply", "--plan", "a.plan", "--cluster", "dir:live"]).expect(0);
    assert!(pushback.directory().join("live").is_dir());
    // Neither is a folder without manifests a base.
    pushback.write("empty/README.md", "#").write("policy/a.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\n");
    pushback.commit();
    for base in ["dir:empty", "git:main:empty"] {
        pushback.run(&["check", "-f", "new", "--cluster", base]).expect(1);
        pushback.run(&["check", "-f", "new", "--cluster", base, "--new-base"]).expect(0);
    }
    // A policy may come first. Git has the objects under another path.
    for (base, note) in [
        ("dir:policy", "it has a policy and no objects"),
        ("git:main:policy", "1 object is compared as moved: it is under git:main:new"),
    ] {
        let ran = pushback.run(&["check", "-f", "new", "--cluster", base]).expect(0);
        assert!(ran.stderr.contains(note), "{base}: {}", ran.stderr);
    }
}

fn a_declared_first_release_with_a_base_warns() {
    let pushback = repository();
    for (index, (command, ..)) in COMPARISONS.iter().enumerate() {
        for base in ["git:main:config/crd", "config/crd"] {
            let ran = compare(&pushback, index, "config/crd", base, &["--new-base"]).expect(0);
            assert!(ran.stderr.contains("remove --new-base"), "{command:?} {base}: {}", ran.stderr);
        }
    }
    // The declaration changes nothing about the comparison.
    pushback.write("config/crd/bases/foos.yaml", crd("foos", &["a"]));
    for index in [0, 2, 3] {
        compare(&pushback, index, "config/crd", "git:main:config/crd", &["--new-base"]).expect(10);
    }
}

fn apply_creates_a_missing_folder() {
    let pushback = repository();
    let apply = ["apply", "-a", "x", "-f", "config/crd", "--cluster", "dir:live", "--yes"];
    pushback.run(&[&apply[..], &["--diff-run"]].concat()).expect(0);
    pushback.run(&apply).expect(0);
    // With a record the folder is a cluster, and may be empty.
    pushback.run(&["check", "-a", "x", "-f", "config/crd", "--cluster", "dir:live"]).expect(0);
    std::fs::create_dir(pushback.directory().join("empty")).expect("a folder");
    pushback.run(&["check", "-a", "x", "-f", "config/crd", "--cluster", "dir:empty"]).expect(0);
    let ran = pushback.run(&["check", "-f", "config/crd", "--cluster", "dir:empty"]).expect(0);
    assert!(ran.stderr.contains("the folder has no files"), "{}", ran.stderr);
}

fn a_moved_folder_is_compared_even_if_a_first_release_is_declared() {
    let pushback = repository();
    git(&pushback, &["mv", "config/crd", "config/crds"]);
    for (index, (command, ..)) in COMPARISONS.iter().enumerate() {
        let base = "git:main:config/crds";
        compare(&pushback, index, "config/crds", base, &[]).expect(1);
        let ran = compare(&pushback, index, "config/crds", base, &["--new-base"]).expect(0);
        assert!(ran.stderr.contains("compared as moved"), "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("git:main:config/crd/bases"), "{command:?}: {}", ran.stderr);
    }
    // A field is lost on the way, in another file.
    pushback.write("config/crds/all.yaml", crd("foos", &["a"]));
    std::fs::remove_dir_all(pushback.directory().join("config/crds/bases")).expect("a folder");
    for index in [0, 2, 3] {
        compare(&pushback, index, "config/crds", "git:main:config/crds", &["--new-base"]).expect(10);
    }
    // A CRD is lost on the way.
    let pushback = repository();
    pushback.write("config/crd/bases/bars.yaml", crd("bars", &["a"]));
    pushback.commit();
    git(&pushback, &["mv", "config/crd", "config/crds"]);
    std::fs::remove_file(pushback.directory().join("config/crds/bases/bars.yaml")).expect("a file");
    for index in [0, 2, 3] {
        compare(&pushback, index, "config/crds", "git:main:config/crds", &["--new-base"]).expect(10);
    }
}

/// An operator made with kubebuilder: CRDs with patches, and an overlay.
fn overlay(pushback: &Pushback, fields: &[&str]) {
    pushback
        .write("config/crd/kustomization.yaml", "resources:\n- bases/foos.yaml\n")
        .write("config/crd/bases/foos.yaml", crd("foos", fields))
        .write("config/manager/kustomization.yaml", "resources:\n- map.yaml\n")
        .write("config/manager/map.yaml", config_map("manager"))
        .write("config/default/kustomization.yaml", "namePrefix: op-\nresources:\n- ../crd\n- ../manager\n");
}

fn an_overlay_is_not_an_empty_base() {
    let pushback = Pushback::new().without_renderers();
    overlay(&pushback, &["a", "b"]);
    pushback.commit();
    let rendered = format!("{}---\n{}", crd("foos", &["a"]), config_map("op-manager"));
    pushback.write("new.yaml", &rendered);
    for (index, (command, ..)) in COMPARISONS.iter().enumerate() {
        for base in ["git:main:config/default", "config/default", "git:main:config", "config"] {
            let ran = compare(&pushback, index, "new.yaml", base, &[]).expect(1);
            assert!(ran.stderr.contains("kubectl kustomize"), "{command:?} {base}: {}", ran.stderr);
        }
        // The new side follows the same rules.
        let ran = compare(&pushback, index, "config/default", "git:main:config/crd", &[]).expect(1);
        assert!(ran.stderr.contains("kubectl kustomize config/default > new.yaml"), "{command:?}: {}", ran.stderr);
    }
    let piped = "exec $0 check -f - --cluster git:main:config/default < new.yaml";
    let ran = pushback.run_in_shell(piped).expect(1);
    insta::assert_snapshot!(ran.complaints(), @r#"
    error: git:main:config/default/kustomization.yaml: it must be rendered, and neither kustomize nor kubectl is on the PATH
    hint: Install kustomize or kubectl.
    hint: Render it: `base=$(mktemp -d) && git worktree add --detach "$base" main && kubectl kustomize "$base"/config/default > base.yaml`; then name the result: `--cluster file:base.yaml`.
    hint: Render both sides in the same way.
    "#);
    // An app in a git ref without records is compared with the same base.
    pushback.run(&["check", "-a", "x", "-f", "new.yaml", "--cluster", "git:main:config/default"]).expect(1);
}

fn a_side_without_objects_is_an_error() {
    let pushback = repository().without_renderers();
    pushback
        .write("values/a.yaml", "size: 1\n")
        .write("policy/config.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\n")
        .write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
        .write("chart/templates/map.yaml", config_map("map"))
        .write("remote/kustomization.yaml", "resources:\n- https://example.com/a.yaml\n")
        .write("generated/kustomization.yaml", "configMapGenerator:\n- name: a\n")
        .write("patches/kustomization.yaml", "patches:\n- path: a.yaml\n")
        .write("patches/a.yaml", config_map("map"));
    pushback.commit();
    for (index, (command, ..)) in COMPARISONS.iter().enumerate() {
        for folder in ["values", "policy", "chart", "remote", "generated", "patches"] {
            for base in [folder.to_owned(), format!("git:main:{folder}")].iter().filter(|_| folder != "policy") {
                let ran = compare(&pushback, index, "config/crd", base, &[]);
                assert_eq!(ran.code, 1, "{command:?} {base}: {}{}", ran.stdout, ran.stderr);
            }
            let ran = compare(&pushback, index, folder, "git:main:config/crd", &[]);
            assert_eq!(ran.code, 1, "{command:?} {folder}: {}{}", ran.stdout, ran.stderr);
        }
    }
}

/// The command between backticks behind `Render it: `, and the option that names its result.
fn moved_base_keeps_its_policy() {
    let pushback = repository();
    let off = "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config:\n    \
               checks: {existingFieldRemoval: warn}\n";
    pushback.write("config/crd/policy.yaml", off);
    pushback.commit();
    git(&pushback, &["mv", "config/crd", "config/crds"]);
    std::fs::remove_file(pushback.directory().join("config/crds/policy.yaml")).expect("a file");
    pushback.write("config/crds/bases/foos.yaml", crd("foos", &["a"]));
    let check =
        ["check", "-f", "config/crds", "--cluster", "git:main:config/crds", "--new-base", "--policy-from=outside"];
    pushback.run(&check).expect(0);
}

fn new_base_of_an_api_server_is_refused() {
    let pushback = repository();
    let ran = pushback.run(&["check", "-a", "x", "-f", "config/crd", "--new-base"]).expect(1);
    assert!(ran.stderr.contains("found an API server"), "{}", ran.stderr);
}
