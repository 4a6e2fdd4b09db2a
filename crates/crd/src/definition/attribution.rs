//! Which proof explains which structural change. A proof that no change claims (a new default that violates a rule
//! further up) is attributed to the nearest changes, so that no change with an objection is reported as safe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::change::{CROSS_VERSION_LOSS, DefinitionChange, Place, Proof};
use super::structure::{Claim, NodeChange, StructuralChange, What};
use super::{Upgrade, compare, nodes};
use crate::schema::contain::SchemaStep;

/// Every difference between the definitions as read, each with the proofs of [`compare`](super::compare) that concern
/// it, whether or not it affects objects.
///
/// Schemas may be deeply nested: call it within [`crate::stack::with_room`].
#[must_use]
pub fn structural_changes<'u>(upgrade: &'u Upgrade<'_>) -> Vec<StructuralChange<'u>> {
    let shared = |changes: Vec<DefinitionChange>| changes.into_iter().map(Arc::new);
    let wholes: Vec<_> = shared(compare::wholes(upgrade)).collect();
    let of_nodes = nodes::compare(upgrade);
    let [of_rules, of_others] = compare::refused(upgrade);
    if wholes.is_empty() && of_nodes.is_empty() && of_others.is_empty() {
        return Vec::new();
    }
    let grounds =
        wholes.iter().cloned().chain(shared(compare::proofs(upgrade))).filter(|change| is_worth_telling(change));
    let grounds: Vec<_> = grounds.chain(shared(of_rules)).collect();
    let whats = wholes.into_iter().map(What::Whole).chain(of_nodes.into_iter().map(Box::new).map(What::Node)).collect();
    let refused = |change: Arc<_>| StructuralChange { what: What::Whole(Arc::clone(&change)), grounds: vec![change] };
    attributed(whats, &grounds).into_iter().chain(shared(of_others).map(refused)).collect()
}

/// Safe changes of a schema are not reported.
fn is_worth_telling(change: &DefinitionChange) -> bool {
    let is_of_a_node = matches!(change.place, Place::Schema(_)) && change.keyword != CROSS_VERSION_LOSS;
    !(change.is_moot || is_of_a_node && matches!(change.proof, Proof::Safe(_)))
}

/// Attaches to each change the proofs that concern it.
fn attributed<'u>(whats: Vec<What<'u>>, grounds: &[Arc<DefinitionChange>]) -> Vec<StructuralChange<'u>> {
    let index = Index::of(grounds);
    let mut about: Vec<Vec<usize>> = whats.iter().map(|what| index.about(what)).collect();
    let claimed: BTreeSet<usize> = about.iter().flatten().copied().collect();
    let is_safe = |ground: &DefinitionChange| matches!(ground.proof, Proof::Safe(_));
    let left = grounds.iter().enumerate().filter(|(found, ground)| !claimed.contains(found) && !is_safe(ground));
    let left: Vec<(usize, &Arc<DefinitionChange>)> = left.collect();
    if !left.is_empty() {
        let places = Places::of(&whats);
        for (found, ground) in left {
            places.nearest(ground).into_iter().for_each(|near| about[near].push(found));
        }
    }
    let grounds_of = |found: Vec<usize>| found.into_iter().map(|found| grounds[found].clone()).collect();
    whats.into_iter().zip(about).map(|(what, found)| StructuralChange { what, grounds: grounds_of(found) }).collect()
}

/// Indices by version and node, in path order, so that descendants follow their node.
type ByNode<'g> = BTreeMap<(&'g str, &'g [SchemaStep]), Vec<usize>>;

/// Everything at a node and its descendants.
fn within<'m>(map: &'m ByNode<'_>, version: &'m str, path: &'m [SchemaStep]) -> impl Iterator<Item = usize> + 'm {
    let inside = map.range((version, path)..);
    let inside = inside.take_while(move |((of, node), _)| *of == version && node.starts_with(path));
    inside.flat_map(|(_, found)| found).copied()
}

/// The versions that a proof concerns; the empty string for the definition as a whole.
fn versions(ground: &DefinitionChange) -> impl Iterator<Item = &str> {
    let from = ground.old.as_ref().filter(|_| ground.keyword == CROSS_VERSION_LOSS).and_then(Value::as_str);
    [ground.version.as_deref().unwrap_or_default()].into_iter().chain(from)
}

/// The proofs, indexed by what they concern.
struct Index<'g> {
    grounds: &'g [Arc<DefinitionChange>],
    nodes: ByNode<'g>,
}

impl<'g> Index<'g> {
    fn of(grounds: &'g [Arc<DefinitionChange>]) -> Self {
        let mut nodes = ByNode::new();
        for (found, ground) in grounds.iter().enumerate() {
            if let Some(node) = ground.node() {
                versions(ground).for_each(|version| nodes.entry((version, node)).or_default().push(found));
            }
        }
        Self { grounds, nodes }
    }

    /// The proofs that concern a change, in the order of its claims.
    fn about(&self, what: &What<'_>) -> Vec<usize> {
        match what {
            What::Whole(change) => self.of_whole(change),
            What::Node(change) => change.claims.iter().flat_map(|claim| self.claimed(change, *claim)).collect(),
        }
    }

    fn of_whole(&self, change: &Arc<DefinitionChange>) -> Vec<usize> {
        // If the old storage version was removed, that explains the whole change of the storage version.
        let moved_from = change.old.as_ref().filter(|_| change.keyword == "storageVersionChange" && change.is_moot);
        let is_about = |ground: &Arc<DefinitionChange>| match moved_from {
            Some(version) => ground.keyword == "storedVersionRemoval" && ground.version.as_deref() == version.as_str(),
            None => Arc::ptr_eq(ground, change),
        };
        (0..self.grounds.len()).filter(|found| is_about(&self.grounds[*found])).collect()
    }

    fn claimed(&self, change: &NodeChange<'_>, claim: Claim) -> Vec<usize> {
        let path = change.path.as_slice();
        match claim {
            Claim::Keyword => self.at(change.version, path, |proof| proof.keyword == change.keyword),
            Claim::Unhandled => self.at(change.version, path, |proof| proof.keyword == "unhandled"),
            Claim::Required => {
                let names = change.new.as_ref().map(|name| json!([name]));
                let parent = &path[..path.len().saturating_sub(1)];
                self.at(change.version, parent, |proof| proof.keyword == "required" && proof.new == names)
            }
            Claim::Within => self.within(change.version, path),
            Claim::FreeValues => self.within(change.version, &[path, &[SchemaStep::Additional]].concat()),
        }
    }

    fn at(&self, version: &str, path: &[SchemaStep], is_about: impl Fn(&DefinitionChange) -> bool) -> Vec<usize> {
        let found = self.nodes.get(&(version, path)).into_iter().flatten().copied();
        found.filter(|found| is_about(&self.grounds[*found])).collect()
    }

    /// The proofs at a node and its descendants, in the order of their written paths.
    fn within(&self, version: &str, path: &[SchemaStep]) -> Vec<usize> {
        let mut found: Vec<usize> = within(&self.nodes, version, path).collect();
        found.sort_by_cached_key(|found| (self.grounds[*found].path(), *found));
        found
    }
}

/// The changes, indexed by place.
struct Places<'w> {
    whats: &'w [What<'w>],
    nodes: ByNode<'w>,
}

impl<'w> Places<'w> {
    fn of(whats: &'w [What<'w>]) -> Self {
        let mut nodes = ByNode::new();
        for (index, what) in whats.iter().enumerate() {
            if let What::Node(change) = what {
                nodes.entry((change.version, change.path.as_slice())).or_default().push(index);
            }
        }
        Self { whats, nodes }
    }

    /// The changes that best explain a proof that none of them claims: changes at its node or below (preferably those
    /// that alter what the server fills in), else those at the nearest ancestor, else those of the whole.
    fn nearest(&self, ground: &DefinitionChange) -> Vec<usize> {
        let below = |node| versions(ground).flat_map(move |version| within(&self.nodes, version, node));
        let mut near: Vec<usize> = ground.node().into_iter().flat_map(below).collect();
        let fills_in = |index: &usize| matches!(&self.whats[*index], What::Node(change) if change.fills_in());
        if near.iter().any(fills_in) {
            near.retain(fills_in);
        }
        if near.is_empty() {
            let node = ground.node().unwrap_or_default();
            let mut around = (0..=node.len())
                .rev()
                .flat_map(|length| versions(ground).map(move |version| (version, &node[..length])));
            near = around.find_map(|place| self.nodes.get(&place)).cloned().unwrap_or_default();
        }
        if near.is_empty() { self.of_the_whole(ground) } else { near }
    }

    /// The changes of a version or the definition that cause it: a new version or a new conversion between versions;
    /// all of them if there is no better candidate.
    fn of_the_whole(&self, ground: &DefinitionChange) -> Vec<usize> {
        let pick = |is_near: &dyn Fn(&DefinitionChange) -> bool| -> Vec<usize> {
            let is_near = |what: &What<'_>| matches!(what, What::Whole(change) if is_near(change));
            (0..self.whats.len()).filter(|index| is_near(&self.whats[*index])).collect()
        };
        let comes = pick(&|change| {
            let is_concerned = |version: &str| versions(ground).any(|concerned| concerned == version);
            ["versionAdded", "versionServed"].contains(&change.keyword)
                && change.version.as_deref().is_some_and(is_concerned)
        });
        let between = || pick(&|change| ["storageVersionChange", "conversion"].contains(&change.keyword));
        let found = if comes.is_empty() { between() } else { comes };
        if found.is_empty() { (0..self.whats.len()).collect() } else { found }
    }
}
