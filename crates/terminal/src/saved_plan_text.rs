//! A saved plan for people: what it is for, what it changes, what the rules have said.
//! Words and colours are those of a run.

use std::fmt::Write as _;

use pushback_deploy::plan::saved::{SavedFinding, SavedObject, SavedPlan, SecretBinding};
use pushback_events::{Counts, PlannedLine};
use pushback_objects::Severity;
use pushback_objects::text::counted;
use pushback_preflight::Outcome;

use crate::RenderOptions;
use crate::escape::terminal_safe;
use crate::list_text::to_the_second;
use crate::live::plan_text::changes_text;
use crate::theme::{Role, severity_role};
use crate::words::counts_to_do;

/// The whole text.
#[must_use]
pub fn text(plan: &SavedPlan, options: &RenderOptions) -> String {
    let theme = options.data_theme;
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let name = theme.paint(Role::Strong, &format!("{:10}", format!("{name}:")));
        let _ = writeln!(text, "{name} {}", terminal_safe(value));
    };
    row("App", &format!("{} in namespace {}", plan.app.name, plan.app.namespace));
    row("Cluster", &plan.cluster.description);
    let times = (to_the_second(&plan.created), to_the_second(&plan.expires));
    row("Made", &format!("{} by pushback {}, valid until {}", times.0, plan.tool.version, times.1));
    row("Digest", &plan.digest());
    let given = plan.options.iter().flat_map(|(flag, values)| match values.is_empty() {
        true => vec![flag.clone()],
        false => values.iter().map(|value| format!("{flag}={value}")).collect(),
    });
    row("Options", &given.collect::<Vec<_>>().join(" "));
    let names: Vec<&str> = plan.inputs.iter().map(|file| file.name.as_str()).collect();
    let shown = if options.verbose { names.len() } else { names.len().min(5) };
    let more = if shown < names.len() { format!(" and {} more", names.len() - shown) } else { String::new() };
    row("Input", &format!("{}: {}{more}", counted(names.len(), "file"), names[..shown].join(", ")));
    let rules: Vec<&str> = plan.policy.rules.keys().map(String::as_str).collect();
    let rules = if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") };
    row("Policy", &format!("{rules}; from {}", plan.policy.source.as_deref().unwrap_or("the manifests")));
    let is_secret = |line: &SavedObject| line.object.group.is_empty() && line.object.kind == "Secret";
    if plan.secrets == SecretBinding::NamesOnly && plan.objects.iter().any(is_secret) {
        row("Secrets", "their values are not part of the plan (PUSHBACK_PLAN_KEY)");
    }
    text.push('\n');
    let lines: Vec<PlannedLine> = plan.objects.iter().filter(|line| line.operation.writes()).map(planned).collect();
    text += &changes_text(&lines, options);
    let is_shown = |finding: &&SavedFinding| options.verbose || finding.severity != Severity::Info;
    let mut findings = plan.verdict.findings.iter().filter(is_shown).peekable();
    let has_findings = findings.peek().is_some();
    for SavedFinding { fingerprint, rule, severity, object, message, waived, .. } in findings {
        let label = theme.paint(severity_role(*severity), severity.as_str());
        let line = format!("{object}: {message} [{rule} {fingerprint}]");
        let _ = writeln!(text, "{label}: {}", terminal_safe(&line));
        if let Some(reason) = waived {
            let _ = writeln!(text, "  {} {}", theme.paint(Role::Pointer, "accepted:"), terminal_safe(reason));
        }
    }
    if has_findings {
        text.push('\n');
    }
    let mut counts = Counts::default();
    plan.objects.iter().for_each(|line| counts.add_change(line.reported_operation(), line.orphaned));
    let verdict = match plan.verdict.outcome {
        Outcome::Passed if plan.policy.rules.is_empty() => "no rule has run",
        Outcome::Passed => "preflight has passed",
        Outcome::Warned => "preflight has warned",
        Outcome::Unable | Outcome::Refused => "preflight has refused",
    };
    let _ = writeln!(text, "{} {}; {verdict}.", theme.paint(Role::Strong, "Plan:"), counts_to_do(&counts));
    text
}

fn planned(line: &SavedObject) -> PlannedLine {
    PlannedLine {
        object: line.object.clone(),
        operation: line.reported_operation(),
        position: line.position.clone(),
        fields: line.fields.clone(),
        text: String::new(),
        notes: line.notes.clone(),
    }
}
