//! `pushback judge`: answers requests on standard input, one line each.

use std::io::{self, BufReader, BufWriter, ErrorKind};

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_judge::{StreamError, judge_lines};

use super::arguments::GlobalArgs;
use super::screen;
use crate::run::error::CommandError;

/// Judge changes of CRDs for other programs: a JSON request per line in, a JSON response per line out.
#[derive(Debug, Args)]
#[command(after_help = r#"
Examples:
  pushback judge             answers requests until standard input ends

A request and its response, with … for what is left out:
  {"apiVersion":"pushback.dev/v1alpha1","kind":"JudgeRequest","id":1,"old":{…},"new":{…}}
  {"apiVersion":"pushback.dev/v1alpha1","kind":"JudgeResponse","id":1,"verdict":"breaking",…}

A request has old and new: a CRD, or an object that a controller makes a CRD from, or null. It may
have an id, which the response repeats, kubernetesVersion, and objects: stored custom resources, to
count those that are affected. The response has a verdict, safe, breaking or unknown, and the
findings in changes. Verdicts and fingerprints are those of check on files.

A line that cannot be judged has a response with an error, and the next one is judged. A line has at
most 16 MiB. Each response is flushed. docs/formats.md has every field.

Needs no cluster.

Exit codes: 0 every line was judged, whatever the verdicts, 1 at least one response is an error."#)]
pub struct JudgeArgs {}

/// Runs the command.
pub fn run(global: &GlobalArgs) -> ExitCode {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    match judge_lines(&mut input, &mut output) {
        Ok(0) => ExitCode::Success,
        Ok(_) => ExitCode::Usage,
        // The reader has ended.
        Err(StreamError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::Success,
        Err(StreamError::Output(error)) => screen::fail(global, &CommandError::standard_output(&error)),
        Err(error @ StreamError::Input(_)) => screen::fail(global, &CommandError::usage(error.to_string())),
    }
}
