//! `pushback logs`: what the Pods of an app write.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use clap::Args;
use serde_json::json;

use super::arguments::{AppArgs, GlobalArgs};
use super::screen::ProgressNotes;
use crate::report::escape::terminal_safe;
use crate::run::error::CommandError;
use crate::run::logs::{LogEvent, LogSource, Logs};

/// Show the logs of an app's Pods.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback logs -a shop
  pushback logs -a shop --follow
  pushback logs -a shop --pod-name web-5d8c7 --container-name main --lines=-1

Exit codes: 0 shown, 1 no such app or wrong input, 13 no cluster.")]
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
pub async fn run(global: &GlobalArgs, arguments: LogsArgs) -> anyhow::Result<String> {
    let LogsArgs { app, follow, lines, pod_name, container_name, container_tag } = arguments;
    let logs = Logs {
        cluster: global.cluster()?,
        app: app.resolve(),
        follow,
        lines: u64::try_from(lines).ok(),
        pods: pod_name.into_iter().collect(),
        containers: container_name.into_iter().collect(),
    };
    let is_json = global.wants_json();
    let mut broken: Option<io::Error> = None;
    let mut tell = |event: LogEvent| {
        let text = if is_json { json_line(&event) } else { line(&event, container_tag) };
        let Some(text) = text else { return ControlFlow::Continue(()) };
        let mut output = io::stdout().lock();
        match writeln!(output, "{text}").and_then(|()| output.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                broken = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let any = logs.run(&ProgressNotes(global), &mut tell).await?;
    match broken {
        // Whoever read it has seen enough.
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::usage(format!("standard output could not be written: {error}")).into())
        }
        _ if any || is_json => Ok(String::new()),
        _ => Ok("The app has no Pods.\n".to_owned()),
    }
}

fn line(event: &LogEvent, tagged: bool) -> Option<String> {
    let tag = |source: &LogSource| format!("{} > {}", source.pod, source.container);
    Some(match event {
        LogEvent::Begun(source) => format!("# starting tailing '{}' logs", tag(source)),
        LogEvent::Line(source, line) if tagged => format!("{} | {}", tag(source), terminal_safe(line)),
        LogEvent::Line(_, line) => terminal_safe(line).into_owned(),
        LogEvent::Missing(source, reason) => format!("# no logs of '{}': {}", tag(source), terminal_safe(reason)),
        LogEvent::Ended(source) => format!("# ending tailing '{}' logs", tag(source)),
    })
}

/// One JSON object a line of a log.
fn json_line(event: &LogEvent) -> Option<String> {
    let (source, field, text) = match event {
        LogEvent::Line(source, line) => (source, "line", line),
        LogEvent::Missing(source, reason) => (source, "missing", reason),
        LogEvent::Begun(_) | LogEvent::Ended(_) => return None,
    };
    let LogSource { pod, namespace, container, .. } = source;
    let object = json!({"schemaVersion": 1, "namespace": namespace, "pod": pod, "container": container, field: text});
    Some(object.to_string())
}
