//! `pushback list`: the apps of a namespace.

use clap::Args;

use super::arguments::{GlobalArgs, NamespaceArgs};
use super::screen::ProgressNotes;
use crate::report::list_text;
use crate::run::list::List;

/// List apps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback list
  pushback list -A -o json

Exit codes: 0 listed, 1 wrong input, 13 no cluster.")]
pub struct ListArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Apps of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
}

/// Runs the command.
///
/// # Errors
/// The cluster's error.
pub async fn run(global: &GlobalArgs, arguments: ListArgs) -> anyhow::Result<String> {
    let ListArgs { namespace, all_namespaces } = arguments;
    let list = List { cluster: global.cluster()?, namespace: namespace.resolve(), all_namespaces };
    let apps = list.run(&ProgressNotes(global)).await?;
    Ok(if global.wants_json() { list_text::json(&apps) } else { list_text::table(&apps) })
}
