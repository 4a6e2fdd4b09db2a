//! A run of the selected rules: requests facts, accepts answers, lets the rules judge, and returns the report.
//! The caller does the I/O between the calls; nothing here blocks or reads.

use std::borrow::Borrow;

use pushback_objects::finding::{Finding, Severity};
use pushback_objects::object::ObjectRef;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::{Map, Value};

use crate::custom;
use crate::default_set::LeftOut;
use crate::derived_crds::PendingCrds;
use crate::facts::{Answer, ChangeSet, ClusterFacts, ClusterSide, DerivedCrds, Facts, Need, Needs};
use crate::judge::{self, Ended, Ending, RunReport};
use crate::loosened::{Loosened, RuleOff};
use crate::registry;
use crate::rule::{Artefact, Checked, Judgement, Memory, ProgramCall, Settings};
use crate::rules::crd_upgrade_safety::version_clients;
use crate::rules::{self, WorkloadPod, upgrade_diff};
use crate::selection::{Origin, Selected, Selection};
use crate::waiver::{Accepted, Waiver};

/// Maximum number of rounds in which a rule may ask for facts.
pub const ROUNDS: usize = 3;

/// A run of rules.
///
/// ```text
/// let mut session = Session::new(selection, facts);
/// loop {
///     let needs = session.needs();
///     if needs.is_empty() { break }
///     session.answer(gather(needs));      // streams go page by page through session.fold(…)
/// }
/// let (report, facts) = session.finish(server, &waivers, today);
/// ```
#[derive(Debug)]
pub struct Session {
    facts: Facts,
    runs: Vec<Run>,
    /// Requested and not yet answered.
    asked: Needs,
    /// Findings about the policy itself.
    told: Vec<Finding>,
    off: Vec<RuleOff>,
    left_out: Option<LeftOut>,
    loosened: Vec<Loosened>,
    /// Number of objects affected by each waived finding before, by fingerprint.
    accepted: Accepted,
    /// CRDs that follow from the changes, until it is known which of them the API server has.
    pending_crds: Option<PendingCrds>,
}

#[derive(Debug)]
struct Run {
    selected: Selected,
    /// Everything that the rule has requested.
    wants: Needs,
    rounds: usize,
    memory: Memory,
    ending: Option<Ending>,
}

impl Session {
    /// Starts a run. `facts` contains the change set and the cluster; its answers, as in a saved facts file, are used
    /// instead of asking again.
    #[must_use]
    pub fn new(selection: Selection, mut facts: Facts) -> Self {
        facts.rules = selection.relied_on();
        let Selection { rules, loosened, loosening, off, left_out, accepted, .. } = selection;
        let told = loosened.iter().map(|loosened| loosened.finding(loosening)).collect();
        let runs: Vec<Run> = rules
            .into_iter()
            .map(|selected| Run {
                ending: reason_to_skip(&selected, &facts.cluster).map(Ending::Skipped),
                selected,
                wants: Needs::new(),
                rounds: 0,
                memory: Memory::default(),
            })
            .collect();
        let judges_crds = |run: &Run| run.ending.is_none() && run.selected.rule.meta().judges_derived_crds;
        facts.changes.derived = DerivedCrds::default();
        let pending_crds = runs.iter().any(judges_crds).then(|| PendingCrds::new(&facts.changes));
        Self { facts, runs, asked: Needs::new(), told, off, left_out, loosened, accepted, pending_crds }
    }

    /// Starts a run without answers.
    #[must_use]
    pub fn of(selection: Selection, changes: ChangeSet, cluster: ClusterFacts) -> Self {
        Self::new(selection, Facts { changes, cluster, ..Facts::default() })
    }

    /// The facts to gather now, for all rules together; empty once every rule has judged.
    /// A fact that was requested before and not answered counts as unavailable.
    pub fn needs(&mut self) -> Needs {
        for need in std::mem::take(&mut self.asked) {
            let reason = "it was asked for and not answered".to_owned();
            self.facts.answers.entry(need).or_insert(Answer::Unable { reason });
        }
        if let Some(pending) = self.pending_crds.take() {
            let open = pending.needs().into_iter().filter(|need| !self.facts.answers.contains_key(need));
            self.asked.extend(open);
            if !self.asked.is_empty() {
                self.pending_crds = Some(pending);
                return self.asked.clone();
            }
            self.facts.changes.derived = pending.settle(&self.facts.answers);
        }
        for run in self.runs.iter_mut().filter(|run| run.ending.is_none()) {
            run.advance(&self.facts);
            let open = run.wants.iter().filter(|need| !self.facts.answers.contains_key(need)).cloned();
            self.asked.extend(open);
        }
        self.asked.clone()
    }

    /// Adds answers.
    pub fn answer(&mut self, answers: impl IntoIterator<Item = (Need, Answer)>) {
        for (need, answer) in answers {
            self.asked.remove(&need);
            self.facts.answers.insert(need, answer);
        }
    }

    /// Folds one page of a stream into its state, which starts as `Null` and becomes the `state` of [`Answer::Folded`].
    /// Each rule that requested the stream has its own share, under its name.
    pub fn fold(&self, need: &Need, state: &mut Value, page: &[impl Borrow<Value>]) {
        if !state.is_object() {
            *state = Value::Object(Map::new());
        }
        let Some(parts) = state.as_object_mut() else { return };
        let page: Vec<&Value> = page.iter().map(Borrow::borrow).collect();
        for run in self.runs.iter().filter(|run| run.wants.contains(need)) {
            let part = parts.entry(run.selected.rule.meta().name).or_insert(Value::Null);
            run.selected.rule.fold(&self.facts, need, &run.memory, part, &page);
        }
    }

    /// The program that answers a [`Need::Program`].
    #[must_use]
    pub fn program(&self, rule: &str, number: usize) -> Option<ProgramCall> {
        let run = self.runs.iter().find(|run| run.selected.rule.meta().name == rule)?;
        custom::program(run.selected.rule, &self.facts, number)
    }

    /// The Pod whose dry run answers a [`Need::PodAdmission`].
    #[must_use]
    pub fn workload_pod(&self, workload: &ObjectRef) -> Option<WorkloadPod> {
        rules::workload_pod(&self.facts.changes, workload)
    }

    /// The facts gathered so far.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Output of the rules in addition to findings.
    #[must_use]
    pub fn artefacts(&self) -> Vec<Artefact> {
        let of_run = |run: &Run| upgrade_diff::artefact(&run.selected.settings, &run.memory);
        self.runs.iter().filter_map(of_run).collect()
    }

    /// Ends the run. `server` is what the API server rejected or could not check in dry runs; `today` is the date for
    /// waivers, `YYYY-MM-DD`. A rule that has not judged yet is `unable`.
    #[must_use]
    pub fn finish(mut self, server: Judgement, waivers: &[Waiver], today: &str) -> (RunReport, Facts) {
        // A rule of the policy runs beside those that a list chooses, and is not named in it again.
        let listed = self.runs.iter().filter(|run| !run.selected.rule.meta().is_custom);
        let running: Vec<_> = listed.map(|run| run.selected.written()).collect();
        let is_default_set = self.runs.iter().all(|run| run.selected.origin == Origin::Default);
        let mut endings = Vec::new();
        for run in &mut self.runs {
            let ending = run.ending.take().unwrap_or_else(|| unable("it still waits for facts from the cluster"));
            endings.push(Ended { name: run.selected.rule.meta().name, settings: &run.selected.settings, ending });
        }
        let strict = Settings::default();
        if !self.told.is_empty() {
            let ending = Ending::Judged(Judgement { findings: self.told, unable: Vec::new() });
            endings.push(Ended { name: registry::POLICY, settings: &strict, ending });
        }
        let mut report = judge::judge(endings, server, waivers, &self.accepted, today);
        for run in self.runs.iter().filter(|run| run.selected.rule.meta().is_custom) {
            let meta = run.selected.rule.meta();
            let result = report.rules.iter_mut().find(|result| result.name == meta.name);
            result.into_iter().for_each(|result| result.summary = Some(meta.summary.to_owned()));
        }
        version_clients::repeat_waivers(&mut report.findings);
        for finding in report.findings.iter_mut().filter(|finding| finding.severity != Severity::Info) {
            let remedies = registry::remedies(&self.facts, finding).into_iter();
            finding.remedies = remedies.map(|remedy| remedy.among(&running, is_default_set)).collect();
        }
        for finding in &mut report.findings {
            finding.derived_from = self.facts.changes.derived.source_of(&finding.object.key()).cloned();
            if finding.derived_from.is_some() {
                finding.remedies.retain(is_for_derived_crd);
            }
        }
        let Self { off, left_out, loosened, facts, .. } = self;
        (RunReport { off, left_out, loosened, ..report }, facts)
    }
}

impl Run {
    /// Runs the rule as far as the facts allow.
    fn advance(&mut self, facts: &Facts) {
        let rule = self.selected.rule;
        if self.rounds == 0 {
            self.wants = rule.plan(&facts.changes, &self.selected.settings);
            self.rounds = 1;
        }
        while self.ending.is_none() && self.wants.iter().all(|need| facts.answers.contains_key(need)) {
            match rule.check(facts, &self.selected.settings, &mut self.memory) {
                Checked::Done(judgement) => self.ending = Some(Ending::Judged(judgement)),
                Checked::Skipped(reason) => self.ending = Some(Ending::Skipped(reason)),
                Checked::More(_) if self.rounds == ROUNDS => {
                    self.ending = Some(unable(&format!("it asked for facts more than {ROUNDS} times")));
                }
                Checked::More(needs) => {
                    self.rounds += 1;
                    self.wants.extend(needs);
                }
            }
        }
    }
}

/// Returns whether a way out exists for a CRD that a controller writes: the run itself can neither bridge nor keep it.
fn is_for_derived_crd(remedy: &Remedy) -> bool {
    match remedy.kind {
        RemedyKind::MoveObjects | RemedyKind::Keep => false,
        RemedyKind::Change => remedy.commands.is_empty(),
        _ => true,
    }
}

fn reason_to_skip(selected: &Selected, cluster: &ClusterFacts) -> Option<String> {
    let meta = selected.rule.meta();
    (cluster.side == ClusterSide::Directory && !meta.on_directory).then(|| needs_a_server(cluster))
}

/// The reason by which a rule that asks an API server is skipped on a directory.
pub(crate) fn needs_a_server(cluster: &ClusterFacts) -> String {
    format!("needs an API server, and {} is none", display_or(&cluster.description, "a directory"))
}

fn display_or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn unable(reason: &str) -> Ending {
    Ending::Judged(Judgement { unable: vec![reason.to_owned()], ..Judgement::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::{Folded, Needs};
    use crate::judge::{Outcome, RuleOutcome};
    use crate::rule::{Rule, RuleMeta};

    const EMPTY: RuleMeta = RuleMeta { name: "Curious", ..RuleMeta::COMMON };
    static ANYWHERE: RuleMeta = EMPTY;
    static ON_SERVERS: RuleMeta = RuleMeta { on_directory: false, ..EMPTY };

    /// Requests one more namespace in each round, for a given number of rounds.
    #[derive(Debug)]
    struct Curious(&'static RuleMeta, usize);

    fn access(number: usize) -> Need {
        Need::AccessRules { namespace: format!("n{number}") }
    }

    fn stream() -> Need {
        Need::Objects {
            group: "ex.com".into(),
            version: "v1".into(),
            kind: "Foo".into(),
            resource: "foos".into(),
            limit: 0,
        }
    }

    impl Rule for Curious {
        fn meta(&self) -> &'static RuleMeta {
            self.0
        }
        fn plan(&self, _: &ChangeSet, _: &Settings) -> Needs {
            (0..self.1.min(1)).map(access).collect()
        }
        fn check(&self, facts: &Facts, _: &Settings, _: &mut Memory) -> Checked {
            match (0..self.1).find(|number| !facts.answers.contains_key(&access(*number))) {
                Some(number) => Checked::More(Needs::from([access(number)])),
                None => Checked::Done(Judgement::default()),
            }
        }
    }

    #[derive(Debug)]
    struct Counting(&'static RuleMeta);

    impl Rule for Counting {
        fn meta(&self) -> &'static RuleMeta {
            self.0
        }
        fn plan(&self, _: &ChangeSet, _: &Settings) -> Needs {
            Needs::from([stream()])
        }
        fn check(&self, facts: &Facts, _: &Settings, _: &mut Memory) -> Checked {
            let unable = match facts.folded(self.0.name, &stream()) {
                Some(Folded::State { state, .. }) => vec![format!("{}", state)],
                other => vec![format!("{other:?}")],
            };
            Checked::Done(Judgement { findings: vec![], unable })
        }
        fn fold(&self, _: &Facts, _: &Need, _: &Memory, state: &mut Value, page: &[&Value]) {
            *state = json!(state.as_u64().unwrap_or_default() + page.len() as u64);
        }
    }

    fn selection(rules: Vec<&'static dyn Rule>) -> Selection {
        let rules = rules
            .into_iter()
            .map(|rule| Selected { rule, settings: Settings::default(), origin: Origin::Default })
            .collect();
        Selection { rules, ..Selection::default() }
    }

    fn curious(rounds: usize) -> Selection {
        selection(vec![Box::leak(Box::new(Curious(&ANYWHERE, rounds)))])
    }

    fn finish(session: Session) -> RunReport {
        session.finish(Judgement::default(), &[], "2026-01-01").0
    }

    fn granted() -> Answer {
        Answer::AccessRules { rules: vec![], incomplete: false }
    }

    #[test]
    fn a_rule_may_ask_three_times_and_no_more() {
        for (rounds, asked, outcome) in
            [(0, 0, Outcome::Passed), (1, 1, Outcome::Passed), (3, 3, Outcome::Passed), (4, 3, Outcome::Unable)]
        {
            let mut session = Session::new(curious(rounds), Facts::default());
            let mut times = 0;
            loop {
                let needs = session.needs();
                if needs.is_empty() {
                    break;
                }
                times += 1;
                session.answer(needs.into_iter().map(|need| (need, granted())));
            }
            assert_eq!((times, finish(session).outcome), (asked, outcome), "{rounds} rounds");
        }
    }

    #[test]
    fn a_question_without_an_answer_cannot_be_had_and_the_run_ends() {
        let mut session = Session::new(curious(2), Facts::default());
        assert_eq!(session.needs(), Needs::from([access(0)]));
        assert_eq!(session.needs(), Needs::from([access(1)]));
        assert!(session.needs().is_empty());
        assert!(matches!(session.facts().answer(&access(0)), Answer::Unable { .. }));
    }

    #[test]
    fn saved_answers_are_not_asked_for_again() {
        let facts = Facts { answers: (0..2).map(|number| (access(number), granted())).collect(), ..Facts::default() };
        let mut session = Session::new(curious(3), facts);
        assert_eq!(session.needs(), Needs::from([access(2)]));
    }

    #[test]
    fn a_rule_that_was_never_asked_for_its_needs_is_unable() {
        let report = finish(Session::new(curious(1), Facts::default()));
        assert_eq!((report.outcome, report.rules[0].outcome), (Outcome::Unable, RuleOutcome::Unable));
    }

    #[test]
    fn a_rule_that_needs_a_server_is_skipped_on_a_directory_with_the_reason() {
        static RULE: Curious = Curious(&ON_SERVERS, 1);
        let cluster =
            ClusterFacts { description: "dir:./live".into(), side: ClusterSide::Directory, ..ClusterFacts::default() };
        let mut session = Session::of(selection(vec![&RULE]), ChangeSet::default(), cluster);
        assert!(session.needs().is_empty());
        let report = finish(session);
        assert_eq!((report.outcome, report.rules[0].outcome), (Outcome::Passed, RuleOutcome::Skipped));
        assert_eq!(report.rules[0].skipped.as_deref(), Some("needs an API server, and dir:./live is none"));
    }

    #[test]
    fn rules_that_share_a_stream_each_fold_their_own_state() {
        static ONE: RuleMeta = RuleMeta { name: "One", ..EMPTY };
        static TWO: RuleMeta = RuleMeta { name: "Two", ..EMPTY };
        static RULES: (Counting, Counting) = (Counting(&ONE), Counting(&TWO));
        let mut session = Session::new(selection(vec![&RULES.0, &RULES.1]), Facts::default());
        assert_eq!(session.needs(), Needs::from([stream()]));
        let mut state = Value::Null;
        session.fold(&stream(), &mut state, &[json!({}), json!({})]);
        session.fold(&stream(), &mut state, &[json!({})]);
        assert_eq!(state, json!({"One": 3, "Two": 3}));
        session.answer([(stream(), Answer::Folded { state, examined: 3, cut: false })]);
        assert!(session.needs().is_empty());
        let report = finish(session);
        assert_eq!([&report.rules[0].unable, &report.rules[1].unable], [&["3"], &["3"]]);
    }
}
