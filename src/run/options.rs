//! Resolved options of a run: flag, environment, file, default, in this order.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pushback_app::history;
use pushback_app::lease::LockOptions;
use pushback_crd::definition::StoragePolicy;
use pushback_crd::words;
use pushback_deploy::apply::engine;
use pushback_deploy::check::report::CheckReport;
use pushback_deploy::plan::UpdateStrategy;
use pushback_deploy::plan::part::Selection;
use pushback_deploy::plan::saved::Deletion;
use pushback_manifest::LoadOptions;
use pushback_preflight::Waiver;
use pushback_preflight::api_lifecycle::Release;

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
    /// About its record.
    pub record: RecordOptions,
}

/// About an app's record.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// Earlier name of the app, which is renamed if there is none of the new name.
    pub previous: Option<String>,
    /// Labels that the record gets.
    pub labels: Vec<(String, String)>,
    /// Whether the record has the longer of kapp's names.
    pub qualified: bool,
    /// File that kapp's part of the record is written to.
    pub file: Option<PathBuf>,
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

/// What a run may write.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// Namespaces, besides those that the user has objects put into; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// Whether it may write cluster-scoped objects.
    pub cluster_scoped: bool,
}

/// Planning options.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Namespace for all namespaced objects.
    pub into_namespace: Option<String>,
    /// Pairs of old and new namespace.
    pub map_namespaces: Vec<(String, String)>,
    /// Whether to keep objects that are gone from the input.
    pub no_prune: bool,
    /// The part of the app that the run is about.
    pub selection: Selection,
    /// Whether an input of which nothing is selected is no error.
    pub allow_empty: bool,
    /// What may be written, if that is limited.
    pub allowed: Option<Allowed>,
    /// Whether to send unchanged objects to the server too.
    pub recheck: bool,
    /// Update strategy of objects without an annotation.
    pub update_strategy: UpdateStrategy,
    /// Whether the built-in label scoping rules apply.
    pub default_label_scoping: bool,
    /// Whether APIServices are not waited for.
    pub ignore_api_services: bool,
    /// Whether to put kapp's copies of the manifest on objects.
    pub kapp_annotations: bool,
    /// Whether to tell of fields that other managers have set.
    pub tells_drift: bool,
    /// Whether what no server takes is refused before anything is written.
    pub strict: bool,
    /// Whether objects that are deleted with a replaced parent are created again.
    pub recreates_contents: bool,
    /// Whether to take over objects of other apps.
    pub override_ownership: bool,
    /// Take over objects of these apps only.
    pub override_allowed_apps: Vec<String>,
    /// What may be done about the stored objects of definitions.
    pub storage: StoragePolicy,
    /// Folder for objects as they were before they are converted by a plan.
    pub storage_backup: Option<PathBuf>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            into_namespace: None,
            map_namespaces: Vec::new(),
            no_prune: false,
            selection: Selection::default(),
            allow_empty: false,
            allowed: None,
            recheck: false,
            update_strategy: UpdateStrategy::default(),
            default_label_scoping: true,
            ignore_api_services: false,
            kapp_annotations: false,
            tells_drift: false,
            strict: true,
            recreates_contents: true,
            override_ownership: false,
            override_allowed_apps: Vec::new(),
            storage: StoragePolicy::default(),
            storage_backup: None,
        }
    }
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
