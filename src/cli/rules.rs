//! `pushback rules`: lists the preflight rules, and explains each.

use clap::Args;
use pushback_preflight::registry;
use pushback_preflight::rule::{Rule, RuleMeta};
use pushback_terminal::live::options::WIDTH;
use pushback_terminal::markdown_text::markdown_text;
use pushback_terminal::table::Table;
use pushback_terminal::words::hang;
use serde_json::{Map, Value, json};

use super::arguments::{GlobalArgs, OutputFormat};
use super::screen;
use crate::run::error::CommandError;
use crate::run::policy;

/// List the preflight rules, or explain one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback rules
  pushback rules CRDUpgradeSafety
  pushback rules --config policy.yaml NoLatestTag

Exit codes: 0 shown, 1 no such rule, or a policy that cannot be read.")]
pub struct RulesArgs {
    /// Rule to explain
    name: Option<String>,
    /// File with Config documents whose own rules are listed too; can be given more than once
    #[arg(long, env = "PUSHBACK_CONFIG", hide_env = true, value_name = "FILE")]
    config: Vec<String>,
}

/// How the default set is named in a list.
const DEFAULT_SET: &str =
    "`- name: default` in preflightRules, or --preflight=default,NAME, adds rules to those that are on\n";

/// Runs the command.
///
/// # Errors
/// No such rule, or a policy that cannot be read.
pub fn run(global: &GlobalArgs, arguments: &RulesArgs) -> Result<String, CommandError> {
    let width = screen::data_columns();
    let columns = usize::from(width.unwrap_or(WIDTH));
    let rules = [registry::RULES, &policy::custom_rules(&arguments.config)?].concat();
    if arguments.name.as_deref() == Some(registry::DEFAULT) {
        let message =
            "\"default\" is not a rule: it stands for the rules that are on by default, which `pushback rules` lists";
        return Err(CommandError::usage(message));
    }
    if let Some(name) = &arguments.name {
        let rule = registry::find_in(&rules, name).map_err(|error| CommandError::usage(error.to_string()))?;
        let explanation = pushback_preflight::reference::rule_markdown(rule);
        if global.output_format() == Some(OutputFormat::Json) {
            let meta = rule.meta();
            let rule = json!({"schemaVersion": 1, "name": meta.name, "summary": meta.summary, "default": meta.default,
                "custom": meta.is_custom, "unasked": unasked(meta), "explanation": explanation});
            return Ok(format!("{rule:#}\n"));
        }
        return Ok(markdown_text(&explanation, screen::data_theme(global), columns));
    }
    if global.output_format() == Some(OutputFormat::Json) {
        let entry = |rule: &&'static dyn Rule| {
            let RuleMeta { name, summary, default, is_custom, .. } = rule.meta();
            json!({"name": name, "summary": summary, "default": default, "custom": is_custom, "unasked": unasked(rule.meta())})
        };
        let rules: Vec<_> = rules.iter().map(entry).collect();
        return Ok(format!("{:#}\n", json!({"schemaVersion": 1, "rules": rules})));
    }
    let mut table = Table::new(&["NAME", "DEFAULT", "WHAT IT CHECKS"]);
    for meta in rules.iter().map(|rule| rule.meta()) {
        table.row(&[meta.name, if meta.default { "on" } else { "off" }, meta.summary]);
    }
    let unasked = pushback_preflight::reference::unasked_lines();
    let table = table.text_within(width.map(usize::from)) + "\n" + &hang(DEFAULT_SET, width.unwrap_or(u16::MAX));
    Ok(unasked.into_iter().fold(table, |text, line| text + &hang(&line, width.unwrap_or(u16::MAX))))
}

/// The settings with another default where nobody asks for the rule.
fn unasked(meta: &RuleMeta) -> Map<String, Value> {
    meta.unasked.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
}
