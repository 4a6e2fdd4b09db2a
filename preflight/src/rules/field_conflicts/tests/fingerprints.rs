//! A fingerprint identifies one conflict: different conflicts never share one, equal ones always do, and times,
//! positions, order and API version do not affect it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Manager, operation, subresource.
type Owner = (&'static str, &'static str, &'static str);

/// More fields than get a finding each.
const FIELDS: usize = SHOWN + 3;

/// Values of each field before and after, and the fields of each owner; true for a predecessor.
#[derive(Clone, Debug)]
struct Scenario {
    name: &'static str,
    values: Vec<(u8, Option<u8>)>,
    owners: BTreeMap<Owner, (bool, BTreeSet<usize>)>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let owner = (
        prop::sample::select(vec!["edit", "gitops"]),
        prop::sample::select(vec!["Apply", "Update"]),
        prop::sample::select(vec!["", "scale"]),
    );
    let fields =
        prop_oneof![prop::collection::btree_set(0..3_usize, 0..3), Just((0..FIELDS).collect::<BTreeSet<usize>>()),];
    let owners = prop::collection::btree_map(owner, (prop::bool::weighted(0.2), fields), 1..4);
    let values = prop::collection::vec((0..2_u8, prop::option::of(2..4_u8)), FIELDS);
    (prop::sample::select(vec!["web", "api"]), values, owners).prop_map(|(name, values, owners)| Scenario {
        name,
        values,
        owners,
    })
}

impl Scenario {
    fn path(field: usize) -> String {
        format!("spec.field{field:02}")
    }

    /// The change; with `turned`, the same one written differently.
    fn change(&self, turned: bool) -> Change {
        let mut taken_from = Vec::new();
        for ((manager, operation, subresource), (predecessor, fields)) in &self.owners {
            let mut fields: Vec<TakenField> = fields
                .iter()
                .map(|field| {
                    let (old, new) = self.values[*field];
                    let place = if turned { Vec::new() } else { vec!["spec".into()] };
                    TakenField { path: Self::path(*field), place, old: Some(json!(old)), new: new.map(Into::into) }
                })
                .collect();
            if turned {
                fields.reverse();
            }
            taken_from.push(TakenFrom {
                manager: (*manager).into(),
                operation: (*operation).into(),
                subresource: (*subresource).into(),
                time: if turned { String::new() } else { "2026-11-21T12:00:00Z".into() },
                predecessor: *predecessor,
                fields,
            });
        }
        if turned {
            taken_from.reverse();
        }
        let mut change = deployment(taken_from);
        change.object.name = self.name.into();
        if turned {
            change.object.version = "v1beta1".into();
        }
        change
    }

    fn fingerprints(&self, turned: bool) -> BTreeSet<String> {
        let report = run_with(self.change(turned), &json!({}), &[]);
        report.findings.into_iter().map(|finding| finding.fingerprint).collect()
    }

    /// A description of every field taken over; independent of the rule's own code.
    fn meanings(&self) -> BTreeSet<String> {
        let mut of_fields: BTreeMap<usize, Vec<Owner>> = BTreeMap::new();
        let mut meanings = BTreeSet::new();
        for (owner, (predecessor, fields)) in &self.owners {
            if *predecessor {
                let fields: Vec<_> = fields.iter().map(|field| (*field, self.values[*field])).collect();
                meanings.insert(format!("{} {owner:?} {fields:?}", self.name));
            } else {
                fields.iter().for_each(|field| of_fields.entry(*field).or_default().push(*owner));
            }
        }
        let all: Vec<_> = of_fields.iter().map(|(field, owners)| (*field, self.values[*field], owners)).collect();
        let (shown, rest) = all.split_at(all.len().min(SHOWN));
        meanings.extend(shown.iter().map(|field| format!("{} {field:?}", self.name)));
        if !rest.is_empty() {
            meanings.insert(format!("{} rest {rest:?}", self.name));
        }
        meanings
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn different_conflicts_never_share_a_fingerprint(one in scenario(), other in scenario()) {
        let (ones, others) = (one.fingerprints(false), other.fingerprints(false));
        prop_assert_eq!(ones.len(), one.meanings().len());
        let same = one.meanings().intersection(&other.meanings()).count();
        prop_assert_eq!(ones.intersection(&others).count(), same);
        prop_assert_eq!(ones, one.fingerprints(true));
    }
}
