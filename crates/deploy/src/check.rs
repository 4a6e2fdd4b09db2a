//! Gathers the facts that the selected rules need, together and concurrently, and runs the rules.

pub mod ahead;
mod cascade;
pub mod facts_file;
mod gather;
mod images;
mod pod_admission;
mod programs;
pub mod release_masks;
pub mod report;
pub mod second_look;

use pushback_cluster::Kinds;
use pushback_preflight::facts::{ClusterFacts, ClusterSide, Facts};
use pushback_preflight::judge::RunReport;
use pushback_preflight::rule::{Artefact, Judgement};
use pushback_preflight::selection::Selection;
use pushback_preflight::session::Session;
use pushback_preflight::waiver::Waiver;
use pushback_preflight::{CascadeSize, is_shared, policy};

use self::ahead::Ahead;
use crate::plan::{Plan, Planned};

/// Result of running the rules.
#[derive(Debug)]
pub struct RuleResults {
    /// Verdict and findings.
    pub report: RunReport,
    /// The facts that they judged.
    pub facts: Facts,
    /// What the rules produced besides findings.
    pub artefacts: Vec<Artefact>,
}

/// Runs the selected rules over a plan for the cluster that has been asked ahead. `known` holds what is known before
/// that: answers, the command line, and the Kubernetes version that the user asks about.
///
/// Missing facts make a rule `unable`; they never fail the run here.
pub async fn run(
    ahead: &Ahead,
    kinds: &Kinds,
    plan: &Plan,
    selection: Selection,
    known: Facts,
    waivers: &[Waiver],
    today: &str,
) -> RuleResults {
    let cluster = ahead.cluster();
    let server = cluster.capabilities().server;
    let version = cluster.version().await.ok().flatten().map(|version| (version.major, version.minor));
    let cluster_facts = ClusterFacts {
        description: cluster.description(),
        side: if server { ClusterSide::Server } else { ClusterSide::Directory },
        version,
        asked_version: known.cluster.asked_version,
    };
    let facts = Facts { changes: plan.change_set(), cluster: cluster_facts, ..known };
    let mut session = Session::new(selection, facts);
    answer(ahead, kinds, &mut session).await;
    let artefacts = session.artefacts();
    let (report, facts) = session.finish(plan.told_by_the_server(), waivers, today);
    RuleResults { report, facts, artefacts }
}

/// Finds what is deleted together with the objects of a plan, whichever rules run. The answers are kept for the rules.
/// A folder does not show it.
pub async fn cascades(ahead: &Ahead, kinds: &Kinds, plan: &Plan) -> Vec<CascadeSize> {
    let deletes = plan.objects.iter().any(Planned::ends_live_object);
    let Ok(selection) = policy::select(Some(&["DestructiveChange".to_owned()]), None) else { return Vec::new() };
    if !deletes || !ahead.cluster().capabilities().server {
        return Vec::new();
    }
    let mut session = Session::of(selection, plan.change_set(), ClusterFacts::default());
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        let answers = gather::gather(ahead.cluster(), kinds, &session, needs).await;
        session.answer(answers);
    }
    let (_, facts) = session.finish(Judgement::default(), &[], "");
    let sizes = pushback_preflight::cascade_sizes(&facts);
    ahead.keep(facts.answers.into_iter().filter(|(need, _)| is_shared(need)));
    sizes
}

/// Answers the rules' questions until there are no more.
async fn answer(ahead: &Ahead, kinds: &Kinds, session: &mut Session) {
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        let (answers, open) = ahead.answers(needs).await;
        session.answer(answers);
        let answers = gather::gather(ahead.cluster(), kinds, session, open).await;
        session.answer(answers);
    }
}
