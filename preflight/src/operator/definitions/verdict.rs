//! Which proof is about which change. One that no change claims, as where a default below meets a rule above, goes to the
//! nearest changes, so that nothing is called safe that the rule objects to.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition::path::{field_path, node_at};
use pushback_crd::definition::{self, DefinitionChange, Proof};
use pushback_crd::schema::contain::SchemaStep;
use pushback_crd::schema::invalid::Problem;
use serde_json::{Value, json};

use super::draft::{Claim, Draft, Place};
use crate::operator::difference::{ChangeType, CrdVerdict, INVALID, Proved, Severity};
use crate::operator::model::Definition;
use crate::source::display_path;

/// What is said of a place in the definitions.
#[derive(Debug)]
struct Said {
    proved: Proved,
    /// The other version, of what is lost between two.
    from: Option<String>,
    /// The node of the schema.
    node: Option<Vec<SchemaStep>>,
    new: Option<Value>,
    verdict: CrdVerdict,
    message: String,
}

impl Said {
    /// `None` where nothing has to be said.
    fn of(change: &DefinitionChange) -> Option<Self> {
        let is_between = change.keyword == BETWEEN;
        if matches!(change.place, definition::Place::Schema(_)) && !is_between {
            let is_silent = change.is_moot || matches!(change.proof, Proof::Safe(_));
            if is_silent {
                return None;
            }
        }
        let verdict = match &change.proof {
            Proof::Safe(_) => CrdVerdict::Safe,
            Proof::Unknown { .. } => CrdVerdict::Unknown,
            Proof::Breaking { .. } => CrdVerdict::Breaking,
        };
        let from = change.old.as_ref().filter(|_| is_between).and_then(Value::as_str);
        Some(Self {
            proved: Proved { keyword: change.keyword.to_owned(), version: change.version.clone(), path: change.path() },
            from: from.map(ToOwned::to_owned),
            node: change.node().map(<[_]>::to_vec),
            new: change.new.clone(),
            verdict,
            message: change.to_string(),
        })
    }

    /// A rule that no API server takes.
    fn of_rule(problem: &Problem, definition: &Value) -> Self {
        let mut said = Self::of_problem(problem);
        if let Some((version, node)) = node_at(definition, &problem.path) {
            said.proved.version = Some(version);
            said.proved.path = Some(field_path(&node)).filter(|path| !path.is_empty());
            said.node = Some(node);
        }
        said
    }

    fn of_problem(problem: &Problem) -> Self {
        let path = Some(display_path(&problem.path));
        Self {
            proved: Proved { keyword: INVALID.to_owned(), version: None, path },
            from: None,
            node: None,
            new: None,
            verdict: if problem.is_certain { CrdVerdict::Breaking } else { CrdVerdict::Unknown },
            message: problem.to_string(),
        }
    }

    /// The versions that it is about; the empty one for the definition as a whole.
    fn versions(&self) -> impl Iterator<Item = &str> {
        let version = self.proved.version.as_deref();
        version.into_iter().chain(self.from.as_deref()).chain(version.is_none().then_some(""))
    }
}

/// A loss between two versions, which concerns the schemas of both.
const BETWEEN: &str = "crossVersionLoss";

/// Whether the API server refuses a definition for one of its rules.
pub(super) fn is_of_a_rule(problem: &Problem) -> bool {
    problem.path.contains(&"x-kubernetes-validations".into())
}

/// Gives every change the worst of what is said about it: what is proved, and which of its rules no API server takes.
pub(super) fn judge(drafts: &mut [Draft], proved: &[DefinitionChange], of_rules: &[Problem], after: &Definition) {
    let of_rules = of_rules.iter().map(|problem| Said::of_rule(problem, &after.value));
    let said: Vec<Said> = proved.iter().filter_map(Said::of).chain(of_rules).collect();
    let index = Index::of(&said);
    let mut claimed = BTreeSet::new();
    for draft in &mut *drafts {
        let about: Vec<usize> = draft.claims.iter().flat_map(|claim| index.about(&draft.version, claim)).collect();
        for found in about {
            worsen(draft, &said[found]);
            claimed.insert(found);
        }
    }
    let left: Vec<usize> =
        (0..said.len()).filter(|found| !claimed.contains(found) && said[*found].verdict != CrdVerdict::Safe).collect();
    for (found, near) in nearest(drafts, &said, &left) {
        for draft in near {
            worsen(&mut drafts[draft], &said[found]);
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
pub(super) fn refused(after: &Definition, problem: Problem) -> Draft {
    let said = Said::of_problem(&problem);
    let severity = if said.verdict == CrdVerdict::Breaking { Severity::Breaking } else { Severity::Warning };
    let subject = format!("{}\n{}", said.proved.path.as_deref().unwrap_or_default(), said.message);
    let mut draft =
        Draft::of_definition(ChangeType::ConstraintChanged, severity, &[], said.message.clone()).subject(subject);
    INVALID.clone_into(&mut draft.keyword);
    if let Some((version, steps)) = node_at(&after.value, &problem.path) {
        (draft.version, draft.steps) = (version, steps);
    }
    draft.place = Place::New(problem.path);
    worsen(&mut draft, &said);
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

/// What is said of a change is part of it, and its verdict as bad as the worst.
fn worsen(draft: &mut Draft, said: &Said) {
    draft.proved.push(said.proved.clone());
    if said.verdict > draft.verdict {
        draft.verdict = said.verdict;
        draft.reason.clone_from(&said.message);
    }
}

/// What is said, by what it is about.
struct Index<'f> {
    said: &'f [Said],
    /// Of the definition, or of a version as a whole: by version and keyword.
    whole: BTreeMap<(&'f str, &'f str), Vec<usize>>,
    /// Of a node of a schema: by version and node.
    nodes: BTreeMap<(&'f str, &'f [SchemaStep]), Vec<usize>>,
}

impl<'f> Index<'f> {
    fn of(said: &'f [Said]) -> Self {
        let (mut whole, mut nodes) = (BTreeMap::<_, Vec<usize>>::new(), BTreeMap::<_, Vec<usize>>::new());
        for (index, one) in said.iter().enumerate() {
            for version in one.versions() {
                whole.entry((version, one.proved.keyword.as_str())).or_default().push(index);
                if let Some(node) = &one.node {
                    nodes.entry((version, node.as_slice())).or_default().push(index);
                }
            }
        }
        Self { said, whole, nodes }
    }

    fn about(&self, version: &str, claim: &Claim) -> Vec<usize> {
        match claim {
            Claim::Checks(checks) => self.of_checks(version, checks),
            Claim::ChecksOf(version, checks) => self.of_checks(version, checks),
            Claim::Keyword(steps, keyword) => self.at(version, steps, |said| said.proved.keyword == *keyword),
            Claim::Required(steps, name) => {
                let names = json!([name]);
                self.at(version, steps, |said| said.proved.keyword == "required" && said.new.as_ref() == Some(&names))
            }
            Claim::Field(steps) => self.within(version, steps),
        }
    }

    fn of_checks(&self, version: &str, checks: &[&str]) -> Vec<usize> {
        checks.iter().filter_map(|check| self.whole.get(&(version, *check))).flatten().copied().collect()
    }

    fn at(&self, version: &str, steps: &[SchemaStep], is_about: impl Fn(&Said) -> bool) -> Vec<usize> {
        let found = self.nodes.get(&(version, steps)).into_iter().flatten().copied();
        found.filter(|index| is_about(&self.said[*index])).collect()
    }

    /// At a node and below it, in the order of their paths as they are written.
    fn within(&self, version: &str, steps: &[SchemaStep]) -> Vec<usize> {
        let inside = self.nodes.range((version, steps)..);
        let inside = inside.take_while(|((of, node), _)| *of == version && node.starts_with(steps));
        let mut found: Vec<usize> = inside.flat_map(|(_, indices)| indices).copied().collect();
        found.sort_by_key(|index| (&self.said[*index].proved.path, *index));
        found
    }
}

/// The changes that something comes from which none of them claims.
fn nearest(drafts: &[Draft], said: &[Said], left: &[usize]) -> BTreeMap<usize, Vec<usize>> {
    if left.is_empty() {
        return BTreeMap::new();
    }
    let mut places: BTreeMap<(&str, &[SchemaStep]), Vec<usize>> = BTreeMap::new();
    for found in left {
        for version in said[*found].versions() {
            if let Some(node) = &said[*found].node {
                places.entry((version, node)).or_default().push(*found);
            }
        }
    }
    // At the place of what is said and below it, and at each node.
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut at: BTreeMap<(&str, &[SchemaStep]), Vec<usize>> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate().filter(|(_, draft)| is_of_a_schema(draft)) {
        for length in 0..=draft.steps.len() {
            let place = (draft.version.as_str(), &draft.steps[..length]);
            for found in places.get(&place).into_iter().flatten() {
                below.entry(*found).or_default().push(index);
            }
        }
        at.entry((&draft.version, &draft.steps)).or_default().push(index);
    }
    left.iter()
        .map(|found| {
            let one = &said[*found];
            let mut near = below.remove(found).unwrap_or_default();
            if near.iter().any(|index| drafts[*index].fills_in) {
                near.retain(|index| drafts[*index].fills_in);
            }
            if near.is_empty() {
                near = above(one, &at);
            }
            if near.is_empty() {
                near = of_the_whole(drafts, one);
            }
            (*found, near)
        })
        .collect()
}

/// The changes of the nearest node around what is said.
fn above(said: &Said, at: &BTreeMap<(&str, &[SchemaStep]), Vec<usize>>) -> Vec<usize> {
    let node = said.node.as_deref().unwrap_or_default();
    let mut around =
        (0..=node.len()).rev().flat_map(|length| said.versions().map(move |version| (version, &node[..length])));
    around.find_map(|place| at.get(&place)).cloned().unwrap_or_default()
}

/// The changes of a version or of the definition that bring it about: a version that comes, another way between versions;
/// all of them where nothing else is left.
fn of_the_whole(drafts: &[Draft], said: &Said) -> Vec<usize> {
    let concerned: BTreeSet<&str> = said.versions().collect();
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
