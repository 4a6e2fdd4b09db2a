//! Prepares a run: the policy, the cluster, its kinds.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pushback_app::record::{AppError, AppName, Observed, observe};
use pushback_cluster::{Cluster, ClusterError, Kinds};
use pushback_conversion::ConversionPlans;
use pushback_deploy::check::ahead::Ahead;
use pushback_deploy::plan::{Plan, Planned};
use pushback_manifest::config::Config;
use pushback_manifest::excerpt::Sources;
use pushback_manifest::revision::Revision;
use pushback_preflight::policy::Policy;
use pushback_preflight::selection::Selection;
use pushback_preflight::waiver::{Accepted, Waiver};
use pushback_preflight::{Answer, Need, Operation};

use super::connect::{ClusterOptions, Connection, Namespaces, connect};
use super::error::CommandError;
use super::input;
use super::observer::Observer;
use super::options::{AppOptions, CheckReports, Command, RecordOptions, RunOptions};
use super::policy::Configured;
use super::running::Run;
use super::signals::until_stopped;

/// Everything that a command has before it reads the app.
#[derive(Debug)]
pub struct Setup {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Kinds that the cluster serves.
    pub kinds: Arc<Kinds>,
    /// Config, defaults included.
    pub config: Config,
    /// The app.
    pub app: AppName,
    /// True if the cluster is a base whose objects are in the namespaces that the options give to the manifests.
    pub base_is_placed: bool,
    /// Whether the user named it. If not, the input is compared with everything in the cluster, whatever app it belongs
    /// to.
    pub is_named: bool,
    /// About its record.
    pub record: RecordOptions,
    /// Namespaces of the record and of objects.
    pub namespaces: Namespaces,
    /// The rules that run.
    pub selection: Selection,
    /// What the rules ask before the plan is whole.
    pub ahead: Ahead,
    /// Where the input came from, once it is asked for and known.
    pub revision: OnceLock<Option<Revision>>,
    /// Name of the policy's source; `None` if the manifests decide.
    pub policy_source: Option<String>,
    /// Plans for conversions between versions of definitions.
    pub conversion_plans: Arc<ConversionPlans>,
    /// Facts from the input.
    pub answers: BTreeMap<Need, Answer>,
    /// Waivers given for this run.
    pub waivers: Vec<Waiver>,
    /// Receiver of the reports, if any.
    pub reports: Option<Rc<dyn CheckReports>>,
    /// Input files, from which findings quote lines.
    pub sources: Sources,
    /// Receiver of what is shown besides events.
    pub observer: Option<Arc<dyn Observer>>,
    /// Number of objects that each waived finding concerned when first judged, by fingerprint.
    accepted: Mutex<Accepted>,
    /// The app as read along with the kinds, until it is first used.
    seen: Mutex<Option<Result<Observed, AppError>>>,
}

/// Resolves the policy, connects, and reports the start of the run. `sources` are the files that findings quote.
///
/// # Errors
/// Invalid Config, a report that cannot be written, or no cluster.
pub async fn set_up(
    run: &mut Run,
    options: &RunOptions,
    mut config: Configured,
    sources: Sources,
) -> Result<Setup, CommandError> {
    let RunOptions { command, app, preflight, .. } = options;
    let mut policy = config.resolve(preflight)?;
    let mut answers = input::documents(&policy.selection)?;
    preflight.reports.iter().try_for_each(|reports| reports.prepare())?;
    let Discovery { connected, kinds, namespaces, app: name, seen } = reach(run, options).await?;
    let old_side = connected.cluster.configs().await?;
    if !old_side.is_empty() && !config.has_source() {
        config.judge_by(&connected.cluster.description(), &old_side)?;
        policy = config.resolve(preflight)?;
        answers = input::documents(&policy.selection)?;
    }
    let policy_source = config.source_name(preflight);
    let conversion_plans = Arc::new(config.conversion_plans()?);
    let plans: Vec<_> = conversion_plans.iter().cloned().collect();
    if !plans.is_empty() {
        answers.insert(Need::ConversionPlans, Answer::ConversionPlans { plans });
    }
    let Policy { selection, waivers } = policy;
    run.show_start(options, *command, &name, &*connected.cluster).await;
    for (group, reason) in kinds.broken() {
        run.warn("broken-group", format!("API group {group} could not be read: {reason}"));
    }
    // A comparison without a verdict asks nothing.
    let judging = if *command == Command::Diff { &Selection::default() } else { &selection };
    let ahead = Ahead::new(Arc::clone(&connected.cluster), judging);
    Ok(Setup {
        cluster: connected.cluster,
        kinds,
        config: config.config,
        app: name,
        is_named: app.is_named,
        base_is_placed: matches!(options.cluster, ClusterOptions::Base(_)),
        record: app.record.clone(),
        namespaces,
        ahead,
        selection,
        revision: OnceLock::new(),
        policy_source,
        conversion_plans,
        answers,
        waivers,
        reports: preflight.reports.clone(),
        sources,
        observer: options.observer.clone(),
        accepted: Mutex::default(),
        seen: Mutex::new(seen),
    })
}

/// Returns what was read. An observer shows the cluster before an error in the input, too.
///
/// # Errors
/// That error.
pub async fn connected_before<T>(
    run: &Run,
    options: &RunOptions,
    read: Result<T, CommandError>,
) -> Result<T, CommandError> {
    if let (Err(_), Some(_)) = (&read, &options.observer)
        && let Ok(connected) = connect(&options.cluster, None, &|text| run.announce(text)).await
    {
        let app = connected.namespaces(&options.app.namespace).app(&options.app.name);
        run.show_start(options, options.command, &app, &*connected.cluster).await;
    }
    read
}

impl Setup {
    /// Returns the operation that an object counts as although the run does not write it.
    pub fn counted_as(&self, planned: &Planned) -> Option<Operation> {
        self.observer.as_ref()?.counted_as(&self.config, planned)
    }

    /// Returns whether any object of the plan counts although the run does not write it.
    pub fn counts_unwritten(&self, plan: &Plan) -> bool {
        plan.objects.iter().any(|planned| self.counted_as(planned).is_some())
    }

    /// The rules, with what has been waived so far.
    pub(super) fn selection_so_far(&self) -> Selection {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Selection { accepted, ..self.selection.clone() }
    }

    /// Records how many objects waived findings concern; the first number stays.
    pub(super) fn accept(&self, more: &Accepted) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        for (fingerprint, affected) in more {
            accepted.entry(fingerprint.clone()).or_insert(*affected);
        }
    }

    /// Takes the app as read along with the kinds; `None` from the second call on.
    pub(super) fn take_seen(&self) -> Option<Result<Observed, AppError>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Refuses a read-only cluster before showing a plan that cannot be carried out.
    ///
    /// # Errors
    /// The cluster is a git ref or a single file.
    pub fn require_writable(&self) -> Result<(), CommandError> {
        if self.cluster.capabilities().writable {
            return Ok(());
        }
        let message = format!("{} is read only", self.cluster.description());
        let hint = "`pushback check` and `pushback diff` answer from it; to write, name a folder: --cluster dir:PATH";
        Err(CommandError::usage_with_hint(message, hint))
    }
}

/// Data from the first requests to a server.
struct Discovery {
    connected: Connection,
    kinds: Arc<Kinds>,
    namespaces: Namespaces,
    app: AppName,
    seen: Option<Result<Observed, AppError>>,
}

/// Connects and reads the kinds, along with everything else that is needed in any case.
async fn reach(run: &mut Run, options: &RunOptions) -> Result<Discovery, CommandError> {
    let notices = run.notices();
    run.planning("connecting to the cluster");
    let RunOptions { command, cluster, app: AppOptions { name, namespace, .. }, .. } = options;
    let work = async {
        let connected = connect(cluster, Some(notices), &|text| run.announce(text)).await?;
        let namespaces = connected.namespaces(namespace);
        let app = namespaces.app(name);
        let cluster = &*connected.cluster;
        let server = cluster.capabilities().server;
        let seen = async {
            // In a directory the lock is taken before the app is read.
            if server { Some(observe(cluster, &app).await) } else { None }
        };
        let version = async {
            // Needed by preflight, which handles its absence.
            if server && *command != Command::Diff { cluster.version().await.ok().flatten() } else { None }
        };
        let others = async { Ok::<_, ClusterError>(futures::join!(seen, version)) };
        let (kinds, (seen, _)) = futures::try_join!(cluster.kinds(), others)?;
        Ok(Discovery { connected, kinds, namespaces, app, seen })
    };
    let reached = until_stopped(run.stop.clone(), work).await?;
    run.uses(&reached.connected.cluster);
    Ok(reached)
}
