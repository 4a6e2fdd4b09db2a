//! A fingerprint identifies one difference: different ones never share one, equal ones always do, and positions, order
//! and API version do not affect it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Before and after: image and replicas of a Deployment, the permissions of its role, and the largest size in a
/// definition.
#[derive(Clone, Debug)]
struct Scenario {
    image: (u8, u8),
    replicas: (u8, u8),
    verbs: (BTreeSet<&'static str>, BTreeSet<&'static str>),
    maximum: (u8, u8),
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let verbs = || prop::collection::btree_set(prop::sample::select(vec!["get", "list", "watch"]), 1..4);
    let pair = || (1..4_u8, 1..4_u8);
    (pair(), pair(), (verbs(), verbs()), pair()).prop_map(|(image, replicas, verbs, maximum)| Scenario {
        image,
        replicas,
        verbs,
        maximum,
    })
}

impl Scenario {
    fn side(&self, new: bool, turned: bool) -> Vec<Value> {
        let of = |(old, after): (u8, u8)| if new { after } else { old };
        let mut deployment = deployment(&format!("shop:{}", of(self.image)), "shop");
        deployment["spec"]["replicas"] = json!(of(self.replicas));
        let mut verbs: Vec<&str> = if new { &self.verbs.1 } else { &self.verbs.0 }.iter().copied().collect();
        if turned {
            verbs.reverse();
        }
        let size = json!({"size": {"type": "integer", "maximum": of(self.maximum)}});
        let mut side = vec![deployment, role(&verbs), binding(), definition(&size)];
        if turned {
            side[1]["apiVersion"] = json!("rbac.authorization.k8s.io/v1beta1");
        }
        side
    }

    fn fingerprints(&self, turned: bool) -> BTreeSet<String> {
        let sides = self.side(false, turned).into_iter().zip(self.side(true, turned));
        let mut changes: Vec<ChangeOfObject> = sides.map(|(old, new)| change(Some(&old), Some(&new))).collect();
        if turned {
            changes.reverse();
            changes.iter_mut().for_each(|change| change.positions = None);
        }
        let report = run(changes, &json!({}), &[], Vec::new());
        report.findings.into_iter().map(|finding| finding.fingerprint).collect()
    }

    /// A description of every difference; independent of the rule's own code.
    fn meanings(&self) -> BTreeSet<String> {
        let pairs = [("image", self.image), ("replicas", self.replicas), ("maximum", self.maximum)];
        let pairs = pairs.iter().filter(|(_, (old, new))| old != new).map(|pair| format!("{pair:?}"));
        let (old, new) = &self.verbs;
        let (lost, more): (Vec<_>, Vec<_>) = (old.difference(new).collect(), new.difference(old).collect());
        let verbs = [("without", lost), ("with", more)].into_iter().filter(|(_, verbs)| !verbs.is_empty());
        pairs.chain(verbs.map(|verbs| format!("{verbs:?}"))).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn different_differences_never_share_a_fingerprint(one in scenario(), other in scenario()) {
        let (ones, others) = (one.fingerprints(false), other.fingerprints(false));
        prop_assert_eq!(ones.len(), one.meanings().len());
        let same = one.meanings().intersection(&other.meanings()).count();
        prop_assert_eq!(ones.intersection(&others).count(), same);
        prop_assert_eq!(ones, one.fingerprints(true));
    }
}
