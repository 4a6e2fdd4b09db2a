//! What a saved plan costs: bytes for each object, and requests.

use std::fmt::Write as _;

use crate::support::apply::{TestApp, config_map};
use crate::support::case::{rounds, show};
use crate::support::proxy::FaultProxy;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_plan_grows_with_its_objects_and_no_faster,
        ApiServer: carrying_out_a_plan_costs_one_request_more,
    ]
}

fn objects(count: usize, first: &str) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = write!(text, "{}", config_map(&format!("object-{number}"), if number == 0 { first } else { "value" }));
        text
    })
}

fn a_plan_grows_with_its_objects_and_no_faster() {
    let size = |count: usize| {
        let pushback = Pushback::new();
        std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
        pushback.write("app.yaml", objects(count, "value"));
        pushback.run(&["apply", "-a", "many", "-f", "app.yaml", "--cluster", "dir:live", "--yes"]).expect(0);
        pushback.write("app.yaml", objects(count, "other"));
        pushback
            .run(&["plan", "-a", "many", "-f", "app.yaml", "--cluster", "dir:live", "--out", "many.plan"])
            .expect(0);
        let size = pushback.read("many.plan").len();
        pushback.run(&["apply", "--plan", "many.plan", "--cluster", "dir:live"]).expect(0);
        size
    };
    let (few, thousand) = (size(10), size(1_000));
    show(&format!("plan of 1,000 objects: {thousand} bytes, {} an unchanged object", (thousand - few) / 990));
    assert!((thousand - few) / 990 <= 300, "{few} {thousand}");
    let count = if rounds(0, 1) > 0 { 10_000 } else { 3_000 };
    let many = size(count);
    let each = (many - few) / (count - 10);
    show(&format!("plan of {count} objects: {many} bytes, {each} an unchanged object"));
    assert!(each <= 300, "{few} {many}");
}

fn carrying_out_a_plan_costs_one_request_more() {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let app = |prefix: &str| {
        let pushback = Pushback::with_kubeconfig(&proxy.kubeconfig());
        TestApp::of(pushback, "planned", &cluster.namespace(prefix))
    };
    for count in [20, if rounds(0, 1) > 0 { 1_000 } else { 200 }] {
        let (plain, planned) = (app("plain"), app("planned"));
        let requests = |ran: crate::support::Ran| ran.expect(0).end()["requests"].as_u64().expect("a number");
        for it in [&plain, &planned] {
            it.apply(&objects(count, "value"), &[]).expect(0);
        }
        let changed = objects(count, "other");
        let without = requests(plain.apply(&changed, &[]));
        planned.pushback.write("app.yaml", &changed);
        planned.run("plan", &["-f", "app.yaml", "--out", "app.plan"]).expect(0);
        let with = requests(planned.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]));
        show(&format!("{count} objects: {without} requests without a plan, {with} with one"));
        assert_eq!(with, without + 1);
    }
}
