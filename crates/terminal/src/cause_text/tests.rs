//! Tests of causes as text.

use console::measure_text_width;
use insta::assert_snapshot;
use pushback_objects::finding::LiveObjects;
use pushback_objects::{ObjectRef, Remedy, RemedyKind, Verdict};
use serde_json::json;

use super::*;
use crate::escape::is_hidden;

const LOOK: Look = Look { theme: Theme { color: false, unicode: true }, width: 100, verbose: false };

fn finding(definition: &str, path: &str, severity: Severity) -> Finding {
    let object = ObjectRef {
        group: "apiextensions.k8s.io".into(),
        kind: "CustomResourceDefinition".into(),
        name: definition.into(),
        ..ObjectRef::default()
    };
    let message = format!("version \"v1\", field \"^.{path}\": pattern added: \"^a$\"");
    let mut finding = Finding::new("CRDUpgradeSafety", "pattern", Verdict::Breaking, object, message)
        .path(path)
        .values(None, Some(json!("^a$")))
        .remedy("leave pattern out");
    finding.version = Some("v1".into());
    finding.severity = severity;
    finding.effect = Some("rejected".into());
    finding.fingerprint = finding.compute_fingerprint();
    finding
}

fn shown(findings: Vec<Finding>, look: Look) -> String {
    judged_text(findings.into_iter().map(|finding| (finding, None)).collect(), look)
}

/// Three causes, one of which affects objects; a warning; a waived finding.
fn several() -> Vec<Finding> {
    let mut live = finding("b.ex.com", "spec.mode", Severity::Error);
    live.live_objects = Some(LiveObjects::exactly(1, 7, vec!["shop/web".into()]));
    live.remedies = vec![Remedy::deployer(RemedyKind::CorrectObjects, "correct `spec.mode` of shop/web first")];
    let mut waived = finding("c.ex.com", "spec.waived", Severity::Info);
    waived.waived = Some("reviewed".into());
    let mut unknown = finding("b.ex.com", "spec.rules", Severity::Error);
    unknown.verdict = Verdict::Unknown;
    unknown.undecided = Some("the search met not, which it cannot solve".into());
    let mut path = finding("a.ex.com", "spec.path", Severity::Error);
    path.witness = Some(std::sync::Arc::new(json!({"kind": "A", "spec": {"path": "b", "other": 1}})));
    vec![
        waived,
        unknown,
        path,
        finding("a.ex.com", "spec.template.spec.path", Severity::Error),
        finding("b.ex.com", "spec.path", Severity::Error),
        finding("a.ex.com", "spec.name", Severity::Error),
        live,
        finding("a.ex.com", "spec.warned", Severity::Warning),
        finding("a.ex.com", "spec.also.warned", Severity::Warning),
    ]
}

#[test]
fn what_affects_objects_comes_first_and_the_table_last() {
    assert_snapshot!(shown(several(), LOOK), @r#"
        error[CRDUpgradeSafety/pattern]: field "mode": pattern added: "^a$"
           = at:      b.ex.com v1 spec.mode
           = effect:  rejected; 1 of 7 objects affected: shop/web
           = do:      correct `spec.mode` of shop/web first
           = fix:     leave pattern out
           = fingerprint: d2bb898ee5666cc5d841407a37ca9edd

        error[CRDUpgradeSafety/pattern]: field "path": pattern added: "^a$"
           = at:      a.ex.com v1 spec.path
           = also:    in 2 more places, 2 definitions: spec.template.spec.path, b.ex.com v1 spec.path
           = effect:  rejected
           = witness: A with spec.path: "b"
           = same in: 1 more field: name
           = cause:   9f1b73f3d0e0783b9898702025f0fbd7 (3 findings)

        error[CRDUpgradeSafety/pattern]: field "rules": pattern added, and nobody can tell whether it breaks
          objects
           = at:      b.ex.com v1 spec.rules
           = unknown: the search met not, which it cannot solve
           = effect:  rejected
           = fingerprint: 00f58141c89c3398131992026d1a929b

        warning[CRDUpgradeSafety/pattern]: field "warned": pattern added: "^a$" (in 2 places of 1 object)
        waived: 1 finding (pattern): reviewed (--verbose shows each)

        OBJECT    CAUSES  AFFECTED     WHAT NOW
        b.ex.com  3       1 of 7       correct 1 object first
        a.ex.com  2       not counted  change the manifest
    "#);
}

#[test]
fn rows_of_the_table_that_are_alike_are_one() {
    let mut findings = several();
    let names: Vec<String> = (0..9).map(|index| format!("d{index}.ex.com")).collect();
    findings.extend(names.iter().map(|name| finding(name, "spec.path", Severity::Error)));
    let table = |look: Look| {
        let text = shown(findings.clone(), look);
        let start = text.find("OBJECT ").expect("a table");
        text[start..].split("\n\n").next().unwrap_or_default().to_owned()
    };
    assert_snapshot!(table(LOOK), @r"
    OBJECT          CAUSES  AFFECTED     WHAT NOW
    b.ex.com        3       1 of 7       correct 1 object first
    10 definitions  2       not counted  change the manifest
    ");
    assert_eq!(table(Look { verbose: true, ..LOOK }).lines().count(), 12, "--verbose shows each");
}

#[test]
fn table_whose_rows_do_not_differ_is_left_out() {
    let alike = ["a", "b"].map(|name| finding(&format!("{name}.ex.com"), "spec.path", Severity::Error));
    assert!(!shown(alike.to_vec(), LOOK).contains("WHAT NOW"));
}

/// No remedy asks to compare with the cluster: the findings may come from one.
#[test]
fn next_step_is_that_of_the_first_remedy() {
    let now = |remedies: Vec<Remedy>| {
        let one = Finding { remedies, ..finding("a.ex.com", "spec.path", Severity::Error) };
        let causes = causes(std::slice::from_ref(&one));
        object_rows(&causes.iter().collect::<Vec<_>>(), &[one])[0].now.clone()
    };
    let way = |kind, command: &str| Remedy::deployer(kind, "step").commands([command.to_owned()]);
    assert_eq!(now(vec![]), "change the manifest");
    assert_eq!(now(vec![way(RemedyKind::AskCluster, "pushback check")]), "check against the cluster");
    assert_eq!(
        now(vec![way(RemedyKind::MoveObjects, "pushback apply --storage=migrate -y")]),
        "move its objects: --storage=migrate"
    );
    assert_eq!(now(vec![way(RemedyKind::MoveObjects, "pushback storage migrate a")]), "move its objects first");
    let accept = way(RemedyKind::Accept, "pushback apply --waive=x=y");
    assert_eq!(now(vec![accept.clone()]), "move its clients first");
    assert_eq!(now(vec![accept, way(RemedyKind::Keep, "kubectl annotate x")]), "keep it, or move its content away");
}

#[test]
fn everything_fits_into_sixty_columns() {
    let text = shown(several(), Look { width: 60, ..LOOK });
    assert!(text.lines().all(|line| measure_text_width(line) <= 60), "{text}");
}

#[test]
fn a_single_finding_has_its_witness_in_full_and_no_table() {
    let text = shown(several().split_off(2).drain(..1).collect(), LOOK);
    assert_snapshot!(text, @r#"
        error[CRDUpgradeSafety/pattern]: field "path": pattern added: "^a$"
           = object:  CustomResourceDefinition a.ex.com, version v1
           = path:    spec.path
           = effect:  rejected
           = witness:
               kind: A
               spec:
                 …
                 path: b
           = fix:     leave pattern out
           = fingerprint: 2b7ddb7319066de1b90850076ee25223
    "#);
}

#[test]
fn cause_of_several_findings_has_the_first_excerpt_of_them() {
    let excerpt = Excerpt { first_line: 9, lines: vec!["    pattern: ^a$".into()], start: 4, length: 12 };
    let place = |line| Some(pushback_objects::Position { file: "crd.yaml".into(), line, column: 5 });
    let first = finding("a.ex.com", "spec.path", Severity::Error);
    let second = finding("a.ex.com", "spec.template.spec.path", Severity::Error).at(place(9));
    let judged = vec![(first, None), (second.clone(), Some(Box::new(excerpt))), (second.at(place(20)), None)];
    assert_snapshot!(judged_text(judged, LOOK), @r#"
    error[CRDUpgradeSafety/pattern]: field "path": pattern added: "^a$"
     --> crd.yaml:9:5
      |
    9 |     pattern: ^a$
      |     ^^^^^^^^^^^^ nothing → "^a$"
      = object:  CustomResourceDefinition a.ex.com, version v1
      = path:    spec.path
      = also:    in 1 more place: spec.template.spec.path
      = effect:  rejected
      = fix:     leave pattern out
      = cause:   9f1b73f3d0e0783b9898702025f0fbd7 (3 findings)
    "#);
}

#[test]
fn a_few_findings_that_refuse_nothing_are_told_one_by_one_and_many_are_counted() {
    let warnings = |count: usize| {
        let path = |index: usize| format!("spec.f{index}");
        shown((0..count).map(|index| finding("a.ex.com", &path(index), Severity::Warning)).collect(), LOOK)
    };
    assert_eq!(warnings(3).matches("= fix:").count(), 3);
    assert_snapshot!(warnings(40), @r#"
        warning[CRDUpgradeSafety/pattern]: field "f0": pattern added: "^a$" (in 40 places of 1 object)
          (--verbose shows each)
    "#);
}

#[test]
fn more_causes_than_anybody_reads_are_counted() {
    let mut findings = several();
    for index in 0..100 {
        let mut more = finding("a.ex.com", "spec.field", Severity::Error);
        more.new = Some(json!(index));
        findings.push(more);
    }
    let text = shown(findings.clone(), LOOK);
    assert_eq!(text.matches("error[").count(), BLOCKS);
    assert!(text.contains("more causes, which --verbose shows"), "{text}");
    let verbose = shown(findings, Look { verbose: true, ..LOOK });
    assert_eq!(verbose.matches("= fingerprint:").count(), 108);
    assert!(verbose.contains("preflightWaivers:\n- rule: CRDUpgradeSafety\n  cause: \""), "{verbose}");
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let evil = "a\u{1b}[2J\u{202e}\nerror: b";
    let mut findings = several();
    for finding in &mut findings {
        finding.object.name = evil.into();
        finding.message = evil.into();
        finding.path = Some(format!("{evil}.{evil}"));
        finding.remedy = Some(evil.into());
        finding.waived = finding.waived.as_ref().map(|_| evil.to_owned());
        finding.undecided = finding.undecided.as_ref().map(|_| evil.to_owned());
        finding.witness = Some(std::sync::Arc::new(json!({"kind": evil, "spec": {evil: evil}})));
    }
    for verbose in [false, true] {
        let text = shown(findings.clone(), Look { verbose, ..LOOK });
        assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: ")), "{text}");
    }
}
