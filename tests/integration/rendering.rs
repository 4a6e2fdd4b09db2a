//! Kustomizations and charts, rendered with the real programs on both sides of a comparison, and what is refused.

use serde_json::Value;

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Renderers: field_removed_in_a_base_is_found_at_its_line,
        Renderers: field_removed_in_a_chart_is_found_at_its_line,
        Renderers: generated_object_is_found_in_the_rendered_text,
        Renderers: sources_are_named_with_their_program,
        Renderers: values_are_those_of_the_ref,
        Renderers: rendered_folder_is_applied,
        Renderers: releases_are_compared_as_rendered,
        Renderers: remote_bases_are_refused,
        Renderers: entry_outside_the_repository_is_refused,
        Renderers: programs_of_a_kustomization_do_not_run,
        Renderers: folder_that_cannot_be_rendered_is_an_error,
        Renderers: config_beside_a_rendered_kustomization_is_the_policy,
        Nothing: missing_program_is_named,
        Nothing: kapp_renders_nothing,
    ]
}

/// A CRD in several lines; `b` is in the last two.
pub(crate) fn crd(name: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {name}.ex.com\nspec:\n  \
         group: ex.com\n  scope: Namespaced\n  names:\n    plural: {name}\n    kind: {name}Kind\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec:\n            type: object\n            properties:\n              a:\n                type: string\n              \
         b:\n                type: string\n"
    )
}

/// Line of the `properties` that lose the field.
pub(crate) const PROPERTIES: u32 = 21;

pub(crate) fn without_b(crd: &str) -> String {
    crd.replace("              b:\n                type: string\n", "")
}

/// An overlay over a base outside its folder.
fn overlay() -> Pushback {
    let pushback = Pushback::new().with_renderers();
    pushback
        .write("base/kustomization.yaml", "resources:\n- crd.yaml\n- map.yaml\n")
        .write("base/crd.yaml", crd("foos"))
        .write("base/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\ndata:\n  a: b\n")
        .write(
            "overlays/prod/kustomization.yaml",
            "resources:\n- ../../base\nnamePrefix: prod-\nnamespace: prod\nconfigMapGenerator:\n- name: made\n  literals:\n  - k=v\n",
        );
    pushback
}

/// A chart with a CRD in `crds`, one among its templates, and a ConfigMap.
fn chart() -> Pushback {
    let pushback = Pushback::new().with_renderers();
    let template = format!("{{{{- if .Values.crds }}}}\n{}{{{{- end }}}}\n", crd("bars"));
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  size: {{ .Values.size | quote }}\n";
    pushback
        .write("chart/Chart.yaml", "apiVersion: v2\nname: op\nversion: 1.0.0\n")
        .write("chart/values.yaml", "crds: true\nsize: 1\n")
        .write("chart/crds/foos.yaml", crd("foos"))
        .write("chart/templates/bars.yaml", template)
        .write("chart/templates/map.yaml", map);
    pushback
}

/// Findings of the report that `check` has written.
pub(crate) fn findings(pushback: &Pushback) -> Vec<(String, String, u64)> {
    let report: Value = pushback.read_json("r.json");
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings
        .map(|it| {
            (text(&it["check"]), text(&it["position"]["file"]), it["position"]["line"].as_u64().unwrap_or_default())
        })
        .collect()
}

pub(crate) const REMOVED: &str = "existingFieldRemoval";

fn field_removed_in_a_base_is_found_at_its_line() {
    for (new, base) in [
        ("overlays/prod", "git:main:overlays/prod"),
        ("kustomize:overlays/prod", "git:main:kustomize:overlays/prod"),
        ("overlays", "git:main:overlays"),
    ] {
        let pushback = overlay();
        pushback.commit();
        let check = ["check", "-f", new, "--cluster", base, "--report=json=r.json"];
        pushback.run(&check).expect(0);
        assert_eq!(findings(&pushback), []);
        pushback.write("base/crd.yaml", without_b(&crd("foos")));
        pushback.run(&check).expect(10);
        let expected = (REMOVED.to_owned(), "base/crd.yaml".to_owned(), u64::from(PROPERTIES));
        assert_eq!(findings(&pushback), [expected], "{new}");
        // The base that is gone deletes what it made.
        pushback.write("base/kustomization.yaml", "resources:\n- map.yaml\n");
        pushback.run(&check).expect(10);
        assert_eq!(findings(&pushback).first().map(|it| it.0.as_str()), Some("crdDeletion"), "{new}");
    }
}

fn field_removed_in_a_chart_is_found_at_its_line() {
    for (new, base) in [("chart", "git:main:chart"), ("helm:chart", "git:main:helm:chart")] {
        let pushback = chart();
        pushback.commit();
        let check = ["check", "-f", new, "--cluster", base, "--report=json=r.json"];
        pushback.run(&check).expect(0);
        assert_eq!(findings(&pushback), []);
        let template = pushback.read("chart/templates/bars.yaml");
        pushback
            .write("chart/crds/foos.yaml", without_b(&crd("foos")))
            .write("chart/templates/bars.yaml", without_b(&template));
        pushback.run(&check).expect(10);
        let expected = [("chart/crds/foos.yaml", PROPERTIES), ("chart/templates/bars.yaml", PROPERTIES + 1)]
            .map(|(file, line)| (REMOVED.to_owned(), file.to_owned(), u64::from(line)));
        let mut found = findings(&pushback);
        found.sort();
        assert_eq!(found, expected, "{new}");
        // A template that no longer makes the CRD deletes it.
        pushback.write("chart/values.yaml", "crds: false\nsize: 1\n");
        pushback.run(&check).expect(10);
        assert!(findings(&pushback).iter().any(|it| it.0 == "crdDeletion"), "{new}");
    }
}

fn generated_object_is_found_in_the_rendered_text() {
    let pushback = overlay();
    let ran =
        pushback.run(&["diff", "-f", "overlays/prod", "--cluster", "dir:none", "--new-base", "-o", "json"]).expect(0);
    let changes = ran.events_of("plan").remove(0)["changes"].clone();
    let place = |name: &str| {
        let is_named = |it: &&Value| it["object"]["name"].as_str().is_some_and(|known| known.starts_with(name));
        let change = changes.as_array().expect("changes").iter().find(is_named).expect("the object");
        change["position"]["file"].clone()
    };
    assert_eq!(place("prod-map"), "base/map.yaml");
    assert_eq!(place("foos.ex.com"), "base/crd.yaml");
    assert_eq!(place("prod-made"), "kustomize:overlays/prod");
    let rendered: Vec<Value> = ran.events_of("diagnostic").into_iter().filter(|it| it["code"] == "rendered").collect();
    let message = rendered[0]["message"].as_str().expect("a message");
    assert!(message.starts_with("overlays/prod is rendered with kustomize v5"), "{message}");
}

fn sources_are_named_with_their_program() {
    let pushback = chart();
    pushback.commit();
    for (new, base) in [
        ("helm:chart", "helm:chart"),
        ("chart", "helm:chart"),
        ("git:main:helm:chart", "helm:chart"),
        ("git:main:chart", "dir:chart"),
    ] {
        let ran = pushback.run(&["check", "-f", new, "--cluster", base, "-o", "json"]).expect(0);
        let changes = &ran.json()["changes"];
        assert_eq!(
            (&changes["noop"], &changes["create"]),
            (&Value::from(3), &Value::from(0)),
            "{new} {base}: {changes}"
        );
    }
    // A chart on this machine has one version, and a source that is rendered cannot be written to.
    pushback.run(&["check", "-f", "helm:chart@1.0.0", "--cluster", "helm:chart"]).expect(1);
    pushback.run(&["apply", "-a", "op", "-f", "chart", "--cluster", "helm:chart", "--yes"]).expect(1);
    pushback.run(&["check", "-a", "op", "-f", "chart", "--cluster", "helm:chart"]).expect(1);
    for missing in ["helm:", "helm:@1", "kustomize:nothing", "git:main:helm:nothing", "git:main:kustomize:nothing"] {
        pushback.run(&["check", "-f", missing, "--cluster", "helm:chart"]).expect(1);
    }
}

fn values_are_those_of_the_ref() {
    let pushback = chart();
    pushback.write("prod.yaml", "size: 2\n");
    pushback.commit();
    let diff = |more: &[&str]| {
        let all = [&["diff", "-f", "chart", "--cluster", "git:main:chart", "--diff-exit-status"][..], more].concat();
        pushback.run(&all).code
    };
    let (changed, unchanged) = (3, 2);
    assert_eq!(diff(&["--values", "prod.yaml"]), unchanged);
    pushback.write("prod.yaml", "size: 3\n");
    assert_eq!(diff(&["--values", "prod.yaml"]), changed);
    assert_eq!(diff(&["--values", "prod.yaml", "--set", "size=4"]), unchanged);
    assert_eq!(diff(&["--release", "other"]), unchanged);
    pushback.write("added.yaml", "size: 3\n");
    assert_eq!(diff(&["--values", "added.yaml"]), 1, "the ref has no such file");
}

fn rendered_folder_is_applied() {
    let pushback = overlay();
    pushback.run(&["apply", "-a", "shop", "-f", "overlays/prod", "--cluster", "dir:live", "--yes"]).expect(0);
    let again = ["apply", "-a", "shop", "-f", "overlays/prod", "--cluster", "dir:live", "--yes", "-o", "json"];
    let ran = pushback.run(&again).expect(0);
    assert_eq!(ran.events_of("plan").remove(0)["counts"]["noop"], 3);
    let pushback = chart();
    pushback
        .run(&[
            "apply",
            "-a",
            "op",
            "-n",
            "system",
            "-f",
            "chart",
            "--cluster",
            "dir:live",
            "--yes",
            "--release",
            "main",
        ])
        .expect(0);
    assert!(pushback.read("live/system/configmap_main.yaml").contains("size: \"1\""));
}

fn releases_are_compared_as_rendered() {
    let pushback = chart();
    pushback.commit();
    let diff = ["upgrade", "diff", "--from", "git:main:chart", "--to", "chart"];
    pushback.run(&diff).expect(0);
    pushback.write("chart/crds/foos.yaml", without_b(&crd("foos")));
    pushback.run(&diff).expect(10);
    pushback.run(&["upgrade", "diff-crds", "--from", "git:main:chart", "--to", "chart"]).expect(10);
}

fn remote_bases_are_refused() {
    for entry in ["https://ex.invalid/a.yaml", "github.com/org/repo//config?ref=v1", "git@ex.invalid:org/repo"] {
        let pushback = overlay();
        pushback.write("base/kustomization.yaml", format!("resources:\n- crd.yaml\n- {entry}\n"));
        pushback.commit();
        for new in ["overlays/prod", "git:main:overlays/prod"] {
            let ran = pushback.run(&["check", "-f", new, "--cluster", "dir:none", "--new-base"]).expect(1);
            assert!(ran.stderr.contains("base/kustomization.yaml") && ran.stderr.contains(entry), "{}", ran.stderr);
        }
    }
    let pushback = overlay();
    pushback.write("base/kustomization.yaml", "helmCharts:\n- {name: a, repo: https://ex.invalid}\n");
    pushback.run(&["check", "-f", "overlays/prod", "--cluster", "dir:none", "--new-base"]).expect(1);
}

fn entry_outside_the_repository_is_refused() {
    let pushback = overlay();
    pushback.write("overlays/prod/kustomization.yaml", "resources:\n- ../../../outside\n");
    pushback.commit();
    let ran = pushback.run(&["check", "-f", "base", "--cluster", "git:main:overlays/prod"]).expect(1);
    assert!(ran.stderr.contains("git:main:overlays/prod/kustomization.yaml"), "{}", ran.stderr);
    assert!(ran.stderr.contains("outside the repository"), "{}", ran.stderr);
}

fn programs_of_a_kustomization_do_not_run() {
    let pushback = overlay();
    let function = "apiVersion: ex.com/v1\nkind: Program\nmetadata:\n  name: p\n  annotations:\n    config.kubernetes.io/function: |\n      \
                    exec:\n        path: ./run.sh\n";
    pushback
        .write("base/kustomization.yaml", "resources:\n- map.yaml\ngenerators:\n- function.yaml\n")
        .write("base/function.yaml", function)
        .write("base/run.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n");
    pushback.shell("chmod", &["+x", "base/run.sh"]);
    pushback.run(&["check", "-f", "overlays/prod", "--cluster", "dir:none", "--new-base"]).expect(1);
    assert!(!pushback.directory().join("base/ran").exists());
}

fn folder_that_cannot_be_rendered_is_an_error() {
    // A circle, a missing file, and a template that fails.
    let pushback = overlay();
    pushback.write("base/kustomization.yaml", "resources:\n- ../overlays/prod\n");
    pushback.commit();
    let circle = ["check", "-f", "base/crd.yaml", "--cluster", "git:main:overlays/prod"];
    let ran = pushback.run(&circle).expect(1);
    assert!(ran.stderr.contains("cycle detected: candidate root 'git:main:overlays/prod'"), "{}", ran.stderr);
    let pushback = chart();
    pushback.write("chart/templates/map.yaml", "{{ required \"size is needed\" .Values.none }}\n");
    let ran = pushback.run(&["apply", "-a", "op", "-f", "chart", "--cluster", "dir:live", "--yes"]).expect(1);
    assert!(ran.stderr.contains("size is needed"), "{}", ran.stderr);
    assert!(!pushback.directory().join("live").exists(), "nothing is written");
}

fn config_beside_a_rendered_kustomization_is_the_policy() {
    let pushback = overlay();
    pushback.write("overlays/prod/policy.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\nrebaseRules: 3\n");
    let ran = pushback.run(&["check", "-f", "overlays/prod", "--cluster", "dir:none", "--new-base"]).expect(1);
    assert!(ran.stderr.contains("overlays/prod/policy.yaml:3"), "{}", ran.stderr);
}

fn missing_program_is_named() {
    let pushback = Pushback::new().without_renderers();
    pushback
        .write("overlay/kustomization.yaml", "namePrefix: a-\n")
        .write("chart/Chart.yaml", "apiVersion: v2\nname: op\nversion: 1.0.0\n");
    pushback.commit();
    for (folder, program) in [("overlay", "kustomize"), ("chart", "helm")] {
        for new in [folder.to_owned(), format!("git:main:{folder}"), format!("{program}:{folder}")] {
            let ran = pushback.run(&["check", "-f", &new, "--cluster", "dir:none", "--new-base"]).expect(1);
            assert!(ran.stderr.contains(program) && ran.stderr.contains("on the PATH"), "{}", ran.stderr);
        }
    }
}

fn kapp_renders_nothing() {
    let pushback = Pushback::new().without_renderers().with("PUSHBACK_VOICE", "kapp");
    pushback.write("overlay/kustomization.yaml", "namePrefix: a-\n");
    let ran = pushback.run(&["deploy", "-a", "x", "-f", "overlay", "-y"]);
    assert_eq!(ran.code, 1);
    assert!(!ran.stderr.contains("on the PATH"), "{}", ran.stderr);
}
