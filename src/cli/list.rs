//! `pushback list`: the apps of a namespace.

use clap::Args;
use pushback_terminal::list_text;

use super::arguments::GlobalArgs;
use super::filters::FilterArgs;
use super::screen::{ProgressNotes, data_columns};
use crate::run::error::CommandError;
use crate::run::list::List;
use crate::run::options::NamespaceOptions;

/// List apps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback list
  pushback list -A -o json
  pushback list -A --filter-age 24h+ --filter-labels team=web

Exit codes: 0 listed, 1 wrong input, 13 unreachable.")]
pub struct ListArgs {
    #[command(flatten)]
    namespace: NamespaceOptions,
    /// Apps of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only apps of this age: 5m- younger than 5 minutes, 24h+ older than a day
    #[arg(long, value_name = "AGE", allow_hyphen_values = true)]
    filter_age: Option<String>,
    /// Only apps whose record one of these label selectors selects
    #[arg(long, value_name = "SELECTORS")]
    filter_labels: Vec<String>,
}

impl ListArgs {
    /// Converts the arguments to options.
    ///
    /// # Errors
    /// A filter is wrong, or arguments about the cluster contradict each other.
    pub(crate) fn resolve(self, global: &GlobalArgs) -> Result<List, CommandError> {
        let Self { namespace, all_namespaces, filter_age, filter_labels } = self;
        let filter = FilterArgs { filter_age, filter_labels, ..FilterArgs::default() }.resolve()?;
        Ok(List { cluster: global.cluster()?, namespace, all_namespaces, filter })
    }
}

/// Runs the command.
///
/// # Errors
/// The cluster's error.
pub async fn run(global: &GlobalArgs, arguments: ListArgs) -> Result<String, CommandError> {
    let list = arguments.resolve(global)?;
    let apps = list.run(&ProgressNotes(global)).await?.apps;
    Ok(if global.wants_json() { list_text::json(&apps) } else { list_text::table(&apps, data_columns()) })
}
