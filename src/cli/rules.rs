//! `pushback rules`: lists the preflight rules, and explains each.

use clap::Args;
use pushback_preflight::registry;
use serde_json::json;

use super::arguments::{GlobalArgs, OutputFormat};
use crate::report::table::Table;

/// List the preflight rules, or explain one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback rules
  pushback rules CRDUpgradeSafety

Exit codes: 0 shown, 1 no such rule.")]
pub struct RulesArgs {
    /// Rule to explain
    name: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// No such rule.
pub fn run(global: &GlobalArgs, arguments: &RulesArgs) -> anyhow::Result<String> {
    if let Some(name) = &arguments.name {
        let rule = registry::find(name)?;
        let explanation = pushback_preflight::reference::rule_markdown(rule.meta());
        if global.output_format() == Some(OutputFormat::Json) {
            let meta = rule.meta();
            let rule = json!({"schemaVersion": 1, "name": meta.name, "summary": meta.summary, "default": meta.default,
                "explanation": explanation});
            return Ok(serde_json::to_string_pretty(&rule)? + "\n");
        }
        return Ok(explanation);
    }
    if global.output_format() == Some(OutputFormat::Json) {
        let rules: Vec<_> = registry::metas()
            .map(|meta| json!({"name": meta.name, "summary": meta.summary, "default": meta.default}))
            .collect();
        return Ok(serde_json::to_string_pretty(&json!({"schemaVersion": 1, "rules": rules}))? + "\n");
    }
    let mut table = Table::new(&["NAME", "DEFAULT", "WHAT IT CHECKS"]);
    for meta in registry::metas() {
        table.row(&[meta.name, if meta.default { "on" } else { "off" }, meta.summary]);
    }
    Ok(table.text())
}
