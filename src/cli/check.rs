//! `pushback check`: plan and preflight, nothing written.

use clap::Args;

use super::arguments::{GlobalArgs, InputArgs, OptionalAppArgs, OutputFormat, PlanArgs, PreflightArgs};
use super::run::Run;
use crate::event::{Counts, RunOutcome};
use crate::exit::ExitCode;
use crate::report::DiffStyle;
use crate::report::report_file::Document;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::{input, pipeline, write};

/// Plan and run the preflight rules.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback check -a shop -f shop/                            against the cluster of the kubeconfig
  pushback check -f config/crd --cluster git:origin/main:config/crd --preflight=CRDUpgradeSafety
                                                             in a pull request: no cluster, no app
  pushback check -f new.yaml --cluster file:old.yaml         two files
  pushback check -f git:v2:deploy --cluster git:v1:deploy    two releases
  pushback check -a shop -f shop/ --report json=report.json

With --output json, standard output holds the report, as with --report json=-.

Exit codes: 0 nothing stands against it, 1 wrong input, 10 apply would be refused, 13 no cluster.")]
pub struct CheckArgs {
    #[command(flatten)]
    app: OptionalAppArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    preflight: PreflightArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: CheckArgs) -> ExitCode {
    let as_report = global.output_format() == Some(OutputFormat::Json);
    let started = match as_report {
        true => Run::start_for_report(global),
        false => Run::start(global, DiffStyle::Fields, &arguments.preflight),
    };
    super::run::complete(global, started, async |run| check(global, run, arguments).await).await
}

async fn check(global: &GlobalArgs, run: &mut Run, arguments: CheckArgs) -> Result<End, CommandError> {
    let CheckArgs { app, input, plan, preflight } = arguments;
    let (app, named) = app.resolve(global)?;
    let given = input::read(&input)?;
    let mut setup = pipeline::set_up(run, global, "check", &app, given.config, &preflight).await?;
    setup.named = named;
    setup.sources = given.input.sources;
    run.warn_input(&given.input.warnings);
    let stop = run.stop.clone();
    let work = async {
        let observed = pipeline::look(run, &setup, None).await?;
        let (plan, warnings) =
            pipeline::plan_apply(run, &setup, observed, given.input.manifests, &input, &plan, true).await?;
        run.warn_input(&warnings);
        pipeline::show_plan(run, &setup, &plan, false);
        let report = pipeline::judge(run, &setup, &plan, &preflight).await?.report;
        Ok((plan, report))
    };
    let (plan, report) = pipeline::until_stopped(stop, work).await?;
    if global.output_format() == Some(OutputFormat::Json) {
        run.set_document(Document::of(pipeline::check_report(&setup, &plan, &report).to_json()));
    }
    let end = match report.outcome.refuses() {
        true => write::refused(&report),
        false if report.rules.is_empty() => End::new(ExitCode::Success, RunOutcome::Unchecked, Counts::default()),
        false => End::new(ExitCode::Success, RunOutcome::Passed, Counts::default()),
    };
    // The process ends next, and gives all memory back at once: large definitions piece by piece take their time.
    std::mem::forget((setup, plan, report));
    Ok(end)
}
