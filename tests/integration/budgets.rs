//! What a run may ask of the API server: exact numbers of requests, by what they are for, and how they grow.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::apply::{TestApp, config_map};
use crate::support::proxy::FaultProxy;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_new_app_costs_a_dry_run_and_a_write_an_object_and_a_fixed_number_more,
        ApiServer: an_unchanged_app_costs_one_look_and_one_list,
        ApiServer: one_change_costs_one_dry_run_and_one_write,
        ApiServer: a_deletion_costs_a_delete_an_object_and_a_fixed_number_more,
        ApiServer: a_large_inventory_costs_its_shards_and_its_objects_are_one_page,
    ]
}

/// An app whose every request is counted.
struct Counted {
    proxy: FaultProxy,
    app: TestApp,
}

impl Counted {
    fn new(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let pushback = Pushback::with_kubeconfig(&proxy.kubeconfig());
        Self { app: TestApp::of(pushback, "counted", &cluster.namespace(prefix)), proxy }
    }

    /// What one command cost, by verb and resource.
    fn cost(&self, run: impl FnOnce(&TestApp) -> crate::support::Ran) -> BTreeMap<String, usize> {
        let before = self.proxy.counts();
        let ran = run(&self.app).expect(0);
        let mut cost = self.proxy.counts();
        for (what, count) in before {
            if let Some(all) = cost.get_mut(&what) {
                *all -= count;
            }
        }
        cost.retain(|_, count| *count > 0);
        let sum: usize = cost.values().sum();
        assert_eq!(ran.end()["requests"].as_u64(), u64::try_from(sum).ok(), "the run's own count is another: {cost:?}");
        cost
    }
}

fn objects(count: usize, first: &str) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = write!(text, "{}", config_map(&format!("object-{number}"), if number == 0 { first } else { "value" }));
        text
    })
}

/// What every look at an app costs: two roots of discovery and the version, the record's two names.
const LOOK: [(&str, usize); 2] = [("discovery", 3), ("get configmaps", 2)];

/// What preflight asks about permissions in one namespace, whatever the number of objects.
const ACCESS: [(&str, usize); 2] = [("create selfsubjectaccessreviews", 1), ("create selfsubjectrulesreviews", 1)];

fn expected(parts: &[&[(&str, usize)]]) -> BTreeMap<String, usize> {
    parts.concat().into_iter().map(|(what, count)| (what.to_owned(), count)).collect()
}

fn a_new_app_costs_a_dry_run_and_a_write_an_object_and_a_fixed_number_more() {
    for count in [1, 60] {
        let counted = Counted::new("budget");
        let cost = counted.cost(|app| app.apply(&objects(count, "value"), &[]));
        let objects = [("dry-run apply configmaps", count), ("apply configmaps", count)];
        // Record and history, each begun and ended; what a killed run may have left of an inventory.
        let own =
            [("list resourcequotas", 1), ("list configmaps", 1), ("create configmaps", 2), ("patch configmaps", 2)];
        assert_eq!(cost, expected(&[&LOOK, &ACCESS, &objects, &own]), "for {count} objects");
    }
}

fn an_unchanged_app_costs_one_look_and_one_list() {
    let counted = Counted::new("budget");
    counted.app.apply(&objects(60, "value"), &[]).expect(0);
    let cost = counted.cost(|app| app.apply(&objects(60, "value"), &[]));
    assert_eq!(cost, expected(&[&LOOK, &[("list configmaps", 1)]]));
}

fn one_change_costs_one_dry_run_and_one_write() {
    let counted = Counted::new("budget");
    counted.app.apply(&objects(60, "value"), &[]).expect(0);
    let cost = counted.cost(|app| app.apply(&objects(60, "other"), &[]));
    let object = [("dry-run apply configmaps", 1), ("apply configmaps", 1)];
    // The app's objects, records that claim them as well, its history, and what a killed run may have left of an
    // inventory; the record twice, the history begun and ended.
    let own = [("list configmaps", 4), ("create configmaps", 1), ("patch configmaps", 3)];
    assert_eq!(cost, expected(&[&LOOK, &ACCESS, &object, &own]));
}

fn a_deletion_costs_a_delete_an_object_and_a_fixed_number_more() {
    let counted = Counted::new("budget");
    counted.app.apply(&objects(60, "value"), &[]).expect(0);
    let cost = counted.cost(|app| app.delete(&[]));
    // Objects, other records with the app's label, history, shards; the record and the one history entry go, too.
    let own = [("list configmaps", 4), ("delete configmaps", 60 + 2), ("patch configmaps", 1)];
    assert_eq!(cost, expected(&[&LOOK, &ACCESS, &own]));
}

fn a_large_inventory_costs_its_shards_and_its_objects_are_one_page() {
    let counted = Counted::new("budget");
    counted.app.apply(&objects(1_100, "value"), &[]).expect(0);
    let cost = counted.cost(|app| app.apply(&objects(1_100, "value"), &[]));
    let own = [("discovery", 3), ("get configmaps", 2 + 1), ("list configmaps", 1)];
    assert_eq!(cost, expected(&[&own]));
}
