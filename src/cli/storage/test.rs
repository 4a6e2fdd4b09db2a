//! `pushback storage test`: whether objects survive their conversions.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_storage::conversion::TestReport;
use pushback_terminal::{conversion_text, storage_text};

use super::convert::{PlanArgs, ProgramArgs};
use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, fail, print, start_for_report};
use crate::run::outcome::End;
use crate::run::storage::conversion_test::ConversionTest;

/// Test a conversion plan on generated, recorded and live objects.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage test --crd crd.yaml --plan plan.yaml
  pushback storage test --crd crd.yaml --plan plan.yaml --samples 5000 -o json
  pushback storage test --crd crd.yaml --plan plan.yaml --golden goldens/ --update
  pushback storage test --crd crd.yaml --plan plan.yaml --golden goldens/ --live

Each generated object goes through every ordered pair of versions: it must be converted without an
error, and come back as it was. What does not is shrunk and shown. The same files and the same
number give the same objects. --golden compares recorded conversions: goldens/NAME.FROM.yaml is an
object, goldens/NAME.FROM.TO.yaml what it is converted to. --live reads the objects of the cluster,
and writes nothing.

Exit codes: 0 nothing was lost, or written, 1 wrong input or a wrong plan, 10 something does not
come back as it was or differs from what is recorded, 13 unreachable.")]
pub struct TestArgs {
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Number of generated objects of each version
    #[arg(long, value_name = "N", default_value = "400", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    /// Folder with recorded conversions
    #[arg(long, value_name = "FOLDER")]
    golden: Option<PathBuf>,
    /// Write the recorded conversions
    #[arg(long, requires = "golden")]
    update: bool,
    /// Try the objects of the cluster, too
    #[arg(long)]
    live: bool,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: &TestArgs) -> ExitCode {
    let test = ConversionTest {
        files: arguments.plan.files(),
        programs: arguments.programs.named(),
        samples: usize::try_from(arguments.samples).unwrap_or(usize::MAX),
        golden: arguments.golden.clone(),
        update: arguments.update,
    };
    let text = |report: &TestReport| {
        if global.wants_json() { storage_text::json(report) } else { conversion_text::tested(report) }
    };
    let code = |report: &TestReport| if report.has_failed() { ExitCode::Refused } else { ExitCode::Success };
    if arguments.live {
        return complete(global, start_for_report(global, HeldDocument::default()), async |run| {
            let report = test.run_live(run, &global.cluster()?).await?;
            run.settle();
            print(&text(&report))?;
            let outcome = if report.has_failed() { RunOutcome::Refused } else { RunOutcome::Succeeded };
            Ok(End::new(code(&report), outcome, Counts::default()))
        })
        .await;
    }
    match test.run().and_then(|report| print(&text(&report)).map(|()| code(&report))) {
        Ok(code) => code,
        Err(error) => fail(global, &error),
    }
}
