//! Runs preflight on a plan: the result is shown, reported, and kept to judge single changes again before their write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pushback_crd::definition::{CONVERTING, CarryOver};
use pushback_deploy::check::facts_file::{self, FactsFile};
use pushback_deploy::check::release_masks::ReleaseMasks;
use pushback_deploy::check::report::ReportParts;
use pushback_deploy::check::second_look::{DependentsSearch, SecondLook};
use pushback_deploy::check::{self, RuleResults};
use pushback_deploy::plan::saved::digests::plain;
use pushback_deploy::plan::waves::Waves;
use pushback_deploy::plan::{self, Plan, Planned};
use pushback_events::{DiagnosticCode, Event, RuleLine};
use pushback_manifest::config::Config;
use pushback_objects::text::written_experiments;
use pushback_objects::{Finding, ObjectExt, Severity};
use pushback_preflight::experiment::suite::Suite;
use pushback_preflight::facts::ClusterFacts;
use pushback_preflight::judge::RunReport;
use pushback_preflight::replay::JudgedBy;
use pushback_preflight::rule::Artefact;
use pushback_preflight::{Answer, Facts, Need, Waiver, registry};
use pushback_system::atomic_file;
use serde_json::Value;

use super::error::CommandError;
use super::options::PreflightOptions;
use super::running::Run;
use super::setup::Setup;

/// Result of preflight.
#[derive(Debug)]
pub struct PreflightResult {
    /// The report to show and write.
    pub report: RunReport,
    /// Judges changes again that differ by the time they are written.
    pub second_look: Arc<SecondLook>,
}

/// Whether nothing stands against the plan but what the server said of single objects.
#[must_use]
pub fn only_the_server_refuses(report: &RunReport) -> bool {
    let refuses = |finding: &&Finding| finding.severity == Severity::Error && finding.waived.is_none();
    let mut refusals = report.findings.iter().filter(refuses).peekable();
    refusals.peek().is_some()
        && refusals.all(|finding| finding.rule == registry::SERVER)
        && report.rules.iter().all(|rule| rule.unable.is_empty())
}

/// Runs preflight on a plan, shows the result, and writes the reports.
///
/// # Errors
/// A report cannot be written.
pub async fn judge(
    run: &Run,
    setup: &Setup,
    plan: &Plan,
    preflight: &PreflightOptions,
) -> Result<PreflightResult, CommandError> {
    let started = run.elapsed();
    if setup.selection.is_switched_off() {
        run.warn("preflight-off", "no preflight rule runs: they are switched off");
    }
    // If the plan is repeated, a waiver covers as many objects as it did first; for an unfinished run, as many as it
    // did then.
    if let Some(own) = plan.observed.record.as_ref().and_then(|record| record.own.as_ref()) {
        setup.accept(&own.accepted);
    }
    let mut waivers: Vec<Waiver> = setup.waivers.iter().cloned().chain(carried_over(plan)).collect();
    waivers.extend(converted(plan).filter(|(planned, _)| has_begun(planned)).map(|(_, waiver)| waiver));
    run.planning("running preflight");
    let (selection, today) = (setup.selection_so_far(), run.environment.today());
    let known = Facts {
        cluster: ClusterFacts { asked_version: preflight.kubernetes_version, ..ClusterFacts::default() },
        answers: setup.answers.clone(),
        invocation: run.invocation(),
        ..Facts::default()
    };
    let RuleResults { mut report, facts, artefacts } =
        check::run(&setup.ahead, &setup.kinds, plan, selection.clone(), known, &waivers, &today).await;
    ReleaseMasks::new(&setup.config).hide(&facts.changes, &mut report.findings);
    setup.accept(&report.accepted());
    show_findings(run, setup, plan, &report.findings);
    run.events.send(Event::Preflight {
        outcome: report.outcome,
        rules: report.rules.iter().map(RuleLine::from).collect(),
        left_out: report.left_out.clone(),
        broad_waivers: report.broad_waivers.clone(),
        elapsed: run.elapsed().saturating_sub(started).into(),
    });
    artefacts.iter().try_for_each(|artefact| write(run, artefact))?;
    if let Some(path) = &preflight.facts_out {
        let judged_by = JudgedBy::of(&selection, &waivers, &today, plan.told_by_the_server());
        let parts = report_parts(setup, plan);
        let named = facts_file::Digests {
            report: facts_file::digest_of(&parts.clone().report(&report, &today)),
            answers: digest_of_answers(facts.answers.clone(), &setup.config),
        };
        let facts = masked(facts.clone(), &setup.config);
        write_facts(path, &FactsFile::new(facts, judged_by, report.clone(), parts, named))?;
    }
    self::report(run, setup, plan, &report)?;
    let second_look = SecondLook {
        cluster: Arc::clone(&setup.cluster),
        kinds: Arc::clone(&setup.kinds),
        selection: setup.selection_so_far(),
        facts,
        waivers: waivers.into_iter().chain(converted(plan).map(|(_, waiver)| waiver)).collect(),
        today,
        dependents: DependentsSearch::default(),
    };
    Ok(PreflightResult { report, second_look: Arc::new(second_look) })
}

/// Accepts what `--storage` proves: no object is left in a version that is removed.
fn carried_over(plan: &Plan) -> impl Iterator<Item = Waiver> {
    plan.objects.iter().flat_map(|planned| {
        // Objects may still be stored in the present storage version afterwards.
        let proved = |check: &str| match planned.difference().carry_over {
            Some(CarryOver::Bridge(_)) => true,
            Some(CarryOver::Before) => check != "storageVersionChange",
            // Nothing is moved, or only after the CRD is written.
            Some(CarryOver::Done | CarryOver::After | CarryOver::WebhookFirst(_)) | None => false,
        };
        let checks = registry::answered_by_moving_objects().filter(|(_, check)| proved(check));
        let reason = "--storage: its objects are moved first, and that no object is left in the version is proved";
        checks.map(|(rule, check)| own_waiver(planned, rule, check, reason)).collect::<Vec<_>>()
    })
}

/// While objects are converted by a plan, the live CRD has an open schema for their new version. Every object is
/// validated against the new schema before that begins.
fn converted(plan: &Plan) -> impl Iterator<Item = (&Planned, Waiver)> {
    let crds = plan.objects.iter().filter(|planned| planned.difference().conversion.is_some() || has_begun(planned));
    crds.flat_map(move |planned| {
        let reason =
            "its objects are being converted by a plan; each was validated against the new schema before that began";
        let checks = registry::answered_by_converting_objects();
        checks.map(|(rule, check)| (planned, own_waiver(planned, rule, check, reason))).collect::<Vec<_>>()
    })
}

/// A waiver that follows from what the run does, for one check of one object.
fn own_waiver(planned: &Planned, rule: &str, check: &str, reason: &str) -> Waiver {
    Waiver {
        rule: Some(rule.to_owned()),
        check: Some(check.to_owned()),
        object: Some(format!("{} {}", planned.object.kind, planned.object.name)),
        reason: reason.to_owned(),
        may_be_unused: true,
        ..Waiver::default()
    }
}

fn has_begun(planned: &Planned) -> bool {
    planned.live.as_deref().is_some_and(|live| live.annotation(CONVERTING).is_some())
}

/// Writes a rule's artefact, whether or not the plan is refused.
fn write(run: &Run, Artefact { folder, suite }: &Artefact) -> Result<(), CommandError> {
    write_suite(folder, suite)?;
    let message = written_experiments(suite.experiments.len(), folder);
    run.events.send(Event::diagnostic(DiagnosticCode::ExperimentsWritten, message));
    Ok(())
}

#[cfg(feature = "upgrade")]
fn write_suite(folder: &str, suite: &Suite) -> Result<(), CommandError> {
    let written = pushback_upgrade::suite_folder::write(Path::new(folder), suite);
    written.map_err(|error| CommandError::usage(error.to_string()))
}

#[cfg(not(feature = "upgrade"))]
fn write_suite(folder: &str, _: &Suite) -> Result<(), CommandError> {
    Err(CommandError::built_without("upgrade", &format!("cannot write experiments to {folder}")))
}

/// Hands the preflight report to whoever asked for it.
///
/// # Errors
/// A report cannot be written.
pub fn report(run: &Run, setup: &Setup, plan: &Plan, report: &RunReport) -> Result<(), CommandError> {
    match &setup.reports {
        Some(reports) => reports.take(&report_parts(setup, plan).report(report, &run.environment.today())),
        None => Ok(()),
    }
}

/// What the report says besides the verdict.
fn report_parts(setup: &Setup, plan: &Plan) -> ReportParts {
    let view = plan::View { config: &setup.config, text: false };
    let (changes, lines) = plan::planned_lines(plan, &view);
    ReportParts {
        app: setup.app.name.clone(),
        cluster: setup.cluster.description(),
        policy: setup.policy_source.clone(),
        changes,
        plan: lines,
        waves: Waves::of(plan),
    }
}

/// Shows findings, with the input lines that they concern.
pub fn show_findings(run: &Run, setup: &Setup, plan: &Plan, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    let mut sources = setup.sources.clone();
    let masker = pushback_manifest::config::mask::Masker::new(&setup.config.diff_mask_rules);
    for planned in &plan.objects {
        if let (Some(desired), Some(positions)) = (&planned.desired, &planned.positions)
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

/// Digest of what the rules knew of the cluster; Secrets are masked before it is made.
pub fn digest_of_answers(answers: BTreeMap<Need, Answer>, config: &Config) -> String {
    let facts = masked(Facts { answers, ..Facts::default() }, config);
    let answers = serde_json::to_value(facts).unwrap_or_default();
    plain(&answers["answers"].to_string())
}

fn write_facts(path: &Path, facts: &FactsFile) -> Result<(), CommandError> {
    atomic_file::replace(path, facts.render().as_bytes())
        .map_err(|error| CommandError::usage(format!("failed to write {}: {error}", path.display())))
}

/// The facts with Secrets masked.
fn masked(mut facts: Facts, config: &Config) -> Facts {
    let masker = pushback_manifest::config::mask::Masker::new(&config.diff_mask_rules);
    let mut numbers = pushback_manifest::config::mask::MaskNumbers::default();
    let of_release = ReleaseMasks::new(config);
    for answer in facts.answers.values_mut() {
        if let Answer::Program { output } = answer {
            of_release.hide_in(&facts.changes, output);
        }
    }
    of_release.hide_taken(&mut facts.changes);
    let changes = facts.changes.changes.iter_mut();
    let of_changes = changes.flat_map(|change| [&mut change.desired, &mut change.live, &mut change.result]).flatten();
    let kept = facts.changes.kept.iter_mut();
    let of_answers = facts.answers.values_mut().filter_map(|answer| match answer {
        Answer::Object { object } => object.as_mut(),
        _ => None,
    });
    for object in of_changes.chain(kept).chain(of_answers) {
        let masked = masker.masked_paths(object);
        let object = Arc::make_mut(object);
        // In a directory the version is a digest of the content: short secret values could be guessed from it.
        if let Some(Value::Object(metadata)) = object.get_mut("metadata").filter(|_| !masked.is_empty()) {
            metadata.shift_remove("resourceVersion");
        }
        masker.mask(object, &mut numbers);
    }
    facts
}
