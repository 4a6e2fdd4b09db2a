//! `pushback storage schema`: what is stored of a version, with its property bag.

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::conversion_text;

use super::convert::PlanArgs;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::simple;
use crate::run::error::CommandError;

/// Print the storage schema of a version.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage schema --plan plan.yaml --crd crd.yaml
  pushback storage schema --plan plan.yaml --crd crd.yaml --version-name v1 -o json

The schema has the fields of the version, all of them optional and without constraints, and a
property bag in every object where conversions keep what the version has no field for. With these
bags in its schema, the storage version of the definition keeps them.

Exit codes: 0 printed, 1 wrong input or a wrong plan.")]
pub struct SchemaArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// The version [default: the hub]
    #[arg(long, value_name = "VERSION")]
    version_name: Option<String>,
}

/// Runs the command.
pub fn run(global: &GlobalArgs, arguments: &SchemaArgs) -> ExitCode {
    simple(global, text(global, arguments))
}

fn text(global: &GlobalArgs, arguments: &SchemaArgs) -> Result<String, CommandError> {
    let converter = arguments.plan.files().converter()?;
    let version = arguments.version_name.as_deref().unwrap_or(converter.hub());
    let schema = converter.storage_schema(version).ok_or_else(|| {
        let known = converter.lineage().versions.join(", ");
        let message = format!("--version-name: {} has no version {version:?}", converter.name());
        CommandError::usage_with_hint(message, format!("versions are {known}"))
    })?;
    Ok(if global.wants_json() { format!("{schema:#}\n") } else { conversion_text::yaml(schema) })
}
