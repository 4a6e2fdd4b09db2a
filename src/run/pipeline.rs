//! The one way: input → app → cluster → plan → preflight. Every command that changes something walks it,
//! and stops at its own room.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pushback_preflight::judge::RunReport;
use pushback_preflight::operator::generate;
use pushback_preflight::policy::Policy;
use pushback_preflight::rules::upgrade_diff::{self, Compared};
use pushback_preflight::selection::Selection;
use pushback_preflight::waiver::{Accepted, Waiver};
use pushback_preflight::{Answer, Facts, Finding, Need};
use serde_json::Value;

use super::connect::{Connected, Namespaces, connect};
use super::error::CommandError;
use super::input;
use super::policy::Configured;
use super::signals;
use crate::app::lock;
use crate::app::record::{AppError, AppName, Observed, observe};
use crate::apply::engine::Stop;
use crate::check::second_look::SecondLook;
use crate::check::{self, Ran};
use crate::cli::arguments::{AppArgs, GlobalArgs, InputArgs, NamespaceArgs, OutputFormat, PlanArgs, PreflightArgs};
use crate::cli::run::Run;
use crate::cluster::{Cluster, ClusterError, Kinds};
use crate::config::Config;
use crate::event::{Counts, DiagnosticCode, Event, RuleLine};
use crate::exit::ExitCode;
use crate::manifest::excerpt::Sources;
use crate::manifest::{InputWarning, Manifest};
use crate::plan::desired::{self, Placement};
use crate::plan::{self, Plan, UpdateStrategy};
use crate::report::error_text;
use crate::report::json_report::{CheckReport, PolicyReport};
use crate::report::output::Output;
use crate::report::report_file::{self, ReportError, ReportSpec};
use crate::report::{witness_files, words};
use crate::upgrade::suite_folder;

/// What a command has before it looks at the app.
#[derive(Debug)]
pub struct Setup {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Its kinds.
    pub kinds: Arc<Kinds>,
    /// Config, defaults included.
    pub config: Config,
    /// The app.
    pub app: AppName,
    /// Whether the user named it. If not, the input is compared with everything on the other side, whosever it is.
    pub named: bool,
    /// Where objects go.
    pub namespaces: Namespaces,
    /// The rules that run.
    pub selection: Selection,
    /// The name of the policy's source; `None` where the manifests decide.
    pub policy_source: Option<String>,
    /// Facts that come with the input.
    pub answers: BTreeMap<Need, Answer>,
    /// Waivers.
    pub waivers: Vec<Waiver>,
    /// Reports to write.
    pub reports: Vec<ReportSpec>,
    /// The files of the input, of which findings show lines.
    pub sources: Sources,
    /// Where witnesses are written.
    pub witness_dir: Option<PathBuf>,
    /// How many objects waived findings were about when they were judged first, by their fingerprints.
    accepted: Mutex<Accepted>,
    /// The app as it was seen while the kinds were read, until somebody looks at it.
    seen: Mutex<Option<Result<Observed, AppError>>>,
}

/// Reads arguments and Config, connects, and tells that the run starts.
///
/// # Errors
/// Wrong arguments or input, or no cluster.
pub async fn set_up(
    run: &mut Run,
    global: &GlobalArgs,
    command: &str,
    app: &AppArgs,
    mut config: Configured,
    preflight: &PreflightArgs,
) -> Result<Setup, CommandError> {
    let mut policy = config.resolve(preflight)?;
    let mut answers = input::models(&policy.selection)?;
    let reports = reports(&preflight.report, global)?;
    if let Some(folder) = &preflight.witness_dir {
        witness_files::prepare(folder).map_err(|error| CommandError::usage(error.to_string()))?;
    }
    let (witness_dir, sources) = (preflight.witness_dir.clone(), Sources::default());
    let Reached { connected, kinds, namespaces, app: name, seen } = reach(run, global, app, command).await?;
    let old_side = connected.cluster.configs().await?;
    if !old_side.is_empty() && !config.has_source() {
        config.judge_by(&connected.cluster.description(), &old_side)?;
        policy = config.resolve(preflight)?;
        answers = input::models(&policy.selection)?;
    }
    let policy_source = config.source_name(preflight);
    let (Policy { selection, waivers }, config) = (policy, config.config);
    run.events.send(Event::RunStart {
        command: command.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        app: name.name.clone(),
        namespace: name.namespace.clone(),
        cluster: connected.cluster.description(),
        run: run.id.clone(),
    });
    for (group, reason) in kinds.broken() {
        run.warn("broken-group", format!("API group {group} could not be read: {reason}"));
    }
    let (cluster, seen) = (connected.cluster, Mutex::new(seen));
    Ok(Setup {
        cluster,
        kinds,
        config,
        app: name,
        named: true,
        namespaces,
        selection,
        policy_source,
        answers,
        waivers,
        reports,
        sources,
        witness_dir,
        accepted: Mutex::default(),
        seen,
    })
}

impl Setup {
    /// The rules, and what has been waived until now.
    fn selection_so_far(&self) -> Selection {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Selection { accepted, ..self.selection.clone() }
    }

    /// Notes how many objects the waived findings are about; the first number stays.
    fn accept(&self, more: &Accepted) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        for (fingerprint, affected) in more {
            accepted.entry(fingerprint.clone()).or_insert(*affected);
        }
    }
}

/// Refuses a cluster that cannot be written, before anybody is shown a plan that nobody can carry out.
///
/// # Errors
/// It is a git ref or a single file.
pub fn require_writable(setup: &Setup) -> Result<(), CommandError> {
    if setup.cluster.capabilities().writable {
        return Ok(());
    }
    let message = format!("{} is read only", setup.cluster.description());
    let hint = "`pushback check` and `pushback diff` answer from it; to write, name a folder: --cluster dir:PATH";
    Err(CommandError::usage_with_hint(message, hint))
}

/// Reads `--report` flags, and sees to it that every report can be written before anything is done.
fn reports(flags: &[String], global: &GlobalArgs) -> Result<Vec<ReportSpec>, CommandError> {
    let mut reports: Vec<ReportSpec> = Vec::new();
    for flag in flags {
        let report: ReportSpec = flag.parse().map_err(|error: ReportError| CommandError::usage(error.to_string()))?;
        report.prepare().map_err(|error| CommandError::usage(error.to_string()))?;
        let standard = report.is_standard_output();
        if standard && global.output_format() == Some(OutputFormat::Json) {
            let message = format!("standard output carries JSON: report {flag} needs a file");
            return Err(CommandError::usage(message));
        }
        let same = |other: &ReportSpec| {
            if standard { other.is_standard_output() } else { same_file(&other.path, &report.path) }
        };
        if reports.iter().any(same) {
            return Err(CommandError::usage(format!("two reports go to {}", report.path.display())));
        }
        reports.push(report);
    }
    Ok(reports)
}

/// Whether two paths lead to one file, which need not exist yet.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(named).unwrap_or_else(|| path.to_owned())
    };
    real(one) == real(other)
}

/// What is known once a server has answered.
struct Reached {
    connected: Connected,
    kinds: Arc<Kinds>,
    namespaces: Namespaces,
    app: AppName,
    seen: Option<Result<Observed, AppError>>,
}

/// Connects, and reads the kinds. What else will be asked for in any case is asked for meanwhile.
async fn reach(run: &mut Run, global: &GlobalArgs, app: &AppArgs, command: &str) -> Result<Reached, CommandError> {
    let notices = run.notices();
    run.planning("connecting to the cluster");
    let work = async {
        let connected = connect(global, Some(notices), &|text| run.announce(text)).await?;
        let namespaces = connected.namespaces(&app.namespace);
        let app = namespaces.app(&app.app);
        let cluster = &*connected.cluster;
        let server = cluster.capabilities().server;
        let seen = async {
            // In a directory the lock is held from before the look.
            if server { Some(observe(cluster, &app).await) } else { None }
        };
        let version = async {
            // For preflight, which says itself what it is without it.
            if server && command != "diff" { cluster.version().await.ok().flatten() } else { None }
        };
        let others = async { Ok::<_, ClusterError>(futures::join!(seen, version)) };
        let (kinds, (seen, _)) = futures::try_join!(cluster.kinds(), others)?;
        Ok(Reached { connected, kinds, namespaces, app, seen })
    };
    let stop = run.stop.clone();
    let reached = until_stopped(stop, work).await?;
    run.uses(&reached.connected.cluster);
    if let Some(remark) = &reached.connected.remark {
        run.warn("absent-path", remark);
    }
    Ok(reached)
}

/// The same for commands without a run: cluster, kinds, namespaces.
///
/// # Errors
/// No cluster.
pub async fn reach_quietly(
    global: &GlobalArgs,
    namespace: &NamespaceArgs,
) -> Result<(Arc<dyn Cluster>, Arc<Kinds>, Namespaces), CommandError> {
    let announce = |text: &str| {
        let theme = crate::cli::run::theme(global, std::io::stderr().is_terminal());
        Output::standard().progress(&error_text::note_text(text, theme));
    };
    let connected = connect(global, None, &announce).await?;
    connected.remark.iter().for_each(|remark| announce(remark));
    let kinds = connected.cluster.kinds().await?;
    let namespaces = connected.namespaces(namespace);
    Ok((connected.cluster, kinds, namespaces))
}

/// Runs work that has written nothing yet; a signal ends it at once.
///
/// # Errors
/// The work's, or [`ExitCode::Interrupted`].
pub async fn until_stopped<T>(
    stop: tokio::sync::watch::Receiver<Stop>,
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    until_dismissed(stop, Duration::ZERO, work).await.unwrap_or_else(|code| Err(CommandError::stopped(code)))
}

/// Runs work that had better come to its end: after a signal it gets so much time.
///
/// # Errors
/// The signal's exit code, where the time was not enough.
pub async fn until_dismissed<T>(
    mut stop: tokio::sync::watch::Receiver<Stop>,
    farewell: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ExitCode> {
    let dismissed = async {
        loop {
            if let Some(code) = signals::exit_code(*stop.borrow_and_update()) {
                tokio::time::sleep(farewell).await;
                return code;
            }
            if stop.changed().await.is_err() {
                std::future::pending::<ExitCode>().await;
            }
        }
    };
    tokio::select! {
        result = work => Ok(result),
        code = dismissed => Err(code),
    }
}

/// Looks at the app. With `patience`, as one that is to be written: waits until no other run holds its lock.
///
/// # Errors
/// The record cannot be read, or not be written; the lock is held for too long.
pub async fn look(run: &Run, setup: &Setup, patience: Option<Duration>) -> Result<Observed, CommandError> {
    if !setup.named {
        return Ok(Observed::unrecorded(setup.app.clone()));
    }
    run.planning(format!("reading app {}", setup.app.name));
    let seen = setup.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut observed = match seen {
        Some(seen) => seen?,
        None => observe(&*setup.cluster, &setup.app).await?,
    };
    let Some(patience) = patience else { return Ok(observed) };
    observed.require_known_layout()?;
    let Some(record) = observed.record.clone().filter(|record| record.lock.is_some()) else { return Ok(observed) };
    let before = record.resource_version.clone();
    let events = run.events.clone();
    let on_wait = |holder: &lock::LockEntry| {
        events.send(Event::Diagnostic {
            code: DiagnosticCode::LockWaiting,
            message: format!("waiting for the app's lock, held by {}", holder.describe()),
        });
    };
    let (cluster, around) = (&*setup.cluster, &run.surroundings);
    let freed = lock::wait_until_free(cluster, &setup.app, record, around, &run.id, patience, on_wait).await?;
    if freed.is_none_or(|record| record.resource_version != before) {
        // Whoever held it has written: everything is looked at anew.
        observed = observe(&*setup.cluster, &setup.app).await?;
        observed.require_known_layout()?;
    }
    Ok(observed)
}

/// Whether another run has written since the app was looked at: what was planned then need not make sense.
/// Where that cannot be told, no.
pub async fn has_moved(setup: &Setup, before: &RecordState) -> bool {
    // In a directory the lock is held from before the look.
    setup.cluster.capabilities().server
        && observe(&*setup.cluster, &setup.app).await.is_ok_and(|now| record_state(&now) != *before)
}

/// uid and resourceVersion of an app's record; `None` where there is none.
pub type RecordState = Option<(String, String)>;

/// The state of the record that was observed.
pub fn record_state(observed: &Observed) -> RecordState {
    observed.record.as_ref().map(|record| (record.uid.clone(), record.resource_version.clone()))
}

/// The app's label value: the record's, or a new one.
pub fn label_value(run: &Run, setup: &Setup, observed: &Observed) -> String {
    match &observed.record {
        Some(record) => record.label_value().to_owned(),
        None if setup.cluster.capabilities().server => run.surroundings.new_app_label(),
        // Nothing is stamped in a directory, and nothing there may differ from run to run.
        None => setup.app.name.clone(),
    }
}

/// Plans an apply.
///
/// # Errors
/// Wrong input, or the cluster.
pub async fn plan_apply(
    run: &Run,
    setup: &Setup,
    observed: Observed,
    manifests: Vec<Manifest>,
    input: &InputArgs,
    arguments: &PlanArgs,
    tolerate_forbidden: bool,
) -> Result<(Plan, Vec<InputWarning>), CommandError> {
    let placement = Placement {
        default_namespace: setup.namespaces.objects.clone(),
        into_namespace: input.into_ns.clone(),
        map_namespaces: input.map_ns.clone(),
    };
    let mut warnings = Vec::new();
    let unanswered = manifests.iter().filter(|manifest| is_of_broken_group(manifest, &setup.kinds)).count();
    let mut wanted = desired::prepare(manifests, &setup.kinds, &placement, &mut warnings).map_err(|errors| {
        // Nothing is wrong with the input where a part of the cluster does not answer.
        let code = if errors.len() == unanswered { ExitCode::Unreachable } else { ExitCode::Usage };
        CommandError { code, errors }
    })?;
    let default_strategy = UpdateStrategy::of(&arguments.apply_default_update_strategy);
    wanted.iter_mut().for_each(|wanted| wanted.update_by_default(default_strategy));
    let options = plan::Options {
        no_prune: arguments.patch,
        recheck: arguments.recheck,
        compare_definitions: !setup.named,
        override_ownership: !setup.named
            || arguments.dangerous_override_ownership_of_existing_resources
            || !arguments.ownership_override_allowed_apps.is_empty(),
        override_allowed_apps: arguments.ownership_override_allowed_apps.clone(),
        default_label_scoping: arguments.default_label_scoping_rules,
        nonce: run.surroundings.new_app_label(),
        tolerate_forbidden,
    };
    run.planning(format!("comparing {} with the cluster", words::counted(wanted.len(), "object")));
    let label_value = label_value(run, setup, &observed);
    let request = plan::Request {
        cluster: &*setup.cluster,
        kinds: &setup.kinds,
        config: &setup.config,
        observed,
        label_value,
        options: &options,
    };
    Ok((plan::build(request, wanted).await?, warnings))
}

/// Whether the cluster cannot tell an object's kind.
fn is_of_broken_group(manifest: &Manifest, kinds: &Kinds) -> bool {
    let object = &manifest.object;
    kinds.find(&object.group, &object.version, &object.kind).is_none() && kinds.broken_group(&object.group).is_some()
}

/// Shows a plan.
pub fn show_plan(run: &Run, setup: &Setup, plan: &Plan, as_text: bool) {
    for warning in &plan.warnings {
        run.events.send(Event::Warning {
            code: warning.code.to_owned(),
            message: warning.message.clone(),
            object: warning.object.map(|index| plan.objects[index].change.object.clone()),
            position: None,
        });
    }
    let view = plan::View { config: &setup.config, text: as_text };
    let (counts, changes) = plan::planned_lines(plan, &view);
    run.events.send(Event::Plan { counts, changes, elapsed: run.elapsed().into() });
}

/// What preflight came to.
#[derive(Debug)]
pub struct Judged {
    /// For people and reports.
    pub report: RunReport,
    /// To judge again what changes until it is written.
    pub second_look: Arc<SecondLook>,
}

/// Runs preflight over a plan, shows what it came to, and writes the reports.
///
/// # Errors
/// A report cannot be written.
pub async fn judge(run: &Run, setup: &Setup, plan: &Plan, preflight: &PreflightArgs) -> Result<Judged, CommandError> {
    let started = run.elapsed();
    if setup.selection.is_switched_off() {
        run.warn("preflight-off", "no preflight rule runs: they are switched off");
    }
    // Whatever is waived now covers as many objects as now, should the plan be made anew; what an unfinished run waived,
    // as many as then.
    if let Some(own) = plan.observed.record.as_ref().and_then(|record| record.own.as_ref()) {
        setup.accept(&own.accepted);
    }
    run.planning("running preflight");
    let Ran { report, facts, mut memories } = check::run(
        &*setup.cluster,
        &setup.kinds,
        plan,
        setup.selection_so_far(),
        setup.answers.clone(),
        &setup.waivers,
        &run.surroundings.today(),
    )
    .await;
    setup.accept(&report.accepted());
    show_findings(run, setup, plan, &report.findings);
    run.events.send(Event::Preflight {
        outcome: report.outcome,
        rules: report.rules.iter().map(rule_line).collect(),
        elapsed: run.elapsed().saturating_sub(started).into(),
    });
    if let Some(compared) = upgrade_diff::compared(&mut memories) {
        write_experiments(run, setup, &compared)?;
    }
    if let Some(path) = &preflight.facts_out {
        write_facts(path, facts.clone(), &setup.config)?;
    }
    write_reports(run, setup, plan, &report)?;
    let second_look = SecondLook {
        cluster: Arc::clone(&setup.cluster),
        kinds: Arc::clone(&setup.kinds),
        selection: setup.selection_so_far(),
        facts,
        waivers: setup.waivers.clone(),
        today: run.surroundings.today(),
    };
    Ok(Judged { report, second_look: Arc::new(second_look) })
}

/// Writes the experiments that test the upgrade, where rule UpgradeDiff is told to, refused or not.
fn write_experiments(run: &Run, setup: &Setup, compared: &Compared) -> Result<(), CommandError> {
    for selected in setup.selection.rules.iter().filter(|selected| selected.rule.meta().name == upgrade_diff::NAME) {
        let Some(folder) = upgrade_diff::experiments_folder(&selected.settings) else { continue };
        let suite = generate::generate(&compared.old, &compared.new, &compared.diff, &generate::Options::default());
        suite_folder::write(Path::new(folder), &suite).map_err(|error| CommandError::usage(error.to_string()))?;
        let message = words::written_experiments(suite.experiments.len(), folder);
        run.events.send(Event::Diagnostic { code: DiagnosticCode::ExperimentsWritten, message });
    }
    Ok(())
}

/// Writes the witnesses and reports that were asked for.
///
/// # Errors
/// One cannot be written.
pub fn write_reports(run: &Run, setup: &Setup, plan: &Plan, report: &RunReport) -> Result<(), CommandError> {
    if let Some(folder) = &setup.witness_dir {
        witness_files::write(folder, &report.findings).map_err(|error| CommandError::usage(error.to_string()))?;
    }
    if setup.reports.is_empty() {
        return Ok(());
    }
    let report = check_report(setup, plan, report);
    for spec in &setup.reports {
        if spec.is_standard_output() {
            // A plan made anew is judged anew; of its reports, the last one is printed.
            run.set_document(spec.document(&report));
        } else {
            spec.write(&report).map_err(|error| CommandError::usage(error.to_string()))?;
        }
    }
    Ok(())
}

/// The check report of a run.
pub fn check_report(setup: &Setup, plan: &Plan, report: &RunReport) -> CheckReport {
    let mut changes = Counts::default();
    plan.objects.iter().for_each(|planned| changes.add(planned.change.operation));
    CheckReport {
        rules: report.rules.iter().map(rule_line).collect(),
        changes,
        findings: report.findings.clone(),
        policy: PolicyReport::of(setup.policy_source.clone(), report),
        working_directory: std::env::current_dir().unwrap_or_default(),
        ..CheckReport::new(&setup.app.name, &setup.cluster.description(), report.outcome)
    }
}

/// Shows findings, with the lines of the input that they are about.
pub fn show_findings(run: &Run, setup: &Setup, plan: &Plan, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    let mut sources = setup.sources.clone();
    let masker = crate::config::mask::Masker::new(&setup.config.diff_mask_rules);
    for change in plan.objects.iter().map(|planned| &planned.change) {
        if let (Some(desired), Some(positions)) = (&change.desired, &change.positions)
            && !masker.masked_paths(desired).is_empty()
        {
            sources.hide(positions.file());
        }
    }
    let places: Vec<_> = findings.iter().map(|finding| finding.position.as_ref()).collect();
    for (finding, excerpt) in findings.iter().zip(sources.excerpts(&places)) {
        run.events.send(Event::Finding { finding: Box::new(finding.clone()), excerpt: excerpt.map(Box::new) });
    }
}

fn rule_line(rule: &pushback_preflight::judge::RuleResult) -> RuleLine {
    RuleLine {
        name: rule.name.clone(),
        outcome: rule.outcome,
        breaking: rule.breaking,
        unknown: rule.unknown,
        changes: rule.changes,
        waived: rule.waived,
        reasons: rule.unable.iter().chain(&rule.skipped).cloned().collect(),
    }
}

fn write_facts(path: &Path, mut facts: Facts, config: &Config) -> Result<(), CommandError> {
    let masker = crate::config::mask::Masker::new(&config.diff_mask_rules);
    let mut numbers = crate::config::mask::MaskNumbers::default();
    let changes = facts.changes.changes.iter_mut();
    let of_changes = changes.flat_map(|change| [&mut change.desired, &mut change.live, &mut change.result]).flatten();
    let of_answers = facts.answers.values_mut().filter_map(|answer| match answer {
        Answer::Object { object } => object.as_mut(),
        _ => None,
    });
    for object in of_changes.chain(of_answers) {
        let masked = masker.masked_paths(object);
        let object = Arc::make_mut(object);
        // In a folder, the version is a digest of the content: short values could be found by trying them.
        if let Some(Value::Object(metadata)) = object.get_mut("metadata").filter(|_| !masked.is_empty()) {
            metadata.shift_remove("resourceVersion");
        }
        masker.mask(object, &mut numbers);
    }
    let text = serde_json::to_string_pretty(&facts).map_err(|error| CommandError::usage(error.to_string()))?;
    report_file::replace(path, text.as_bytes())
        .map_err(|error| CommandError::usage(format!("failed to write {}: {error}", path.display())))
}
