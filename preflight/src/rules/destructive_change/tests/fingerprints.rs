//! A fingerprint identifies one loss: different losses never share one, equal ones always do, and order and API version
//! do not affect it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What is lost, by object name: the volume of a claim, the replicas and claims of a StatefulSet, the replicas of a
/// Deployment before and after, and the number of objects in a namespace.
#[derive(Clone, Debug)]
struct Scenario {
    /// Reclaim policy and size of each volume.
    volumes: Vec<(&'static str, u8)>,
    claims: BTreeMap<&'static str, (bool, Option<usize>)>,
    stateful_sets: BTreeMap<&'static str, (u8, BTreeSet<&'static str>)>,
    deployments: BTreeMap<&'static str, (u8, u8)>,
    namespaces: BTreeMap<&'static str, usize>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    use prop::collection::{btree_map, btree_set, vec};
    use prop::sample::select;
    let name = || select(vec!["a", "b"]);
    let volumes = vec((select(vec!["Delete", "Recycle", "Retain"]), 1..3_u8), 2);
    let claims = btree_map(name(), (prop::bool::ANY, prop::option::of(0..2_usize)), 0..3);
    let stateful_sets = btree_map(name(), (1..4_u8, btree_set(select(vec!["data", "logs"]), 0..3)), 0..3);
    let deployments = btree_map(name(), (1..3_u8, 3..5_u8), 0..3);
    let namespaces = btree_map(name(), 0..3_usize, 0..3);
    (volumes, claims, stateful_sets, deployments, namespaces).prop_map(
        |(volumes, claims, stateful_sets, deployments, namespaces)| Scenario {
            volumes,
            claims,
            stateful_sets,
            deployments,
            namespaces,
        },
    )
}

impl Scenario {
    /// The fingerprints; with `turned`, of the same losses written differently.
    fn fingerprints(&self, turned: bool) -> BTreeSet<String> {
        let apps = if turned { "apps/v1beta2" } else { "apps/v1" };
        let placed = |api_version: &str, kind: &str, name: &str| {
            let mut placed = object(api_version, kind, name);
            placed["metadata"]["namespace"] = json!("shop");
            placed
        };
        let mut cluster: Vec<Value> = Vec::new();
        for (index, (policy, size)) in self.volumes.iter().enumerate() {
            let mut volume = object("v1", "PersistentVolume", &format!("volume-{index}"));
            volume["spec"] =
                json!({"persistentVolumeReclaimPolicy": policy, "capacity": {"storage": format!("{size}Gi")}});
            cluster.push(volume);
        }
        let mut changes = Vec::new();
        for (name, (anew, volume)) in &self.claims {
            let mut claim = placed("v1", "PersistentVolumeClaim", name);
            claim["spec"] = volume.map_or(json!({}), |volume| json!({"volumeName": format!("volume-{volume}")}));
            changes.push(if *anew { replace(claim) } else { delete(claim) });
        }
        for (name, (replicas, templates)) in &self.stateful_sets {
            let mut templates: Vec<Value> = templates.iter().map(|name| json!({"metadata": {"name": name}})).collect();
            if turned {
                templates.reverse();
            }
            let mut stateful_set = placed(apps, "StatefulSet", name);
            stateful_set["spec"] = json!({"replicas": replicas, "volumeClaimTemplates": templates});
            changes.push(replace(stateful_set));
        }
        for (name, (before, after)) in &self.deployments {
            let deployment = |replicas: u8| {
                let mut deployment = placed(apps, "Deployment", name);
                deployment["spec"] = json!({"replicas": replicas});
                deployment
            };
            let wanted = placed(apps, "Deployment", name);
            let mut change = change(Operation::Update, Some(deployment(*before)), Some(wanted));
            change.result = Some(Arc::new(deployment(*after)));
            changes.push(change);
        }
        for (name, count) in &self.namespaces {
            changes.push(delete(object("v1", "Namespace", name)));
            for number in 0..*count {
                let mut foreign = object("v1", "Secret", &format!("secret-{number}"));
                foreign["metadata"]["namespace"] = json!(name);
                cluster.push(foreign);
            }
        }
        if turned {
            changes.reverse();
            cluster.reverse();
        }
        let report = run_with(changes, &Cluster::with(&cluster), &json!({"checks": {"deletedShare": "off"}}));
        report.findings.into_iter().map(|finding| finding.fingerprint).collect()
    }

    /// A description of every loss; independent of the rule's own code.
    fn meanings(&self) -> BTreeSet<String> {
        let claims = self.claims.iter().map(|(name, (anew, volume))| {
            let volume = volume.map(|volume| match self.volumes[volume] {
                ("Retain", _) => (volume, "Retain", None),
                (policy, size) => (volume, policy, Some(size)),
            });
            format!("claim {name} {anew} {volume:?}")
        });
        let stateful_sets = self.stateful_sets.iter().map(|(name, (replicas, templates))| {
            // The names do not matter: all claims are reused.
            format!("stateful set {name} {replicas} {}", templates.is_empty())
        });
        let deployments = self.deployments.iter().map(|deployment| format!("deployment {deployment:?}"));
        // The waiver bounds the number of objects.
        let namespaces = self.namespaces.iter().map(|(name, count)| format!("namespace {name} {}", *count > 0));
        claims.chain(stateful_sets).chain(deployments).chain(namespaces).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn different_losses_never_share_a_fingerprint(one in scenario(), other in scenario()) {
        let (ones, others) = (one.fingerprints(false), other.fingerprints(false));
        prop_assert_eq!(ones.len(), one.meanings().len());
        let same = one.meanings().intersection(&other.meanings()).count();
        prop_assert_eq!(ones.intersection(&others).count(), same);
        prop_assert_eq!(ones, one.fingerprints(true));
    }
}
