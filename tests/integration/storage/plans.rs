//! Conversion plans in a run: among the manifests, in a Config and in a policy source; what is wrong with them is an error
//! with its line, and what one among the manifests loses is a finding until a policy source accepts it.

use serde_json::json;

use super::crd::TestCrd;
use crate::support::apply::TestApp;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_plan_is_read_and_never_applied,
        Nothing: a_config_may_hold_plans_and_the_policy_goes_first,
        ApiServer: losses_of_a_plan_are_findings_until_a_policy_accepts_them,
    ]
}

const GROUP: &str = "plans.example.com";

fn definition(plural: &str, versions: &[(&str, &str, bool)]) -> String {
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{GROUP}}}\nspec:\n  \
         group: {GROUP}\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n",
        kind = plural.to_uppercase(),
    );
    for (name, field, storage) in versions {
        text += &format!(
            "  - name: {name}\n    served: true\n    storage: {storage}\n    schema: {{openAPIV3Schema: {{type: object, \
             properties: {{spec: {{type: object, properties: {{size: {{type: string}}, {field}: {{type: string}}}}}}}}}}}}\n"
        );
    }
    text
}

fn plan(plural: &str, step: &str) -> String {
    format!(
        "apiVersion: pushback.dev/v1alpha1\nkind: ConversionPlan\nmetadata: {{name: {plural}.{GROUP}}}\nsteps:\n- from: v1\n  \
         to: v2\n  {step}\n"
    )
}

fn everything(ran: &Ran) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

const RENAMED: &str = "renames: {spec.old: spec.new}";

fn check(pushback: &Pushback, more: &[&str]) -> Ran {
    pushback.run(&[&["check", "--cluster", "dir:live", "--new-base", "-f", "app"], more].concat())
}

fn a_plan_is_read_and_never_applied() {
    let pushback = Pushback::new();
    let both = definition("cogs", &[("v1", "old", false), ("v2", "new", true)]);
    pushback.write("app/crd.yaml", &both).write("app/plan.yaml", plan("cogs", RENAMED));
    let ran = check(&pushback, &[]).expect(0);
    assert!(!everything(&ran).contains("ConversionPlan"), "{}", everything(&ran));

    pushback.write("app/plan.yaml", plan("cogs", "renames: {spec.odl: spec.new}"));
    let ran = check(&pushback, &[]).expect(1);
    assert!(ran.stderr.contains("app/plan.yaml:7:13"), "{}", ran.stderr);
    pushback.write("app/plan.yaml", plan("cogs", "rename: {}"));
    assert!(check(&pushback, &[]).expect(1).stderr.contains("did you mean `renames`?"));
    pushback.write("app/plan.yaml", plan("gogs", RENAMED));
    let ran = check(&pushback, &[]).expect(0);
    assert!(everything(&ran).contains("there is no definition gogs.plans.example.com"), "{}", everything(&ran));
    assert!(everything(&ran).contains("did you mean cogs.plans.example.com?"), "{}", everything(&ran));
}

fn a_config_may_hold_plans_and_the_policy_goes_first() {
    let pushback = Pushback::new();
    let both = definition("cogs", &[("v1", "old", false), ("v2", "new", true)]);
    let config = |step: &str| {
        format!(
            "apiVersion: pushback.dev/v1alpha1\nkind: Config\nconversionPlans:\n- metadata: {{name: cogs.{GROUP}}}\n  steps: \
             [{{from: v1, to: v2, {step}}}]\n"
        )
    };
    pushback.write("app/crd.yaml", &both).write("app/config.yaml", config(RENAMED));
    check(&pushback, &[]).expect(0);
    pushback.write("app/config.yaml", config("renames: {spec.odl: spec.new}"));
    assert!(check(&pushback, &[]).expect(1).stderr.contains("app/config.yaml:5:"));
    // The policy's plan fits, and the other one is told and left.
    pushback.write("policy.yaml", plan("cogs", RENAMED));
    let ran = check(&pushback, &["--config", "policy.yaml"]).expect(0);
    assert!(everything(&ran).contains("not followed: policy.yaml:1:1"), "{}", everything(&ran));
    pushback.write("app/plan.yaml", plan("cogs", RENAMED));
    let ran = check(&pushback, &[]).expect(1);
    assert!(ran.stderr.contains("a second plan for cogs.plans.example.com"), "{}", ran.stderr);
}

fn losses_of_a_plan_are_findings_until_a_policy_accepts_them() {
    let text = || json!({"type": "string"});
    let crd = TestCrd::new("plan-losses");
    crd.put(&[("v1", true, true, json!({"size": text(), "old": text()}))]);
    let wanted = crd.manifest(&[
        ("v1", true, false, json!({"size": text(), "old": text()})),
        ("v2", true, true, json!({"size": text()})),
    ]);
    let plan = json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": crd.name()},
        "steps": [{"from": "v1", "to": "v2", "removed": {"spec.old": {"reason": "nobody reads it", "drop": true}},
            "acknowledge": {"spec.old": "nobody reads it"}}],
    });
    let app = TestApp::new("cogs", &crd.namespace);
    app.pushback.write("app/crd.yaml", wanted.to_string()).write("app/plan.yaml", plan.to_string());
    let rules = "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules: [{name: StoredVersions}]\n";
    app.pushback.write("rules.yaml", rules);
    let check = |more: &[&str]| {
        let arguments = ["-f", "app", "--config", "rules.yaml", "--dangerous-override-ownership-of-existing-resources"];
        app.run("check", &[&arguments[..], more].concat())
    };
    let ran = check(&[]).expect(10);
    let told = "lose spec.old when they are converted to";
    assert!(everything(&ran).contains(told), "{}", everything(&ran));
    app.pushback.write("plan.yaml", plan.to_string());
    check(&["--config", "plan.yaml"]).expect(0);
    let waiver =
        "preflightWaivers: [{rule: StoredVersions, check: plannedLoss, path: spec.old, reason: nobody reads it}]\n";
    app.pushback.write("rules.yaml", format!("{rules}{waiver}"));
    check(&[]).expect(0);
}
