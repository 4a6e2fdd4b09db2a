//! A second look, right before a change is made, at what its verdict depends on: the server's version of a definition,
//! and what is deleted along with an object. Admission and other users go on while a plan is shown, confirmed and
//! written.

use std::sync::Arc;

use pushback_cluster::{Cluster, Kinds};
use pushback_objects::Finding;
use pushback_objects::object::is_custom_group;
use pushback_preflight::judge::{Refused, RunReport};
use pushback_preflight::rule::{Judgement, Mode};
use pushback_preflight::selection::Selection;
use pushback_preflight::session::Session;
use pushback_preflight::waiver::Waiver;
use pushback_preflight::{Change, ChangeSet, Facts, Need, Needs, Operation};

use super::gather::gather;

/// What a run was judged by, kept to judge single changes again.
#[derive(Debug)]
pub struct SecondLook {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Kinds that the cluster serves.
    pub kinds: Arc<Kinds>,
    /// The rules that run.
    pub selection: Selection,
    /// The facts that the rules judged.
    pub facts: Facts,
    /// Waivers that apply to the run.
    pub waivers: Vec<Waiver>,
    /// Date that waiver expiry is judged by.
    pub today: String,
    /// The last search for what is deleted with the owners.
    pub dependents: DependentsSearch,
}

/// Most searches for dependents in a run. Each lists every kind, so that not every deletion can have its own: the first
/// one has, and those of custom resources and cluster-scoped objects, which own most.
const SEARCHES: usize = 8;

/// The result of the last search for dependents, shared by the deletions of a run.
#[derive(Debug, Default)]
pub struct DependentsSearch(tokio::sync::Mutex<(usize, Refused)>);

impl SecondLook {
    /// Whether the verdict on a change depends on what is deleted with its object, which may be more by now.
    #[must_use]
    pub fn rests_on_what_goes_with(&self, change: &Change) -> bool {
        self.facts.answers.keys().any(|need| need.tells_what_goes_with(change))
    }

    /// Judges a change in its current form. What is deleted with its object is read again; all other facts are reused.
    ///
    /// # Errors
    /// The change is refused now.
    pub async fn judge(&self, change: Change) -> Result<(), Refused> {
        let facts = Facts {
            changes: self.among_the_others(&change),
            cluster: self.facts.cluster.clone(),
            invocation: self.facts.invocation.clone(),
            ..Facts::default()
        };
        let report = self.session(self.rules_that_count(), facts, |need| need.tells_what_goes_with(&change)).await;
        if report.outcome.refuses() { Err(Refused::by(report)) } else { Ok(()) }
    }

    /// Judges by the policy's own expressions an object that the server stored without a dry run: it may have more
    /// fields than the manifest that was judged.
    ///
    /// # Errors
    /// The stored object is refused.
    pub async fn judge_by_custom_rules(&self, change: Change) -> Result<(), Refused> {
        let mut selection = self.rules_that_count();
        selection.rules.retain(|it| it.rule.meta().is_custom);
        if selection.rules.is_empty() {
            return Ok(());
        }
        let whole = &self.facts.changes;
        let set = ChangeSet { app: whole.app.clone(), deletes_app: whole.deletes_app, ..ChangeSet::default() };
        let facts = Facts {
            changes: ChangeSet { changes: vec![change], ..set },
            cluster: self.facts.cluster.clone(),
            invocation: self.facts.invocation.clone(),
            ..Facts::default()
        };
        let report = self.session(selection, facts, |_| false).await;
        if report.outcome.refuses() { Err(Refused::by(report)) } else { Ok(()) }
    }

    /// Judges again what the garbage collector deletes with an object.
    ///
    /// # Errors
    /// The deletion is refused now.
    pub async fn judge_dependents(&self, change: &Change) -> Result<(), Refused> {
        let was_searched = self.facts.answers.keys().any(|need| matches!(need, Need::Dependents { .. }));
        if !was_searched || !change.ends_live_object() {
            return Ok(());
        }
        let is_far_reaching = change.object.namespace.is_empty() || is_custom_group(&change.object.group);
        let mut last = self.dependents.0.lock().await;
        if last.0 == 0 || (is_far_reaching && last.0 < SEARCHES) {
            *last = (last.0 + 1, self.search_dependents().await);
        }
        let key = change.object.key();
        let concerns = |finding: &&Finding| {
            let of_another_deletion =
                || self.facts.changes.find(&finding.object.key()).is_some_and(Change::ends_live_object);
            finding.object.key() == key || !of_another_deletion()
        };
        let refused = Refused {
            findings: last.1.findings.iter().filter(concerns).cloned().collect(),
            unable: last.1.unable.clone(),
        };
        if refused.findings.is_empty() && refused.unable.is_empty() { Ok(()) } else { Err(refused) }
    }

    /// Searches again for what is deleted with all objects that the run deletes, and judges that.
    async fn search_dependents(&self) -> Refused {
        let whole = &self.facts.changes;
        let changes = ChangeSet { changes: whole.changes.iter().map(as_judged).collect(), ..whole.clone() };
        let mut selection = self.rules_that_count();
        let searches = |need: &Need| matches!(need, Need::Dependents { .. });
        selection.rules.retain(|it| it.rule.plan(&changes, &it.settings).iter().any(searches));
        let facts = Facts {
            changes,
            cluster: self.facts.cluster.clone(),
            invocation: self.facts.invocation.clone(),
            ..Facts::default()
        };
        let report = self.session(selection, facts, searches).await;
        if report.outcome.refuses() { Refused::by(report) } else { Refused::default() }
    }

    /// Runs rules on facts that are known, but for those to ask again.
    async fn session(&self, selection: Selection, facts: Facts, asks_again: impl Fn(&Need) -> bool) -> RunReport {
        let mut session = Session::new(selection, facts);
        loop {
            let needs = session.needs();
            if needs.is_empty() {
                break;
            }
            let stands = |need: &Need| self.facts.answers.contains_key(need) && !asks_again(need);
            let (known, open): (Needs, Needs) = needs.into_iter().partition(stands);
            session.answer(known.into_iter().map(|need| (need.clone(), self.facts.answer(&need))));
            if !open.is_empty() {
                let answers = gather(&*self.cluster, &self.kinds, &session, open).await;
                session.answer(answers);
            }
        }
        session.finish(Judgement::default(), &self.waivers, &self.today).0
    }

    /// The rules whose verdict can be another one by now, and can refuse.
    fn rules_that_count(&self) -> Selection {
        let mut selection = self.selection.clone();
        selection.rules.retain(|it| it.settings.mode == Mode::Error && !it.rule.meta().judges_manifests_only);
        selection
    }

    /// The change set with this change in its place, reduced to what the rules need to judge it: thousands of objects
    /// may be judged again, one by one. The other changes are context only: they have been judged, and what they write
    /// is not checked again.
    fn among_the_others(&self, change: &Change) -> ChangeSet {
        let whole = &self.facts.changes;
        let set = ChangeSet { app: whole.app.clone(), deletes_app: whole.deletes_app, ..ChangeSet::default() };
        if change.stands_alone() && !self.selection.rules.iter().any(|it| it.rule.meta().compares_the_whole) {
            return ChangeSet { changes: vec![change.clone()], ..set };
        }
        let mut changes: Vec<Change> = whole.changes.iter().map(as_judged).collect();
        let key = change.object.key();
        match changes.iter_mut().find(|other| other.object.key() == key) {
            Some(place) => *place = change.clone(),
            None => changes.push(change.clone()),
        }
        ChangeSet { changes, ..set }
    }
}

/// A change that has been judged, as context for another one: what it writes is not checked again.
fn as_judged(change: &Change) -> Change {
    let writes = matches!(change.operation, Operation::Create | Operation::Update);
    Change { operation: if writes { Operation::Noop } else { change.operation }, ..change.clone() }
}

/// The first reason, and the number of further ones.
#[must_use]
pub fn reason(refused: &Refused) -> String {
    let found =
        refused.findings.iter().map(|finding| format!("{} ({}): {}", finding.rule, finding.check, finding.message));
    let mut reasons = found.chain(refused.unable.iter().map(|(_, reason)| reason.clone()));
    let first = reasons.next().unwrap_or_default();
    match reasons.count() {
        0 => first,
        more => format!("{first} (and {more} more)"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pushback_cluster::directory::DirectoryCluster;
    use pushback_objects::ObjectRef;
    use pushback_preflight::Verification;
    use pushback_preflight::rule::{Checked, Memory, Rule, RuleMeta, Settings};
    use pushback_preflight::selection::{Origin, Selected};

    use super::*;

    static META: RuleMeta = RuleMeta { name: "Counting", ..RuleMeta::COMMON };

    /// Counts the changes passed to it.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Rule for Counting {
        fn meta(&self) -> &'static RuleMeta {
            &META
        }
        fn plan(&self, _: &ChangeSet, _: &Settings) -> Needs {
            Needs::new()
        }
        fn check(&self, facts: &Facts, _: &Settings, _: &mut Memory) -> Checked {
            self.0.fetch_add(facts.changes.changes.len(), Ordering::SeqCst);
            Checked::Done(Judgement::default())
        }
    }

    fn update(group: &str, kind: &str, resource: &str, name: String) -> Change {
        Change {
            object: ObjectRef { group: group.to_owned(), kind: kind.to_owned(), name, ..ObjectRef::default() },
            resource: resource.to_owned(),
            namespaced: true,
            operation: Operation::Update,
            desired: None,
            live: None,
            result: None,
            verification: Verification::Server,
            positions: None,
            orphaned: false,
            taken_from: Vec::new(),
        }
    }

    #[tokio::test]
    async fn to_judge_every_update_again_shows_the_rules_each_change_once_and_definitions_among_the_others() {
        const UPDATES: usize = 500;
        let mut changes: Vec<Change> =
            (0..UPDATES).map(|number| update("", "ConfigMap", "configmaps", format!("c{number}"))).collect();
        let definition =
            update("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", "d".to_owned());
        changes.push(definition.clone());
        let folder = tempfile::tempdir().expect("folder");
        let cluster = Arc::new(DirectoryCluster::open(folder.path()).expect("a folder"));
        let rule: &'static Counting = Box::leak(Box::default());
        let selected = Selected { rule, settings: Settings::default(), origin: Origin::Default };
        let look = SecondLook {
            kinds: cluster.kinds().await.expect("kinds"),
            cluster,
            selection: Selection { rules: vec![selected], ..Selection::default() },
            facts: Facts { changes: ChangeSet { changes, ..ChangeSet::default() }, ..Facts::default() },
            waivers: Vec::new(),
            today: "2026-01-01".to_owned(),
            dependents: DependentsSearch::default(),
        };
        for change in &look.facts.changes.changes[..UPDATES] {
            look.judge(change.clone()).await.expect("allowed");
        }
        assert_eq!(rule.0.swap(0, Ordering::SeqCst), UPDATES);
        look.judge(definition).await.expect("allowed");
        assert_eq!(rule.0.load(Ordering::SeqCst), UPDATES + 1);
    }
}
