//! Work that the comparisons of one CRD may take together, and the strings that they have found: a CRD may have any number of
//! versions, and each is compared with itself and with others.

use std::sync::{Arc, Mutex, PoisonError};

use super::confirm;
use super::difference::Spent;
use super::solve::{ALL_STEPS, AUTOMATA};
use super::text::Asked;

/// The work that one comparison may take.
const ONE: Spent = Spent { steps: ALL_STEPS, automata: AUTOMATA, values: confirm::VALUES };

/// The work that all comparisons may take together: one that takes all of its own leaves as much to others. Of published
/// CRDs, the experimental HTTPRoute takes most values, 818,000.
const ALL: Spent = Spent { steps: 2 * ALL_STEPS, automata: 2 * AUTOMATA, values: 1_000_000 };

/// The rest of the work that comparisons may take. Copies share it.
#[derive(Clone, Debug)]
pub struct Budget {
    rest: Arc<Mutex<Spent>>,
    /// Decided questions about strings: versions ask many of them alike.
    texts: Arc<Mutex<Asked>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::with_rest(ALL)
    }
}

impl Budget {
    /// The budget of one comparison, for several that may end without a proof.
    #[must_use]
    pub fn of_one() -> Self {
        Self::with_rest(ONE)
    }

    fn with_rest(rest: Spent) -> Self {
        Self { rest: Arc::new(Mutex::new(rest)), texts: Arc::default() }
    }

    /// Takes the decided questions about strings out, for one comparison.
    pub(super) fn take_texts(&self) -> Asked {
        std::mem::take(&mut *self.texts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts them back with what the comparison has decided. What it could not decide is asked again: the next comparison
    /// may take more work.
    pub(super) fn keep_texts(&self, mut texts: Asked) {
        texts.retain_decided();
        *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = texts;
    }

    /// Returns the rest.
    #[must_use]
    pub fn left(&self) -> Spent {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the part of the rest that the next comparison may take.
    pub(super) fn of_one_comparison(&self) -> Spent {
        let left = self.left();
        Spent {
            steps: left.steps.min(ONE.steps),
            automata: left.automata.min(ONE.automata),
            values: left.values.min(ONE.values),
        }
    }

    /// Takes what a comparison has spent.
    pub(super) fn take(&self, spent: Spent) {
        let mut left = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        left.steps = left.steps.saturating_sub(spent.steps);
        left.automata = left.automata.saturating_sub(spent.automata);
        left.values = left.values.saturating_sub(spent.values);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::{Proof, Upgrade, compare};
    use crate::schema::contain::SchemaProof;
    use crate::schema::pipeline::Server;

    /// A CRD whose versions have one field with this pattern and one with this length.
    fn crd(versions: usize, pattern: &str, most: u32) -> Value {
        let version = |number: usize| {
            // Another pattern for each version: what is asked alike is decided once.
            let pattern = format!("{pattern}|^v{number}$");
            let fields =
                json!({"a": {"type": "string", "pattern": pattern}, "b": {"type": "string", "maxLength": most}});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields}, format!("only{number}"): {"type": "string"},
            }}});
            json!({"name": format!("v{number}"), "served": true, "storage": number == 1, "schema": schema})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": (1..=versions).map(version).collect::<Vec<_>>(),
            },
            "status": {"storedVersions": ["v1"]},
        })
    }

    #[test]
    fn comparisons_of_all_versions_share_a_budget() {
        let spent = |versions: usize| {
            let (old, new) = (crd(versions, "^[a-z]{1,9}$", 9), crd(versions, "^[a-y]{1,9}$", 8));
            let upgrade = Upgrade::of(&old, &new, Server::default());
            let full = upgrade.budget.left();
            assert!(!compare(&upgrade).is_empty());
            let left = upgrade.budget.left();
            [full.steps - left.steps, full.automata - left.automata, full.values - left.values]
        };
        let (one, three) = (spent(1), spent(3));
        assert!(one.iter().zip(three).all(|(one, three)| *one > 0 && three >= 3 * one), "{one:?} {three:?}");
    }

    #[test]
    fn string_that_comparisons_ask_for_alike_is_searched_once() {
        let (old, new) = (crd(1, "^[a-z]{1,9}$", 9), crd(1, "^[a-y]{1,9}$", 9));
        let budget = Budget::default();
        let spent = || {
            let before = budget.left().automata;
            let mut upgrade = Upgrade::of(&old, &new, Server::default());
            upgrade.budget = budget.clone();
            let changes = compare(&upgrade).into_iter().map(|change| change.proof).collect::<Vec<_>>();
            (before - budget.left().automata, changes)
        };
        let ((first, changes), (second, again)) = (spent(), spent());
        assert!(first > 0 && second < first, "{first} {second}");
        assert_eq!(changes, again);
    }

    #[test]
    fn loss_of_unknown_fields_is_not_ruled_out_without_budget() {
        let with = |preserves: bool, most: u32| {
            let mut crd = crd(1, "^[a-z]{1,9}$", most);
            crd["spec"]["preserveUnknownFields"] = preserves.into();
            let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["x-kubernetes-preserve-unknown-fields"] = true.into();
            schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = true.into();
            crd
        };
        let (old, new) = (with(true, 9), with(false, 8));
        let of_the_flag = |upgrade: &Upgrade<'_>| {
            let changes = compare(upgrade).into_iter().filter(|change| change.keyword == "preserveUnknownFields");
            changes.map(|change| (change.is_moot, change.proof)).collect::<Vec<_>>()
        };
        let found = of_the_flag(&Upgrade::of(&old, &new, Server::default()));
        assert!(found.iter().all(|(is_moot, _)| *is_moot), "{found:?}");
        let upgrade = Upgrade::of(&old, &new, Server::default());
        upgrade.budget.take(upgrade.budget.left());
        let found = of_the_flag(&upgrade);
        assert!(matches!(found.as_slice(), [(false, Proof::Unknown { .. })]), "{found:?}");
    }

    #[test]
    fn comparison_that_takes_all_it_may_leaves_as_much_to_others() {
        let (old, new) = (crd(1, "^[a-z]{1,9}$", 9), crd(1, "^[a-y]{1,9}$", 8));
        let found = compare(&Upgrade::of(&old, &new, Server::default())).len();
        let upgrade = Upgrade::of(&old, &new, Server::default());
        upgrade.budget.take(ONE);
        let changes = compare(&upgrade);
        assert!(changes.iter().all(|change| !matches!(change.proof, Proof::Unknown { .. })), "{changes:?}");
        assert_eq!(changes.len(), found);
    }

    #[test]
    fn comparison_without_budget_proves_nothing_and_spends_nothing() {
        let (old, new) = (crd(1, "^[a-z]{1,9}$", 9), crd(1, "^[a-z]{1,10}$", 8));
        let upgrade = Upgrade::of(&old, &new, Server::default());
        let (before, after) = upgrade.resources("v1").expect("both sides");
        let is_safe = |proof: &SchemaProof| *proof == SchemaProof::Safe;
        let proofs = |upgrade: &Upgrade<'_>| -> Vec<SchemaProof> {
            upgrade.compare(&before, &after).into_iter().map(|difference| difference.proof).collect()
        };
        assert_eq!(proofs(&upgrade).iter().filter(|proof| is_safe(proof)).count(), 1);
        let upgrade = Upgrade::of(&old, &new, Server::default());
        upgrade.budget.take(upgrade.budget.left());
        let found = proofs(&upgrade);
        assert!(
            found.iter().all(|proof| matches!(proof, SchemaProof::Unknown { .. })) && found.len() == 2,
            "{found:?}"
        );
        assert_eq!(upgrade.budget.left(), Spent::default());
    }
}
