//! `pushback serve-admission print-manifests`: what a cluster needs to be guarded by the webhook.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pushback_events::exit::ExitCode;
use pushback_terminal::conversion_text;

use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::simple;
use crate::run::error::CommandError;
use crate::run::serve_admission::manifests::{AdmissionManifests, Authority, FailurePolicy};

/// Print the manifests of the webhook, with the rights that it needs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback serve-admission print-manifests --image IMAGE
  pushback serve-admission print-manifests --image IMAGE --ca-file ca.crt --failure-policy fail
  pushback serve-admission print-manifests --image IMAGE --read-group argoproj.io

Without --ca-file, cert-manager makes the certificate and puts its authority into the configuration.
With it, make the Secret pushback-admission-tls of type kubernetes.io/tls yourself.

The ServiceAccount has no right, unless --read-group names the API groups whose objects are to be
listed when their CRD is deleted. A CRD of another group has its deletion judged as unknown.

The webhook cannot lock the cluster out: it is asked about CRDs alone, and only if their `spec`
changes or they are deleted. CRDs of pushback and cert-manager, exempt users, and ServiceAccounts of
its namespace never reach it. Configurations of webhooks are never sent to webhooks, so an
administrator can always delete its own. With `ignore`, changes pass while it is down.

Exit codes: 0 printed, 1 wrong input, or certificates that are not PEM.")]
pub(super) struct PrintManifestsArgs {
    /// Image with pushback
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Namespace of the webhook
    #[arg(long, value_name = "NAME", default_value = "pushback-admission")]
    webhook_namespace: String,
    /// Answer to a change while the webhook is down
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = FailurePolicyArg::Ignore)]
    failure_policy: FailurePolicyArg,
    /// Time that the API server waits for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u8).range(2..=30))]
    timeout: u8,
    /// API group whose objects are listed when their CRD is deleted; can be given more than once
    #[arg(long, value_name = "GROUP")]
    read_group: Vec<String>,
    /// User that may make breaking changes; can be given more than once
    #[arg(long, value_name = "NAME")]
    exempt_user: Vec<String>,
    /// Group whose users may make breaking changes; can be given more than once
    #[arg(long, value_name = "NAME")]
    exempt_group: Vec<String>,
    /// File with a Config that has the policy
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File with the certificates of the authority that vouches for the server, in PEM
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Address of a server outside of the cluster: prints the configuration of the webhook alone
    #[arg(long, value_name = "URL", requires = "ca_file")]
    url: Option<String>,
}

/// Values of `--failure-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailurePolicyArg {
    /// The change is allowed.
    Ignore,
    /// The change is refused.
    Fail,
}

/// Runs the command.
pub(super) fn run(global: &GlobalArgs, arguments: PrintManifestsArgs) -> ExitCode {
    simple(global, text(global, arguments))
}

fn text(global: &GlobalArgs, arguments: PrintManifestsArgs) -> Result<String, CommandError> {
    let manifests = AdmissionManifests {
        image: arguments.image,
        namespace: arguments.webhook_namespace,
        failure_policy: match arguments.failure_policy {
            FailurePolicyArg::Ignore => FailurePolicy::Ignore,
            FailurePolicyArg::Fail => FailurePolicy::Fail,
        },
        timeout: arguments.timeout,
        read_groups: arguments.read_group,
        exempt_users: arguments.exempt_user,
        exempt_groups: arguments.exempt_group,
        config: arguments.config,
        authority: arguments.ca_file.map_or(Authority::CertManager, Authority::File),
        url: arguments.url,
    };
    let objects = manifests.objects()?;
    if global.wants_json() {
        return Ok(format!("{:#}\n", serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects})));
    }
    let documents: Vec<String> = objects.iter().map(conversion_text::yaml).collect();
    Ok(documents.join("---\n"))
}
