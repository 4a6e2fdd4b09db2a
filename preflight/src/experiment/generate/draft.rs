//! An experiment without a name. Common fields are set here, so that danger level, blast radius and namespaces are
//! consistent.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::finding::Severity;
use serde_json::Value;

use super::context::Place;
use super::names::{kebab, label_value, short, slug};
use crate::experiment::suite::{Need, Origin, Phase, Side, SuiteExperiment};
use crate::experiment::{
    BlastRadius, Check, DangerLevel, Experiment, Hypothesis, Injection, InjectionType, PREFIX, Problem, Target,
    protected_namespace, validate,
};

/// An experiment without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) origin: Origin,
    /// First part of the file name: `component-added`.
    pub(super) class: &'static str,
    /// Names of the subject: `llmisvc`, `storage`.
    pub(super) about: String,
    /// Last part of the file name; may be empty.
    pub(super) what: String,
    /// Last part of the experiment's name: `field-removed`.
    pub(super) change: String,
    /// Further words, each of which may tell it from drafts with the same name.
    pub(super) further: Vec<String>,
    /// The subject, for people.
    pub(super) subject: String,
    pub(super) phase: Phase,
    pub(super) needs: BTreeSet<Need>,
    pub(super) note: String,
    pub(super) experiment: Experiment,
}

/// An injection and its limits.
#[derive(Debug)]
pub(super) struct Injected<'a> {
    pub(super) kind: InjectionType,
    pub(super) danger: DangerLevel,
    /// Namespace to inject into; `None` for the whole cluster.
    pub(super) namespace: Option<String>,
    pub(super) parameters: Vec<(&'static str, String)>,
    /// Duration in seconds.
    pub(super) ttl: u64,
    /// Number of affected pods.
    pub(super) pods: u32,
    /// The component whose recovery time applies, if different from the target.
    pub(super) recovers_as: Option<Place<'a>>,
    /// Action and expectation; the recovery time is appended.
    pub(super) hypothesis: String,
}

impl Draft {
    /// An experiment on a component.
    pub(super) fn new(origin: Origin, class: &'static str, place: Place<'_>, injected: Injected<'_>) -> Self {
        let Injected { kind, danger, namespace, parameters, ttl, pods, recovers_as, hypothesis } = injected;
        // Objects of the platform are changed only by experiments marked as dangerous.
        let is_platform = namespace.as_deref().is_some_and(|name| protected_namespace(name, false).is_some());
        let danger = if is_platform { DangerLevel::High } else { danger };
        let allow_dangerous = danger == DangerLevel::High;
        let recovery_timeout_seconds = recovers_as.unwrap_or(place).recovery_seconds();
        let change = kebab(&origin.change_type);
        let experiment = Experiment {
            namespace: namespace.clone().unwrap_or_else(|| place.operator.namespace.clone()),
            target: Target {
                operator: place.operator.name.clone(),
                component: place.component.name.clone(),
                resource: String::new(),
            },
            checks: checks(place, allow_dangerous),
            injection: Injection {
                kind,
                parameters: parameters.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
                count: 1,
                ttl_seconds: ttl,
                danger,
            },
            blast_radius: BlastRadius {
                max_pods_affected: pods,
                allowed_namespaces: namespace.into_iter().collect(),
                allow_dangerous,
                ..BlastRadius::default()
            },
            hypothesis: Hypothesis {
                description: format!("{hypothesis} within {recovery_timeout_seconds}s"),
                recovery_timeout_seconds,
            },
            tier: kind.tier(),
            ..Experiment::default()
        };
        Self {
            about: short(&origin.component).to_owned(),
            further: vec![short(&origin.component).to_owned()],
            subject: String::new(),
            origin,
            class,
            what: String::new(),
            change,
            phase: Phase::PostUpgrade,
            needs: BTreeSet::new(),
            note: String::new(),
            experiment,
        }
    }

    pub(super) fn about(mut self, about: &str) -> Self {
        self.about = about.to_owned();
        self
    }

    pub(super) fn what(mut self, what: &str) -> Self {
        self.what = what.to_owned();
        self
    }

    pub(super) fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    pub(super) fn told_apart_by(mut self, words: impl Iterator<Item = String>) -> Self {
        self.further = words.collect();
        self
    }

    pub(super) fn resource(mut self, kind: &str, name: &str) -> Self {
        self.experiment.target.resource = format!("{kind}/{name}");
        self
    }

    /// Injects while the old release runs, which is in its own steady state; afterwards the new one has to be.
    pub(super) fn before_upgrade(mut self, old: Place<'_>, new: Place<'_>) -> Self {
        self.phase = Phase::PreUpgrade;
        self.needs.insert(Need::Upgrade);
        let allow_dangerous = self.experiment.blast_radius.allow_dangerous;
        self.experiment.checks = checks(old, allow_dangerous);
        let after = checks(new, allow_dangerous);
        if after != self.experiment.checks {
            self.experiment.expect_after_upgrade(&after);
        }
        self
    }

    pub(super) fn needs(mut self, need: Need) -> Self {
        self.needs.insert(need);
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(super) fn annotate(mut self, key: &str, value: &str) -> Self {
        self.experiment.annotations.insert(format!("{PREFIX}{key}"), value.to_owned());
        self
    }

    /// Adds the checks of components that are affected as well.
    pub(super) fn collateral(mut self, place: Place<'_>) -> Self {
        let allow_dangerous = self.experiment.blast_radius.allow_dangerous;
        let more = checks(place, allow_dangerous);
        let checks: BTreeSet<_> = self.experiment.checks.into_iter().chain(more).collect();
        self.experiment.checks = checks.into_iter().collect();
        self
    }

    /// Sets the danger level and the limits for the injection; returns the reason if a runner would still reject it.
    pub(super) fn settle(&mut self) -> Option<String> {
        if self.experiment.is_cluster_scoped() {
            // No namespace bounds a cluster-scoped injection.
            self.experiment.blast_radius.allowed_namespaces.clear();
        }
        let mut errors = self.errors();
        if errors.iter().any(|problem| matches!(problem.rule, "danger-level" | "cluster-scope")) {
            self.experiment.injection.danger = DangerLevel::High;
            self.experiment.blast_radius.allow_dangerous = true;
            errors = self.errors();
        }
        let messages: BTreeSet<&str> = errors.iter().map(|problem| problem.message.as_str()).collect();
        (!messages.is_empty()).then(|| messages.into_iter().collect::<Vec<_>>().join("; "))
    }

    fn errors(&self) -> Vec<Problem> {
        let mut experiment = self.experiment.clone();
        "named-later".clone_into(&mut experiment.name);
        let mut problems = validate(&experiment.to_value());
        problems.retain(|problem| problem.severity == Severity::Error);
        problems
    }

    /// Names of the experiment, from the shortest to one that tells the most.
    pub(super) fn wished_names(&self) -> Vec<String> {
        self.wishes("upgrade-test", &self.change)
    }

    /// Names of its file, likewise.
    pub(super) fn wished_files(&self) -> Vec<String> {
        self.wishes(self.class, &self.what)
    }

    fn wishes(&self, first: &str, last: &str) -> Vec<String> {
        let about = slug(&self.about);
        let wish = |further: &[String]| {
            // What is nearest to the subject stands nearest to it: `kind-parent-field`.
            let further = further.iter().enumerate().map(|(index, word)| (index != 0, usize::MAX - index, slug(word)));
            let mut further: Vec<_> = further.collect();
            further.sort();
            let words = further.into_iter().map(|(_, _, word)| word);
            let parts = [first.to_owned()].into_iter().chain(words).chain([about.clone(), last.to_owned()]);
            parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
        };
        (0..=self.further.len()).map(|count| wish(&self.further[..count])).collect()
    }

    /// Distinguishes drafts with the same name.
    pub(super) fn identity(&self) -> String {
        format!("{}\n{}", self.origin.change_id, self.experiment.to_value())
    }

    /// Sort key for running: experiments before the upgrade first, harmless ones first.
    pub(super) fn order(&self) -> (Phase, u8, Origin, String, String, String) {
        (
            self.phase,
            self.experiment.tier,
            self.origin.clone(),
            self.wishes(self.class, &self.what).remove(0),
            self.subject.clone(),
            self.experiment.to_value().to_string(),
        )
    }

    /// The finished experiment, with its name and source.
    pub(super) fn finish(self, name: String, file: &str, source: &Side, target: &Side) -> SuiteExperiment {
        let Self { origin, phase, needs, note, mut experiment, .. } = self;
        experiment.name = name;
        let labels = [
            ("upgrade-simulation", "true".to_owned()),
            ("operator", label_value(&experiment.target.operator)),
            ("component", label_value(&experiment.target.component)),
            ("source-version", label_value(&source.version)),
            ("target-version", label_value(&target.version)),
        ];
        experiment.labels = labels.into_iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect();
        let annotations = BTreeMap::from([
            ("generated-by", "diff-engine".to_owned()),
            ("upgrade-version", upgrade(source, target)),
            ("change-id", origin.change_id.clone()),
            ("phase", phase.as_str().to_owned()),
        ]);
        let annotations = annotations.into_iter().filter(|(_, value)| !value.is_empty());
        experiment.annotations.extend(annotations.map(|(key, value)| (format!("{PREFIX}{key}"), value)));
        SuiteExperiment { file: format!("{file}.yaml"), experiment, origin, phase, needs, note }
    }
}

/// The checks of a component in its steady state, without those that no runner may look at.
fn checks(place: Place<'_>, allow_dangerous: bool) -> Vec<Check> {
    let mut checks = place.checks();
    checks.retain(|check| protected_namespace(&check.namespace, allow_dangerous).is_none());
    checks
}

/// The name of the upgrade, `vA-to-vB`.
pub(super) fn upgrade(source: &Side, target: &Side) -> String {
    format!("{}-to-{}", version(&source.version), version(&target.version))
}

/// A version with exactly one leading `v`.
fn version(version: &str) -> String {
    match version.strip_prefix('v').unwrap_or(version) {
        "" => "unknown".to_owned(),
        number => format!("v{number}"),
    }
}

/// A value as a parameter: JSON, or plain text if the runner reads it as a string anyway.
pub(super) fn parameter(value: &Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        other => other.to_string(),
    }
}
