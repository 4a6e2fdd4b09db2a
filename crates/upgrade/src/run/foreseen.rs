//! What a run would do, step by step and in its order: it is prepared as a run is, and nothing is written.

use std::time::Duration;

use pushback_preflight::experiment::{Experiment, InjectionType};

use super::deletion::has_controller;
use super::{ActiveExperiment, Runner, observation, patience};
use crate::change::{Change, Step};
use crate::journal::NAME_PREFIX;
use crate::outcome::{Outcome, RunStep, Verdict};

/// The steps of experiments that are injected together.
struct Foreseen {
    outcomes: Vec<Outcome>,
    begin: Vec<RunStep>,
    watch: Vec<RunStep>,
    end: Vec<RunStep>,
}

impl Runner<'_> {
    /// Outcomes and steps of a run with these experiments before the upgrade, if there is one, and these others. The
    /// steady state is looked at once.
    pub async fn foresee(
        &self,
        before: &[(usize, &Experiment)],
        upgrade: Option<&str>,
        others: &[(usize, &Experiment)],
    ) -> (Vec<Outcome>, Vec<RunStep>) {
        let (mut outcomes, mut steps, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for members in self.by_object(before).await {
            all.extend(self.foresee_together(&members, &mut outcomes).await);
        }
        steps.extend(all.iter_mut().flat_map(|foreseen| std::mem::take(&mut foreseen.begin)));
        steps.extend(upgrade.map(|upgrade| RunStep::new("", "apply", upgrade, "the new release, and wait for it")));
        steps.extend(all.iter_mut().flat_map(|foreseen| std::mem::take(&mut foreseen.watch)));
        for foreseen in all.into_iter().rev() {
            steps.extend(foreseen.end);
            outcomes.extend(foreseen.outcomes);
        }
        for member in others {
            let mut refused = Vec::new();
            let foreseen = self.foresee_together(std::slice::from_ref(member), &mut refused).await;
            for outcome in &mut refused {
                if upgrade.is_some() {
                    outcome.reason = format!("it is planned once the upgrade is made; today: {}", outcome.reason);
                    steps.push(RunStep::new(&outcome.name, "plan", "", &outcome.reason));
                }
            }
            outcomes.extend(refused);
            let Some(Foreseen { outcomes: made, begin, watch, end }) = foreseen else { continue };
            steps.extend([begin, watch, end].concat());
            outcomes.extend(made);
        }
        (outcomes, steps)
    }

    async fn foresee_together(
        &self,
        members: &[(usize, &Experiment)],
        outcomes: &mut Vec<Outcome>,
    ) -> Option<Foreseen> {
        let mut refused = Vec::new();
        let prepared = self.prepare_all(members, |_| Duration::ZERO, &mut refused).await;
        outcomes.extend(refused.into_iter().map(|outcome| {
            let reason = format!("it would not be made: {}", outcome.reason);
            Outcome { reason, verdict: Verdict::Skipped, ..outcome }
        }));
        let (lead, number) = prepared?;
        let journal = format!("{}/{NAME_PREFIX}{}", lead.experiment.injection_namespace(), self.id(number));
        let made = |member: &ActiveExperiment<'_>| Outcome {
            reason: "dry run: it would be made".to_owned(),
            ..member.outcome.clone()
        };
        Some(Foreseen {
            outcomes: lead.members().map(made).collect(),
            begin: begin(&lead, &journal),
            watch: watch(&lead),
            end: end(&lead, &journal),
        })
    }
}

/// The changes that one journal holds.
fn changes(lead: &ActiveExperiment<'_>) -> Vec<Step> {
    lead.together.clone().map_or_else(|| lead.planned.steps.clone(), |step| vec![step])
}

fn kind_of_journal(steps: &[Step]) -> &'static str {
    if steps.iter().any(Step::is_sensitive) { "Secret" } else { "ConfigMap" }
}

fn begin(lead: &ActiveExperiment<'_>, journal: &str) -> Vec<RunStep> {
    let changes = changes(lead);
    let mut steps = Vec::new();
    for member in lead.members() {
        let name = &member.experiment.name;
        steps.push(steady(member, "the steady state"));
        for target in &member.planned.measured {
            steps.push(RunStep::new(name, "ask", target.to_string(), "how it admits, by dry-runs"));
        }
        for step in &member.planned.steps {
            steps.push(RunStep::new(name, "ask", step.target.to_string(), "what the server would make of the change"));
        }
    }
    if changes.is_empty() {
        return steps;
    }
    let name = names(lead);
    let journal = format!("{} {journal}", kind_of_journal(&changes));
    steps.push(RunStep::new(&name, "create", journal, "the journal: what is needed to take it back"));
    for step in &changes {
        let object = step.target.to_string();
        let mut push = |action, detail: &str| steps.push(RunStep::new(&name, action, &object, detail));
        match &step.change {
            Change::Fields(_) => push("patch", &step.describe_values()),
            Change::Finalizer(finalizer) => push("patch", &format!("finalizer {finalizer} added")),
            Change::Held { finalizer, .. } => {
                push("patch", &format!("finalizer {finalizer} added"));
                push("delete", "held by the finalizer");
            }
            Change::Created(_) => push("create", "with the mark of the experiment"),
            Change::Deleted(_) => push("delete", "its body is in the journal"),
            Change::Killed => push("delete", "at once; its controller replaces it"),
        }
    }
    steps
}

fn watch(lead: &ActiveExperiment<'_>) -> Vec<RunStep> {
    let mut steps = Vec::new();
    for member in lead.members().filter(|member| !member.planned.steps.is_empty()) {
        let name = &member.experiment.name;
        for target in &member.planned.measured {
            steps.push(RunStep::new(name, "ask", target.to_string(), "how it admits now, by dry-runs"));
        }
        let seconds = observation(member.experiment).as_secs();
        let what = match member.experiment.injection.kind {
            InjectionType::FinalizerBlock => "that the deletion is held, and the steady state",
            _ if member.planned.heals => "until it is undone and the steady state holds",
            _ => "the steady state",
        };
        steps.push(RunStep::new(name, "watch", "", format!("for up to {seconds} s: {what}")));
    }
    for step in &lead.planned.steps {
        if let Change::Held { finalizer, body } = &step.change {
            let (name, object) = (&lead.experiment.name, step.target.to_string());
            steps.push(RunStep::new(name, "patch", &object, format!("finalizer {finalizer} removed")));
            let end = if has_controller(body) { "its owner has made it again" } else { "it is gone" };
            steps.push(RunStep::new(name, "wait", &object, format!("for up to 30 s, until {end}")));
        }
    }
    steps
}

fn end(lead: &ActiveExperiment<'_>, journal: &str) -> Vec<RunStep> {
    let (changes, name) = (changes(lead), names(lead));
    let mut steps = Vec::new();
    for step in changes.iter().rev() {
        let object = step.target.to_string();
        let mut push = |action, detail: &str| steps.push(RunStep::new(&name, action, &object, detail));
        match &step.change {
            Change::Fields(_) | Change::Finalizer(_) => push("patch", "values and field managers as before"),
            Change::Held { body, .. } if has_controller(body) => {}
            Change::Held { .. } | Change::Deleted(_) => {
                push("create", "as before, unless it is there again");
                push("patch", "field managers as before");
            }
            Change::Created(_) => push("delete", "by its mark and uid"),
            Change::Killed => {}
        }
    }
    if !changes.is_empty() {
        let journal = format!("{} {journal}", kind_of_journal(&changes));
        steps.push(RunStep::new(&name, "delete", journal, "once everything is as before"));
    }
    steps.extend(lead.members().map(|member| steady(member, "the steady state again")));
    steps
}

fn steady(member: &ActiveExperiment<'_>, what: &str) -> RunStep {
    let seconds = patience(member.experiment).as_secs();
    let checks: Vec<&str> = member.outcome.before.iter().map(|looked| looked.check.as_str()).collect();
    let checks = if checks.is_empty() { "no check".to_owned() } else { checks.join("; ") };
    RunStep::new(&member.experiment.name, "wait", "", format!("for up to {seconds} s, for {what}: {checks}"))
}

fn names(lead: &ActiveExperiment<'_>) -> String {
    lead.members().map(|member| member.experiment.name.as_str()).collect::<Vec<_>>().join(", ")
}
