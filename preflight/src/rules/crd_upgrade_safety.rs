//! Rule CRDUpgradeSafety: whether a CustomResourceDefinition can change without breaking stored objects and clients.
//! It judges the definition as a whole, the lifecycle of its versions, and each schema, by proof or with a witness.

pub(super) mod backend;
mod checks;
mod clients;
pub(super) mod deletion;
mod derived;
mod invalid;
mod live;
pub(super) mod lost_field;
mod loud;
mod names;
mod profile;
mod projection;
mod readers;
mod recreated;
mod remedy;
mod renamed_kind;
mod subject;
mod usage;
pub(crate) mod version_clients;
mod ways_out;
mod whole;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use pushback_crd::definition::{self, Crd, Schemas, Upgrade};
use pushback_crd::stack;
use pushback_objects::finding::{Finding, FindingRef, Severity, Verdict};
use pushback_objects::object::ObjectRef;
use pushback_objects::remedy::Remedy;
use serde::Deserialize;
use serde_json::Value;

use crate::facts::{Change, ChangeSet, ClusterSide, Facts, Need, Needs, Operation};
use crate::parallel;
use crate::rule::{Checked, Judgement, Memory, Order, Rule, RuleMeta, Setting, SettingKind, Settings};
use checks::{Check, OnlyRejects, Refused, Versions};
use profile::Profile;
pub(crate) use subject::NAME;
use subject::{Subject, sides};

use super::levels::{Level, Levels};
use super::planned_objects::PlannedObjects;

const DELETION: deletion::Names = deletion::Names {
    rule: NAME,
    deletion: checks::DELETION,
    replacement: "crdReplacement",
    replacement_loss: "crdReplacementLoss",
};

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrdUpgradeSafety;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "a CustomResourceDefinition changes without breaking stored objects and clients",
    docs: include_str!("crd_upgrade_safety/docs.md"),
    checks: &checks::LINES,
    settings: &[
        Setting {
            name: "profile",
            doc: "what counts as breaking: what affects stored objects and writers (`data`), what the published lists of kapp and OLM prohibit (`published`), or also what readers notice (`strict`)",
            kind: SettingKind::Choice(&["data", "published", "strict"]),
            // What the lists prohibit and what harms data overlap; neither contains the other.
            order: Order::Words(&["strict", "data"]),
        },
        Setting {
            name: "liveObjects",
            doc: "what live objects count for: `report` says how many are affected; `auto` also makes a warning of a change that only rejects writes and affects none of the objects on an API server; `decide` does so with every breaking change, on a folder too; `off` does not list them",
            kind: SettingKind::Choice(&["report", "auto", "decide", "off"]),
            // Without a listing, no finding becomes a warning, and no objects are counted.
            order: Order::Words(&["report", "off", "auto", "decide"]),
        },
        Setting {
            name: "versions",
            doc: "removing, or no longer serving, a version that nothing is stored in",
            order: Order::Each,
            kind: SettingKind::Map(&[
                Setting {
                    name: "removed",
                    doc: "a served version is removed: `error` refuses unless it was deprecated before, `warn` only warns",
                    kind: SettingKind::Choice(&["error", "warn"]),
                    order: Order::ERROR,
                },
                Setting {
                    name: "unserved",
                    doc: "a version is no longer served: `error` refuses unless it was deprecated before, `warn` only \
                          warns",
                    kind: SettingKind::Choice(&["error", "warn"]),
                    order: Order::ERROR,
                },
            ]),
        },
        Setting {
            name: "checks",
            doc: "what happens to findings of single checks: `error` refuses, `warn` only warns, `off` says nothing",
            kind: SettingKind::Map(&checks::SETTINGS),
            order: Order::Each,
        },
    ],
    needs: "the live definition with its status; the objects of its kind where a finding is about them or about a \
            version that is removed, or where it is deleted or replaced; the Service of a conversion webhook that the manifests \
            do not have, and whether a Pod is behind it; the CRDs of the cluster where one gets a new name",
    unasked: &[("liveObjects", "auto")],
    judges_derived_crds: true,
    ..RuleMeta::COMMON
};

/// The rule's own settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OwnSettings {
    profile: Profile,
    live_objects: live::Mode,
    versions: Versions,
    checks: Levels,
}

impl Rule for CrdUpgradeSafety {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, changes: &ChangeSet, _settings: &Settings) -> Needs {
        changes
            .crds()
            .filter(|change| deletion::concerns(change))
            .flat_map(|change| deletion::needs(change, changes))
            .chain(backend::needs(changes))
            .chain(names::need(changes))
            .collect()
    }

    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked {
        judge(facts, &settings.own(), memory)
    }

    fn fold(&self, facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[&Value]) {
        stack::with_room(|| fold(facts, need, memory, state, page));
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        ways_out::ways_out(facts, finding)
    }
}

/// The line that kapp and OLM print for a finding of this rule:
/// `CustomResourceDefinition N failed upgrade safety validation. "NoScopeChange" validation failed: …`.
#[must_use]
pub fn published_line(finding: &Finding) -> Option<String> {
    let check = checks::find(&finding.check).filter(|_| finding.rule == NAME)?;
    let validator = Some(check.validator).filter(|name| !name.is_empty())?;
    Some(format!(
        "CustomResourceDefinition {} failed upgrade safety validation. \"{validator}\" validation failed: {}",
        finding.object.name, finding.message
    ))
}

/// The finding for a rejection by the API server, identified by the field that the server names and the value that it
/// quotes.
pub(crate) fn finding_for_refusal(object: &ObjectRef, field: &str, value: Option<&str>) -> Option<FindingRef> {
    if !object.is_definition() {
        return None;
    }
    let refuses = |check: &&Check| match check.refused {
        Refused::Never => false,
        Refused::At(fields) => fields.contains(&field),
        Refused::OfVersion(start) => field.starts_with(start),
    };
    let check = checks::CHECKS.iter().find(refuses)?;
    let (version, path) = match check.refused {
        Refused::OfVersion(_) => (Some(value?), None),
        Refused::At(_) | Refused::Never => (None, Some(field)),
    };
    Some(FindingRef {
        rule: NAME.to_owned(),
        check: check.name.to_owned(),
        version: version.map(str::to_owned),
        path: path.map(str::to_owned),
    })
}

/// The check about objects in a version that is removed, which is answered once no object is left in it.
pub(crate) const ANSWERED_BY_MOVING_OBJECTS: &str = "storedVersionRemoval";

/// Checks that are answered once every object is converted by a plan and held against the new schema.
pub(crate) fn answered_by_converting_objects() -> impl Iterator<Item = &'static str> {
    // The CRD that takes objects of both shapes has an open schema; each object is held against the new one.
    const OF_OPEN_SCHEMA: [&str; 3] = ["crossVersionLoss", "crossVersionRejection", "preserveUnknownFields"];
    let is_answered = |check: &&Check| {
        check.is_of_a_schema || OF_OPEN_SCHEMA.contains(&check.name) || check.name == ANSWERED_BY_MOVING_OBJECTS
    };
    checks::CHECKS.iter().filter(is_answered).map(|check| check.name)
}

fn judge(facts: &Facts, settings: &OwnSettings, memory: &mut Memory) -> Checked {
    let changes: Vec<&Change> = facts.changes.crds().collect();
    let size = |change: &&Change| change.positions.as_ref().map_or(0, |positions| positions.node_count());
    let analysis = |change: &&Change| Analysis::of(change, facts, settings);
    let Analyses(analyses) =
        memory.keep(|| Analyses(parallel::map_heaviest_first(&changes, size, stack::SIZE, analysis)));
    // Objects are listed only if a finding depends on them.
    let needs: BTreeSet<&Need> =
        analyses.iter().flat_map(|analysis| &analysis.findings).filter_map(|found| found.objects.as_ref()).collect();
    let mut open: Needs = needs.into_iter().filter(|need| !facts.answers.contains_key(need)).cloned().collect();
    let backends = backend::check(facts).unwrap_or_else(|needs| {
        open.extend(needs);
        Vec::new()
    });
    if !open.is_empty() {
        return Checked::More(open);
    }
    // A definition may have tens of thousands of findings, each with a witness: move them, do not copy.
    let Analyses(analyses) = memory.take().unwrap_or_default();
    let mut judgement = Judgement::default();
    for (change, analysis) in changes.into_iter().zip(analyses) {
        if deletion::concerns(change) {
            deletion::check(&DELETION, change, facts, &mut judgement);
        }
        judgement.unable.extend(analysis.unable);
        let mut said = BTreeSet::new();
        for found in analysis.findings {
            let only_if_held = found.only_if_held;
            let finding = live::annotated(facts, settings.live_objects, change, found, &mut said);
            judgement.findings.extend(Some(finding).filter(|finding| !only_if_held || finding.affected() > 0));
        }
    }
    judgement.findings.extend(backends);
    derived::check(facts, &mut judgement);
    names::check(facts, &mut judgement.findings);
    let has_app = !facts.changes.app.is_empty();
    judgement.findings =
        judgement.findings.into_iter().filter_map(|finding| weighed(finding, settings, has_app)).collect();
    version_clients::list_waivers(&mut judgement.findings);
    Checked::Done(judgement)
}

fn fold(facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[&Value]) {
    let Need::Objects { group, version, kind, .. } = need else { return };
    if names::is_answered_by(need) {
        return names::fold(&facts.changes, state, page);
    }
    let of_the_kind = |change: &Change| {
        let crd = change.live.as_deref().map(Crd::of);
        crd.is_some_and(|crd| crd.group() == group && crd.kind() == kind)
    };
    match facts.changes.crds().enumerate().find(|(_, change)| of_the_kind(change)) {
        // Most kinds of a directory have no objects in it, so their schemas are not built.
        Some((index, change)) if !deletion::concerns(change) && !page.is_empty() => {
            let analysis = memory.get().and_then(|Analyses(analyses)| analyses.get(index));
            let unanalysed = Analysis::default();
            let Some((old, new)) = sides(change) else { return };
            let read = || Arc::new(Schemas::of(&Crd::of(old), &Crd::of(new)));
            let schemas = analysis.unwrap_or(&unanalysed).schemas.get_or_init(read);
            let upgrade = Upgrade::with_schemas(old, new, facts.cluster.judged_server(), schemas.clone());
            let findings = analysis.unwrap_or(&unanalysed).findings.iter();
            let asked: Vec<&Found> = findings.filter(|found| found.objects.as_ref() == Some(need)).collect();
            let planned = PlannedObjects::of_kind(&facts.changes, group, kind);
            live::fold(&upgrade, version, &asked, &planned, state, page);
        }
        Some((_, change)) if !deletion::concerns(change) => {}
        _ => deletion::fold(state, page),
    }
}

/// The analyses of the changes of all CRDs, in their order.
#[derive(Default)]
struct Analyses(Vec<Analysis>);

/// A finding before any objects are read.
struct Found {
    finding: Finding,
    /// Whether all that it can do is to have writes rejected.
    only_rejects: OnlyRejects,
    /// The need for its objects, if those matter.
    objects: Option<Need>,
    /// Whether it is shown only if one of these objects is affected.
    only_if_held: bool,
}

/// What is known about a change before any objects are read.
#[derive(Default)]
struct Analysis {
    findings: Vec<Found>,
    /// Why the change cannot be judged.
    unable: Option<String>,
    /// Compiled schemas, built when the first objects are judged.
    schemas: OnceLock<Arc<Schemas>>,
}

impl Analysis {
    /// The analysis of the change of a CRD.
    fn of(change: &Change, facts: &Facts, settings: &OwnSettings) -> Self {
        let mut analysis = Self::default();
        let mut invalid = Vec::new();
        invalid::check(change, &facts.cluster, &mut invalid);
        let without_objects =
            |finding| Found { finding, only_rejects: OnlyRejects::Never, objects: None, only_if_held: false };
        analysis.findings.extend(invalid.into_iter().map(without_objects));
        // If it is unknown whether the deletion removes objects, the replacement must accept them.
        let is_replaced = change.operation == Operation::Replace && facts.cluster.side == ClusterSide::Directory;
        let stays = change.operation == Operation::Update;
        if !(stays || is_replaced) {
            return analysis;
        }
        let Some((old, new)) = sides(change) else {
            analysis.unable = Some(format!("{}: the live definition is not known", change.object));
            return analysis;
        };
        let subject = Subject { change, upgrade: Upgrade::of(old, new, facts.cluster.judged_server()) };
        let with_objects = stays && settings.live_objects != live::Mode::Off;
        let side = facts.cluster.side;
        analysis.findings.extend(changed(&subject, settings).into_iter().map(|(finding, only_rejects)| {
            let need = || {
                live::need(&subject.upgrade, &finding)
                    .or_else(|| usage::need(&subject, &finding, side))
                    .or_else(|| whole::need(&subject, &finding))
            };
            Found { objects: with_objects.then(need).flatten(), finding, only_rejects, only_if_held: false }
        }));
        let objects = with_objects.then(|| clients::need(&subject)).flatten();
        let of_clients = clients::findings(&subject, &analysis.findings, objects.as_ref());
        analysis.findings.extend(of_clients);
        analysis
    }
}

/// The findings about a definition that changes in place, each with whether all that it can do is to have writes
/// rejected.
fn changed(subject: &Subject<'_>, settings: &OwnSettings) -> Vec<(Finding, OnlyRejects)> {
    let mut changes = definition::compare(&subject.upgrade);
    version_clients::add(subject, &mut changes);
    let of_readers = match settings.profile {
        Profile::Strict => readers::surprised(subject, &changes),
        Profile::Data | Profile::Published => Vec::new(),
    };
    let findings = changes.into_iter().filter_map(|change| {
        let only_rejects = loud::only_rejects(&change);
        Some((projection::finding(subject, change, settings)?, only_rejects))
    });
    let other = |finding| (finding, OnlyRejects::Never);
    let mut findings: Vec<_> = findings.chain(of_readers.into_iter().map(other)).collect();
    if settings.checks.of(checks::DESCRIPTION) != Level::Off {
        findings.extend(readers::descriptions(subject).into_iter().map(other));
    }
    findings
}

/// Applies the severity that the settings give to a single check; `None` if the check is off.
fn weighed(mut finding: Finding, settings: &OwnSettings, has_app: bool) -> Option<Finding> {
    let level = match (finding.check.as_str(), has_app) {
        // Under its former name, a removed CRD of a base without an app can be set to less.
        (checks::DELETION, false) if settings.checks.of(checks::FORMER_DELETION) != Level::Error => {
            settings.checks.of(checks::FORMER_DELETION)
        }
        (check, _) => checks::find(check).map_or(Level::Error, |check| settings.checks.of(check.name)),
    };
    match level {
        Level::Off => return None,
        Level::Warn if finding.verdict != Verdict::Change => {
            finding.verdict = Verdict::Change;
            finding.severity = Severity::Warning;
        }
        Level::Warn | Level::Error => {}
    }
    Some(finding)
}

#[cfg(test)]
mod tests;
