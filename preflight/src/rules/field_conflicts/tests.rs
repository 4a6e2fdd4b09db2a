//! Which conflicts refuse, depending on the settings; the content of a finding.

mod fingerprints;

use std::sync::Arc;

use pushback_objects::object::ObjectRef;
use serde_json::{Value, json};

use super::*;
use crate::facts::Verification;
use crate::judge::{Outcome, RunReport};
use crate::policy::select;
use crate::selection::ConfigRule;
use crate::session::Session;
use crate::waiver::Waiver;

fn field(path: &str, old: Value, new: Option<Value>) -> TakenField {
    TakenField { path: path.into(), place: path.split('.').map(Into::into).collect(), old: Some(old), new }
}

fn taken(manager: &str, operation: &str, paths: &[&str]) -> TakenFrom {
    TakenFrom {
        manager: manager.into(),
        operation: operation.into(),
        time: "2026-11-21T12:00:00Z".into(),
        fields: paths.iter().map(|path| field(path, json!("theirs"), Some(json!("ours")))).collect(),
        ..TakenFrom::default()
    }
}

fn deployment(taken_from: Vec<TakenFrom>) -> Change {
    let manifest =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}});
    Change {
        object: ObjectRef::of(&manifest),
        resource: "deployments".into(),
        namespaced: true,
        operation: Operation::Update,
        desired: Some(Arc::new(manifest)),
        live: None,
        result: None,
        verification: Verification::Server,
        positions: None,
        orphaned: false,
        taken_from,
    }
}

fn run_with(change: Change, config: &Value, waivers: &[Waiver]) -> RunReport {
    let rules = [ConfigRule { name: NAME, config, positions: None }];
    let selection = select(None, Some(&rules)).expect("a valid config");
    let changes = ChangeSet { app: "test".into(), changes: vec![change], ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, crate::facts::ClusterFacts::default());
    assert!(session.needs().is_empty());
    session.finish(Judgement::default(), waivers, "2026-01-01").0
}

/// One line per finding, and the outcome.
fn run(change: Change, config: &Value) -> String {
    let report = run_with(change, config, &[]);
    let line = |finding: &Finding| format!("{} {:?}: {}", finding.check, finding.severity, finding.message);
    let lines: Vec<String> = report.findings.iter().map(line).collect();
    format!("{:?}\n{}", report.outcome, lines.join("\n"))
}

#[test]
fn a_conflict_refuses_and_says_whose_the_field_is_since_when_and_what_would_settle_it() {
    let report = run_with(deployment(vec![taken("kubectl-edit", "Update", &["spec.replicas"])]), &json!({}), &[]);
    assert_eq!(report.outcome, Outcome::Refused);
    insta::assert_json_snapshot!(report.findings[0], @r#"
    {
      "rule": "FieldConflicts",
      "check": "conflict",
      "verdict": "breaking",
      "severity": "error",
      "object": {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "namespace": "shop",
        "name": "web"
      },
      "path": "spec.replicas",
      "old": "theirs",
      "new": "ours",
      "message": "spec.replicas is taken over from kubectl-edit (Update, last wrote 2026-11-21T12:00:00Z)",
      "remedy": "copy the other value into the manifest, or leave the field out; to overwrite it, add to the `rules` of FieldConflicts: {\"managers\": [\"kubectl-edit\"], \"kinds\": [\"Deployment\"], \"paths\": [\"spec.replicas\"], \"action\": \"allow\"}",
      "remedies": [
        {
          "kind": "change",
          "for": "deployer",
          "steps": [
            "copy the other value into the manifest, or leave the field out"
          ]
        },
        {
          "kind": "configure",
          "for": "deployer",
          "steps": [
            "to overwrite it, add this to the `rules` of FieldConflicts"
          ],
          "config": {
            "preflightRules": [
              {
                "name": "FieldConflicts",
                "config": {
                  "rules": [
                    {
                      "managers": [
                        "kubectl-edit"
                      ],
                      "kinds": [
                        "Deployment"
                      ],
                      "paths": [
                        "spec.replicas"
                      ],
                      "action": "allow"
                    }
                  ]
                }
              }
            ]
          }
        }
      ],
      "fingerprint": "444a55b082efbcd79cb702e131d0acb2"
    }
    "#);
}

#[test]
fn the_entry_that_a_finding_proposes_settles_it() {
    let change = deployment(vec![taken("gitops", "Apply", &["spec.template.spec.containers[name=web].image"])]);
    let report = run_with(change.clone(), &json!({}), &[]);
    let remedy = report.findings[0].remedy.clone().expect("a remedy");
    let entry: Value = serde_json::from_str(&remedy[remedy.find('{').expect("JSON")..]).expect("JSON");
    assert_eq!(run_with(change, &json!({"rules": [entry]}), &[]).outcome, Outcome::Passed);
}

#[test]
fn the_first_entry_that_is_for_a_conflict_decides() {
    let outcome = |rules: Value| {
        let change = deployment(vec![taken("kubectl-edit", "Update", &["spec.template.spec.dnsPolicy"])]);
        run_with(change, &json!({"rules": rules}), &[]).outcome
    };
    let mut table = String::new();
    for entry in [
        json!({}),
        json!({"managers": ["kubectl-edit"]}),
        json!({"managers": ["gitops", "kubectl*"]}),
        json!({"managers": ["kubectl"]}),
        json!({"operations": ["Update"]}),
        json!({"operations": ["Apply"]}),
        json!({"apiGroups": ["apps"]}),
        json!({"apiGroups": [""]}),
        json!({"kinds": ["Deployment"]}),
        json!({"kinds": ["Deploy"]}),
        json!({"paths": ["spec.template"]}),
        json!({"paths": ["spec.temp"]}),
        json!({"paths": ["*.dnsPolicy"]}),
        json!({"kinds": ["Deployment"], "managers": ["gitops"]}),
    ] {
        let mut outcomes = String::new();
        for action in ["allow", "warn", "refuse"] {
            let mut entry = entry.clone();
            entry["action"] = action.into();
            // Later entries are ignored if this one matches the conflict.
            let behind = json!({"action": if action == "refuse" { "allow" } else { "refuse" }});
            outcomes.push_str(&format!(" {:?}", outcome(json!([entry, behind]))));
        }
        table.push_str(&format!("{entry}:{outcomes}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    {}: Passed Warned Refused
    {"managers":["kubectl-edit"]}: Passed Warned Refused
    {"managers":["gitops","kubectl*"]}: Passed Warned Refused
    {"managers":["kubectl"]}: Refused Refused Passed
    {"operations":["Update"]}: Passed Warned Refused
    {"operations":["Apply"]}: Refused Refused Passed
    {"apiGroups":["apps"]}: Passed Warned Refused
    {"apiGroups":[""]}: Refused Refused Passed
    {"kinds":["Deployment"]}: Passed Warned Refused
    {"kinds":["Deploy"]}: Refused Refused Passed
    {"paths":["spec.template"]}: Passed Warned Refused
    {"paths":["spec.temp"]}: Refused Refused Passed
    {"paths":["*.dnsPolicy"]}: Passed Warned Refused
    {"kinds":["Deployment"],"managers":["gitops"]}: Refused Refused Passed
    "#);
}

#[test]
fn the_default_action_is_for_what_no_entry_is_for() {
    let conflict = || deployment(vec![taken("x", "Update", &["spec.replicas"])]);
    for (default, outcome) in [("refuse", Outcome::Refused), ("warn", Outcome::Warned), ("allow", Outcome::Passed)] {
        assert_eq!(run_with(conflict(), &json!({"default": default}), &[]).outcome, outcome, "{default}");
    }
    assert_eq!(run_with(conflict(), &json!({"mode": "warn"}), &[]).outcome, Outcome::Warned);
}

#[test]
fn a_predecessor_is_shown_and_refuses_only_on_demand() {
    let kapp = || {
        deployment(vec![TakenFrom { predecessor: true, ..taken("kapp", "Update", &["spec.replicas", "spec.paused"]) }])
    };
    insta::assert_snapshot!(run(kapp(), &json!({})), @"
    Passed
    takeover Info: the fields of kapp (Update, last wrote 2026-11-21T12:00:00Z) become this app's; spec.replicas and 1 more change
    ");
    for (setting, outcome) in [("warn", Outcome::Warned), ("refuse", Outcome::Refused)] {
        assert_eq!(run_with(kapp(), &json!({"predecessors": setting}), &[]).outcome, outcome, "{setting}");
    }
    // Entries are for conflicts, and this is not one.
    assert_eq!(run_with(kapp(), &json!({"rules": [{"action": "refuse"}]}), &[]).outcome, Outcome::Passed);
}

#[test]
fn two_managers_that_agree_lose_a_field_together_and_the_stricter_action_counts() {
    let change = deployment(vec![taken("a", "Apply", &["spec.replicas"]), taken("b", "Update", &["spec.replicas"])]);
    insta::assert_snapshot!(run(change, &json!({"rules": [{"managers": ["a"], "action": "allow"}]})), @"
    Refused
    conflict Error: spec.replicas is taken over from a (Apply, last wrote 2026-11-21T12:00:00Z) and b (Update, last wrote 2026-11-21T12:00:00Z)
    ");
}

#[test]
fn a_field_that_goes_is_a_conflict_too() {
    let fields = vec![field("spec.paused", json!(true), None)];
    let change = deployment(vec![TakenFrom {
        subresource: "scale".into(),
        time: String::new(),
        fields,
        ..taken("x", "Update", &[])
    }]);
    insta::assert_snapshot!(run(change, &json!({})), @"
    Refused
    conflict Error: spec.paused is removed, and it is x (Update of scale)'s
    ");
}

#[test]
fn too_many_fields_of_one_object_share_a_finding_and_the_refusals_are_shown_first() {
    let paths: Vec<String> = (0..40).map(|number| format!("data.k{number:02}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let rules = json!([{"paths": ["data.k39"], "action": "refuse"}, {"action": "warn"}]);
    let report = run_with(deployment(vec![taken("x", "Update", &paths)]), &json!({"rules": rules}), &[]);
    assert_eq!(report.findings.len(), SHOWN + 1);
    assert_eq!((report.findings[0].path.as_deref(), report.outcome), (Some("data.k39"), Outcome::Refused));
    assert!(report.findings.iter().any(|finding| finding.message.starts_with("15 more fields are taken over")));
}

#[test]
fn a_waiver_settles_one_field_and_a_fingerprint_knows_the_values_and_not_the_time() {
    let conflict =
        |time: &str, path: &str| deployment(vec![TakenFrom { time: time.into(), ..taken("x", "Update", &[path]) }]);
    let fingerprint = |change| run_with(change, &json!({}), &[]).findings[0].fingerprint.clone();
    let known = fingerprint(conflict("2026-11-21T12:00:00Z", "spec.replicas"));
    assert_eq!(known, fingerprint(conflict("2026-11-22T12:00:00Z", "spec.replicas")));
    assert_ne!(known, fingerprint(conflict("2026-11-21T12:00:00Z", "spec.paused")));
    let waiver = Waiver {
        rule: Some(NAME.into()),
        object: Some("Deployment shop/web".into()),
        path: Some("spec.rep*".into()),
        reason: "agreed".into(),
        ..Waiver::default()
    };
    let change = deployment(vec![taken("x", "Update", &["spec.paused", "spec.replicas"])]);
    let report = run_with(change, &json!({}), &[waiver]);
    let open: Vec<_> = report.findings.iter().filter(|finding| finding.waived.is_none()).collect();
    assert_eq!((report.rules[0].waived, open[0].path.as_deref()), (1, Some("spec.paused")));
}

#[test]
fn settings_are_read_strictly_and_errors_have_their_place() {
    let errors = |config: Value| {
        let rules = [ConfigRule { name: NAME, config: &config, positions: None }];
        select(None, Some(&rules)).expect_err("invalid").iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(
        errors(json!({"default": "deny", "rules": [
            {"managers": "kubectl", "action": "allow"},
            {"manager": ["x"], "operations": ["Patch"], "kinds": [1], "action": "refused"},
            {"paths": ["spec"]},
            "allow",
        ]})),
        @r#"
    preflight rule "FieldConflicts": default: expected `refuse`, `warn` or `allow`, found "deny"
    preflight rule "FieldConflicts": rules[0].managers: expected a list, found the string "kubectl"
    preflight rule "FieldConflicts": rules[1].manager: unknown key
    preflight rule "FieldConflicts": rules[1].operations[0]: expected `Apply` or `Update`, found "Patch"
    preflight rule "FieldConflicts": rules[1].kinds[0]: expected a string, found the number 1
    preflight rule "FieldConflicts": rules[1].action: expected `allow`, `warn` or `refuse`, found "refused"
    preflight rule "FieldConflicts": rules[2]: missing key `action`, expected `allow`, `warn` or `refuse`
    preflight rule "FieldConflicts": rules[3]: expected a map, found the string "allow"
    "#
    );
}

#[test]
fn what_is_taken_over_survives_a_facts_file() {
    let changes =
        ChangeSet { changes: vec![deployment(vec![taken("x", "Update", &["spec.replicas"])])], ..ChangeSet::default() };
    let text = serde_json::to_string(&changes).expect("plain data");
    assert_eq!(serde_json::from_str::<ChangeSet>(&text).expect("the same"), changes);
}
