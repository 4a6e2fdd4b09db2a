//! Several experiments into one object: what changes different fields meets an upgrade together, by one change with one
//! journal, and is taken back together. So no revert has to get past a value that another experiment has set.

use std::collections::BTreeMap;
use std::time::Duration;

use pushback_cluster::ClusterError;
use pushback_preflight::experiment::Experiment;

use super::{ActiveExperiment, Runner, ended, patience};
use crate::change::{Change, Step};
use crate::difference::FieldChange;
use crate::inject::{self, Planned};
use crate::outcome::{Outcome, Verdict};

impl<'e> ActiveExperiment<'e> {
    /// It, and what is injected together with it.
    pub(super) fn members(&self) -> impl Iterator<Item = &ActiveExperiment<'e>> {
        std::iter::once(self).chain(&self.companions)
    }

    /// The outcomes of all if nothing is injected.
    pub(super) fn all_ended(self, reason: &str) -> Vec<Outcome> {
        let Self { companions, outcome, .. } = self;
        let outcomes = std::iter::once(outcome).chain(companions.into_iter().map(|companion| companion.outcome));
        outcomes.map(|outcome| *ended(outcome, Verdict::Inconclusive, reason)).collect()
    }
}

impl Runner<'_> {
    /// Makes injections one after the other, and leaves them in place. What changes fields of one object is made
    /// together. The outcomes are those of experiments that were not made.
    pub async fn begin_all<'e>(
        &self,
        experiments: &[(usize, &'e Experiment)],
        outcomes: &mut Vec<Outcome>,
    ) -> Vec<ActiveExperiment<'e>> {
        let mut all = Vec::new();
        for members in self.by_object(experiments).await {
            let Some((lead, number)) = self.prepare_all(&members, patience, outcomes).await else { continue };
            match self.inject(lead, &self.id(number)).await {
                Ok(begun) => all.push(begun),
                Err(ended) => outcomes.extend(ended),
            }
        }
        all
    }

    /// Prepares experiments that are injected together: the first, with the others as its companions, and its number.
    pub(super) async fn prepare_all<'e>(
        &self,
        members: &[(usize, &'e Experiment)],
        patience: fn(&Experiment) -> Duration,
        outcomes: &mut Vec<Outcome>,
    ) -> Option<(ActiveExperiment<'e>, usize)> {
        let mut lead: Option<(ActiveExperiment<'e>, usize)> = None;
        for (number, experiment) in members {
            let prepared = match (self.prepare(experiment, *number, patience(experiment)).await, &mut lead) {
                (Err(outcome), _) => Err(outcome),
                (Ok(begun), Some((lead, _))) => self.join(lead, begun).await,
                (Ok(begun), None) => {
                    lead = Some((begun, *number));
                    Ok(())
                }
            };
            outcomes.extend(prepared.err().map(|outcome| *outcome));
        }
        lead
    }

    /// The experiments by the object whose fields they change, in the order of the first; any other alone.
    pub(super) async fn by_object<'e>(
        &self,
        experiments: &[(usize, &'e Experiment)],
    ) -> Vec<Vec<(usize, &'e Experiment)>> {
        let mut groups: Vec<Vec<(usize, &'e Experiment)>> = Vec::new();
        let mut of_object: BTreeMap<String, usize> = BTreeMap::new();
        for (number, experiment) in experiments {
            let known = match self.changed_object(experiment).await {
                Some(uid) => *of_object.entry(uid).or_insert(groups.len()),
                None => groups.len(),
            };
            match groups.get_mut(known) {
                Some(group) => group.push((*number, experiment)),
                None => groups.push(vec![(*number, experiment)]),
            }
        }
        groups
    }

    /// The uid of the one object whose fields an experiment changes.
    async fn changed_object(&self, experiment: &Experiment) -> Option<String> {
        inject::admit(experiment, self.site).ok()?;
        let kinds = self.cluster.kinds().await.ok()?;
        let planned = inject::plan(&*self.cluster, &kinds, experiment, self.site, "").await.ok()?;
        fields(&planned).map(|(step, _)| step.target.uid.clone())
    }

    /// Adds an experiment to one that changes other fields of the same object.
    ///
    /// # Errors
    /// Its outcome if both cannot meet one upgrade.
    async fn join<'e>(&self, lead: &mut ActiveExperiment<'e>, begun: ActiveExperiment<'e>) -> Result<(), Box<Outcome>> {
        if let Some((other, place)) = in_the_way(lead, &begun) {
            let reason = format!(
                "not exercised: {other} changes {place} for the same upgrade; run this one with another upgrade"
            );
            return Err(ended(begun.outcome, Verdict::Inconclusive, reason));
        }
        match self.combined(lead, &begun).await {
            Ok(step) => {
                lead.together = Some(step);
                lead.companions.push(begun);
                Ok(())
            }
            Err(error) => {
                let other = &lead.experiment.name;
                let reason = format!("the server would refuse the injection together with that of {other}: {error}");
                Err(ended(begun.outcome, Verdict::Inconclusive, reason))
            }
        }
    }

    /// The change of all, as the server answers to it.
    async fn combined(&self, lead: &ActiveExperiment<'_>, begun: &ActiveExperiment<'_>) -> Result<Step, ClusterError> {
        let kinds = self.cluster.kinds().await?;
        let all = lead.members().chain([begun]).filter_map(|member| fields(&member.planned));
        let mut wanted = Vec::new();
        let mut target = None;
        for (step, fields) in all {
            target = Some(step.target.address(&kinds)?);
            wanted.extend(fields.iter().map(|field| (field.place.clone(), field.after.clone())));
        }
        let moved = || inject::moved(&begun.planned.steps[0].target);
        let live = self.cluster.get(&target.ok_or_else(moved)?).await?.ok_or_else(moved)?;
        let step = Step::fields(&live, wanted).ok_or_else(moved)?;
        let mut planned = Planned { steps: vec![step], ..Planned::default() };
        self.rehearse(&kinds, &mut planned).await?;
        planned.steps.pop().ok_or_else(moved)
    }
}

/// The change of fields of one object, if an experiment makes nothing else.
fn fields(planned: &Planned) -> Option<(&Step, &[FieldChange])> {
    let [step] = &planned.steps[..] else { return None };
    match &step.change {
        Change::Fields(fields) => Some((step, fields)),
        _ => None,
    }
}

/// A field that both change, and who changes it already.
fn in_the_way(lead: &ActiveExperiment<'_>, begun: &ActiveExperiment<'_>) -> Option<(String, String)> {
    let wanted: Vec<FieldChange> = begun.planned.steps.iter().flat_map(Step::values).collect();
    for member in lead.members() {
        for field in member.planned.steps.iter().flat_map(Step::values) {
            let overlaps = |other: &FieldChange| other.place.holds(&field.place) || field.place.holds(&other.place);
            if wanted.iter().any(overlaps) {
                return Some((member.experiment.name.clone(), field.place.to_string()));
            }
        }
    }
    None
}
