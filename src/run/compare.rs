//! Comparing: an apply that stops after its plan or the verdict. Nothing is written.

use std::sync::Arc;

use pushback_deploy::check::second_look::SecondLook;
use pushback_deploy::plan::{Plan, Planned};
use pushback_events::Event;
use pushback_preflight::judge::{self, RunReport};
use pushback_preflight::waiver::Accepted;

use super::base::{Base, OpenedBase};
use super::error::CommandError;
use super::input::InputSources;
use super::options::{InputOptions, PlanOptions, RunOptions};
use super::outcome::End;
use super::planning::{self, PlanDisplay};
use super::running::{Run, free_aside};
use super::setup::{Setup, connected_before, set_up};
use super::signals::until_stopped;
use super::{allowed, base, input, judging, record};

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Cluster, app and rules.
    pub options: RunOptions,
    /// The input.
    pub input: InputOptions,
    /// Planning options.
    pub plan: PlanOptions,
    /// Requirement on the existence of the base.
    pub base: Base,
    /// Whether changes are shown as text.
    pub as_text: bool,
}

impl Compare {
    /// Plans, and runs the rules.
    ///
    /// # Errors
    /// Invalid input, or no cluster.
    pub async fn check(self, run: &mut Run) -> Result<End, CommandError> {
        let Compared { plan, report, .. } = self.compare(run, true).await?;
        let end = End::of_check(&report);
        free_aside((plan, report));
        Ok(end)
    }

    /// Plans; with `is_judged`, runs the rules too. With `exit_status`, the exit code says whether there are changes.
    ///
    /// # Errors
    /// Invalid input, or no cluster.
    pub async fn diff(self, run: &mut Run, is_judged: bool, exit_status: bool) -> Result<End, CommandError> {
        let Compared { setup, plan, report, .. } = self.compare(run, is_judged).await?;
        record::write_file(run, &setup).await?;
        if setup.observer.is_some() && judging::only_the_server_refuses(&report) {
            // A tool whose diff asks no server shows what it would send, whether or not that is refused.
            plan.objects.iter().for_each(|planned| warn_of_refusal(run, planned));
        } else if report.outcome.refuses() {
            let unable = || report.rules.iter().flat_map(|rule| rule.unable.clone()).collect::<Vec<_>>().join("\n");
            let error = if is_judged { String::new() } else { unable() };
            return Ok(End { error, ..End::refused(&report) });
        }
        Ok(End::of_diff(plan.has_changes() || setup.counts_unwritten(&plan), exit_status))
    }

    /// Plans, and runs the rules if that is asked for.
    pub(super) async fn compare(mut self, run: &mut Run, is_judged: bool) -> Result<Compared, CommandError> {
        self.input = self.input.of_run(&self.options);
        self.input.load.compared = base::side_of_manifests(&self.options);
        self.plan.options.tolerate_forbidden = true;
        let mut given = connected_before(run, &self.options, input::read(&self.input)).await?;
        let mut read = given.take_sources();
        // Errors in the command line come before those of the base.
        given.config.resolve(&self.options.preflight)?;
        self.options.preflight.reports.iter().try_for_each(|reports| reports.prepare())?;
        let mut manifests = match self.input.load.digests {
            true => read.manifests.clone(),
            // Nothing is saved.
            false => std::mem::take(&mut read.manifests),
        };
        let variants = std::mem::take(&mut given.input.variants);
        let OpenedBase { warnings: base_warnings, layers, rendered } = base::open(
            &mut self.options,
            &self.plan.placement,
            &self.input.load,
            (&mut manifests, variants),
            self.base,
        )?;
        let setup = set_up(run, &self.options, given.config, given.input.sources).await?;
        run.show_rendered(given.input.rendered.iter().chain(&rendered));
        run.warn_input(&given.input.warnings);
        run.warn_input(&base_warnings);
        let work = async {
            let observed = record::read_current(run, &setup, None).await?;
            let (mut plan, warnings) = planning::plan_apply(run, &setup, observed, manifests, &self.plan).await?;
            run.warn_input(&warnings);
            for (base, manifests) in layers {
                let further = planning::plan_variants(run, &setup, base, manifests, &self.plan).await?;
                plan.add_variants(further, &setup.config)?;
            }
            planning::show(run, &setup, &plan, PlanDisplay { as_text: self.as_text, ..PlanDisplay::default() });
            allowed::check(&setup, &plan, &self.plan)?;
            let (report, facts) = match is_judged {
                true => {
                    let judged = judging::judge(run, &setup, &plan, &self.options.preflight).await?;
                    (judged.report, Some(judged.second_look))
                }
                false => (told_by_the_server(run, &setup, &plan)?, None),
            };
            Ok((plan, report, facts))
        };
        let (plan, report, facts) = until_stopped(run.stop.clone(), work).await?;
        Ok(Compared { setup, plan, report, facts, read })
    }
}

/// What a comparison came to.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) setup: Setup,
    pub(super) plan: Plan,
    pub(super) report: RunReport,
    /// What the rules judged, if they ran.
    pub(super) facts: Option<Arc<SecondLook>>,
    pub(super) read: InputSources,
}

fn warn_of_refusal(run: &Run, planned: &Planned) {
    let Some(refused) = &planned.refused else { return };
    run.events.send(Event::Warning {
        code: "server".to_owned(),
        message: format!("the server refuses {}: {}", planned.object, refused.error.message),
        object: Some(planned.object.clone()),
        position: None,
    });
}

/// Reports problems found while planning, without running any rule.
fn told_by_the_server(run: &Run, setup: &Setup, plan: &Plan) -> Result<RunReport, CommandError> {
    let report = judge::judge(Vec::new(), plan.told_by_the_server(), &[], &Accepted::new(), &run.environment.today());
    judging::show_findings(run, setup, plan, &report.findings);
    judging::report(run, setup, plan, &report)?;
    Ok(report)
}
