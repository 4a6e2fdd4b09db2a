//! SARIF against its published schema, its documented form, and hostile text.

use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::Map;

use super::*;
use crate::fixture::{check_report, every_character, hostile_report, report_quoting};

fn parsed(report: &CheckReport) -> Value {
    serde_json::from_str(&text(report)).expect("json")
}

fn validator() -> jsonschema::Validator {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/sarif/sarif-schema-2.1.0.json"));
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("schema")).expect("json");
    // The published pattern `…{2}]?$` is invalid; no language is set here.
    for definition in ["run", "toolComponent"] {
        let language = map_at(&mut schema, &format!("/definitions/{definition}/properties/language"));
        language.remove("pattern").expect("the pattern");
    }
    jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema")
}

fn map_at<'v>(value: &'v mut Value, pointer: &str) -> &'v mut Map<String, Value> {
    value.pointer_mut(pointer).and_then(Value::as_object_mut).expect("a map")
}

fn faults(validator: &jsonschema::Validator, log: &Value) -> Vec<String> {
    validator.iter_errors(log).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn a_log_fits_the_published_schema() {
    let mut log = parsed(&check_report());
    let validator = validator();
    assert_eq!(faults(&validator, &log), Vec::<String>::new());
    // The schema does find errors.
    log["runs"][0]["results"][0]["level"] = "fatal".into();
    log["runs"][0]["results"][0]["locations"][0]["file"] = "x".into();
    assert_eq!(faults(&validator, &log).len(), 2);
}

#[test]
fn a_result_has_its_rule_place_fingerprint_and_suppression() {
    let mut log = parsed(&check_report());
    let run = &mut log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].clone();
    for result in run["results"].as_array_mut().expect("results") {
        // The index changes with every new check of a rule.
        let index = result.as_object_mut().and_then(|result| result.shift_remove("ruleIndex"));
        let index = usize::try_from(index.and_then(|index| index.as_u64()).expect("an index")).expect("an index");
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
    assert_snapshot!(serde_json::to_string_pretty(&run["results"]).expect("json"), @r#"
    [
      {
        "ruleId": "CRDUpgradeSafety/enum",
        "level": "error",
        "message": {
          "text": "CustomResourceDefinition foos.ex.com, version v1, spec.f: value \"B\" is no longer allowed\neffect: rejected on create\nfix: keep the value, or serve a new version"
        },
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "crds/new.yaml",
                "uriBaseId": "%SRCROOT%"
              },
              "region": {
                "startLine": 41,
                "startColumn": 15
              }
            },
            "logicalLocations": [
              {
                "fullyQualifiedName": "CustomResourceDefinition foos.ex.com, version v1, spec.f",
                "kind": "resource"
              }
            ]
          }
        ],
        "partialFingerprints": {
          "primaryLocationLineHash": "9c1185a5deadbeef:1",
          "pushback/v1": "9c1185a5deadbeef"
        },
        "suppressions": [],
        "properties": {
          "verdict": "breaking",
          "severity": "error",
          "object": {
            "group": "apiextensions.k8s.io",
            "version": "v1",
            "kind": "CustomResourceDefinition",
            "namespace": "",
            "name": "foos.ex.com"
          },
          "version": "v1",
          "path": "spec.f",
          "old": [
            "A",
            "B"
          ],
          "new": [
            "A"
          ],
          "message": "value \"B\" is no longer allowed",
          "effect": "rejected",
          "blocks": "create",
          "witness": {
            "apiVersion": "ex.com/v1",
            "kind": "Foo",
            "metadata": {
              "name": "witness"
            },
            "spec": {
              "f": "B"
            }
          },
          "remedy": "keep the value, or serve a new version",
          "fingerprint": "9c1185a5deadbeef"
        }
      },
      {
        "ruleId": "CRDUpgradeSafety/versionDeprecated",
        "level": "warning",
        "message": {
          "text": "CustomResourceDefinition foos.ex.com: version v1 becomes deprecated"
        },
        "partialFingerprints": {
          "primaryLocationLineHash": "fedcba9876543210:1",
          "pushback/v1": "fedcba9876543210"
        },
        "suppressions": [],
        "properties": {
          "verdict": "change",
          "severity": "warning",
          "object": {
            "group": "apiextensions.k8s.io",
            "version": "v1",
            "kind": "CustomResourceDefinition",
            "namespace": "",
            "name": "foos.ex.com"
          },
          "message": "version v1 becomes deprecated",
          "fingerprint": "fedcba9876543210"
        }
      },
      {
        "ruleId": "CRDUpgradeSafety/scope",
        "level": "note",
        "message": {
          "text": "CustomResourceDefinition foos.ex.com: the scope changes"
        },
        "partialFingerprints": {
          "primaryLocationLineHash": "0123456789abcdef:1",
          "pushback/v1": "0123456789abcdef"
        },
        "suppressions": [
          {
            "kind": "external",
            "status": "accepted",
            "justification": "nobody uses it, checked on 2026-11-02"
          }
        ],
        "properties": {
          "verdict": "breaking",
          "severity": "info",
          "object": {
            "group": "apiextensions.k8s.io",
            "version": "v1",
            "kind": "CustomResourceDefinition",
            "namespace": "",
            "name": "foos.ex.com"
          },
          "message": "the scope changes",
          "fingerprint": "0123456789abcdef"
        }
      }
    ]
    "#);
    assert_snapshot!(serde_json::to_string_pretty(&run["invocations"]).expect("json"), @r#"
    [
      {
        "executionSuccessful": true,
        "toolExecutionNotifications": [
          {
            "level": "error",
            "message": {
              "text": "FieldConflicts: the facts could not be had: failed to read Deployment shop/web: forbidden"
            },
            "properties": {
              "rule": "FieldConflicts"
            }
          }
        ],
        "properties": {
          "outcome": "refused",
          "app": "shop",
          "cluster": "git:main:crds",
          "rules": [
            {
              "name": "CRDUpgradeSafety",
              "outcome": "failed",
              "breaking": 1,
              "unknown": 0,
              "changes": 0,
              "waived": 0
            },
            {
              "name": "PermissionValidation",
              "outcome": "skipped",
              "breaking": 0,
              "unknown": 0,
              "changes": 0,
              "waived": 0,
              "reasons": [
                "a directory has no permissions"
              ]
            },
            {
              "name": "FieldConflicts",
              "outcome": "unable",
              "breaking": 0,
              "unknown": 0,
              "changes": 0,
              "waived": 0,
              "reasons": [
                "failed to read Deployment shop/web: forbidden"
              ]
            },
            {
              "name": "DestructiveChange",
              "outcome": "passed",
              "breaking": 0,
              "unknown": 0,
              "changes": 0,
              "waived": 0
            }
          ],
          "changes": {
            "create": 0,
            "update": 1,
            "replace": 0,
            "delete": 0,
            "noop": 18,
            "exists": 0
          }
        }
      }
    ]
    "#);
}

#[test]
fn every_check_of_the_rules_that_ran_is_described() {
    let report = check_report();
    let log = parsed(&report);
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    let ids: Vec<&str> = rules.iter().map(|rule| rule["id"].as_str().expect("an id")).collect();
    for meta in registry::metas().filter(|meta| report.rules.iter().any(|ran| ran.name == meta.name)) {
        for (check, line) in meta.checks {
            let at = ids.iter().position(|id| *id == format!("{}/{check}", meta.name)).expect("described");
            assert_eq!(rules[at]["shortDescription"]["text"], *line);
            assert_eq!(rules[at]["fullDescription"]["text"], meta.summary);
            let help = rules[at]["help"]["markdown"].as_str().expect("help");
            assert!(help.starts_with(&format!("`{check}`: {line}.")), "{help}");
            assert!(help.contains(&format!("`pushback rules {}`", meta.name)), "{help}");
        }
    }
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len());
}

#[test]
fn a_log_is_not_much_longer_than_what_it_tells() {
    let longest = registry::metas().map(|meta| meta.docs.len()).max().expect("rules");
    let log = parsed(&check_report());
    for rule in log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules") {
        let described = rule.to_string().len();
        assert!(described < 2_000 && described < longest, "{described}: {}", rule["id"]);
    }
}

#[test]
fn of_two_results_with_one_fingerprint_a_scanner_sees_two() {
    let mut report = check_report();
    report.findings = vec![report.findings[0].clone(), report.findings[0].clone()];
    report.findings[1].new = None;
    let results = parsed(&report)["runs"][0]["results"].clone();
    assert_eq!(results[1]["partialFingerprints"]["primaryLocationLineHash"], "9c1185a5deadbeef:2");
}

#[test]
fn hostile_text_fits_the_schema_and_reads_back() {
    let validator = validator();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(32));
    runner
        .run(&any::<String>(), |evil| {
            let report = hostile_report(&evil);
            prop_assert!(!text(&report).chars().any(|c| c != '\n' && crate::escape::is_hidden(c)));
            let log = parsed(&report);
            prop_assert_eq!(faults(&validator, &log), Vec::<String>::new());
            let result = &log["runs"][0]["results"][0];
            prop_assert_eq!(result["properties"]["old"].as_str(), Some(evil.as_str()));
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_character_fits_the_schema_and_reads_back() {
    let validator = validator();
    for part in every_character(1 << 16) {
        let report = report_quoting(&part);
        assert!(!text(&report).chars().any(|c| c != '\n' && crate::escape::is_hidden(c)));
        let log = parsed(&report);
        assert_eq!(faults(&validator, &log), Vec::<String>::new());
        assert_eq!(log["runs"][0]["results"][0]["properties"]["old"].as_str(), Some(part.as_str()));
    }
}
