//! `pushback serve-conversion print-crd-patch`: what a definition needs to be converted by a webhook.

use std::path::PathBuf;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::conversion_text;

use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::simple;
use crate::run::error::CommandError;
use crate::run::serve_conversion::patch::{Address, Patch};

/// Print the part of a definition that makes the API server call the webhook.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback serve-conversion print-crd-patch --service operators/conversion --ca-file ca.crt
  pushback serve-conversion print-crd-patch --url https://10.0.0.7:9443/convert --ca-file ca.crt
  pushback serve-conversion print-crd-patch --service operators/conversion --crd crd.yaml

The patch is for `kubectl patch crd NAME --type merge --patch-file FILE`. With --crd the definitions
of that file are printed with it instead. Leave --ca-file out where something puts the certificate
of the authority into the definition, as cert-manager does for the annotation
cert-manager.io/inject-ca-from.

Exit codes: 0 printed, 1 wrong input, or certificates that are not PEM.")]
pub(super) struct PrintCrdPatchArgs {
    /// Service of the server
    #[arg(long, value_name = "NAMESPACE/NAME", required_unless_present = "url", conflicts_with = "url")]
    service: Option<String>,
    /// Path below the Service
    #[arg(long, value_name = "PATH", default_value = "/convert", conflicts_with = "url")]
    path: String,
    /// Port of the Service
    #[arg(long, value_name = "PORT", default_value_t = 443, conflicts_with = "url",
          value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Address of a server that has no Service
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File with the certificates of the authority that vouches for the server, in PEM
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// File with definitions to print with the patch
    #[arg(long, value_name = "FILE")]
    crd: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(global: &GlobalArgs, arguments: &PrintCrdPatchArgs) -> ExitCode {
    simple(global, text(global, arguments))
}

fn text(global: &GlobalArgs, arguments: &PrintCrdPatchArgs) -> Result<String, CommandError> {
    let address = match (&arguments.url, &arguments.service) {
        (Some(url), _) => Address::Url(url.clone()),
        (None, service) => {
            let service = service.as_deref().unwrap_or_default();
            let (namespace, name) = service
                .split_once('/')
                .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains('/'))
                .ok_or_else(|| CommandError::usage(format!("--service: expected NAMESPACE/NAME, found {service:?}")))?;
            Address::Service {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                path: arguments.path.clone(),
                port: arguments.port,
            }
        }
    };
    let patch = Patch { address, authority: arguments.ca_file.clone() };
    match &arguments.crd {
        Some(_) if global.wants_json() => Err(CommandError::usage("--crd prints YAML: --output json is for the patch")),
        Some(file) => patch.definitions(file),
        None => {
            let value = patch.value()?;
            Ok(if global.wants_json() { format!("{value:#}\n") } else { conversion_text::yaml(&value) })
        }
    }
}
