//! `pushback apply`.

use clap::Args;

use super::arguments::{AppArgs, DiffArgs, GlobalArgs, InputArgs, PlanArgs, PreflightArgs};
use super::diff::DiffCommandArgs;
use super::record::RecordArgs;
use super::reports::HeldDocument;
use super::screen;
use super::writing::{PodLogArgs, WriteArgs};
use crate::exit::ExitCode;
use crate::run::apply::{Apply, StopAfter};
use crate::run::options::{AppOptions, Command, RunOptions};

/// Apply manifests as an app.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback apply -a shop -f shop/                            to the cluster of the kubeconfig
  pushback apply -a shop -f shop/ --cluster dir:rendered     into a folder of YAML
  kustomize build . | pushback apply -a shop -f - --yes      from standard input

Exit codes: 0 done, 1 wrong input, 10 refused before anything was written, 12 another run holds the
app, 13 no cluster, 20 partly written, 21 an object has failed, 22 waiting timed out.")]
pub struct ApplyArgs {
    #[command(flatten)]
    app: AppArgs,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    diff: DiffArgs,
    /// Stop after the plan, as `pushback diff` does; with --preflight, after the rules
    #[arg(long, help_heading = "Diff")]
    diff_run: bool,
    #[command(flatten)]
    preflight: PreflightArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    logs: PodLogArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: ApplyArgs) -> ExitCode {
    let ApplyArgs { app, record, input, plan, diff, diff_run, preflight, write, logs } = arguments;
    if diff_run {
        return super::diff::run(global, DiffCommandArgs { app: app.into(), record, input, plan, diff, preflight })
            .await;
    }
    let document = HeldDocument::default();
    let is_document = preflight.reports_to_standard_output();
    let started = screen::start(global, diff.style(), is_document, HeldDocument::clone(&document));
    screen::complete(global, started, async |run| {
        write.timeout.into_iter().for_each(|limit| run.limit_to(limit));
        let strict = plan.strict;
        let (input, plan) = input.resolve(plan)?;
        let options = RunOptions {
            command: Command::Apply,
            cluster: global.cluster()?.strict(strict),
            app: AppOptions { record: record.resolve(), ..app.resolve() },
            preflight: global.preflight(preflight, &document)?,
            details: global.details(),
        };
        let (as_text, write) = (diff.diff_changes, logs.resolve(write.resolve()));
        Apply { options, input, plan, as_text, write, is_confirmed: false }.run(run, StopAfter::End).await
    })
    .await
}
