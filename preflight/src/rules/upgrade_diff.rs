//! Rule UpgradeDiff: how a release changes its operators, from the live objects to the manifests: webhooks,
//! permissions, selectors, moved and removed parts. Both sides are derived; no separate description has to be
//! maintained.

mod checks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pushback_objects::finding::{Finding, FindingRef, Verdict};
use pushback_objects::object::ObjectRef;
use pushback_objects::source::InputError;
use pushback_releases::compare::{self, Options};
use pushback_releases::derive::{self, Given, Ownership};
use pushback_releases::difference::{Change, ChangeType, ComponentChange, DefinitionChange, INVALID, Proved, Severity};
use pushback_releases::model::Release;
use pushback_releases::model_file;
use pushback_releases::{ReleaseDiff, overlay};
use serde::Deserialize;

use crate::experiment::generate;
use crate::facts::{Answer, ChangeSet, ClusterSide, Facts, Need, Needs, Operation};
use crate::rule::{
    Artefact, Checked, DocumentKind, Judgement, Memory, Order, Rule, RuleMeta, Setting, SettingKind, Settings,
};
use crate::rules::crd_upgrade_safety;

const NAME: &str = "UpgradeDiff";

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpgradeDiff;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "a new release removes or moves nothing that others depend on",
    docs: include_str!("upgrade_diff/docs.md"),
    checks: checks::CHECKS,
    settings: &[
        Setting {
            name: "failOn",
            doc: "the lowest severity of a change that refuses; `never` only reports",
            kind: SettingKind::Choice(&["breaking", "warning", "info", "never"]),
            order: Order::Words(&["info", "warning", "breaking", "never"]),
        },
        Setting {
            name: "experiments",
            doc: "a folder for the experiments that test the changes, written on every run",
            kind: SettingKind::OutputFolder,
            order: Order::Outside,
        },
        Setting {
            name: "model",
            doc: "a file or folder with a model of the new release that overrides the derived one, component by component",
            kind: SettingKind::InputPath(DocumentKind::Models),
            order: Order::Outside,
        },
    ],
    needs: "nothing but the change set",
    compares_the_whole: true,
    default: false,
    ..RuleMeta::COMMON
};

/// The rule's own settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OwnSettings {
    fail_on: FailOn,
    experiments: String,
    model: String,
}

/// The lowest severity that refuses.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FailOn {
    Breaking,
    Warning,
    Info,
    Never,
}

/// Both sides of a change set as releases, and their differences.
struct ReleaseComparison {
    /// The live release.
    old: Release,
    /// The release after the change set.
    new: Release,
    diff: ReleaseDiff,
}

/// The comparison; `None` on a first deployment, which is not an upgrade. The error says why the models are not
/// available.
type ComparisonResult = Result<Option<ReleaseComparison>, String>;

fn model_need(settings: &OwnSettings) -> Option<Need> {
    (!settings.model.is_empty()).then(|| Need::Models { path: settings.model.clone() })
}

/// Compares the live side of a change set with its result.
fn compare(facts: &Facts, settings: &OwnSettings) -> ComparisonResult {
    let changes = &facts.changes.changes;
    if changes.iter().all(|change| change.live.is_none()) {
        return Ok(None);
    }
    let side = |counterpart: Ownership, objects: &[Given]| {
        let app = facts.changes.app.clone();
        derive::derive(objects, &derive::Settings { app, counterpart, ..derive::Settings::default() })
    };
    let live = changes.iter().filter_map(|change| Some(Given { value: change.live.clone()?, positions: None }));
    let live: Vec<Given> = live.collect();
    let stays = changes.iter().filter(|change| change.operation != Operation::Delete);
    let becomes = stays.filter_map(|change| {
        let value = change.result.as_ref().or(change.desired.as_ref()).or(change.live.as_ref())?;
        Some(Given { value: Arc::clone(value), positions: change.positions.clone() })
    });
    let becomes: Vec<Given> = becomes.collect();
    // Each side knows the owners on the other, so that an object with two possible owners keeps its owner.
    let old = side(Ownership::of(&side(Ownership::default(), &becomes)), &live);
    let mut new = side(Ownership::of(&old), &becomes);
    if let Some(need) = model_need(settings) {
        let documents = match facts.answer(&need) {
            Answer::Models { documents } => documents,
            Answer::Unable { reason } => return Err(reason),
            _ => return Err("the answer does not fit the question".to_owned()),
        };
        let joined = |errors: Vec<InputError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        new = overlay::merge(new, model_file::release(&documents, Vec::new()).map_err(joined)?);
    }
    let diff = compare::compare(&old, &new, Options::default());
    Ok(Some(ReleaseComparison { old, new, diff }))
}

impl Rule for UpgradeDiff {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, settings: &Settings) -> Needs {
        model_need(&settings.own()).into_iter().collect()
    }

    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked {
        let mut judgement = Judgement::default();
        let settings: OwnSettings = settings.own();
        match memory.keep(|| compare(facts, &settings)) {
            Ok(Some(compared)) => {
                judgement.findings = Judge { facts, fail_on: settings.fail_on, compared }.findings();
            }
            Ok(None) => {}
            Err(reason) => judgement.unable.push(reason.clone()),
        }
        Checked::Done(judgement)
    }
}

/// The experiments that test the upgrade, even if it is refused. `None` for the memory of another rule.
pub(crate) fn artefact(settings: &Settings, memory: &Memory) -> Option<Artefact> {
    let Ok(Some(ReleaseComparison { old, new, diff })) = memory.get::<ComparisonResult>()? else { return None };
    let folder = settings.own::<OwnSettings>().experiments;
    (!folder.is_empty())
        .then(|| Artefact { folder, suite: generate::generate(old, new, diff, &generate::Options::default()) })
}

struct Judge<'a> {
    facts: &'a Facts,
    fail_on: FailOn,
    compared: &'a ReleaseComparison,
}

impl Judge<'_> {
    fn findings(&self) -> Vec<Finding> {
        let diff = &self.compared.diff;
        let of_components = diff
            .component_changes
            .iter()
            .flat_map(|component| component.changes.iter().map(move |change| (component, change)))
            // Definitions report these changes themselves.
            .filter(|(_, change)| change.change_type != ChangeType::CrdSchemaChange)
            .map(|(component, change)| self.of_component(component, change));
        // What a server rejects, the server reports itself.
        let is_asked = self.facts.cluster.side == ClusterSide::Server;
        let reported = diff.crd_changes.iter().filter(|change| !(is_asked && change.keyword == INVALID));
        let of_definitions = reported.map(|change| self.of_definition(change));
        of_components.chain(of_definitions).collect()
    }

    fn of_component(&self, component: &ComponentChange, change: &Change) -> Finding {
        let verdict = match change.change_type {
            ChangeType::NotObservable => Verdict::Unknown,
            _ => self.verdict(change.severity),
        };
        let object = change.object.clone().unwrap_or_else(|| self.centre(component));
        let message = format!("component {}: {}", component.component_name, change.message);
        let finding = Finding::new(NAME, &change.change_type.name(), verdict, object, message)
            .at(change.position.clone())
            .values(change.old.clone(), change.new.clone());
        let finding = if change.path.is_empty() { finding } else { finding.path(change.path.clone()) };
        remedied(finding, change.change_type)
    }

    /// A finding about a change of a definition. If CRDUpgradeSafety runs, it decides, and its findings are not
    /// repeated; a change that it accepts is still worth knowing.
    fn of_definition(&self, change: &DefinitionChange) -> Finding {
        let judged = self.facts.rules.contains(crd_upgrade_safety::NAME);
        let verdict = if judged { Verdict::Change } else { self.verdict(change.severity) };
        let object = ObjectRef {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: String::new(),
            name: change.crd_name.clone(),
        };
        let present = |value: &serde_json::Value| Some(value.clone()).filter(|value| !value.is_null());
        let mut finding = Finding::new(NAME, &change.change_type.name(), verdict, object, change.detail.clone())
            .at(change.position.clone())
            .values(present(&change.old_schema), present(&change.new_schema));
        finding.version = Some(change.version.clone()).filter(|version| !version.is_empty());
        finding.path = Some(change.path.clone()).filter(|path| !path.is_empty());
        finding.repeats = change.proved.iter().map(finding_ref).collect();
        remedied(finding, change.change_type)
    }

    fn verdict(&self, severity: Severity) -> Verdict {
        let least = match self.fail_on {
            FailOn::Info => Some(Severity::Info),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Breaking => Some(Severity::Breaking),
            FailOn::Never => None,
        };
        if least.is_some_and(|least| severity >= least) { Verdict::Breaking } else { Verdict::Change }
    }

    /// The object that represents a component: its workload, which is its first resource.
    fn centre(&self, component: &ComponentChange) -> ObjectRef {
        let of = |release: &Release, name: &str| -> Option<ObjectRef> {
            let operator = release.operators.iter().find(|operator| operator.name == component.operator)?;
            let component = operator.components.iter().find(|component| component.name == name)?;
            component.resources.first().map(|resource| resource.object.clone())
        };
        let old_name = component.renamed_from.as_ref().unwrap_or(&component.component_name);
        of(&self.compared.new, &component.component_name)
            .or_else(|| of(&self.compared.old, old_name))
            .unwrap_or_default()
    }
}

/// A reference to the finding of the rule that judges definitions.
fn finding_ref(proved: &Proved) -> FindingRef {
    let Proved { keyword, version, path } = proved.clone();
    FindingRef { rule: crd_upgrade_safety::NAME.to_owned(), check: keyword, version, path }
}

fn remedied(finding: Finding, change_type: ChangeType) -> Finding {
    match checks::remedy(change_type) {
        "" => finding,
        remedy => finding.remedy(remedy),
    }
}
