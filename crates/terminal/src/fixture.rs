//! Shared by the renderers' tests: a fixed clock, and one scripted deploy.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use pushback_deploy::check::report::CheckReport;
use pushback_events::exit::ExitCode;
use pushback_events::{
    Awaited, ChangeOutcome, Counts, DiagnosticCode, Event, FailedContainer, FieldLine, LogEvent, LogPart, LogSource,
    Millis, PlannedLine, RuleLine, RunOutcome, Unfinished, UnfinishedLine, WaitOutcome,
};
use pushback_manifest::excerpt::Excerpt;
use pushback_objects::{Finding, ObjectRef, Position, Severity, Verdict};
use pushback_preflight::Operation;
use pushback_preflight::judge::{Outcome, RuleOutcome};
use serde_json::json;

use crate::live::renderer::Clock;
pub(super) use crate::testing::{Captured, at, at_millis, wait_progress};

/// Screen of a terminal with these rows and columns after all progress was written to it.
pub(super) fn screen(captured: &Captured, (rows, columns): (u16, u16)) -> String {
    let size = |cells: u16| NonZeroU16::new(cells).expect("a size");
    let mut terminal = vt100::Parser::new(size(rows), size(columns), 0);
    // A terminal's driver turns a line break into carriage return and line feed.
    terminal.process(captured.progress().replace('\n', "\r\n").as_bytes());
    let lines: Vec<String> = terminal.screen().rows(0, columns).map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}

pub(super) fn fake_clock(elapsed: Duration) -> Clock {
    Arc::new(move || at_millis(u64::try_from(elapsed.as_millis()).expect("small")))
}

pub(super) fn object(group: &str, kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn diagnostic(message: &str) -> Event {
    Event::diagnostic(DiagnosticCode::Experiment, message)
}

pub(super) fn planning(message: &str) -> Event {
    Event::diagnostic(DiagnosticCode::Planning, message)
}

pub(super) fn run_start(command: &str) -> Event {
    Event::RunStart {
        command: command.to_owned(),
        version: "0.1.0".to_owned(),
        app: "shop".to_owned(),
        namespace: "shop".to_owned(),
        cluster: "kind-prod".to_owned(),
        run: "4f2a".to_owned(),
    }
}

pub(super) fn run_end(outcome: RunOutcome, code: ExitCode, error: &str, unfinished: Vec<UnfinishedLine>) -> Event {
    Event::RunEnd {
        outcome,
        exit_code: code.code(),
        done: Counts { create: 1, update: 2, delete: 1, noop: 18, ..Counts::default() },
        error: error.to_owned(),
        hints: vec!["do the next thing".to_owned()],
        unfinished,
        failure: None,
        requests: 214,
        elapsed: Millis(72_000),
    }
}

pub(super) fn change_start(object: &ObjectRef, operation: Operation) -> Event {
    Event::ChangeStart { object: object.clone(), operation }
}

pub(super) fn change_done(object: &ObjectRef, operation: Operation, outcome: ChangeOutcome, message: &str) -> Event {
    Event::ChangeDone {
        object: object.clone(),
        operation,
        outcome,
        message: message.to_owned(),
        reason: String::new(),
        elapsed: Millis(100),
    }
}

pub(super) fn wait_done(object: &ObjectRef, outcome: WaitOutcome, elapsed: u64) -> Event {
    Event::WaitDone {
        object: object.clone(),
        wanted: Awaited::Ready,
        outcome,
        message: if outcome == WaitOutcome::Ok { String::new() } else { "exceeded its deadline".to_owned() },
        reasons: Vec::new(),
        elapsed: Millis(elapsed),
    }
}

fn planned(object: &ObjectRef, operation: Operation, line: u32, fields: Vec<FieldLine>) -> PlannedLine {
    PlannedLine {
        object: object.clone(),
        operation,
        position: (line > 0).then(|| Position { file: "shop/web.yaml".to_owned(), line, column: 1 }),
        fields,
        text: String::new(),
        notes: Vec::new(),
    }
}

/// A deploy with waits, a retry, warnings and a stuck Deployment that recovers; each event with its second.
pub(super) fn deploy() -> Vec<(u64, Event)> {
    let settings = object("", "ConfigMap", "web-settings");
    let web = object("apps", "Deployment", "web");
    let tls = object("", "Secret", "web-tls");
    let old = object("", "Service", "web-old");
    let counts = Counts { create: 1, update: 2, delete: 1, noop: 18, ..Counts::default() };
    let replicas = FieldLine { path: "spec.replicas".to_owned(), old: Some("3".to_owned()), new: Some("4".to_owned()) };
    let changes = vec![
        planned(&settings, Operation::Create, 3, Vec::new()),
        planned(&web, Operation::Update, 12, vec![replicas]),
        planned(&tls, Operation::Update, 40, Vec::new()),
        planned(&old, Operation::Delete, 0, Vec::new()),
    ];
    let rule = RuleLine {
        summary: None,
        name: "PermissionValidation".to_owned(),
        outcome: RuleOutcome::Passed,
        breaking: 0,
        unknown: 0,
        changes: 0,
        waived: 0,
        reasons: Vec::new(),
    };
    let warning = Event::Warning {
        code: "yaml-octal".to_owned(),
        message: "0644 is read as 420".to_owned(),
        object: None,
        position: Some(Position { file: "shop/web.yaml".to_owned(), line: 17, column: 22 }),
    };
    let retry = Event::Retry {
        request: "PATCH Deployment shop/web".to_owned(),
        reason: "429 too many requests".to_owned(),
        attempt: 3,
        delay: Millis(2_000),
    };
    let deleted = Event::WaitDone {
        object: old.clone(),
        wanted: Awaited::Deleted,
        outcome: WaitOutcome::Ok,
        message: String::new(),
        reasons: Vec::new(),
        elapsed: Millis(2_000),
    };
    vec![
        (0, run_start("apply")),
        (0, warning.clone()),
        (0, warning),
        (1, Event::Plan { counts, changes, is_known: false, elapsed: Millis(400) }),
        (
            1,
            Event::Preflight {
                outcome: Outcome::Passed,
                rules: vec![rule],
                left_out: None,
                broad_waivers: Vec::new(),
                elapsed: Millis(300),
            },
        ),
        (2, change_start(&settings, Operation::Create)),
        (2, change_start(&tls, Operation::Update)),
        (2, change_done(&settings, Operation::Create, ChangeOutcome::Ok, "")),
        (2, change_done(&tls, Operation::Update, ChangeOutcome::Ok, "")),
        (2, change_start(&web, Operation::Update)),
        (3, retry),
        (5, change_done(&web, Operation::Update, ChangeOutcome::Ok, "")),
        (5, wait_progress(&web, "0/4 ready", &[], 0)),
        (12, wait_progress(&web, "2/4 ready", &["pod web-6c9f: CrashLoopBackOff (exit 1)"], 7_000)),
        (13, wait_progress(&web, "2/4 ready", &["pod web-6c9f: CrashLoopBackOff (exit 1)"], 8_000)),
        (46, wait_done(&web, WaitOutcome::Ok, 41_200)),
        (46, change_start(&old, Operation::Delete)),
        (46, change_done(&old, Operation::Delete, ChangeOutcome::Ok, "")),
        (48, deleted),
        (72, run_end(RunOutcome::Succeeded, ExitCode::Success, "", Vec::new())),
    ]
}

/// Every kind of event, filled with what a hostile server or input could put into it.
pub(super) fn hostile() -> Vec<Event> {
    let evil = || "a\u{1b}[2J\u{202e}\u{200b}\u{9b}\u{7}\rb\nerror: c".to_owned();
    let web = ObjectRef { group: evil(), version: evil(), kind: evil(), namespace: evil(), name: evil() };
    let position = Position { file: evil(), line: 1, column: 1 };
    let mut finding = Finding::new(&evil(), &evil(), Verdict::Breaking, web.clone(), evil()).at(Some(position.clone()));
    finding.severity = Severity::Error;
    finding.fingerprint = evil();
    let mut change = planned(&web, Operation::Update, 1, Vec::new());
    change.fields = vec![FieldLine { path: evil(), old: Some(evil()), new: None }];
    change.notes = vec![evil()];
    let rule = RuleLine {
        summary: None,
        name: evil(),
        outcome: RuleOutcome::Failed,
        breaking: 1,
        unknown: 0,
        changes: 0,
        waived: 0,
        reasons: vec![evil()],
    };
    let unfinished = UnfinishedLine {
        object: web.clone(),
        state: Unfinished::Failed,
        message: evil(),
        reasons: vec![evil()],
        containers: vec![FailedContainer {
            namespace: evil(),
            pod: evil(),
            container: evil(),
            reason: evil(),
            exit_code: Some(1),
            previous: true,
            lines: vec![evil()],
            missing: String::new(),
        }],
        elapsed: None,
    };
    let source = LogSource { pod: evil(), namespace: evil(), container: evil(), restarts: 0 };
    let mut events = vec![
        Event::RunStart {
            command: "apply".to_owned(),
            version: evil(),
            app: evil(),
            namespace: evil(),
            cluster: evil(),
            run: evil(),
        },
        Event::Plan { counts: Counts::default(), changes: vec![change], is_known: false, elapsed: Millis(1) },
        Event::Finding {
            finding: Box::new(finding),
            excerpt: Some(Box::new(Excerpt {
                first_line: 1,
                lines: vec![evil().replace('\n', " "), evil().replace('\n', " ")],
                start: 2,
                length: 9,
            })),
        },
        Event::Preflight {
            outcome: Outcome::Refused,
            rules: vec![rule],
            left_out: None,
            broad_waivers: Vec::new(),
            elapsed: Millis(1),
        },
        Event::Preflight {
            outcome: Outcome::Refused,
            rules: Vec::new(),
            left_out: None,
            broad_waivers: Vec::new(),
            elapsed: Millis(1),
        },
        Event::Retry { request: evil(), reason: evil(), attempt: 9, delay: Millis(9_000) },
        Event::Warning { code: evil(), message: evil(), object: Some(web.clone()), position: Some(position) },
        Event::diagnostic(DiagnosticCode::Experiment, evil()),
        Event::Log { log: LogEvent { source, part: LogPart::Line(evil()) } },
        change_start(&web, Operation::Update),
        change_done(&web, Operation::Update, ChangeOutcome::Failed, &evil()),
        change_done(&web, Operation::Update, ChangeOutcome::Requested, &evil()),
        wait_progress(&web, &evil(), &[&evil()], 1),
        Event::WaitDone {
            object: web.clone(),
            wanted: Awaited::Ready,
            outcome: WaitOutcome::Failed,
            message: evil(),
            reasons: vec![evil()],
            elapsed: Millis(1),
        },
        wait_progress(&web, &evil(), &[&evil()], 1),
    ];
    events.push(run_end(RunOutcome::Failed, ExitCode::Partial, &evil(), vec![unfinished]));
    events
}

/// A check report: one rule each that failed, was skipped, lacked facts, and passed; and a finding of every severity.
pub(super) fn check_report() -> CheckReport {
    let rule = |name: &str, outcome: RuleOutcome, reasons: &[&str]| RuleLine {
        summary: None,
        name: name.to_owned(),
        outcome,
        breaking: usize::from(outcome == RuleOutcome::Failed),
        unknown: 0,
        changes: 0,
        waived: 0,
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
    };
    let object = ObjectRef {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: String::new(),
        name: "foos.ex.com".to_owned(),
    };
    let position = Position { file: "./crds/new.yaml".to_owned(), line: 41, column: 15 };
    let mut enumeration =
        Finding::new("CRDUpgradeSafety", "enum", Verdict::Breaking, object.clone(), "value \"B\" is no longer allowed")
            .at(Some(position))
            .path("spec.f")
            .values(Some(json!(["A", "B"])), Some(json!(["A"])))
            .remedy("keep the value, or serve a new version");
    enumeration.severity = Severity::Error;
    enumeration.version = Some("v1".to_owned());
    enumeration.effect = Some("rejected".to_owned());
    enumeration.blocks = Some("create".to_owned());
    enumeration.witness = Some(Arc::new(
        json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "witness"}, "spec": {"f": "B"}}),
    ));
    enumeration.fingerprint = "9c1185a5deadbeef".to_owned();
    let mut scope = Finding::new("CRDUpgradeSafety", "scope", Verdict::Breaking, object.clone(), "the scope changes");
    scope.waived = Some("nobody uses it, checked on 2026-11-02".to_owned());
    scope.fingerprint = "0123456789abcdef".to_owned();
    let mut deprecated =
        Finding::new("CRDUpgradeSafety", "versionDeprecated", Verdict::Change, object, "version v1 becomes deprecated");
    deprecated.severity = Severity::Warning;
    deprecated.fingerprint = "fedcba9876543210".to_owned();
    let mut report = CheckReport::new("shop", "git:main:crds", Outcome::Refused);
    report.tool.version = "1.2.3";
    report.changes = Counts { update: 1, noop: 18, ..Counts::default() };
    report.rules = vec![
        rule("CRDUpgradeSafety", RuleOutcome::Failed, &[]),
        rule("PermissionValidation", RuleOutcome::Skipped, &["a directory has no permissions"]),
        rule("FieldConflicts", RuleOutcome::Unable, &["failed to read Deployment shop/web: forbidden"]),
        rule("DestructiveChange", RuleOutcome::Passed, &[]),
    ];
    report.findings = vec![enumeration, deprecated, scope];
    report.causes = pushback_preflight::causes(&report.findings);
    report
}

/// Every Unicode character, in texts of this number of characters.
pub(super) fn every_character(length: usize) -> Vec<String> {
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    all.chunks(length).map(|part| part.iter().collect()).collect()
}

/// A report whose only finding has this message and old value: a format shows them in few places.
pub(super) fn report_quoting(text: &str) -> CheckReport {
    let mut report = check_report();
    report.findings.truncate(1);
    text.clone_into(&mut report.findings[0].message);
    report.findings[0].old = Some(json!(text));
    report.causes = pushback_preflight::causes(&report.findings);
    report
}

/// A report of one rule that lacked facts, with one finding; every text in it is `evil`.
pub(super) fn hostile_report(evil: &str) -> CheckReport {
    let evil = || evil.to_owned();
    let object = ObjectRef { group: evil(), version: evil(), kind: evil(), namespace: evil(), name: evil() };
    let position = Position { file: evil(), line: 1, column: 1 };
    let mut finding = Finding::new(&evil(), &evil(), Verdict::Breaking, object, evil())
        .at(Some(position))
        .path(evil())
        .values(Some(json!(evil())), Some(json!({ evil(): evil() })))
        .remedy(evil());
    finding.severity = Severity::Error;
    finding.version = Some(evil());
    finding.effect = Some(evil());
    finding.witness = Some(Arc::new(json!({"apiVersion": evil(), "kind": evil(), "metadata": {"name": evil()}})));
    finding.fingerprint = evil();
    let mut report = CheckReport::new(&evil(), &evil(), Outcome::Refused);
    report.rules = vec![RuleLine {
        summary: None,
        name: evil(),
        outcome: RuleOutcome::Unable,
        breaking: 1,
        unknown: 0,
        changes: 0,
        waived: 0,
        reasons: vec![evil()],
    }];
    report.findings = vec![finding];
    report.causes = pushback_preflight::causes(&report.findings);
    report
}
