//! `pushback serve-admission`: a validating webhook that refuses breaking changes of CRDs.

mod print_manifests;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use pushback_events::exit::ExitCode;
use pushback_preflight::api_lifecycle::Release;

use super::arguments::{GlobalArgs, kubernetes_version};
use super::screen::fail;
use super::webhook_server::{Log, ServerArgs};
use crate::run::serve_admission::{AdmissionOptions, run as serve};

/// Refuse breaking changes of CRDs.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  pushback serve-admission --tls-cert tls.crt --tls-key tls.key
  pushback serve-admission --config policy.yaml --tls-cert tls.crt --tls-key tls.key
  pushback serve-admission print-manifests --image IMAGE

The API server asks before any client updates or deletes a CRD. An update is judged as
`pushback check` judges it on files. A refusal has the first cause and the command that shows all of
them; a change that only causes warnings is allowed with them. A deletion is refused while objects
of the kind exist. They are read only with --read-objects; without it, a deletion has the verdict
unknown. Creates, and writes that do not change `spec`, are allowed without a judgement.

The policy is that of CRDUpgradeSafety in the Config: its settings, mode, failMode, waivers.
A refused change is allowed to an exempt user, and to one that writes the annotation
pushback.dev/accept-breaking with a reason together with the change. The annotation
pushback.dev/accept-deletion of the CRD accepts its deletion. Both are in the audit log.

Policy and certificate are read again within seconds after their files change. An unusable file is
logged and counted, and the previous one stays. GET of /healthz, /readyz and /metrics is answered
on the same port. A change that is not judged in time has the verdict unknown.

Exit codes: 0 ended by SIGTERM, SIGINT or SIGHUP, 1 wrong input, or a port in use, 13 the cluster of
--read-objects is not reachable."
)]
pub struct ServeAdmissionArgs {
    #[command(subcommand)]
    command: Option<ServeAdmissionCommand>,
    /// File with a Config that has policy and exemptions; can be given more than once
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// User that may make breaking changes; can be given more than once
    #[arg(long, value_name = "NAME")]
    exempt_user: Vec<String>,
    /// Group whose users may make breaking changes; can be given more than once
    #[arg(long, value_name = "NAME")]
    exempt_group: Vec<String>,
    /// List objects of a CRD that is deleted, with the rights of the kubeconfig or of the Pod
    #[arg(long)]
    read_objects: bool,
    /// Kubernetes version to judge by; the newest known one if omitted
    #[arg(long, value_name = "VERSION", value_parser = kubernetes_version)]
    kubernetes_version: Option<Release>,
    #[command(flatten)]
    server: ServerArgs,
    /// Largest request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    max_request: u16,
}

#[derive(Debug, Subcommand)]
enum ServeAdmissionCommand {
    /// Print the manifests of the webhook, with the rights that it needs
    PrintManifests(print_manifests::PrintManifestsArgs),
}

impl ServeAdmissionArgs {
    /// True if the command has JSON output.
    pub(super) fn has_json(&self) -> bool {
        self.command.is_some()
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: ServeAdmissionArgs) -> ExitCode {
    if let Some(ServeAdmissionCommand::PrintManifests(arguments)) = arguments.command {
        return print_manifests::run(global, arguments);
    }
    let settings = arguments.server.resolve(arguments.config, arguments.max_request);
    let cluster = arguments.read_objects.then(|| global.cluster()).transpose();
    let served = async {
        let options = AdmissionOptions {
            exempt_users: arguments.exempt_user,
            exempt_groups: arguments.exempt_group,
            kubernetes_version: arguments.kubernetes_version,
            cluster: cluster?,
        };
        serve(settings, options, Arc::new(Log)).await
    };
    match served.await {
        Ok(()) => ExitCode::Success,
        Err(error) => fail(global, &error),
    }
}
