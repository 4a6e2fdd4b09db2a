//! kapp's texts for what ended a run.

use std::time::Duration;

use pushback_preflight::{Finding, registry};

use super::words;
use crate::event::{EndCause, Owned, Unfinished, UnfinishedLine};
use crate::exit::ExitCode;

/// The text after `kapp: Error: `; empty where the run succeeded.
#[must_use]
pub fn text(code: u8, error: &str, cause: Option<&EndCause>, unfinished: &[UnfinishedLine], is_diff: bool) -> String {
    let is = |wanted: ExitCode| code == wanted.code();
    if is(ExitCode::Success) {
        return String::new();
    }
    if is(ExitCode::NoChanges) || is(ExitCode::Changes) {
        let (when, pending) = match (is_diff, is(ExitCode::Changes)) {
            (true, true) => ("diffing", "pending changes"),
            (true, false) => ("diffing", "no pending changes"),
            (false, true) => ("applying", "changes"),
            (false, false) => ("applying", "no changes"),
        };
        return format!("Exiting after {when} with {pending} (exit status {code})");
    }
    match cause {
        Some(EndCause::Declined) => "Stopped".to_owned(),
        Some(EndCause::NoAnswer) => "Asking for confirmation:\n  EOF".to_owned(),
        Some(EndCause::Ownership(owned)) => ownership(owned),
        Some(EndCause::TimedOut { after }) => {
            let waiting = unfinished.iter().filter(|line| line.state != Unfinished::NotApplied);
            let names: Vec<String> = waiting.map(|line| words::described(&line.object)).collect();
            let after = words::duration(Duration::from_millis(after.0));
            format!("Timed out waiting after {after} for resources: [{}]", names.join(", "))
        }
        Some(EndCause::Refused(findings)) => refused(findings),
        None => failed(unfinished).unwrap_or_else(|| error.to_owned()),
    }
}

fn ownership(owned: &[Owned]) -> String {
    let line = |owned: &Owned| {
        let whose = match &owned.app {
            Some((name, namespace)) => {
                format!("different app '{name}' namespace: {namespace} (label '{}')", owned.label)
            }
            None => format!("different label '{}'", owned.label),
        };
        format!("\n- Resource '{}' is already associated with a {whose}", words::described(&owned.object))
    };
    format!("Ownership errors:{}", owned.iter().map(line).collect::<String>())
}

/// What the server said in the dry run is told as kapp tells it after its write; findings of rules are listed.
fn refused(findings: &[Finding]) -> String {
    let (of_server, of_rules): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.rule == registry::SERVER);
    if let Some(finding) = of_server.first() {
        let object = words::described(&finding.object);
        return format!(
            "create {object}:\n  Creating resource {object}:\n    API server says:\n      {}",
            finding.message
        );
    }
    let Some(first) = of_rules.first() else { return "preflight checks failed".to_owned() };
    let lines: Vec<String> = of_rules
        .iter()
        .map(|finding| format!("{} {}: {}", finding.object.kind, finding.object.name, finding.message))
        .collect();
    format!("preflight checks failed:\n  running preflight check \"{}\":\n    {}", first.rule, lines.join("\n    "))
}

fn failed(unfinished: &[UnfinishedLine]) -> Option<String> {
    let failed = unfinished.iter().find(|line| line.state == Unfinished::Failed)?;
    let object = words::described(&failed.object);
    Some(format!("waiting on reconcile {object}:\n  Finished unsuccessfully ({})", failed.message))
}
