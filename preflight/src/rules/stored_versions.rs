//! Rule StoredVersions: no change of a definition strands an object in a version that is gone, and what is left in old
//! versions is named with the command that moves it.

mod owners;
mod planned;

use pushback_crd::definition::{Crd, StoredState, dropped_versions};
use pushback_objects::finding::{Finding, FindingRef, LiveObjects, Severity, Verdict};
use pushback_objects::object::ObjectRef;
use pushback_objects::remedy::Remedy;
use serde_json::{Value, json};

use crate::facts::{Answer, Change, ChangeSet, Facts, Need, Needs, Operation};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};
use crate::rules::{crd_upgrade_safety, stored_remedy, writers};

pub(crate) const NAME: &str = "StoredVersions";
const REMOVAL: &str = "storedVersionRemoval";
const STORAGE_CHANGE: &str = "storageVersionChange";
const DEBT: &str = "debt";
const UNSERVED: &str = "unservedStorageVersion";
const OWNERS: &str = "managedFields";
const PLANNED: &str = "plannedLoss";

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredVersions;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "no object is left behind in a version that goes",
    docs: include_str!("stored_versions/docs.md"),
    checks: &[
        (
            REMOVAL,
            "a version is removed that objects may be stored in; told by CRDUpgradeSafety if that runs, with what this \
             rule adds",
        ),
        (STORAGE_CHANGE, "objects are stored in another version from now on; told by CRDUpgradeSafety if that runs"),
        (DEBT, "`status.storedVersions` lists more than the storage version"),
        (UNSERVED, "the storage version is not served, so that objects cannot be rewritten"),
        (OWNERS, "field owners are recorded at a version that is removed"),
        (PLANNED, "a conversion plan that comes with the manifests loses fields of stored objects"),
    ],
    needs: "the live definition with its status; the number of its objects where a finding is about them; the objects where \
            a version is removed that nothing is stored in, for their field owners",
    on_directory: false,
    judges_derived_crds: true,
    ..RuleMeta::COMMON
};

impl Rule for StoredVersions {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, changes: &ChangeSet, _settings: &Settings) -> Needs {
        changes
            .crds()
            .filter_map(Subject::of)
            .filter(Subject::concerns_objects)
            .filter_map(|it| Need::count_of(&it.live))
            .collect()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, _memory: &mut Memory) -> Checked {
        let subjects: Vec<Subject<'_>> = facts.changes.crds().filter_map(Subject::of).collect();
        let has_objects = |it: &&Subject<'_>| it.objects(facts) != Ok(Counted { objects: 0, more: false });
        let owned = subjects.iter().filter(|it| !it.gone().is_empty()).filter(has_objects);
        let needs: Needs = owned
            .filter_map(|it| Need::objects_of(&it.live))
            .filter(|need| !facts.answers.contains_key(need))
            .collect();
        if !needs.is_empty() {
            return Checked::More(needs);
        }
        let mut judgement = Judgement::default();
        for subject in &subjects {
            subject.check(facts, &mut judgement.findings);
        }
        let unknown =
            facts.changes.crds().filter(|change| change.operation == Operation::Update && change.live.is_none());
        judgement.unable.extend(unknown.map(|change| format!("{}: the live definition is not known", change.object)));
        Checked::Done(judgement)
    }

    fn fold(&self, _facts: &Facts, need: &Need, _memory: &Memory, state: &mut Value, page: &[&Value]) {
        if let Need::Objects { group, .. } = need {
            writers::fold(group, state, page);
        }
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        match finding.check.as_str() {
            REMOVAL | STORAGE_CHANGE | DEBT | OWNERS => stored_remedy::ways(facts, finding),
            _ => finding.remedy.iter().map(Remedy::author).collect(),
        }
    }
}

/// Checks about objects in a version that is removed, which are answered once no object is left in it.
pub(crate) const ANSWERED_BY_MOVING_OBJECTS: &[&str] = &[REMOVAL, STORAGE_CHANGE, DEBT, OWNERS];

/// The finding for a rejection by the API server, identified by the field that the server names.
pub(crate) fn finding_for_refusal(object: &ObjectRef, field: &str, value: Option<&str>) -> Option<FindingRef> {
    let is_about_the_list = object.is_definition() && field.starts_with("status.storedVersions");
    is_about_the_list.then(|| told_at(NAME, REMOVAL, value, None))
}

fn told_at(rule: &str, check: &str, version: Option<&str>, path: Option<&str>) -> FindingRef {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    FindingRef { rule: rule.to_owned(), check: check.to_owned(), version: owned(version), path: owned(path) }
}

/// A number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    objects: u64,
    /// There are more, and the server does not say how many.
    more: bool,
}

/// A definition that is there already, with its change.
struct Subject<'a> {
    change: &'a Change,
    old: Crd<'a>,
    new: Crd<'a>,
    /// What the live definition says.
    live: StoredState,
    /// The storage version after the change.
    storage: Option<String>,
}

impl<'a> Subject<'a> {
    /// `None` if the change is about something else, or leaves no definition whose objects stay.
    fn of(change: &'a Change) -> Option<Self> {
        let stays = matches!(change.operation, Operation::Create | Operation::Update | Operation::Noop);
        if !change.object.is_definition() || !stays {
            return None;
        }
        let new = change.after()?;
        let old = match change.operation {
            Operation::Create => new,
            _ => change.live.as_deref()?,
        };
        let storage = StoredState::of(new).storage;
        Some(Self { change, old: Crd::of(old), new: Crd::of(new), live: StoredState::of(old), storage })
    }

    fn is_update(&self) -> bool {
        self.change.operation == Operation::Update
    }

    /// Versions that objects may be stored in and that are removed.
    fn stranding(&self) -> Vec<&'a str> {
        if !self.is_update() {
            return Vec::new();
        }
        dropped_versions(self.old.value, self.new.value)
    }

    /// Versions that are removed and that no object is stored in.
    fn gone(&self) -> Vec<&'a str> {
        let stored = self.old.stored_versions();
        let names = self.old.versions.iter().map(|version| version.name);
        names.filter(|name| self.new.version(name).is_none() && !stored.contains(name)).collect()
    }

    /// The storage version that is no longer one, with the one that takes its place.
    fn moved(&self) -> Option<(&str, &str)> {
        let (before, after) = (self.live.storage.as_deref()?, self.storage.as_deref()?);
        (before != after && self.new.version(before).is_some()).then_some((before, after))
    }

    /// Listed versions besides the storage version that no other finding is about.
    fn debt(&self) -> Vec<&str> {
        if self.change.operation == Operation::Create {
            return Vec::new();
        }
        let (stranding, moved) = (self.stranding(), self.moved());
        let listed = self.live.stored.iter().map(String::as_str);
        let is_told = |name: &str| stranding.contains(&name) || moved.is_some_and(|(before, _)| before == name);
        listed.filter(|name| self.storage.as_deref() != Some(name) && !is_told(name)).collect()
    }

    fn concerns_objects(&self) -> bool {
        !(self.stranding().is_empty() && self.gone().is_empty() && self.moved().is_none() && self.debt().is_empty())
    }

    /// The number of objects, or why it is not known.
    fn objects(&self, facts: &Facts) -> Result<Counted, String> {
        let need = Need::count_of(&self.live).ok_or_else(|| "no version is served".to_owned())?;
        match facts.answer(&need) {
            Answer::Count { objects, more } => Ok(Counted { objects, more }),
            Answer::Unable { reason } => Err(reason),
            _ => Err("the answer does not fit the question".to_owned()),
        }
    }

    /// The number of objects in words: `12 Foo objects`.
    fn in_words(&self, counted: Counted) -> String {
        let at_least = if counted.more { "at least " } else { "" };
        let objects = if counted.objects == 1 { "object" } else { "objects" };
        format!("{at_least}{} {} {objects}", counted.objects, self.live.kind)
    }

    fn check(&self, facts: &Facts, findings: &mut Vec<Finding>) {
        findings.extend(self.stranding().into_iter().map(|version| self.removal(version, self.objects(facts))));
        findings.extend(self.moved().map(|(before, after)| self.storage_change(before, after, self.objects(facts))));
        findings.extend(
            Some(self.debt()).filter(|debt| !debt.is_empty()).map(|debt| self.owing(&debt, self.objects(facts))),
        );
        findings.extend(self.unserved());
        findings.extend(owners::check(self, facts));
        findings.extend(planned::check(self, facts));
    }

    /// A finding at a version, or at the list of versions if the manifest does not have it.
    fn finding(&self, check: &str, verdict: Verdict, version: &str, message: String) -> Finding {
        let manifest = self.change.desired.as_deref().map_or_else(|| self.new.clone(), Crd::of);
        let position = self.change.locate(&manifest.path_of(version, &[]));
        let mut finding = Finding::new(NAME, check, verdict, self.change.object.clone(), message).at(position);
        finding.version = Some(version.to_owned());
        finding
    }

    fn removal(&self, version: &str, counted: Result<Counted, String>) -> Finding {
        let is_alone =
            self.live.stored.iter().all(|stored| stored == version) && self.live.storage.as_deref() == Some(version);
        let message = match &counted {
            _ if self.live.is_served(version).is_none() => format!(
                "status.storedVersions lists \"{version}\", which the definition does not have: the API server refuses \
                 every update of the definition"
            ),
            Ok(Counted { objects: 0, more: false }) => format!(
                "version \"{version}\" is removed, and status.storedVersions still lists it; there is no {} object",
                self.live.kind
            ),
            Ok(counted) => {
                let up_to = if is_alone { "" } else { "up to " };
                let number = self.in_words(*counted);
                format!("version \"{version}\" is removed, and {up_to}{number} stored in it could no longer be read")
            }
            Err(reason) => format!(
                "version \"{version}\" is removed, and objects that are stored in it could no longer be read (their number \
                 is not known: {reason})"
            ),
        };
        let objects = counted.as_ref().ok().map(|counted| counted.objects);
        let mut finding = self
            .finding(REMOVAL, Verdict::Breaking, version, message)
            .values(Some(version.into()), None)
            .bound_to(&json!([self.live.stored, self.live.storage, self.storage]))
            .remedy(stored_remedy::of_removal(&self.old, version, ""));
        finding.effect = Some("unreadable".to_owned());
        finding.live_objects = objects.map(|objects| LiveObjects::exactly(objects, objects, Vec::new()));
        finding.repeats.push(told_at(crd_upgrade_safety::NAME, REMOVAL, Some(version), None));
        finding
    }

    fn storage_change(&self, before: &str, after: &str, counted: Result<Counted, String>) -> Finding {
        let number = counted.map_or_else(|_| format!("{} objects", self.live.kind), |counted| self.in_words(counted));
        let message =
            format!("storage version moved from \"{before}\" to \"{after}\"; {number} stay as stored until rewritten");
        let mut finding = self
            .finding(STORAGE_CHANGE, Verdict::Change, after, message)
            .values(Some(before.into()), Some(after.into()))
            .bound_to(&json!([before, after]))
            .remedy(stored_remedy::of_storage_change(&self.old));
        finding.repeats.push(told_at(crd_upgrade_safety::NAME, STORAGE_CHANGE, Some(after), Some("storage")));
        finding
    }

    fn owing(&self, debt: &[&str], counted: Result<Counted, String>) -> Finding {
        let named: Vec<String> = debt.iter().map(|name| format!("\"{name}\"")).collect();
        let storage = self.storage.as_deref().unwrap_or_default();
        let number = match counted {
            Ok(Counted { objects: 0, more: false }) => format!("there is no {} object", self.live.kind),
            Ok(counted) => format!("up to {} may be stored there", self.in_words(counted)),
            Err(reason) => format!("objects may be stored there; their number is not known: {reason}"),
        };
        let message = format!(
            "status.storedVersions lists {} besides the storage version \"{storage}\"; {number}",
            named.join(", ")
        );
        let mut finding = self
            .finding(DEBT, Verdict::Change, storage, message)
            .values(Some(json!(self.live.stored)), None)
            .bound_to(&json!([debt, storage]))
            .remedy(stored_remedy::of_debt(&self.live));
        // A run that writes nothing to the definition does not make it worse.
        finding.severity = if self.is_update() { Severity::Warning } else { Severity::Info };
        finding
    }

    fn unserved(&self) -> Option<Finding> {
        let storage = self.new.version(self.storage.as_deref()?).filter(|version| !version.served)?;
        let message = format!(
            "the storage version \"{}\" is not served: objects in other versions cannot be moved to it",
            storage.name
        );
        let mut finding = self
            .finding(UNSERVED, Verdict::Change, storage.name, message)
            .remedy(format!("serve \"{}\", or store objects in a version that is served", storage.name));
        let is_written = self.change.operation != Operation::Noop;
        finding.severity = if is_written { Severity::Warning } else { Severity::Info };
        Some(finding)
    }
}

#[cfg(test)]
mod tests;
