//! `pushback logs`: what the Pods of an app write.

use clap::Args;
use pushback_deploy::apply::pod_logs::Wanted;
use pushback_terminal::log_text::{LogFormat, LogWriter};
use pushback_terminal::output::Output;

use super::arguments::{AppArgs, GlobalArgs};
use super::screen::ProgressNotes;
use crate::run::error::CommandError;
use crate::run::logs::Logs;

/// Show the logs of an app's Pods.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback logs -a shop
  pushback logs -a shop --follow
  pushback logs -a shop --pod-name web-5d8c7 --container-name main --lines=-1

Exit codes: 0 shown, 1 no such app or wrong input, 13 unreachable.")]
pub struct LogsArgs {
    #[command(flatten)]
    app: AppArgs,
    /// Go on with what is written, and with new Pods, until interrupted
    #[arg(long, short = 'f')]
    follow: bool,
    /// Number of lines at the end of each log; -1: all
    #[arg(long, default_value_t = 10, allow_negative_numbers = true, value_name = "LINES")]
    lines: i64,
    /// Only these Pods
    #[arg(long, short = 'm', value_delimiter = ',', value_name = "NAMES")]
    pod_name: Vec<String>,
    /// Only these containers
    #[arg(long, short = 'c', value_delimiter = ',', value_name = "NAMES")]
    container_name: Vec<String>,
    /// Begin each line with its Pod and container
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set)]
    container_tag: bool,
}

/// Runs the command; lines are written as they come.
///
/// # Errors
/// The cluster's error; no such app; standard output cannot be written.
pub async fn run(global: &GlobalArgs, arguments: LogsArgs) -> Result<String, CommandError> {
    let LogsArgs { app, follow, lines, pod_name, container_name, container_tag } = arguments;
    let wanted = Wanted {
        lines: u64::try_from(lines).ok(),
        pods: pod_name.into_iter().collect(),
        containers: container_name.into_iter().collect(),
    };
    let logs = Logs { cluster: global.cluster()?, app: app.resolve(), follow, wanted };
    let format = match (global.wants_json(), container_tag) {
        (true, _) => LogFormat::Json,
        (false, true) => LogFormat::Tagged,
        (false, false) => LogFormat::Plain,
    };
    let mut writer = LogWriter::new(format, Output::standard());
    let any = logs.run(&ProgressNotes(global), &mut |event| writer.tell(&event)).await?;
    if !any {
        writer.tell_none();
    }
    writer.finish().map_err(|error| CommandError::standard_output(&error))?;
    Ok(String::new())
}
