//! `pushback completion`.

use anyhow::Context as _;
use clap::Args;
use clap_complete::Shell;

/// Print a shell's completion script.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  source <(pushback completion bash)\n\nExit codes: 0 printed, 1 no such shell.")]
pub struct CompletionArgs {
    /// Shell
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// The script is not valid UTF-8.
pub fn run(arguments: &CompletionArgs, mut command: clap::Command) -> anyhow::Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "pushback", &mut script);
    String::from_utf8(script).with_context(|| format!("the {} script is not text", arguments.shell))
}
