//! Generates experiments that test what changed between two releases, and writes them as a suite.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pushback_objects::suggest;
use pushback_objects::text::written_experiments;
use pushback_preflight::experiment::generate::AtHand;
use pushback_preflight::experiment::suite::{Suite, SuiteExperiment, Tool};
use pushback_preflight::experiment::{Experiment, export, generate};
use pushback_releases::{Release, compare};
use pushback_upgrade::at_hand;
use pushback_upgrade::outcome::Outcome;
use pushback_upgrade::run::blank;
use pushback_upgrade::suite_folder::{self, SuiteError};

use super::compare::releases;
use super::sides::Sides;
use crate::run::answer::Notes;
use crate::run::connect::{ClusterOptions, connect};
use crate::run::error::CommandError;

/// Options for generating a suite.
#[derive(Clone, Debug)]
pub struct Simulate {
    /// The two releases.
    pub sides: Sides,
    /// Comparison options.
    pub options: compare::Options,
    /// Components whose changes are tested; none: all.
    pub components: Vec<String>,
    /// Other tools to export the suite for.
    pub tools: BTreeSet<Tool>,
    /// Where to look for objects to inject into, if anywhere.
    pub at_hand: Option<AtHandOptions>,
    /// Folder to write it to, if any.
    pub folder: Option<PathBuf>,
}

/// The cluster whose objects experiments are generated for.
#[derive(Clone, Debug)]
pub struct AtHandOptions {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Namespaces to look at; none: all.
    pub namespaces: Vec<String>,
}

impl AtHandOptions {
    async fn look(&self, releases: [&Release; 2], notes: &dyn Notes) -> Result<AtHand, CommandError> {
        let connection = connect(&self.cluster, None, &|text| notes.note(text)).await?;
        let at_hand = at_hand::look(&*connection.cluster, releases, &self.namespaces).await?;
        for (group, kind) in &at_hand.unread {
            notes.note(&format!("{kind}.{group} may not be listed: its experiments have to be filled in"));
        }
        Ok(at_hand)
    }
}

impl Simulate {
    /// Generates the suite and writes it.
    ///
    /// # Errors
    /// The releases cannot be read, or the suite cannot be written.
    pub async fn run(&self, notes: &dyn Notes) -> Result<Suite, CommandError> {
        let (old, new) = releases(&self.sides, notes).await?;
        let diff = compare::compare(&old, &new, self.options);
        let components = known_components(&self.components, &old, &new)?;
        let at_hand = match &self.at_hand {
            Some(options) => Some(options.look([&old, &new], notes).await?),
            None => None,
        };
        let mut suite =
            generate::generate(&old, &new, &diff, &generate::Options { components, at_hand, restarts: true });
        suite.exports = self.tools.iter().map(|tool| export::export(&suite, *tool)).collect();
        if let Some(folder) = &self.folder {
            suite_folder::write(folder, &suite).map_err(|error| match error {
                SuiteError::Occupied { .. } => {
                    CommandError::usage_with_hint(error.to_string(), "name another folder, or remove what is there")
                }
                SuiteError::Write { .. } => CommandError::usage(error.to_string()),
            })?;
            notes.note(&written_experiments(suite.experiments.len(), &folder.display().to_string()));
        }
        Ok(suite)
    }
}

/// Experiments of a suite that can run, and outcomes for those that cannot.
pub(super) fn ready(suite: Suite) -> (Vec<Experiment>, Vec<Outcome>) {
    let (ready, open): (Vec<_>, Vec<_>) = suite.experiments.into_iter().partition(SuiteExperiment::is_enabled);
    let left_out = open.iter().map(|entry| {
        let needs: Vec<&str> = entry.needs.iter().filter(|need| need.is_open()).map(|need| need.as_str()).collect();
        let reason = format!("it must be filled in first: needs {}", needs.join(", "));
        Outcome { reason, ..blank(&entry.experiment) }
    });
    (ready.into_iter().map(|entry| entry.experiment).collect(), left_out.collect())
}

/// Checks that the releases have these components.
fn known_components(wanted: &[String], old: &Release, new: &Release) -> Result<BTreeSet<String>, CommandError> {
    let components = old.operators.iter().chain(&new.operators).flat_map(|operator| &operator.components);
    let known: BTreeSet<&str> = components.map(|component| component.name.as_str()).collect();
    for name in wanted {
        if !known.contains(name.as_str()) {
            let hint = suggest::hint(suggest::nearest(name, known.iter().copied()));
            return Err(CommandError::usage(format!("neither release has a component {name:?}{hint}")));
        }
    }
    Ok(wanted.iter().cloned().collect())
}
