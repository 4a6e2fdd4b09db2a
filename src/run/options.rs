//! Resolved options of a run: flag, environment, file, default, in this order.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pushback_app::history;
use pushback_app::lease::LockOptions;
use pushback_crd::words;
use pushback_deploy::apply::engine;
use pushback_deploy::check::report::CheckReport;
use pushback_deploy::plan::desired::Placement;
use pushback_deploy::plan::saved::Deletion;
use pushback_deploy::plan::{self, UpdateStrategy};
use pushback_manifest::LoadOptions;
use pushback_preflight::Waiver;
use pushback_preflight::api_lifecycle::Release;

use super::app_name::app_name;
use super::connect::ClusterOptions;
pub use super::connect::NamespaceOptions;
use super::error::CommandError;
use super::observer::Observer;

/// Options of every run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The command to run.
    pub command: Command,
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app to work on.
    pub app: AppOptions,
    /// Preflight rules and reports.
    pub preflight: PreflightOptions,
    /// Receiver of what is shown besides events. With it, a run plans as kapp does.
    pub observer: Option<Arc<dyn Observer>>,
}

words! {
    /// Commands with a run.
    pub enum Command {
        /// Apply an app.
        Apply = "apply",
        /// Delete an app.
        Delete = "delete",
        /// Show what an apply would change.
        Diff = "diff",
        /// Run the rules on it.
        Check = "check",
        /// Save what an apply would change.
        Plan = "plan",
        /// Apply the new release between experiments.
        Upgrade = "upgrade",
    }
}

/// The app.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// App name.
    pub name: String,
    /// Namespaces of the app.
    pub namespace: NamespaceOptions,
    /// Whether the user named it. If not, the input is compared with everything in the cluster, whatever app it belongs
    /// to.
    pub is_named: bool,
    /// Options of its record.
    pub record: RecordOptions,
}

/// Options of an app's record.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "App")]
pub struct RecordOptions {
    /// Earlier name of the app: if there is no app of the new name, and one of this, it is renamed first
    #[arg(long, value_name = "NAME", value_parser = app_name)]
    pub prev_app: Option<String>,
    #[command(flatten)]
    pub written: WrittenRecordOptions,
}

/// Content and name of an app's record.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "App")]
pub struct WrittenRecordOptions {
    /// Labels of the app's record, KEY=VALUE; a value stays as it was first given
    #[arg(long, value_name = "LABELS", value_parser = label, value_delimiter = ',')]
    pub labels: Vec<(String, String)>,
    /// Write kapp's part of the record to this file, JSON: label, last change, kinds
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub app_metadata_file_output: Option<PathBuf>,
    /// Name the record NAME.apps.k14s.io, one of kapp's two names for it; a record under the other is renamed first
    #[arg(long, hide_short_help = true)]
    pub fq_configmap_names: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// The input.
#[derive(Clone, Debug, Default)]
pub struct InputOptions {
    /// Files, directories, URLs.
    pub files: Vec<String>,
    /// Files with Config documents.
    pub config: Vec<String>,
    /// Whether unknown keys of a Config among the manifests are warnings, as with kapp.
    pub allow_unknown_config_keys: bool,
    /// Options for reading them.
    pub load: LoadOptions,
}

impl InputOptions {
    /// Adds what a run knows about charts. kapp renders nothing.
    #[must_use]
    pub fn of_run(&self, options: &RunOptions) -> Self {
        let mut input = self.clone();
        input.load.render = input.load.render.filter(|_| options.observer.is_none());
        if let Some(render) = &mut input.load.render {
            render.helm.namespace.clone_from(&options.app.namespace.namespace);
            render.helm.kubernetes_version =
                options.preflight.kubernetes_version.map(|(major, minor)| format!("{major}.{minor}"));
        }
        input
    }
}

/// What a run may write.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// Namespaces, besides those that the user has objects put into; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// Whether it may write cluster-scoped objects.
    pub cluster_scoped: bool,
}

/// Planning options.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Namespaces that objects are moved to; the run adds the default namespace.
    pub placement: Placement,
    /// Limits on writes, if there are any.
    pub allowed: Option<Allowed>,
    /// Update strategy of objects without an annotation.
    pub update_strategy: UpdateStrategy,
    /// Skips waiting for APIServices.
    pub ignore_api_services: bool,
    /// Options of the plan; the run adds those that follow from the cluster, the app and the time.
    pub options: plan::Options,
}

/// Preflight options.
#[derive(Clone, Debug, Default)]
pub struct PreflightOptions {
    /// Rules to run; `None`: those of the Config, or the default set.
    pub rules: Option<Vec<String>>,
    /// Without rules in the flag and in the Config, run none instead of the default set.
    pub only_listed: bool,
    /// Findings to accept in this run.
    pub waive: Vec<Waiver>,
    /// Whether a Config among the manifests may loosen the checks if there is no policy source.
    pub manifests_may_loosen: bool,
    /// Kubernetes version to judge API versions by instead of the cluster's.
    pub kubernetes_version: Option<Release>,
    /// File to write the facts to.
    pub facts_out: Option<PathBuf>,
    /// Receiver of the reports, if any.
    pub reports: Option<Rc<dyn CheckReports>>,
}

/// Receives the reports of checks. If a plan is repeated, it is judged and reported again.
pub trait CheckReports: fmt::Debug {
    /// Checks, before any change to a cluster, that reports can be written.
    ///
    /// # Errors
    /// A report cannot be written.
    fn prepare(&self) -> Result<(), CommandError>;

    /// Receives a report.
    ///
    /// # Errors
    /// The report cannot be written.
    fn take(&self, report: &CheckReport) -> Result<(), CommandError>;
}

/// Writing options.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Time limits and waiting.
    pub engine: engine::Options,
    /// Options for the app's lock.
    pub lock: LockOptions,
    /// Most changes kept in the app's history.
    pub history: usize,
    /// Whether to exit with 3 if something changed and with 2 if not.
    pub exit_status: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        let quarter = Duration::from_secs(15 * 60);
        Self {
            engine: engine::Options {
                wait: true,
                apply_timeout: quarter,
                wait_timeout: quarter,
                wait_resource_timeout: Duration::ZERO,
                wait_failure_timeout: Duration::from_secs(5 * 60),
                logs: engine::LogsOf::default(),
                failure_log_lines: engine::FAILURE_LOG_LINES,
                exit_early_on_apply_error: true,
                exit_early_on_wait_error: true,
                deletion: Deletion::default(),
                compares_writes: true,
                awaits_controllers: true,
                wait_words: None,
            },
            lock: LockOptions::default(),
            history: history::KEEP,
            exit_status: false,
        }
    }
}
