//! What a run is asked to do: arguments that are resolved already (flag, environment, file, default, in this order).

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use pushback_preflight::Waiver;

use super::connect::ClusterOptions;
use super::error::CommandError;
use crate::apply::engine;
use crate::check::report::CheckReport;
use crate::manifest::LoadOptions;
use crate::plan::UpdateStrategy;

/// How long the lock of another run is waited for beyond the lease of this one.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(5);

/// Where a command looks, what it is about, and by which rules.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The command.
    pub command: Command,
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app.
    pub app: AppOptions,
    /// Rules and reports.
    pub preflight: PreflightOptions,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// To apply an app.
    Apply,
    /// To delete one.
    Delete,
    /// To show what an apply would change.
    Diff,
    /// To hear what the rules say of it.
    Check,
    /// To apply the new release between experiments.
    Upgrade,
}

impl Command {
    /// The command, as it is told.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::Diff => "diff",
            Self::Check => "check",
            Self::Upgrade => "upgrade",
        }
    }
}

/// Which app.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub namespace: NamespaceOptions,
    /// Whether the user named it. If not, the input is compared with everything on the other side, whosever it is.
    pub is_named: bool,
}

/// Which namespace; the cluster suggests one where none is given.
#[derive(Clone, Debug, Default)]
pub struct NamespaceOptions {
    /// Of the record, and of objects that name none.
    pub namespace: Option<String>,
    /// Of the record alone.
    pub of_record: Option<String>,
}

/// What is applied.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// Files, folders, URLs.
    pub files: Vec<String>,
    /// Files with Config documents.
    pub config: Vec<String>,
    /// How they are read.
    pub load: LoadOptions,
}

/// How it is planned.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The namespace that all namespaced objects go to.
    pub into_namespace: Option<String>,
    /// Namespaces that are mapped.
    pub map_namespaces: Vec<(String, String)>,
    /// Delete nothing that is gone from the input.
    pub no_prune: bool,
    /// Send unchanged objects to the server too.
    pub recheck: bool,
    /// How objects without an annotation of their own are updated.
    pub update_strategy: UpdateStrategy,
    /// Whether the built-in label scoping rules hold.
    pub default_label_scoping: bool,
    /// Take objects of other apps over.
    pub override_ownership: bool,
    /// Only those of these apps.
    pub override_allowed_apps: Vec<String>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            into_namespace: None,
            map_namespaces: Vec::new(),
            no_prune: false,
            recheck: false,
            update_strategy: UpdateStrategy::default(),
            default_label_scoping: true,
            override_ownership: false,
            override_allowed_apps: Vec::new(),
        }
    }
}

/// By which rules, and who is told what they found.
#[derive(Clone, Debug, Default)]
pub struct PreflightOptions {
    /// `None`: what the Config lists, or the default set.
    pub rules: Option<Vec<String>>,
    /// Findings that are accepted for this run.
    pub waive: Vec<Waiver>,
    /// Whether a Config among the manifests may loosen the checks where there is no policy source.
    pub manifests_may_loosen: bool,
    /// Where the facts are written.
    pub facts_out: Option<PathBuf>,
    /// Who takes the reports, if anybody.
    pub reports: Option<Rc<dyn CheckReports>>,
}

/// Takes the reports of checks. A plan that is made anew is judged and reported anew.
pub trait CheckReports: fmt::Debug {
    /// Makes sure, before anything is done to a cluster, that reports can be written.
    ///
    /// # Errors
    /// One cannot.
    fn prepare(&self) -> Result<(), CommandError>;

    /// Takes a report.
    ///
    /// # Errors
    /// It cannot be written.
    fn take(&self, report: &CheckReport) -> Result<(), CommandError>;
}

/// How it is written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Limits and waiting.
    pub engine: engine::Options,
    /// How the app's lock is taken.
    pub lock: LockOptions,
    /// How many changes the app's history keeps.
    pub history: usize,
    /// Exit with 3 or 2 for changes or none.
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
                exit_early_on_apply_error: true,
                exit_early_on_wait_error: true,
            },
            lock: LockOptions::new(Duration::from_secs(15), None),
            history: 200,
            exit_status: false,
        }
    }
}

/// How a lock is taken and held.
#[derive(Clone, Copy, Debug)]
pub struct LockOptions {
    /// How long it holds without being renewed.
    pub lease: Duration,
    /// How long another run is waited for.
    pub patience: Duration,
}

impl LockOptions {
    /// Of a lease; where no patience is given, a run that was killed is waited for.
    #[must_use]
    pub fn new(lease: Duration, patience: Option<Duration>) -> Self {
        Self { lease, patience: patience.unwrap_or(lease + BEYOND_THE_LEASE) }
    }
}
