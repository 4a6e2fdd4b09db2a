//! Names that are too long for the Pods of a workload.

use super::*;

fn named(kind: &str, length: usize) -> Value {
    let api_version = if kind.contains("Job") { "batch/v1" } else { "apps/v1" };
    let spec = json!({"template": template(), "jobTemplate": {"spec": {"template": template()}}});
    object(api_version, kind, &"a".repeat(length), spec)
}

fn outcome(side: ClusterSide, change: Change) -> (RuleOutcome, usize) {
    let ran = run_on(side, vec![change], false, |need| match need {
        Need::PodAdmission { .. } => accepted(),
        need => permission(need, true, false),
    });
    (ran.outcome(), ran.asked.len())
}

#[test]
fn name_that_leaves_no_room_for_the_hash_is_refused() {
    use RuleOutcome::{Failed, Passed, Warned};
    for (kind, length, expected) in [
        ("StatefulSet", 52, (Passed, 1)),
        // Most hashes have ten digits, and nearly all at least nine.
        ("StatefulSet", 53, (Warned, 1)),
        ("StatefulSet", 54, (Failed, 1)),
        ("StatefulSet", 61, (Failed, 1)),
        ("StatefulSet", 62, (Failed, 0)),
        ("StatefulSet", 400, (Failed, 0)),
        ("Deployment", 242, (Passed, 1)),
        ("Deployment", 244, (Failed, 1)),
        ("DaemonSet", 253, (Passed, 1)),
        ("Job", 63, (Passed, 1)),
        ("Job", 64, (Failed, 0)),
        ("CronJob", 52, (Passed, 1)),
        ("CronJob", 53, (Failed, 0)),
    ] {
        assert_eq!(outcome(ClusterSide::Server, create(&named(kind, length))), expected, "{kind} {length}");
    }
}

#[test]
fn name_is_checked_on_a_folder_that_is_asked_nothing() {
    let (outcome_of_long, asked) = outcome(ClusterSide::Directory, create(&named("StatefulSet", 60)));
    assert_eq!((outcome_of_long, asked), (RuleOutcome::Failed, 0));
    let changes = vec![create(&named("StatefulSet", 20))];
    let ran = run_on(ClusterSide::Directory, changes, false, |need| panic!("{need:?}"));
    assert_eq!((ran.outcome(), ran.skipped()), (RuleOutcome::Skipped, "needs an API server, and dir:./live is none"));
}

#[test]
fn dot_in_the_name_of_a_stateful_set_is_refused() {
    let mut dotted = named("StatefulSet", 5);
    dotted["metadata"]["name"] = "my.db".into();
    assert_eq!(outcome(ClusterSide::Directory, create(&dotted)).0, RuleOutcome::Failed);
}

#[test]
fn long_name_of_a_workload_that_runs_warns_of_its_next_template() {
    let live = named("StatefulSet", 55);
    let desired = with(&live, "/spec/template/spec/containers/0/image", "nginx:2".into());
    assert_eq!(outcome(ClusterSide::Server, change(Some(&desired), Some(&live))).0, RuleOutcome::Warned);
    let scaled = with(&live, "/spec/replicas", 2.into());
    assert_eq!(outcome(ClusterSide::Server, change(Some(&scaled), Some(&live))).0, RuleOutcome::Passed);
}
