//! Generates experiments for the changes between two releases: each change of the published mapping yields a test of
//! this change, or a manual review with the reason. Every generated experiment is valid.

mod advice;
mod aim;
mod components;
mod context;
mod definitions;
mod draft;
mod instances;
mod kinds;
mod names;
mod resources;
mod seed;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::suite::{ManualReview, Origin, Side, Suite, SuiteExperiment};
use context::{Index, Place};
use draft::Draft;

pub use instances::AtHand;
use pushback_releases::difference::{Change, ChangeType, ComponentChange, MatchType, ReleaseDiff, Severity};
use pushback_releases::model::Release;

/// Options of the generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Names of components, old or new, to restrict the suite to; empty for all.
    pub components: BTreeSet<String>,
    /// What the cluster holds of the objects to inject into, if it was asked.
    pub at_hand: Option<AtHand>,
    /// If no change has an experiment of its own: tests a restart of each changed component after the upgrade.
    pub restarts: bool,
}

/// Generates the suite for the upgrade from `old` to `new`, with the changes in `diff`.
#[must_use]
pub fn generate(old: &Release, new: &Release, diff: &ReleaseDiff, options: &Options) -> Suite {
    let mut generation = Generation {
        old: Index::of(old),
        new: Index::of(new),
        at_hand: options.at_hand.as_ref(),
        drafts: Vec::new(),
        manual: BTreeSet::new(),
        covered: BTreeSet::new(),
        seeded: BTreeMap::new(),
        searches: 0,
    };
    for component in &diff.component_changes {
        let is_wanted = |name: &String| options.components.is_empty() || options.components.contains(name);
        if is_wanted(&component.component_name) || component.renamed_from.as_ref().is_some_and(is_wanted) {
            generation.component(component);
        }
    }
    generation.definitions(&diff.crd_changes, options);
    if options.restarts && generation.drafts.is_empty() {
        generation.restarts(diff, options);
    }
    generation.finish()
}

/// A generation in progress.
struct Generation<'a> {
    old: Index<'a>,
    new: Index<'a>,
    at_hand: Option<&'a AtHand>,
    drafts: Vec<Draft>,
    manual: BTreeSet<ManualReview>,
    /// Identifiers of the changes with an experiment or a review.
    covered: BTreeSet<String>,
    /// Number of experiments that change an object: an upgrade meets it with one change only.
    seeded: BTreeMap<[String; 3], usize>,
    /// Number of searches for values.
    searches: usize,
}

/// A change, with its component on both sides.
struct Subject<'c, 'a> {
    change: &'c Change,
    component: &'c ComponentChange,
    old: Option<Place<'a>>,
    new: Option<Place<'a>>,
}

impl Subject<'_, '_> {
    fn origin(&self) -> Origin {
        Origin {
            operator: self.component.operator.clone(),
            component: self.component.component_name.clone(),
            change_type: self.change.change_type.name(),
            change_id: self.change.id.clone(),
            ..Origin::default()
        }
    }
}

impl<'a> Generation<'a> {
    fn component(&mut self, component: &ComponentChange) {
        let before = component.renamed_from.as_ref().unwrap_or(&component.component_name);
        let is_on = |side: MatchType| component.match_type != side;
        let subject = |change| Subject {
            change,
            component,
            old: self.old.component(&component.operator, before).filter(|_| is_on(MatchType::Added)),
            new: self
                .new
                .component(&component.operator, &component.component_name)
                .filter(|_| is_on(MatchType::Removed)),
        };
        let subjects: Vec<Subject<'_, 'a>> = component.changes.iter().map(subject).collect();
        for subject in &subjects {
            self.change(subject);
            let change = subject.change;
            // A change of a definition is listed there as well.
            let is_told = change.change_type == ChangeType::CrdSchemaChange || self.covered.contains(&change.id);
            if change.severity >= Severity::Warning && !is_told {
                let what = match &change.object {
                    Some(object) => object.to_string(),
                    None => change.path.clone(),
                };
                let reason = format!("{}: {}", change.message, advice::for_component(change.change_type));
                self.review(subject.origin(), what, reason);
            }
        }
    }

    /// Handles one change of a type that an experiment can test, or that leaves something behind.
    fn change(&mut self, subject: &Subject<'_, 'a>) {
        match subject.change.change_type {
            ChangeType::ComponentAdded => self.component_added(subject),
            ChangeType::ComponentRemoved => self.component_removed(subject),
            ChangeType::ComponentRenamed => self.component_renamed(subject),
            ChangeType::NamespaceChanged => self.namespace_changed(subject),
            ChangeType::ResourceAdded => self.resource_added(subject),
            ChangeType::ResourceRemoved | ChangeType::ResourceRenamed | ChangeType::ResourceMoved => {
                self.resource_left(subject);
            }
            ChangeType::WebhookAdded => self.webhook_added(subject),
            ChangeType::WebhookRemoved => self.webhook_removed(subject),
            ChangeType::FinalizerAdded => self.finalizer_added(subject),
            ChangeType::DependencyAdded => self.dependency_added(subject),
            _ => {}
        }
    }

    fn review(&mut self, origin: Origin, subject: impl Into<String>, reason: impl Into<String>) {
        self.cover(&origin);
        self.manual.insert(ManualReview { origin, subject: subject.into(), reason: reason.into() });
    }

    fn cover(&mut self, origin: &Origin) {
        self.covered.extend(origin.also.iter().chain([&origin.change_id]).cloned());
    }

    /// Keeps a valid experiment; otherwise requests a review with the reason.
    fn keep(&mut self, mut draft: Draft) {
        match draft.settle() {
            None => {
                self.cover(&draft.origin);
                self.drafts.push(draft);
            }
            Some(reason) => {
                let subject = draft.subject.clone();
                let kind = draft.experiment.injection.kind.as_str();
                self.review(draft.origin, subject, format!("no {kind} can test it: {reason}"));
            }
        }
    }

    /// Sorts and names the experiments, and completes the suite.
    fn finish(self) -> Suite {
        let side = |release: &Release| Side { version: release.version.clone(), platform: release.platform.clone() };
        let (source, target) = (side(self.old.release()), side(self.new.release()));
        let mut drafts = self.drafts;
        drafts.sort_by_cached_key(Draft::order);
        drafts.dedup();
        let wishes = |wish: &dyn Fn(&Draft) -> Vec<String>| -> Vec<(Vec<String>, String)> {
            drafts.iter().map(|draft| (wish(draft), draft.identity())).collect()
        };
        let names = names::unique(&wishes(&Draft::wished_names), names::LONGEST);
        let files = names::unique(&wishes(&Draft::wished_files), names::LONGEST_FILE);
        let named = drafts.into_iter().zip(names).zip(files);
        let experiments: Vec<SuiteExperiment> =
            named.map(|((draft, name), file)| draft.finish(name, &file, &source, &target)).collect();
        let name = names::suite(&draft::upgrade(&source, &target));
        Suite { name, source, target, experiments, manual: self.manual.into_iter().collect(), exports: Vec::new() }
    }
}
