//! The objects that a refusal is about, a row each: how many causes, what they affect, and what to do now.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::text::counted;
use pushback_objects::{Audience, Finding, Remedy, RemedyKind, Severity, Verdict};
use pushback_preflight::cause::{Cause, LiveTotal, live_total};
use pushback_preflight::registry;

use crate::finding_card::object_name;

/// One object that refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its name.
    pub name: String,
    /// Number of causes.
    pub causes: usize,
    /// Affected objects, `3 of 112`.
    pub affected: String,
    /// The next step.
    pub now: String,
}

/// Fewest objects that share a row.
const ALIKE: usize = 3;

/// A row for each object that refuses, in the order of the causes.
#[must_use]
pub fn object_rows(loud: &[&Cause], findings: &[Finding]) -> Vec<ObjectRow> {
    refusing(loud, findings).iter().map(Refusing::row).collect()
}

/// The same with one row for objects that affect nothing that is there, or that nobody has counted, and that have the
/// same next step: `10 definitions`.
#[must_use]
pub fn folded_rows(loud: &[&Cause], findings: &[Finding]) -> Vec<ObjectRow> {
    let mut groups: Vec<Alike<'_>> = Vec::new();
    for refusing in refusing(loud, findings) {
        let row = refusing.row();
        let alike = (!refusing.affects_objects()).then(|| (refusing.noun().to_owned(), row.now));
        match groups.iter_mut().find(|group| alike.is_some() && group.alike == alike) {
            Some(group) => group.objects.push(refusing),
            None => groups.push(Alike { alike, objects: vec![refusing] }),
        }
    }
    let rows = |Alike { objects: group, .. }: Alike<'_>| match group.len() {
        ..ALIKE => group.iter().map(Refusing::row).collect::<Vec<_>>(),
        count => {
            let name = counted(count, group[0].noun());
            let together = Refusing {
                name,
                members: group.iter().flat_map(|refusing| refusing.members.iter().copied()).collect(),
                causes: group.iter().flat_map(|refusing| refusing.causes.iter().copied()).collect(),
            };
            vec![ObjectRow { now: group[0].row().now, ..together.row() }]
        }
    };
    groups.into_iter().flat_map(rows).collect()
}

/// Objects of one row.
struct Alike<'f> {
    /// What they are and what is to be done now; `None` for an object that has a row of its own.
    alike: Option<(String, String)>,
    objects: Vec<Refusing<'f>>,
}

/// Findings that refuse, of one object or of several that are alike.
struct Refusing<'f> {
    name: String,
    members: Vec<&'f Finding>,
    /// Indices of their causes.
    causes: BTreeSet<usize>,
}

impl Refusing<'_> {
    fn row(&self) -> ObjectRow {
        let live = live_total(self.members.iter().copied());
        let affected = live.as_ref().map_or_else(
            || if concerns_stored_objects(&self.members) { "not counted" } else { "-" }.to_owned(),
            |live| format!("{}{} of {}", if live.up_to { "up to " } else { "" }, live.affected, live.examined),
        );
        let now = what_now(&self.members, live.as_ref());
        ObjectRow { name: self.name.clone(), causes: self.causes.len(), affected, now }
    }

    fn affects_objects(&self) -> bool {
        live_total(self.members.iter().copied()).is_some_and(|live| live.affected > 0)
    }

    fn is_definition(&self) -> bool {
        self.members[0].object.is_definition()
    }

    fn noun(&self) -> &'static str {
        if self.is_definition() { "definition" } else { "object" }
    }
}

fn refusing<'f>(loud: &[&Cause], findings: &'f [Finding]) -> Vec<Refusing<'f>> {
    let mut objects: Vec<Refusing<'f>> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (cause_index, cause) in loud.iter().enumerate() {
        let refusing = cause.at.iter().map(|index| &findings[*index]);
        for finding in refusing.filter(|finding| finding.severity == Severity::Error && finding.waived.is_none()) {
            let name = object_name(finding);
            let row = *index.entry(name.clone()).or_insert_with(|| {
                objects.push(Refusing { name, members: Vec::new(), causes: BTreeSet::new() });
                objects.len() - 1
            });
            objects[row].members.push(finding);
            objects[row].causes.insert(cause_index);
        }
    }
    objects
}

/// The next step for an object with these findings: that of the first way out, so that the table and the cards agree.
fn what_now(findings: &[&Finding], live: Option<&LiveTotal>) -> String {
    let moves = |finding: &&Finding| {
        registry::answered_by_moving_objects().any(|(rule, check)| rule == finding.rule && check == finding.check)
    };
    // What is moved as it is needs no correction.
    let to_correct = live_total(findings.iter().copied().filter(|finding| !moves(finding)));
    let to_correct = to_correct.map_or(0, |live| live.affected);
    let Some(first) = first_way(findings) else {
        let is_undecided = findings.iter().all(|finding| finding.verdict == Verdict::Unknown);
        return if is_undecided { "judge it by hand" } else { "change the manifest" }.to_owned();
    };
    match first.kind {
        RemedyKind::MoveObjects => move_objects(first),
        RemedyKind::CorrectObjects if to_correct > 0 => format!("correct {} first", counted(to_correct, "object")),
        RemedyKind::CorrectObjects => "correct the objects first".to_owned(),
        RemedyKind::AskCluster => "check against the cluster".to_owned(),
        RemedyKind::Keep => "keep it, or move its content away".to_owned(),
        RemedyKind::Grant => "grant the permission".to_owned(),
        RemedyKind::Configure if live.is_some_and(|live| live.examined > 0 && live.affected == 0) => {
            "none is affected: accept it".to_owned()
        }
        RemedyKind::Configure => "accept it in the policy".to_owned(),
        RemedyKind::Accept => "move its clients first".to_owned(),
        RemedyKind::Change => "change the manifest".to_owned(),
    }
}

/// `move its objects: --storage=bridge`, with the option that the commands of the way out use.
fn move_objects(way: &Remedy) -> String {
    let mut arguments = way.commands.iter().flat_map(|command| command.split(' '));
    match arguments.find(|argument| argument.starts_with("--storage=")) {
        Some(option) => format!("move its objects: {option}"),
        None => "move its objects first".to_owned(),
    }
}

/// The first way out for who deploys; accepting is the next step only if there is nothing else to do.
fn first_way<'f>(findings: &[&'f Finding]) -> Option<&'f Remedy> {
    let ways = || findings.iter().flat_map(|finding| &finding.remedies).filter(|it| it.audience == Audience::Deployer);
    ways().find(|way| way.kind != RemedyKind::Accept).or_else(|| ways().next())
}

/// Returns whether any row differs from the others in what is affected or in the next step.
#[must_use]
pub fn differ(rows: &[ObjectRow]) -> bool {
    rows.windows(2).any(|pair| (&pair[0].affected, &pair[0].now) != (&pair[1].affected, &pair[1].now))
}

/// Returns whether these are findings of a CRD, one of them about objects that may be stored.
fn concerns_stored_objects(findings: &[&Finding]) -> bool {
    let is_of_a_crd = findings.iter().all(|finding| finding.object.is_definition());
    is_of_a_crd && findings.iter().any(|finding| finding.effect.is_some())
}
