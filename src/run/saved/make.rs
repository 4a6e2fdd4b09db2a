//! `plan --out`: the way of an apply up to the verdict, and its result in a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use pushback_deploy::plan::saved::digests::Digests;
use pushback_deploy::plan::saved::{SCHEMA_VERSION, SavedPlan, SavedTool};
use pushback_events::{DiagnosticCode, Event};
use pushback_system::atomic_file;

use super::{identity, parts};
use crate::run::compare::{Compare, Compared};
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::running::{Run, free_aside};

/// Options of a plan.
#[derive(Clone, Debug)]
pub struct SavePlan {
    /// What is planned.
    pub compare: Compare,
    /// The file to write.
    pub path: PathBuf,
    /// How long the plan is valid.
    pub valid_for: Duration,
    /// The options to keep in it, by name.
    pub given: BTreeMap<String, Vec<String>>,
    /// Whether the exit code says that there are changes.
    pub exit_status: bool,
}

impl SavePlan {
    /// Plans, runs the rules, and writes the plan unless they refuse it.
    ///
    /// # Errors
    /// Invalid input, no cluster, or the file cannot be written.
    pub async fn run(self, run: &mut Run) -> Result<End, CommandError> {
        let Self { compare, path, valid_for, given, exit_status } = self;
        let unwritable = |error| CommandError::usage(format!("failed to write {}: {error}", path.display()));
        atomic_file::probe(&path).map_err(unwritable)?;
        let Compared { setup, plan, report, facts, read } = compare.compare(run, true).await?;
        setup.require_writable()?;
        if report.outcome.refuses() {
            return Ok(End::refused(&report));
        }
        let (cluster, key) = identity::of(run, &setup, None).await?;
        let digests = Digests::new(&setup.config, key.as_deref());
        if digests.leaves_out_secrets(&read.manifests) {
            let text = "the values of Secrets are not part of the plan: they can change until it is applied. \
                        PUSHBACK_PLAN_KEY, the same here and there, makes them part of it";
            run.warn("plan-secrets", text);
        }
        let created: Timestamp =
            run.environment.now().parse().map_err(|error| CommandError::usage(format!("no time: {error}")))?;
        let expires = created.saturating_add(valid_for);
        let expires = expires.map_err(|error| CommandError::usage(format!("--valid-for: {error}")))?;
        let facts = facts.map(|looked| parts::facts(&setup, &looked.facts));
        let saved = SavedPlan {
            schema_version: SCHEMA_VERSION,
            tool: SavedTool::this(),
            created: created.to_string(),
            expires: expires.to_string(),
            app: parts::app(&setup, &plan.label_value),
            cluster,
            nonce: run.nonce().to_owned(),
            options: given,
            secrets: digests.binding(),
            inputs: digests.files(&read.files, &read.manifests),
            policy: parts::policy(&setup, &digests, &read.policy),
            facts: facts.unwrap_or_default(),
            verdict: parts::verdict(&report).0,
            objects: plan.objects.iter().map(|planned| digests.line(planned)).collect(),
        };
        atomic_file::replace(&path, saved.render().as_bytes()).map_err(unwritable)?;
        let message = format!("plan written to {}, valid until {}", path.display(), saved.expires);
        run.events.send(Event::diagnostic(DiagnosticCode::PlanSaved, message));
        let apply = run.invocation().command(&["apply", "--plan", &path.to_string_lossy()]);
        let hints = vec![format!("`{apply}` carries it out as long as nothing has moved")];
        let end = End { hints, ..End::of_diff(plan.has_changes(), exit_status) };
        free_aside((plan, report));
        Ok(end)
    }
}
