//! `pushback storage rollback`: definitions of the release before, with the objects that are stored by now.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, RunOutcome};
use pushback_terminal::output::Output;
use pushback_terminal::{preview_text, storage_text};

use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, start_for_report};
use crate::run::options::NamespaceOptions;
use crate::run::outcome::End;
use crate::run::storage::replace::Replace;

/// Go back to older definitions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage rollback -f crds-v1.yaml --dry-run
  pushback storage rollback widgets.example.com -f crds-v1.yaml
  pushback storage rollback -f crds-v1.yaml -f conversion-plan.yaml --storage-backup ./before

Objects are carried over to the storage version of the older definition, also if that has been
removed since: by a definition with both versions, with a proof before the newer one goes. What the
older version has no field for is named, and nothing is written, unless a ConversionPlan says what
becomes of it. Names, uids, labels, finalizers and status stay.

Only definitions and their objects are written: stop the operator first. For a whole release, apply
the older manifests with `--storage=bridge`, which stops and starts the operator as well.

Exit codes: 0 done, 1 wrong input or not confirmed, 10 something would be lost or refused; nothing
written, 13 unreachable or no rights, 20 begun and not done; run it again.")]
pub struct RollbackArgs {
    /// Definitions, PLURAL.GROUP [default: those of the files that are on the cluster]
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<String>,
    /// File or folder with the older definitions, and with ConversionPlans; - for standard input
    #[arg(short, long, value_name = "PATH", required = true)]
    file: Vec<PathBuf>,
    /// Show what would be done; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write objects as they were into this folder before they are converted
    #[arg(long, value_name = "FOLDER")]
    storage_backup: Option<PathBuf>,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RollbackArgs) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let RollbackArgs { definitions: names, file: files, dry_run, storage_backup: backup, namespace } = arguments;
        let replace = Replace { cluster: global.cluster()?, namespace, names, files, backup };
        let is_json = global.wants_json();
        let report = replace
            .carry_out(run, dry_run, |report| {
                if !is_json {
                    Output::standard().progress(&preview_text::text(report, false));
                }
                Ok(())
            })
            .await?;
        run.settle();
        print(&if is_json { storage_text::json(&report) } else { preview_text::done(&report) })?;
        Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()))
    })
    .await
}
