//! `pushback upgrade recover`: takes back what killed runs of experiments have left in a cluster.

use std::collections::BTreeSet;

use clap::Args;

use super::execute::{LockArgs, locked, require_server};
use crate::cli::arguments::GlobalArgs;
use crate::cli::run::{Run, complete};
use crate::cluster::{Cluster, ErrorKind};
use crate::event::{Counts, DiagnosticCode, Event, RunOutcome};
use crate::exit::ExitCode;
use crate::report::escape::terminal_safe;
use crate::report::output::Output;
use crate::run::connect::connect;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::pipeline::until_stopped;
use crate::surroundings::Surroundings;
use crate::upgrade::recover::{self, Left, Recovered};

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

Exit codes: 0 all is as before, 12 a run is at work there, 13 no cluster, 20 something could not be
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

/// What to do about what somebody has changed.
pub const PUT_RIGHT: &str = "put it back by hand and run `pushback upgrade recover`, or accept what is there with \
                             --accept-changed";

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RecoverArgs) -> ExitCode {
    complete(global, Run::start_for_report(global), async |run| recover(global, run, &arguments).await).await
}

async fn recover(global: &GlobalArgs, run: &mut Run, arguments: &RecoverArgs) -> Result<End, CommandError> {
    let notices = run.notices();
    let stop = run.stop.clone();
    let connecting = async { connect(global, Some(notices), &|text| run.announce(text)).await };
    let cluster = until_stopped(stop.clone(), connecting).await?.cluster;
    run.uses(&cluster);
    require_server(&*cluster)?;
    let left = until_stopped(stop, look(&*cluster, &run.surroundings, &arguments.allow_namespace)).await?;
    if left.is_empty() {
        print("Nothing is left to take back.\n")?;
        return Ok(End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default()));
    }
    for message in left.describe() {
        run.events.send(Event::Diagnostic { code: DiagnosticCode::Left, message });
    }
    run.confirm(global, "Take this back?").await?;
    let namespaces: BTreeSet<String> = left.namespaces();
    let terms = arguments.lock.terms();
    let accept = arguments.accept_changed;
    let recovering = recover::recover(&cluster, &run.surroundings, &run.id, &namespaces, terms, accept);
    let recovered = recovering.await.map_err(locked)?;
    run.settle();
    let text = text(&recovered);
    // A lock is all that was left.
    print(if text.is_empty() { "The lock is free.\n" } else { &text })?;
    if recovered.failed.is_empty() && (accept || recovered.left.is_empty()) {
        return Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()));
    }
    let mut end = End::new(ExitCode::Partial, RunOutcome::Failed, Counts::default());
    if !recovered.failed.is_empty() {
        "something could not be taken back; its journal is kept".clone_into(&mut end.error);
        end.hints.push("correct the cause and run the same command again".to_owned());
    } else {
        "something is not exactly as it was before; its journal is kept".clone_into(&mut end.error);
    }
    if !recovered.left.is_empty() {
        end.hints.push(PUT_RIGHT.to_owned());
    }
    Ok(end)
}

async fn look(cluster: &dyn Cluster, surroundings: &Surroundings, namespaces: &[String]) -> Result<Left, CommandError> {
    let kinds = cluster.kinds().await?;
    let namespaces = Some(namespaces).filter(|namespaces| !namespaces.is_empty());
    recover::look(cluster, &kinds, surroundings, namespaces).await.map_err(|error| {
        let forbidden = error.kind == ErrorKind::Forbidden && namespaces.is_none();
        let mut converted = CommandError::from(error);
        if forbidden {
            let hint = "name the namespaces that you may read with --allow-namespace";
            converted.errors[0].hints.push(hint.to_owned());
        }
        converted
    })
}

fn print(text: &str) -> Result<(), CommandError> {
    let mut output = Output::standard();
    output.data(text);
    output.finish().map_err(|error| CommandError::usage(format!("standard output could not be written: {error}")))
}

fn text(recovered: &Recovered) -> String {
    let groups = [("", &recovered.done), ("left as it is: ", &recovered.left), ("failed: ", &recovered.failed)];
    let lines = groups.iter().flat_map(|(prefix, lines)| lines.iter().map(move |line| format!("{prefix}{line}")));
    lines.map(|line| format!("{}\n", terminal_safe(&line))).collect()
}
