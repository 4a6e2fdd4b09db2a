//! A second look, right before a change is made, at what its verdict rests on: what the server makes of a definition, what
//! goes with an object that is deleted. Admission and other people go on while a plan is shown, confirmed and written.

use std::sync::Arc;

use pushback_preflight::judge::RunReport;
use pushback_preflight::rule::Judgement;
use pushback_preflight::selection::Selection;
use pushback_preflight::session::Session;
use pushback_preflight::waiver::Waiver;
use pushback_preflight::{Change, ChangeSet, Facts, Finding, Operation, Severity};

use crate::cluster::{Cluster, Kinds};

/// What a run was judged by, to judge single changes anew.
#[derive(Debug)]
pub struct SecondLook {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Its kinds.
    pub kinds: Arc<Kinds>,
    /// The rules.
    pub selection: Selection,
    /// The facts that they had.
    pub facts: Facts,
    /// Waivers.
    pub waivers: Vec<Waiver>,
    /// The day that waivers are judged by.
    pub today: String,
}

/// What stands against a change that was allowed before.
#[derive(Debug)]
pub struct Refused {
    /// The findings that refuse it.
    pub findings: Vec<Finding>,
    /// Facts that could not be had this time, and why.
    pub unable: Vec<String>,
}

impl SecondLook {
    /// Whether the verdict on a change rests on what goes with its object, which may be more by now.
    #[must_use]
    pub fn rests_on_what_goes_with(&self, change: &Change) -> bool {
        self.facts.answers.keys().any(|need| need.tells_what_goes_with(change))
    }

    /// Judges a change as it has become. What goes with its object is asked for again; all other facts stand.
    ///
    /// # Errors
    /// It is refused now.
    pub async fn judge(&self, change: Change) -> Result<(), Refused> {
        let answers = self.facts.answers.iter().filter(|(need, _)| !need.tells_what_goes_with(&change));
        let facts = Facts {
            answers: answers.map(|(need, answer)| (need.clone(), answer.clone())).collect(),
            changes: self.among_the_others(change),
            cluster: self.facts.cluster.clone(),
            ..Facts::default()
        };
        let mut session = Session::new(self.selection.clone(), facts);
        super::answer(&*self.cluster, &self.kinds, &mut session).await;
        let (report, _) = session.finish(Judgement::default(), &self.waivers, &self.today);
        if report.outcome.refuses() { Err(Refused::by(report)) } else { Ok(()) }
    }

    /// The change set with this change in its place. The others have been judged: they are there for what this one means
    /// among them, and what they write is not looked at again.
    fn among_the_others(&self, change: Change) -> ChangeSet {
        let mut set = self.facts.changes.clone();
        for other in &mut set.changes {
            if matches!(other.operation, Operation::Create | Operation::Update) {
                other.operation = Operation::Noop;
            }
        }
        let key = change.object.key();
        match set.changes.iter_mut().find(|other| other.object.key() == key) {
            Some(place) => *place = change,
            None => set.changes.push(change),
        }
        set
    }
}

impl Refused {
    fn by(report: RunReport) -> Self {
        let unable = report.rules.into_iter().flat_map(|rule| rule.unable).collect();
        let refuses = |finding: &Finding| finding.severity == Severity::Error && finding.waived.is_none();
        Self { findings: report.findings.into_iter().filter(refuses).collect(), unable }
    }

    /// The first reason, and how many more there are.
    #[must_use]
    pub fn reason(&self) -> String {
        let found =
            self.findings.iter().map(|finding| format!("{} ({}): {}", finding.rule, finding.check, finding.message));
        let mut reasons = found.chain(self.unable.iter().cloned());
        let first = reasons.next().unwrap_or_default();
        match reasons.count() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        }
    }
}
