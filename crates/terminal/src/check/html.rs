//! A check as a page to look at: what is refused, who suffers, what to do now, and how to accept it; below that every
//! cause with its proof. Any finding can be linked to by its fingerprint.

mod cause;
mod order;

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use jiff::ToSpan as _;
use jiff::civil::Date;
use pushback_deploy::check::report::CheckReport;
use pushback_events::RuleLine;
use pushback_objects::text::counted;
use pushback_objects::{Audience, Finding, Remedy, Severity};
use pushback_preflight::Cause;
use pushback_preflight::cause::live_total;
use pushback_preflight::judge::Outcome;
use pushback_preflight::loosened::RuleOff;

use self::cause::CauseView;
use self::order::OrderView;
use super::grouped::cards;
use crate::cause_text::accepting_until;
use crate::finding_card::{live_total_words, object_name, witness_yaml};
use crate::finding_text::no_rule_ran;
use crate::html::pieces::{Piece, capitalised};
use crate::html::{Shell, anchor, rendered};
use crate::object_rows::object_rows;
use crate::policy_text::policy_lines;
use crate::words::counts_to_do;

/// Most links to causes in one line.
const LINKS: usize = 5;
/// Most causes of a report that are unfolded from the start.
const OPEN: usize = 3;

/// The report as HTML.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    rendered(&CheckPage::of(report))
}

#[derive(Template)]
#[template(path = "check.html")]
struct CheckPage<'r> {
    shell: Shell,
    outcome: &'static str,
    sentence: String,
    lead: String,
    app: &'r str,
    cluster: &'r str,
    changes: String,
    policy: Option<&'r str>,
    rows: Vec<RowView>,
    ways: Vec<WayView>,
    has_author_ways: bool,
    accept: Option<String>,
    accepted: String,
    severities: Vec<(&'static str, usize)>,
    objects: Vec<ObjectView>,
    order: Option<OrderView>,
    rules: &'r [RuleLine],
    rules_off: &'r [RuleOff],
    unchecked: Vec<String>,
}

/// An object that refuses, in the table at the top.
struct RowView {
    anchor: String,
    name: String,
    causes: usize,
    affected: String,
    now: String,
}

/// An object with its causes.
struct ObjectView {
    anchor: String,
    name: String,
    causes: Vec<CauseView>,
    /// Causes that are told with another object: place and headline.
    elsewhere: Vec<(String, String)>,
    more: usize,
}

/// A way out, and the causes that it answers.
struct WayView {
    steps: Vec<Vec<Piece>>,
    commands: Vec<String>,
    config: Option<String>,
    is_author: bool,
    answers: Vec<(String, String)>,
    more: usize,
}

impl WayView {
    fn of(remedy: &Remedy) -> Self {
        Self {
            steps: remedy.steps.iter().map(|step| capitalised(step)).collect(),
            commands: remedy.commands.clone(),
            config: remedy.config.as_ref().map(|config| witness_yaml(config).trim_end().to_owned()),
            is_author: remedy.audience == Audience::Author,
            answers: Vec::new(),
            more: 0,
        }
    }
}

impl<'r> CheckPage<'r> {
    fn of(report: &'r CheckReport) -> Self {
        let loud: Vec<&Cause> =
            report.causes.iter().filter(|cause| cause.severity == Severity::Error && !cause.is_waived()).collect();
        let objects = objects(report);
        let anchors: BTreeMap<&str, &str> =
            objects.iter().map(|object| (object.name.as_str(), object.anchor.as_str())).collect();
        let row = |row: crate::object_rows::ObjectRow| RowView {
            anchor: anchors.get(row.name.as_str()).copied().unwrap_or("causes").to_owned(),
            name: row.name,
            causes: row.causes,
            affected: row.affected,
            now: row.now,
        };
        let ways = ways(&loud);
        let (accept, accepted) = accept(report, &loud);
        let sentence = sentence(report, &loud);
        Self {
            shell: Shell::new(format!("{}: {sentence}", report.app)),
            outcome: report.outcome.as_str(),
            lead: lead(report, &loud),
            sentence,
            app: &report.app,
            cluster: &report.cluster,
            changes: counts_to_do(&report.changes),
            policy: report.policy.source.as_deref(),
            rows: object_rows(&loud, &report.findings).into_iter().map(row).collect(),
            has_author_ways: ways.iter().any(|way| way.is_author),
            ways,
            accept,
            accepted,
            severities: severities(&objects),
            objects,
            order: OrderView::of(&report.waves),
            rules: &report.rules,
            rules_off: &report.policy.rules_off,
            unchecked: policy_lines(report.policy.left_out.as_ref(), &report.policy.broad_waivers),
        }
    }
}

/// The outcome in one sentence.
fn sentence(report: &CheckReport, loud: &[&Cause]) -> String {
    let objects: BTreeSet<String> = members(report, loud).map(object_name).collect();
    match report.outcome {
        outcome if report.rules.is_empty() && loud.is_empty() => no_rule_ran(outcome),
        Outcome::Refused if !loud.is_empty() => {
            format!("Refused: {} in {}", counted(loud.len(), "cause"), counted(objects.len(), "object"))
        }
        Outcome::Refused => "Refused".to_owned(),
        Outcome::Unable => "Refused: not everything could be checked".to_owned(),
        Outcome::Warned => {
            let warned = report.causes.iter().filter(|cause| cause.severity == Severity::Warning).count();
            format!("Passed, with {}", counted(warned, "warning"))
        }
        Outcome::Passed => "Passed".to_owned(),
    }
}

/// Who suffers, in one sentence.
fn lead(report: &CheckReport, loud: &[&Cause]) -> String {
    if loud.is_empty() {
        return match report.outcome {
            Outcome::Refused | Outcome::Unable => "The rules below say why.".to_owned(),
            Outcome::Warned | Outcome::Passed => "Nothing stands against this change.".to_owned(),
        };
    }
    let found = counted(members(report, loud).count(), "finding");
    match live_total(members(report, loud)) {
        Some(live) if live.affected == 0 && live.examined > 0 => {
            format!("{found}, which affect none of {} that are there.", counted(live.examined, "object"))
        }
        Some(live) => format!("{found}: {}.", live_total_words(&live, "…")),
        None => format!("{found}. How many objects that exist are affected was not counted."),
    }
}

fn members<'r>(report: &'r CheckReport, causes: &[&'r Cause]) -> impl Iterator<Item = &'r Finding> {
    let at: Vec<usize> = causes.iter().flat_map(|cause| cause.at.iter().copied()).collect();
    at.into_iter().filter_map(|index| report.findings.get(index))
}

/// The ways out of what refuses, each once.
fn ways(loud: &[&Cause]) -> Vec<WayView> {
    let mut ways: Vec<(&Remedy, WayView)> = Vec::new();
    for cause in loud {
        for remedy in cause.remedies.iter().filter(|remedy| !remedy.is_waiver_entry()) {
            let known = ways.iter().position(|(known, _)| *known == remedy).unwrap_or_else(|| {
                ways.push((remedy, WayView::of(remedy)));
                ways.len() - 1
            });
            let view = &mut ways[known].1;
            if view.answers.len() < LINKS {
                view.answers.push((anchor(&cause.fingerprint), cause.headline.clone()));
            } else {
                view.more += 1;
            }
        }
    }
    ways.into_iter().map(|(_, view)| view).collect()
}

/// A Config with the waivers of what refuses, until a month after the day of the run; and what it holds.
fn accept(report: &CheckReport, loud: &[&Cause]) -> (Option<String>, String) {
    let waivers = accepting_until(loud, &report.findings, month_later(&report.today).as_deref());
    let count = waivers.lines().filter(|line| line.starts_with("- rule: ")).count();
    let config = format!("apiVersion: pushback.dev/v1alpha1\nkind: Config\n{}", waivers.trim_end());
    ((count > 0).then_some(config), counted(count, "waiver"))
}

fn month_later(today: &str) -> Option<String> {
    let today: Date = today.parse().ok()?;
    Some(today.checked_add(1.month()).ok()?.to_string())
}

/// Every group of findings with the object of its first, and a link from the other objects.
fn objects(report: &CheckReport) -> Vec<ObjectView> {
    let mut objects: Vec<ObjectView> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    let cards = cards(report);
    let refusing = cards.iter().filter(|card| card.finding.severity == Severity::Error).count();
    for card in &cards {
        let mut place = |finding: &Finding| {
            let name = match object_name(finding) {
                name if name.trim().is_empty() => "The run itself".to_owned(),
                name => name,
            };
            *known.entry(name.clone()).or_insert_with(|| {
                let anchor = format!("object-{}", objects.len() + 1);
                objects.push(ObjectView { anchor, name, causes: Vec::new(), elsewhere: Vec::new(), more: 0 });
                objects.len() - 1
            })
        };
        let here = place(card.finding);
        let others: BTreeSet<usize> = card.others.iter().map(|finding| place(finding)).collect();
        let mut view = CauseView::of(card, month_later(&report.today).as_deref(), &report.findings);
        view.is_open = refusing <= OPEN && view.weight == "error";
        view.name_uniquely(&mut anchors);
        for other in others.into_iter().filter(|other| *other != here) {
            if objects[other].elsewhere.len() < LINKS {
                objects[other].elsewhere.push((view.anchor.clone(), view.headline.clone()));
            } else {
                objects[other].more += 1;
            }
        }
        objects[here].causes.push(view);
    }
    objects
}

/// How many causes there are of each severity, without those that there are none of.
fn severities(objects: &[ObjectView]) -> Vec<(&'static str, usize)> {
    let causes = || objects.iter().flat_map(|object| &object.causes);
    let count = |word| (word, causes().filter(|cause| cause.weight == word).count());
    ["error", "warning", "info", "waived"].map(count).into_iter().filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests;
