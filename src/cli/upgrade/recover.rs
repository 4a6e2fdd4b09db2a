//! `pushback upgrade recover`: reverts what killed runs of experiments have left in a cluster.

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::escape::terminal_safe;
use pushback_upgrade::recover::RecoveryReport;

use super::execute::LockArgs;
use crate::cli::arguments::GlobalArgs;
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, start_for_report};
use crate::run::upgrade::recover::Recover;

/// Take back what killed runs of experiments have left.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade recover
  pushback upgrade recover --allow-namespace backup-system --yes

By the journals that runs write before they inject. A field gets its old value if it still has
the one that was injected. What somebody has changed since is left and named, and its journal is
kept: it says what was there before. Put that back by hand and run the same command again, or
accept what is there with --accept-changed.

Exit codes: 0 all is as before, 12 a run is at work there, 13 unreachable, 20 something could not be
taken back, or is not exactly as it was.")]
pub struct RecoverArgs {
    /// Look into this namespace alone; can be given more than once [default: all that may be listed]
    #[arg(long, value_name = "NAMESPACE")]
    pub allow_namespace: Vec<String>,
    /// Accept what somebody has changed since as it is: its journal, which says what was there before, is deleted
    #[arg(long)]
    pub accept_changed: bool,
    #[command(flatten)]
    pub lock: LockArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RecoverArgs) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let RecoverArgs { allow_namespace: namespaces, accept_changed, lock } = arguments;
        let recover = Recover { cluster: global.cluster()?, namespaces, accept_changed, terms: lock.terms() };
        let recovered = recover.run(run).await?;
        run.settle();
        print(&recovered.as_ref().map_or_else(|| "Nothing is left to take back.\n".to_owned(), text))?;
        Ok(recover.end(recovered.as_ref()))
    })
    .await
}

fn text(recovered: &RecoveryReport) -> String {
    let groups = [("", &recovered.done), ("left as it is: ", &recovered.left), ("failed: ", &recovered.failed)];
    let lines = groups.iter().flat_map(|(prefix, lines)| lines.iter().map(move |line| format!("{prefix}{line}")));
    let text: String = lines.map(|line| format!("{}\n", terminal_safe(&line))).collect();
    // Only a lock was left.
    if text.is_empty() { "The lock is free.\n".to_owned() } else { text }
}
