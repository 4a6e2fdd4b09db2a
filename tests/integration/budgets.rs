//! What a run may ask of the API server: exact numbers of requests, by what they are for, and how they grow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::apply::{TestApp, config_map};
use crate::support::poll::poll;
use crate::support::proxy::{FaultProxy, any, dry_runs};
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_new_app_costs_a_dry_run_and_a_write_an_object_and_a_fixed_number_more,
        ApiServer: an_unchanged_app_costs_one_look_and_one_list,
        ApiServer: one_change_costs_one_dry_run_and_one_write,
        ApiServer: a_deletion_costs_a_delete_an_object_and_a_fixed_number_more,
        ApiServer: a_large_inventory_costs_its_shards_and_its_objects_are_one_page,
        ApiServer: rights_and_quotas_are_asked_while_objects_are_compared,
        ApiServer: verbose_output_logs_the_writes_and_then_every_request,
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

/// The user of the credentials, for the history.
const USER: [(&str, usize); 1] = [("create selfsubjectreviews", 1)];

/// What else the objects may own: each kind of the namespace is listed for the plan, and again before the first deletion.
const DEPENDENTS: [(&str, usize); 20] = [
    ("list cronjobs", 2),
    ("list daemonsets", 2),
    ("list deployments", 2),
    ("list horizontalpodautoscalers", 2),
    ("list ingresses", 2),
    ("list jobs", 2),
    ("list limitranges", 2),
    ("list networkpolicies", 2),
    ("list persistentvolumeclaims", 2),
    ("list poddisruptionbudgets", 2),
    ("list replicationcontrollers", 2),
    ("list resourceclaims", 2),
    ("list resourceclaimtemplates", 2),
    ("list resourcequotas", 2),
    ("list rolebindings", 2),
    ("list roles", 2),
    ("list secrets", 2),
    ("list serviceaccounts", 2),
    ("list services", 2),
    ("list statefulsets", 2),
];

fn is_dependent(what: &str) -> bool {
    DEPENDENTS.iter().any(|(known, _)| *known == what)
}

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
        assert_eq!(cost, expected(&[&LOOK, &ACCESS, &USER, &objects, &own]), "for {count} objects");
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
    assert_eq!(cost, expected(&[&LOOK, &ACCESS, &USER, &object, &own]));
}

fn a_deletion_costs_a_delete_an_object_and_a_fixed_number_more() {
    let counted = Counted::new("budget");
    counted.app.apply(&objects(60, "value"), &[]).expect(0);
    let mut cost = counted.cost(|app| app.delete(&[]));
    // Kinds that tests beside this one define are listed, too.
    let is_known = |what: &str| !what.starts_with("list ") || what == "list configmaps" || is_dependent(what);
    cost.retain(|what, _| is_known(what));
    // Objects, other records with the app's label, history, shards; the record and the one history entry go, too.
    let own = [("list configmaps", 4 + 2), ("delete configmaps", 60 + 2), ("patch configmaps", 1)];
    assert_eq!(cost, expected(&[&LOOK, &ACCESS, &own, &DEPENDENTS]));
}

fn a_large_inventory_costs_its_shards_and_its_objects_are_one_page() {
    let counted = Counted::new("budget");
    counted.app.apply(&objects(1_100, "value"), &[]).expect(0);
    let cost = counted.cost(|app| app.apply(&objects(1_100, "value"), &[]));
    let own = [("discovery", 3), ("get configmaps", 2 + 1), ("list configmaps", 1)];
    assert_eq!(cost, expected(&[&own]));
}

fn rights_and_quotas_are_asked_while_objects_are_compared() {
    let Counted { proxy, app } = Counted::new("budget");
    let asked = Arc::new(AtomicUsize::new(0));
    let meanwhile = Arc::new(AtomicBool::new(false));
    let about_the_run = ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "resourcequotas"];
    let count = Arc::clone(&asked);
    proxy.before(any().that(move |request| about_the_run.contains(&request.resource.as_str())), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let (count, seen) = (Arc::clone(&asked), Arc::clone(&meanwhile));
    proxy.before(dry_runs("configmaps").first(1), move |_| {
        let all = poll(Duration::from_secs(20), || (count.load(Ordering::SeqCst) == about_the_run.len()).then_some(()));
        seen.store(all.is_some(), Ordering::SeqCst);
    });
    app.apply(&objects(1, "value"), &[]).expect(0);
    assert!(meanwhile.load(Ordering::SeqCst), "asked beside the dry-run: {}", asked.load(Ordering::SeqCst));
}

fn verbose_output_logs_the_writes_and_then_every_request() {
    let Counted { proxy: _proxy, app } = Counted::new("budget");
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: not-for-a-log}}";
    let logged = |level: &str, text: &str| {
        let ran = app.apply(&format!("{text}---\n{secret}"), &[level]).expect(0);
        let said = ran.stdout.clone() + &ran.stderr;
        assert!(!said.contains("not-for-a-log") && !said.contains("bm90LWZvci1hLWxvZ"), "{said}");
        let lines: Vec<String> = ran.stderr.lines().filter(|line| line.contains(" → ")).map(str::to_owned).collect();
        (ran.end()["requests"].as_u64().expect("a number"), lines)
    };
    let (requests, lines) = logged("-vv", &config_map("one", "first"));
    assert_eq!(lines.len() as u64, requests, "{lines:#?}");
    let place = format!("/api/v1/namespaces/{}", app.namespace);
    let dry_run =
        format!("PATCH {place}/secrets/login?fieldManager=pushback&force=true&fieldValidation=Strict&dryRun=All");
    let refused = format!("GET {place}/configmaps/counted → 404 in ");
    for part in [format!("{dry_run} → 201 in "), refused] {
        assert!(lines.iter().any(|line| line.contains(&part)), "{part}: {lines:#?}");
    }
    // The object; the record before and after; the history begun and ended.
    let (_, lines) = logged("-v", &config_map("one", "second"));
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains("dryRun") && !line.contains("GET")), "{lines:#?}");
}
