//! A disk that is full and streams that are closed: what cannot be told does not undo or stop what is deployed.

use super::{app, secret, sound};
use crate::support::apply::{config_map, config_map_path};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: closed_streams_do_not_stop_a_deploy,
        ApiServer: deploy_whose_output_cannot_be_written_is_carried_out_and_ends_with_20,
        ApiServer: command_whose_output_cannot_be_written_ends_with_20,
        ApiServer: a_report_for_which_there_is_no_room_stops_the_run_before_anything_is_written,
        Nothing: a_folder_for_which_there_is_no_room_is_left_as_it_was,
    ]
}

const NO_SPACE: &str = "error: standard output could not be written: no space left on device";

/// Runs an apply through a line of the shell, in which `$0` is the binary and `APPLY` the arguments.
fn in_shell(pushback: &Pushback, namespace: &str, line: &str) -> Ran {
    let arguments = format!("apply -a shop -n {namespace} -f app.yaml --yes --output json");
    pushback.run_in_shell(&line.replace("APPLY", &arguments))
}

fn closed_streams_do_not_stop_a_deploy() {
    for closed in [">&-", "2>&-", "<&-", "<&- >&- 2>&-"] {
        let app = app("closed");
        app.pushback.write("app.yaml", config_map("first", "1") + &secret());
        let ran = in_shell(&app.pushback, &app.namespace, &format!("exec \"$0\" APPLY {closed}")).expect(0);
        assert!(!ran.stderr.contains("panicked"), "{closed}: {}", ran.stderr);
        let again = app.apply(&(config_map("first", "1") + &secret()), &[]);
        assert_eq!(sound(again, 0).end()["outcome"], "unchanged", "{closed}");
    }
}

fn deploy_whose_output_cannot_be_written_is_carried_out_and_ends_with_20() {
    let app = app("full-output");
    app.pushback.write("app.yaml", config_map("first", "1"));
    let ran = in_shell(&app.pushback, &app.namespace, "exec \"$0\" APPLY > /dev/full").expect(20);
    assert_eq!(ran.complaints().lines().last(), Some(NO_SPACE));
    let path = config_map_path(&app.namespace, "first");
    assert_eq!(TestCluster::shared().api().get(&path).status, 200);
    // Nothing is written now.
    in_shell(&app.pushback, &app.namespace, "exec \"$0\" APPLY > /dev/full").expect(20);
    // Nobody can be told any more.
    in_shell(&app.pushback, &app.namespace, "exec \"$0\" APPLY > /dev/full 2> /dev/full").expect(20);
}

fn command_whose_output_cannot_be_written_ends_with_20() {
    let app = app("full-outputs");
    app.apply(&config_map("first", "1"), &["--report", "json=report.json"]).expect(0);
    let namespace = &app.namespace;
    for line in [
        "verify report.json",
        "list -n NAMESPACE",
        "inspect -a shop -n NAMESPACE",
        "history -a shop -n NAMESPACE",
        "logs -a shop -n NAMESPACE",
        "storage status --all",
        "upgrade diff --from app.yaml --to app.yaml",
        "upgrade recover --allow-namespace NAMESPACE --yes",
        "check -a shop -n NAMESPACE -f app.yaml -o json",
        "man apply",
    ] {
        let line = line.replace("NAMESPACE", namespace);
        let ran = app.pushback.run_in_shell(&format!("exec \"$0\" {line} > /dev/full")).expect(20);
        assert!(ran.complaints().lines().any(|complaint| complaint == NO_SPACE), "{line}: {}", ran.stderr);
    }
}

/// A shell whose files may not grow: what a full disk does, without filling one.
const NO_ROOM: &str = "trap '' XFSZ; ulimit -f 0; exec \"$0\" APPLY";

fn a_report_for_which_there_is_no_room_stops_the_run_before_anything_is_written() {
    for report in ["--report json=report.json", "--facts-out facts.json"] {
        let app = app("full-report");
        app.pushback.write("app.yaml", config_map("first", "1"));
        let ran = sound(in_shell(&app.pushback, &app.namespace, &format!("{NO_ROOM} {report}")), 1);
        assert!(ran.end()["error"].as_str().is_some_and(|error| error.contains("too large")), "{}", ran.stdout);
        assert_eq!(TestCluster::shared().api().get(&app.record_path()).status, 404, "nothing is written");
        assert_eq!(app.pushback.listing().len(), 1, "half a report is left: {:?}", app.pushback.listing());
    }
}

fn a_folder_for_which_there_is_no_room_is_left_as_it_was() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", config_map("first", "1"));
    let apply =
        ["apply", "-a", "shop", "-n", "default", "-f", "app.yaml", "--yes", "-o", "json", "--cluster", "dir:live"];
    sound(pushback.run(&apply), 0);
    let before = pushback.tree("live");
    pushback.write("app.yaml", config_map("first", "2"));
    let ran = in_shell(&pushback, "default", &format!("{NO_ROOM} --cluster dir:live"));
    let ran = sound(ran, 13);
    assert_eq!(pushback.tree("live"), before, "{}", ran.stdout);
    sound(pushback.run(&apply), 0);
    assert_ne!(pushback.tree("live"), before);
}
