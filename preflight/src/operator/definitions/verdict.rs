//! Which finding of CRDUpgradeSafety is about which change. One that no change claims, as where a default below meets a rule
//! above, goes to the nearest changes, so that nothing is called safe that the rule objects to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::draft::{Claim, Draft, Place};
use crate::finding::{Finding, Verdict};
use crate::operator::difference::{ChangeType, CrdVerdict, INVALID, Severity};
use crate::operator::model::Definition;
use crate::repeated::Told;
use crate::rules::crd_upgrade_safety::invalid;
use crate::rules::crd_upgrade_safety::words::field_path;
use crate::source::PathSegment;

/// Gives every change the worst of what is said about it.
pub(super) fn judge(drafts: &mut [Draft], findings: &[Finding]) {
    let index = Index::of(findings);
    let mut claimed = BTreeSet::new();
    for draft in &mut *drafts {
        let about: Vec<usize> = draft.claims.iter().flat_map(|claim| index.about(&draft.version, claim)).collect();
        for found in about {
            worsen(draft, &findings[found]);
            claimed.insert(found);
        }
    }
    let left: Vec<usize> = (0..findings.len())
        .filter(|found| !claimed.contains(found) && verdict(&findings[*found]) != CrdVerdict::Safe)
        .collect();
    for (found, near) in nearest(drafts, findings, &left) {
        for draft in near {
            worsen(&mut drafts[draft], &findings[found]);
        }
    }
}

/// A kind of change that the published lists do not class is as bad as what is proved of it. What they class keeps its
/// class, and a guess beside the change that it explains is no second one.
pub(super) fn raise(drafts: &mut [Draft]) {
    let is_open = |draft: &&mut Draft| !is_classed(draft.change_type) && draft.verdict == CrdVerdict::Breaking;
    for draft in drafts.iter_mut().filter(is_open) {
        draft.severity = Severity::Breaking;
    }
}

/// What no API server takes is a change of its own: nobody is to look for it behind another one.
pub(super) fn refused(after: &Definition, finding: Finding, place: Vec<PathSegment>) -> Draft {
    let verdict = verdict(&finding);
    let severity = if verdict == CrdVerdict::Breaking { Severity::Breaking } else { Severity::Warning };
    let subject = format!("{}\n{}", finding.path.as_deref().unwrap_or_default(), finding.message);
    let mut draft =
        Draft::of_definition(ChangeType::ConstraintChanged, severity, &[], finding.message.clone()).subject(subject);
    INVALID.clone_into(&mut draft.keyword);
    if let Some((version, steps)) = invalid::place_in_schema(&after.value, &place) {
        (draft.version, draft.steps) = (version, steps);
    }
    draft.place = Place::New(place);
    (draft.verdict, draft.reason) = (verdict, finding.message.clone());
    draft.told.push(Told::of(&finding));
    draft
}

/// Whether the severity of a kind of change is published.
fn is_classed(change_type: ChangeType) -> bool {
    use ChangeType::{
        ApiVersionRemoved, DefaultChanged, EnumValueAdded, EnumValueRemoved, FieldAdded, FieldRemoved, FieldRenamed,
        RequiredAdded, RequiredRemoved, TypeChanged,
    };
    matches!(
        change_type,
        FieldRemoved
            | FieldRenamed
            | TypeChanged
            | RequiredAdded
            | EnumValueRemoved
            | ApiVersionRemoved
            | DefaultChanged
            | FieldAdded
            | EnumValueAdded
            | RequiredRemoved
    )
}

fn verdict(finding: &Finding) -> CrdVerdict {
    match finding.verdict {
        Verdict::Breaking => CrdVerdict::Breaking,
        Verdict::Unknown => CrdVerdict::Unknown,
        Verdict::Change => CrdVerdict::Safe,
    }
}

/// What is said of a change is part of it, and its verdict as bad as the worst.
fn worsen(draft: &mut Draft, finding: &Finding) {
    draft.told.push(Told::of(finding));
    let verdict = verdict(finding);
    if verdict > draft.verdict {
        draft.verdict = verdict;
        draft.reason.clone_from(&finding.message);
    }
}

/// Findings by what they are about.
struct Index<'f> {
    findings: &'f [Finding],
    /// Of the definition, or of a version as a whole: by version and check.
    whole: BTreeMap<(&'f str, &'f str), Vec<usize>>,
    /// Of a node of a schema: by version and path.
    nodes: BTreeMap<(&'f str, &'f str), Vec<usize>>,
}

/// A loss between two versions, which concerns the schemas of both.
const BETWEEN: &str = "crossVersionLoss";

/// The versions that a finding is about.
fn versions(finding: &Finding) -> impl Iterator<Item = &str> {
    let from = finding.old.as_ref().filter(|_| finding.check == BETWEEN).and_then(|from| from.as_str());
    finding.version.as_deref().into_iter().chain(from).chain(finding.version.is_none().then_some(""))
}

impl<'f> Index<'f> {
    fn of(findings: &'f [Finding]) -> Self {
        let (mut whole, mut nodes) = (BTreeMap::<_, Vec<usize>>::new(), BTreeMap::<_, Vec<usize>>::new());
        for (index, finding) in findings.iter().enumerate() {
            let path = finding.path.as_deref().unwrap_or_default();
            for version in versions(finding) {
                whole.entry((version, finding.check.as_str())).or_default().push(index);
                nodes.entry((version, path)).or_default().push(index);
            }
        }
        Self { findings, whole, nodes }
    }

    fn about(&self, version: &str, claim: &Claim) -> Vec<usize> {
        match claim {
            Claim::Checks(checks) => self.of_checks(version, checks),
            Claim::ChecksOf(version, checks) => self.of_checks(version, checks),
            Claim::Keyword(steps, keyword) => self.at(version, &field_path(steps), |finding| finding.check == *keyword),
            Claim::Required(steps, name) => {
                let names = json!([name]);
                self.at(version, &field_path(steps), |finding| {
                    finding.check == "required" && finding.new.as_ref() == Some(&names)
                })
            }
            Claim::Field(steps) => self.within(version, &field_path(steps)),
        }
    }

    fn of_checks(&self, version: &str, checks: &[&str]) -> Vec<usize> {
        checks.iter().filter_map(|check| self.whole.get(&(version, *check))).flatten().copied().collect()
    }

    fn at(&self, version: &str, path: &str, is_about: impl Fn(&Finding) -> bool) -> Vec<usize> {
        let found = self.nodes.get(&(version, path)).into_iter().flatten().copied();
        found.filter(|index| is_about(&self.findings[*index])).collect()
    }

    /// At a path and below it.
    fn within(&self, version: &str, path: &str) -> Vec<usize> {
        let mut found: Vec<usize> = self.nodes.get(&(version, path)).into_iter().flatten().copied().collect();
        if path.is_empty() {
            let below = self.nodes.range((version, "")..).take_while(|((of, _), _)| *of == version).skip(1);
            found.extend(below.flat_map(|(_, indices)| indices));
            return found;
        }
        // A path goes on with a dot or a bracket; the character after each ends the range.
        for (open, end) in [(".", "/"), ("[", "\\")] {
            let (from, to) = (format!("{path}{open}"), format!("{path}{end}"));
            let below = self.nodes.range((version, from.as_str())..(version, to.as_str()));
            found.extend(below.flat_map(|(_, indices)| indices));
        }
        found
    }
}

/// The changes that a finding comes from which none of them claims.
fn nearest(drafts: &[Draft], findings: &[Finding], left: &[usize]) -> BTreeMap<usize, Vec<usize>> {
    if left.is_empty() {
        return BTreeMap::new();
    }
    let mut places: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for found in left {
        for version in versions(&findings[*found]) {
            let path = findings[*found].path.as_deref().unwrap_or_default();
            places.entry((version, path)).or_default().push(*found);
        }
    }
    // At the place of the finding and below it, and at each node.
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut at: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate().filter(|(_, draft)| is_of_a_schema(draft)) {
        for length in 0..=draft.steps.len() {
            let path = field_path(&draft.steps[..length]);
            for found in places.get(&(draft.version.as_str(), path.as_str())).into_iter().flatten() {
                below.entry(*found).or_default().push(index);
            }
            if length == draft.steps.len() {
                at.entry((&draft.version, path)).or_default().push(index);
            }
        }
    }
    left.iter()
        .map(|found| {
            let finding = &findings[*found];
            let mut near = below.remove(found).unwrap_or_default();
            if near.iter().any(|index| drafts[*index].fills_in) {
                near.retain(|index| drafts[*index].fills_in);
            }
            if near.is_empty() {
                near = above(finding, &at);
            }
            if near.is_empty() {
                near = of_the_whole(drafts, finding);
            }
            (*found, near)
        })
        .collect()
}

/// The changes of the nearest node around a finding.
fn above(finding: &Finding, at: &BTreeMap<(&str, String), Vec<usize>>) -> Vec<usize> {
    let path = finding.path.as_deref().unwrap_or_default();
    let ends = path.rmatch_indices(['.', '[']).map(|(end, _)| end).chain([0]);
    let mut around = ends.flat_map(|end| versions(finding).map(move |version| (version, path[..end].to_owned())));
    around.find_map(|place| at.get(&place)).cloned().unwrap_or_default()
}

/// The changes of a version or of the definition that bring a finding about: a version that comes, another way between
/// versions; all of them where nothing else is left.
fn of_the_whole(drafts: &[Draft], finding: &Finding) -> Vec<usize> {
    let concerned: BTreeSet<&str> = versions(finding).collect();
    let comes =
        |draft: &&Draft| draft.change_type == ChangeType::ApiVersionAdded && concerned.contains(draft.version.as_str());
    let between = |draft: &&Draft| {
        [ChangeType::StorageVersionChanged, ChangeType::ConversionChanged].contains(&draft.change_type)
    };
    let pick = |is_near: &dyn Fn(&&Draft) -> bool| -> Vec<usize> {
        drafts.iter().enumerate().filter(|(_, draft)| is_near(draft)).map(|(index, _)| index).collect()
    };
    let tries: [&dyn Fn(&&Draft) -> bool; 3] = [&comes, &between, &|_| true];
    tries.into_iter().map(pick).find(|near| !near.is_empty()).unwrap_or_default()
}

/// Whether a change is about a node of a schema; the root of one is a node too.
fn is_of_a_schema(draft: &Draft) -> bool {
    let keyed = |claim: &Claim| !matches!(claim, Claim::Checks(_) | Claim::ChecksOf(..));
    !draft.steps.is_empty() || draft.claims.iter().any(keyed)
}
