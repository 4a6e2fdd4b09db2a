//! `pushback serve-conversion`: a conversion webhook for definitions and their plans.

mod print_crd_patch;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use pushback_events::exit::ExitCode;

use super::arguments::GlobalArgs;
use super::screen::fail;
use super::webhook_server::{Log, ServerArgs};
use crate::run::serve_conversion::{ServedFiles, run as serve};

/// Serve conversions.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  pushback serve-conversion --crd crd.yaml --plan plan.yaml --tls-cert tls.crt --tls-key tls.key
  pushback serve-conversion print-crd-patch --service operators/conversion --ca-file ca.crt

The API server sends objects that it needs in another version with POST, to any path. The first
object that cannot be converted fails the request, with a message that names it. Values that a
version has no field for are kept in the annotation pushback.dev/property-bag, or in the bag of a
schema that has one. Programs that a plan names are refused, and so is `bag: nowhere`.

Plans, definitions and certificate are read again within seconds after their files change. What
cannot be used is logged and counted, and what was in use stays. GET of /healthz, /readyz and
/metrics is answered on the same port. Each request gets 25 s, since the API server waits 30 s.

Exit codes: 0 ended by SIGTERM, SIGINT or SIGHUP, 1 wrong input, a wrong plan, or a port in use."
)]
pub struct ServeConversionArgs {
    #[command(subcommand)]
    command: Option<ServeConversionCommand>,
    /// File with definitions, each in all its versions; can be given more than once
    #[arg(long, value_name = "FILE", required = true)]
    crd: Vec<PathBuf>,
    /// File with ConversionPlans; without one for a definition, conversions are as its schemas give them
    #[arg(long, value_name = "FILE")]
    plan: Vec<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Largest request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_request: u16,
}

#[derive(Debug, Subcommand)]
enum ServeConversionCommand {
    /// Print the part of a definition that makes the API server call the webhook
    PrintCrdPatch(print_crd_patch::PrintCrdPatchArgs),
}

impl ServeConversionArgs {
    /// Whether the command has JSON output.
    pub(super) fn has_json(&self) -> bool {
        self.command.is_some()
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: ServeConversionArgs) -> ExitCode {
    if let Some(ServeConversionCommand::PrintCrdPatch(arguments)) = arguments.command {
        return print_crd_patch::run(global, &arguments);
    }
    let served = ServedFiles { crds: arguments.crd, plans: arguments.plan };
    let settings = arguments.server.resolve(served.all(), arguments.max_request);
    match serve(settings, served, Arc::new(Log)).await {
        Ok(()) => ExitCode::Success,
        Err(error) => fail(global, &error),
    }
}
