//! Rule CRDUpgradeSafety: whether a CustomResourceDefinition can be changed without breaking stored objects and clients.
//! It judges the definition as a whole, the life of its versions, and the schema of each: by proof or with a witness.

mod checks;
mod cross_version;
pub(super) mod deletion;
pub(crate) mod invalid;
mod lifecycle;
mod live;
mod missing;
mod profile;
mod schema_change;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use pushback_crd::definition::crd::{GROUP, KIND};
use pushback_crd::definition::{Crd, Version};
use pushback_crd::stack;
use serde_json::{Value, json};

use crate::facts::{Change, ChangeSet, ClusterSide, Facts, Need, Needs, Operation};
use crate::finding::{Finding, Severity, Verdict};
use crate::parallel;
use crate::repeated::Told;
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Setting, SettingKind, Settings};
use crate::source::Position;
use crate::strictness::Order;
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::SchemaStep;
use pushback_crd::schema::pipeline::{Resource, Server};

pub(super) const NAME: &str = "CRDUpgradeSafety";

const DELETION: deletion::Names =
    deletion::Names { rule: NAME, deletion: "crdDeletion", replacement: "crdReplacement" };

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct CrdUpgradeSafety;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "a CustomResourceDefinition changes without breaking stored objects and clients",
    docs: include_str!("crd_upgrade_safety/docs.md"),
    checks: &checks::LINES,
    settings: &[
        Setting {
            name: "profile",
            doc: "what counts as breaking: what stored objects and writers suffer from (`data`), what the published lists \
                  of kapp and OLM prohibit (`published`), or what readers notice too (`strict`)",
            kind: SettingKind::Choice(profile::Profile::WORDS),
            // What the lists prohibit and what harms data overlap; neither is in the other.
            order: Order::Words(&["strict", "data"]),
        },
        Setting {
            name: "liveObjects",
            doc: "what the objects that are there count for: `report` says how many are affected, `decide` also turns a \
                  breaking change that affects none of them into a warning, `off` does not list them",
            kind: SettingKind::Choice(live::Mode::WORDS),
            // Without a list nothing is turned into a warning, and nothing is counted either.
            order: Order::Words(&["report", "off", "decide"]),
        },
        Setting {
            name: "versions",
            doc: "what it takes to give up a version that is not stored",
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
            doc: "what single checks do: `error` refuses, `warn` only warns, `off` says nothing",
            kind: SettingKind::Map(&checks::SETTINGS),
            order: Order::Each,
        },
    ],
    needs: "the live definition with its status; the objects of its kind where a finding is about them, or where it is \
            deleted or replaced",
    default: true,
    on_directory: true,
};

impl Rule for CrdUpgradeSafety {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, changes: &ChangeSet, _settings: &Settings) -> Needs {
        changes
            .changes
            .iter()
            .filter(|change| deletion::concerns(change))
            .filter_map(|change| deletion::need(change, changes))
            .collect()
    }

    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked {
        judge(facts, settings, memory)
    }

    fn fold(&self, facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[Value]) {
        stack::with_room(|| fold(facts, need, memory, state, page));
    }
}

/// Whether a change is about a CustomResourceDefinition.
fn is_crd(change: &Change) -> bool {
    change.object.group == GROUP && change.object.kind == KIND
}

fn judge(facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked {
    let changes = &facts.changes.changes;
    let size = |change: &Change| change.positions.as_ref().map_or(0, |positions| positions.node_count());
    let study = |change: &Change| Study::of(change, facts, settings);
    let Studies(studies) = memory.keep(|| Studies(parallel::map_heaviest_first(changes, size, stack::SIZE, study)));
    // Objects are only listed where it matters to somebody.
    let needs: BTreeSet<&Need> =
        studies.iter().flat_map(|study| &study.findings).filter_map(|(_, need)| need.as_ref()).collect();
    if needs.iter().any(|need| !facts.answers.contains_key(need)) {
        return Checked::More(needs.into_iter().cloned().collect());
    }
    // A definition may have tens of thousands of findings, each with a witness: they are not copied.
    let Studies(studies) = memory.take().unwrap_or_default();
    let mut judgement = Judgement::default();
    let mode = live::Mode::of(settings);
    for (change, study) in changes.iter().zip(studies).filter(|(change, _)| is_crd(change)) {
        if deletion::concerns(change) {
            deletion::check(&DELETION, change, facts, &mut judgement);
        }
        judgement.unable.extend(study.unable);
        let mut said = BTreeSet::new();
        for (mut finding, need) in study.findings {
            if let Some(need) = &need {
                live::annotate(facts, mode, need, &mut finding, &mut said);
            }
            judgement.findings.push(finding);
        }
    }
    missing::check(facts, &mut judgement.findings);
    judgement.findings = judgement.findings.into_iter().filter_map(|finding| weighed(finding, settings)).collect();
    Checked::Done(judgement)
}

fn fold(facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[Value]) {
    let Need::Objects { group, version, kind, .. } = need else { return };
    let of_the_kind = |change: &Change| {
        let crd = change.live.as_deref().map(Crd::of);
        is_crd(change) && crd.is_some_and(|crd| crd.group() == group && crd.kind() == kind)
    };
    let changes = &facts.changes.changes;
    match changes.iter().enumerate().find(|(_, change)| of_the_kind(change)) {
        // Most kinds of a folder have no objects in it: their schemas are not asked for.
        Some((index, change)) if !deletion::concerns(change) && !page.is_empty() => {
            let study = memory.get().and_then(|Studies(studies)| studies.get(index));
            let unstudied = Study::default();
            let schemas = study.unwrap_or(&unstudied).schemas.get_or_init(|| Schemas::of(change));
            if let Some(upgrade) = Upgrade::of(change, facts, schemas) {
                live::fold(&upgrade, version, state, page);
            }
        }
        Some((_, change)) if !deletion::concerns(change) => {}
        _ => deletion::fold(state, page),
    }
}

/// The studies of all changes, in their order.
#[derive(Default)]
struct Studies(Vec<Study>);

/// What is known of a change before its objects are.
#[derive(Default)]
struct Study {
    /// Each with the objects that it is about, where those matter.
    findings: Vec<(Finding, Option<Need>)>,
    /// Why it cannot be judged.
    unable: Option<String>,
    /// To judge objects by, once there are any.
    schemas: OnceLock<Schemas>,
}

impl Study {
    /// Empty for what is no definition.
    fn of(change: &Change, facts: &Facts, settings: &Settings) -> Self {
        let mut study = Self::default();
        if !is_crd(change) {
            return study;
        }
        let mut invalid = Vec::new();
        invalid::check(change, facts.cluster.side, &mut invalid);
        study.findings.extend(invalid.into_iter().map(|finding| (finding, None)));
        // Where nobody knows whether objects go with a definition that is replaced, its successor has to suit them.
        let is_replaced = change.operation == Operation::Replace && facts.cluster.side == ClusterSide::Directory;
        let stays = change.operation == Operation::Update;
        if !(stays || is_replaced) {
            return study;
        }
        let schemas = Schemas::of(change);
        let Some(upgrade) = Upgrade::of(change, facts, &schemas) else {
            study.unable = Some(format!("{}: the live definition is not known", change.object));
            return study;
        };
        let with_objects = stays && live::Mode::of(settings) != live::Mode::Off;
        study.findings.extend(changed(&upgrade, settings).into_iter().map(|finding| {
            let need = live::need(&upgrade, &finding).filter(|_| with_objects);
            (finding, need)
        }));
        study
    }
}

/// What a definition that changes in place is looked at for; each adds what it finds.
const JUDGES: [fn(&Upgrade<'_>, &Settings, &mut Vec<Finding>); 7] = [
    lifecycle::identity,
    lifecycle::versions,
    lifecycle::storage,
    lifecycle::conversion,
    lifecycle::endpoints,
    schema_change::check,
    cross_version::check,
];

fn changed(upgrade: &Upgrade<'_>, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    if upgrade.new.versions.is_empty() {
        let message = "the new definition lists no versions, so nothing can be compared".to_owned();
        findings.push(upgrade.finding("unhandled", Verdict::Unknown, &["spec", "versions"], message));
        return findings;
    }
    for judge in JUDGES {
        judge(upgrade, settings, &mut findings);
    }
    findings
}

/// The severity that the settings give a single check.
fn weighed(mut finding: Finding, settings: &Settings) -> Option<Finding> {
    match settings.choice(&["checks", &finding.check]) {
        "off" => return None,
        "warn" if finding.verdict != Verdict::Change => {
            finding.verdict = Verdict::Change;
            finding.severity = Severity::Warning;
        }
        _ => {}
    }
    Some(finding)
}

/// The API server that objects meet; where the cluster is a directory, the newest that is known.
fn server(facts: &Facts) -> Server {
    facts.cluster.version.map_or_else(Server::default, |(_, minor)| Server { minor })
}

/// A definition that changes in place.
pub(crate) struct Upgrade<'a> {
    change: &'a Change,
    pub(crate) old: Crd<'a>,
    pub(crate) new: Crd<'a>,
    server: Server,
    pub(crate) schemas: &'a Schemas,
}

/// The schemas of both definitions, by version.
#[derive(Default)]
pub(crate) struct Schemas {
    pub(crate) old: BTreeMap<String, Schema>,
    pub(crate) new: BTreeMap<String, Schema>,
}

impl Schemas {
    /// None of a side that is not known.
    pub(crate) fn of(change: &Change) -> Self {
        let side = |definition: Option<&Value>| {
            let versions = definition.map(Crd::of).map(|crd| crd.versions).unwrap_or_default();
            versions.iter().map(|version| (version.name.to_owned(), schema_of(version))).collect()
        };
        Self { old: side(change.live.as_deref()), new: side(change.after()) }
    }
}

impl<'a> Upgrade<'a> {
    /// `None` where one of the sides is not known.
    pub(crate) fn of(change: &'a Change, facts: &Facts, schemas: &'a Schemas) -> Option<Self> {
        let (old, new) = (Crd::of(change.live.as_deref()?), Crd::of(change.after()?));
        Some(Self { change, old, new, server: server(facts), schemas })
    }

    /// What the rule says of it where nothing is set and no object is looked at.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = changed(self, &Settings::default());
        findings.retain(|finding| finding.check != "description");
        findings
    }

    /// A version of the live definition, as objects meet it.
    fn old_resource(&self, version: &'a str) -> Option<Resource<'_>> {
        resource(&self.old, version, &self.schemas.old)
    }

    /// A version of the new definition.
    fn new_resource(&self, version: &'a str) -> Option<Resource<'_>> {
        resource(&self.new, version, &self.schemas.new)
    }
}

fn resource<'s>(crd: &Crd<'s>, version: &'s str, schemas: &'s BTreeMap<String, Schema>) -> Option<Resource<'s>> {
    Some(Resource {
        schema: schemas.get(version)?,
        group: crd.group(),
        version,
        kind: crd.kind(),
        status: crd.version(version).is_some_and(|version| version.status),
        preserve_unknown_fields: crd.preserves_unknown_fields(),
    })
}

/// A version without a schema, as old definitions have them, takes anything.
fn schema_of(version: &Version<'_>) -> Schema {
    let open = || Schema::of(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    version.schema.map_or_else(open, Schema::of)
}

impl Upgrade<'_> {
    /// Where a keyword of a node stands in the manifest, or else the nearest that is there.
    fn locate_schema(&self, version: &str, path: &[SchemaStep], keyword: &str) -> Option<Position> {
        let written = self.change.desired.as_deref().map(Crd::of);
        let mut place = written.as_ref().unwrap_or(&self.new).path_of(version, &["schema", "openAPIV3Schema"]);
        place.extend(words::schema_path(path));
        place.push(keyword.into());
        self.change.locate(&place)
    }

    /// A finding at a path of the definition; `keys` may begin with `spec`, or with a version through
    /// [`Upgrade::finding_in`].
    fn finding(&self, check: &str, verdict: Verdict, keys: &[&str], message: String) -> Finding {
        let path: Vec<_> = keys.iter().map(|key| (*key).into()).collect();
        Finding::new(NAME, check, verdict, self.change.object.clone(), message)
            .at(self.change.locate(&path))
            .path(keys.join("."))
    }

    /// A finding about a version, placed at `keys` below it. The path names the version, not its index, so that the
    /// fingerprint stays when versions are reordered.
    fn finding_in(&self, check: &str, verdict: Verdict, version: &str, keys: &[&str], message: String) -> Finding {
        // Places are those of the manifest; the server's answer may list versions in another order.
        let written = self
            .change
            .desired
            .as_deref()
            .map_or_else(|| self.new.path_of(version, keys), |manifest| Crd::of(manifest).path_of(version, keys));
        let mut finding =
            Finding::new(NAME, check, verdict, self.change.object.clone(), message).at(self.change.locate(&written));
        finding.version = Some(version.to_owned());
        if !keys.is_empty() {
            finding.path = Some(keys.join("."));
        }
        finding
    }
}

/// The line that CRD upgrade checks of kapp and OLM print for a finding, where they have a validator for it:
/// `CustomResourceDefinition N failed upgrade safety validation. "NoScopeChange" validation failed: …`.
#[must_use]
pub fn refusal_line(finding: &Finding) -> Option<String> {
    if finding.rule != NAME {
        return None;
    }
    let validator = checks::find(&finding.check).map(|check| check.validator).filter(|name| !name.is_empty())?;
    Some(format!(
        "CustomResourceDefinition {} failed upgrade safety validation. \"{validator}\" validation failed: {}",
        finding.object.name, finding.message
    ))
}

/// The finding of this rule that tells what the API server refuses of an update: the field that the server names, and the
/// value that it quotes. Where both are told, this one says what to do.
#[must_use]
pub fn told_of_refusal(field: &str, value: Option<&str>) -> Option<Told> {
    let (check, version, path) = match field {
        "spec.scope" => ("scope", None, Some(field)),
        "spec.group" => ("group", None, Some(field)),
        "spec.names.plural" | "spec.names.kind" => ("names", None, Some(field)),
        _ if field.starts_with("status.storedVersions") => ("storedVersionRemoval", Some(value?), None),
        _ => return None,
    };
    Some(Told {
        rule: NAME.to_owned(),
        check: check.to_owned(),
        version: version.map(str::to_owned),
        path: path.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests;
