//! `pushback completion`: the script that has a shell ask this binary for completions, and the answers.

pub mod engine;
mod line;
mod values;

use std::io;

use clap::Args;
use clap_complete::Shell;

use crate::run::error::CommandError;

/// Print a shell's completion script.
///
/// The script asks pushback itself while you type, so that apps, namespaces, contexts, rules and fingerprints of findings are
/// completed too. What needs the cluster gets two seconds (fingerprints, for which the check is run, three); a cluster that does not
/// answer completes nothing, without a message.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(pushback completion bash)
  pushback completion fish

In ~/.bashrc or ~/.zshrc: the first line, with the shell's name.
In fish: pushback completion fish > ~/.config/fish/completions/pushback.fish

Exit codes: 0 printed, 1 no such shell.")]
pub struct CompletionArgs {
    /// Shell
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// The script is not valid UTF-8.
pub fn run(arguments: &CompletionArgs) -> Result<String, CommandError> {
    let mut script = Vec::new();
    let written = engine::write_script(arguments.shell, &mut script);
    let script = written.and_then(|()| String::from_utf8(script).map_err(io::Error::other));
    script.map_err(|error| CommandError::unwritable(format!("the {} script: {error}", arguments.shell)))
}
