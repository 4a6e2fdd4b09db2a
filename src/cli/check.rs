//! `pushback check`: plan and preflight, nothing written.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::DiffStyle;

use super::arguments::{GlobalArgs, InputArgs, NewBaseArgs, OptionalAppArgs, PlanArgs, PreflightArgs};
use super::plan::given::Given;
use super::reports::HeldDocument;
use super::reports::StandardOutput;
use super::screen;
use crate::run::base::Base;
use crate::run::compare::Compare;
use crate::run::options::{Command, RunOptions};
use crate::run::replay::Replay;

/// Plan and run the preflight rules.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback check -a shop -f shop/                            against the cluster of the kubeconfig
  pushback check -f config/crd --cluster git:origin/main:config/crd --preflight=CRDUpgradeSafety
                                                             in a pull request: no cluster, no app
  pushback check -f new.yaml --cluster file:old.yaml         two files
  pushback check -f git:v2:deploy --cluster git:v1:deploy    two releases
  pushback check -a shop -f shop/ --report json=report.json --facts-out facts.json
  pushback check --facts facts.json                          the same again, no cluster

With --output json, standard output holds the report, as with --report json=-.

Exit codes: 0 nothing stands against it, 1 wrong input, 10 apply would be refused, 11 the facts were
edited, or another version has written them, 13 unreachable.")]
pub struct CheckArgs {
    #[command(flatten)]
    app: OptionalAppArgs,
    #[command(flatten, next_help_heading = "Input")]
    base: NewBaseArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    preflight: PreflightArgs,
    /// Judge what --facts-out has written once more, as it was judged then; reads no cluster and no input. --config brings
    /// the rules of the policy's own
    #[arg(long, value_name = "FILE", help_heading = "Preflight")]
    facts: Option<PathBuf>,
    /// The options as they were given.
    #[arg(skip)]
    pub(super) given: Given,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: CheckArgs) -> ExitCode {
    let CheckArgs { app, input, base: NewBaseArgs { new_base }, plan, preflight, facts, given } = arguments;
    let document = HeldDocument::default();
    let held = HeldDocument::clone(&document);
    let (started, standard_output) = match global.wants_json() {
        true => (screen::start_for_report(global, held), StandardOutput::Report),
        false => {
            let is_document = preflight.reports_to_standard_output();
            (screen::start(global, DiffStyle::Fields, is_document, held), StandardOutput::Text)
        }
    };
    screen::complete(global, started, async |run| {
        if let Some(path) = facts {
            given.require_beside_facts()?;
            let preflight = preflight.resolve(standard_output, &document)?;
            return Replay { path, config: input.reading.config, preflight }.run(run);
        }
        let (input, plan) = input.resolve(plan)?;
        let options = RunOptions {
            command: Command::Check,
            app: app.resolve(global)?,
            cluster: global.cluster()?.strict(plan.options.strict),
            preflight: preflight.resolve(standard_output, &document)?,
            observer: global.behaviour.observer.clone(),
        };
        Compare { options, input, plan, base: Base::from_flag(new_base), as_text: false }.check(run).await
    })
    .await
}
