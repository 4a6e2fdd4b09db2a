//! `pushback help`: what `--help` says, for who types a command instead.

use clap::Args;
use pushback_events::exit::ExitCode;
use std::ffi::OsString;

use super::parser_output;

/// Print the help of a command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback help
  pushback help apply
  pushback help upgrade diff

Exit codes: 0 printed, 1 no such command.")]
pub struct HelpArgs {
    /// Command, with all its words [default: the whole command line]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &HelpArgs, command: &clap::Command) -> ExitCode {
    let words = std::iter::once("pushback").chain(arguments.command.iter().map(String::as_str)).chain(["--help"]);
    let line: Vec<OsString> = words.map(OsString::from).collect();
    match command.clone().try_get_matches_from(&line) {
        Err(answer) => parser_output::print(answer, &line, || command.clone()),
        // --help always ends the parsing.
        Ok(_) => ExitCode::Success,
    }
}
