//! `pushback verify`: whether a report, a saved plan, facts and this program belong together.
//! Needs no cluster.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::escape::{terminal_safe_json, terminal_safe_lines};
use serde_json::json;

use super::arguments::GlobalArgs;
use super::screen;
use crate::run::saved::stale;
use crate::run::verify::{Verification, verify};

/// Check that a report, a saved plan, facts and this program belong together.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback verify shop.plan report.json                a plan, and its report
  pushback verify shop.plan report.json facts.json     and the verdict once more, from its facts
  pushback verify facts.json --config policy.yaml      where the policy brings rules of its own

Files are --report json=FILE, plan --out FILE and --facts-out FILE. Each has to be as it was
written, by this version, about the same app, cluster, policy, changes, rules and findings. A report
has no digest of its own: that it was not edited, the other files show.

Needs no cluster.

Exit codes: 0 they belong together, 1 no such file or none of these, 11 a file was edited, or
something does not fit.")]
pub struct VerifyArgs {
    /// Reports, saved plans, facts
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// File with the policy, for the rules that it brings; can be given more than once
    #[arg(long, value_name = "FILE")]
    config: Vec<String>,
}

/// Runs the command.
pub fn run(global: &GlobalArgs, arguments: &VerifyArgs) -> ExitCode {
    let Verification { files, mismatches } = match verify(&arguments.files, &arguments.config) {
        Ok(verification) => verification,
        Err(error) => return screen::fail(global, &error),
    };
    let text = if global.wants_json() {
        let fits = mismatches.is_empty();
        let verification = json!({"schemaVersion": 1, "fits": fits, "files": files, "mismatches": mismatches});
        terminal_safe_json(&serde_json::to_string_pretty(&verification).unwrap_or_default()) + "\n"
    } else {
        let line = |it: &crate::run::verify::Verified| {
            let (kind, tool, outcome) = (it.kind.as_str(), &it.tool.version, it.outcome.as_str());
            format!("{}  {kind} of pushback {tool}: app {}, cluster {}, {outcome}\n", it.file, it.app, it.cluster)
        };
        let end = if mismatches.is_empty() { "They belong together.\n" } else { "" };
        terminal_safe_lines(&(files.iter().map(line).collect::<String>() + end)).into_owned()
    };
    if let Err(error) = screen::print(&text) {
        return screen::fail(global, &error);
    }
    match mismatches.is_empty() {
        true => ExitCode::Success,
        false => {
            screen::fail(global, &stale(mismatches, "use files of one run, and the program that has written them"))
        }
    }
}
