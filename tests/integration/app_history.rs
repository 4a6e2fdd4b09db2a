//! The history of an app as its commands show it, kapp's entries alike, and its garbage collection.

use serde_json::{Value, json};

use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::{Pushback, TestCase, TestCluster, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: changes_are_listed_newest_first_with_who_made_them,
        ApiServer: changes_that_kapp_recorded_are_listed_too,
        ApiServer: old_changes_are_deleted_after_a_question_and_the_newest_stay,
        ApiServer: the_history_of_an_app_with_a_long_name_is_kept_short_too,
        ApiServer: a_failed_apply_names_the_commit_of_the_last_good_one_and_the_way_back,
        ApiServer: lists_are_filtered_by_age_and_labels,
        ApiServer: under_kapps_name_a_deploy_tells_what_left_the_history,
        ApiServer: kapps_commands_on_changes_and_labels_answer_as_kapp_does,
    ]
}

fn api() -> &'static crate::support::api::ApiClient {
    TestCluster::shared().api()
}

fn deployed(name: &str, times: usize) -> TestApp {
    let app = TestApp::new(name, &TestCluster::shared().namespace("history"));
    for value in 1..=times {
        app.apply(&config_map("a", &value.to_string()), &[]).expect(0);
    }
    app
}

fn as_kapp(app: &TestApp) -> Pushback {
    let pushback = Pushback::on(TestCluster::shared());
    pushback.with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", &app.namespace)
}

fn listed(app: &TestApp, more: &[&str]) -> Vec<Value> {
    app.run("history", more).expect(0).json()["changes"].as_array().expect("changes").clone()
}

fn names(changes: &[Value]) -> Vec<&str> {
    changes.iter().map(|change| change["name"].as_str().expect("a name")).collect()
}

fn changes_are_listed_newest_first_with_who_made_them() {
    let app = deployed("shop", 3);
    let changes = listed(&app, &[]);
    assert_eq!(changes.len(), 3);
    let started: Vec<&str> = changes.iter().filter_map(|change| change["startedAt"].as_str()).collect();
    let time = |text: &str| text.parse::<jiff::Timestamp>().expect("a time");
    assert!(started.is_sorted_by(|newer, older| time(newer) > time(older)), "{started:?}");
    for change in &changes {
        assert!(change["by"].as_str().is_some_and(|by| by.contains('@')), "{change}");
        assert_eq!((&change["outcome"], &change["namespaces"]), (&json!("succeeded"), &json!([app.namespace])));
    }
    let table = app.pushback.run(&["history", "-a", "shop", "-n", &app.namespace]).expect(0).stdout;
    let operations: Vec<&str> = table.lines().skip(1).filter_map(|line| line.rsplit("  ").next()).collect();
    assert_eq!(operations, ["1 update", "1 update", "1 create"]);

    assert_eq!(listed(&app, &["--after", started[1]]).len(), 1);
    assert_eq!(listed(&app, &["--before", started[1]]).len(), 1);
    assert_eq!(listed(&app, &["--before", "2020-01-01"]).len(), 0);
    app.run("history", &["--before", "soon"]).expect(1);
    let missing = TestApp::new("shpo", &app.namespace).run("history", &[]).expect(1);
    assert!(missing.stderr.contains("did you mean shop?"), "{}", missing.stderr);
}

fn changes_that_kapp_recorded_are_listed_too() {
    let namespace = TestCluster::shared().namespace("history");
    kapp::revive("01-plain", &[("kd-a", &namespace)]);
    let app = TestApp::new("shop", &namespace);
    let changes = listed(&app, &[]);
    assert!(!changes.is_empty() && changes.iter().all(|change| change["outcome"] == "succeeded"), "{changes:?}");
    assert_eq!(changes[0]["name"], app.spec()["lastChangeName"]);
}

fn old_changes_are_deleted_after_a_question_and_the_newest_stay() {
    let app = deployed("shop", 4);
    let changes = listed(&app, &[]);
    let arguments = ["ac", "gc", "-a", "shop", "--max", "2"];
    let declined = as_kapp(&app).run_with_input(&arguments, b"n\n").expect(1);
    assert!(declined.stderr.contains("kapp: Error: Stopped"), "{}", declined.stderr);
    assert_eq!(app.history().len(), 4);
    // What cannot be shown is not deleted either.
    let unseen = as_kapp(&app).run(&[&arguments[..], &["-y", "--column", "nope"]].concat()).expect(1);
    assert_eq!(unseen.stderr, "kapp: Error: Failed to find header: nope\n");
    assert_eq!(app.history().len(), 4);
    let arguments = ["app-change", "gc", "-a", "shop", "-n", &app.namespace, "--max", "2", "--yes"];
    assert_eq!(app.pushback.run(&arguments).expect(0).stdout, "deleted 2, kept 2\n");
    assert_eq!(names(&listed(&app, &[])), names(&changes[..2]));
}

fn the_history_of_an_app_with_a_long_name_is_kept_short_too() {
    // The server cuts the names of its entries, and no label holds the name.
    let app = deployed("shop-".repeat(15).trim_end_matches('-'), 2);
    assert_eq!(listed(&app, &[]).len(), 2);
    app.apply(&config_map("a", "last"), &["--app-changes-max-to-keep", "1"]).expect(0);
    let left = listed(&app, &[]);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["name"], app.spec()["lastChangeName"]);
    app.delete(&[]).expect(0);
    let entry = config_map_path(&app.namespace, left[0]["name"].as_str().expect("a name"));
    assert_eq!(api().get(&entry).status, 404);
}

fn lists_are_filtered_by_age_and_labels() {
    let app = deployed("shop", 1);
    api().merge_patch(&app.record_path(), &json!({"metadata": {"labels": {"team": "web"}}})).ok();
    TestApp::new("other", &app.namespace).apply(&config_map("b", "1"), &[]).expect(0);
    let names = |arguments: &[&str]| -> Vec<String> {
        let ran = app.pushback.run(&[&["list", "-n", &app.namespace, "-o", "json"][..], arguments].concat()).expect(0);
        let apps = ran.json()["apps"].as_array().expect("apps").clone();
        apps.iter().filter_map(|app| app["name"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(names(&["--filter-labels", "team=web"]), ["shop"]);
    assert_eq!(names(&["--filter-age", "1h-"]), ["other", "shop"]);
    assert!(names(&["--filter-age", "1h+"]).is_empty());
    app.pushback.run(&["list", "--filter-age", "1h"]).expect(1);
}

fn kapps_commands_on_changes_and_labels_answer_as_kapp_does() {
    let app = deployed("shop", 2);
    let kapp = as_kapp(&app);
    let said = |arguments: &[&str]| kapp.run(arguments).expect(0).stdout;
    assert_eq!(said(&["label", "-a", "shop"]), format!("kapp.k14s.io/app={}", app.label()));
    let changes = listed(&app, &[]);
    let names = names(&changes);
    assert_eq!(said(&["ac", "ls", "-a", "shop", "--column", "name"]), format!("{}\t\n{}\t\n", names[0], names[1]));
    let cells = said(&["app-change", "list", "-a", "shop"]);
    let cells: Vec<&str> = cells.lines().next().expect("a row").split('\t').collect();
    assert_eq!((cells[0], cells[3], cells.len()), (names[0], "true", 6));
    assert!(cells[4].starts_with("update: Op: 0 create, 0 delete, 1 update, "), "{cells:?}");
    let shown = said(&["ac", "gc", "-a", "shop", "--max", "1", "-y", "--tty"]);
    assert!(shown.contains("App changes to delete\n") && shown.contains(names[1]), "{shown}");
    assert!(shown.ends_with("Kept 1, deleted 1 app changes\n\nSucceeded\n"), "{shown}");
    let missing = kapp.run(&["ac", "ls", "-a", "nope"]).expect(1);
    let expected = format!("kapp: Error: App 'nope' (namespace: {}) does not exist: \n", app.namespace);
    assert_eq!(missing.stderr, expected);
}

fn commit(pushback: &Pushback, file: &str, text: &str) -> String {
    pushback.write(file, text);
    pushback.shell("git", &["add", "--all"]);
    pushback.shell("git", &["commit", "--quiet", "--message=state"]);
    pushback.shell("git", &["rev-parse", "HEAD"]).trim().to_owned()
}

fn a_failed_apply_names_the_commit_of_the_last_good_one_and_the_way_back() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("rollback"));
    let pushback = &app.pushback;
    pushback.shell("git", &["init", "--quiet", "--initial-branch=main"]);
    // What a remote's URL holds is nobody's business.
    pushback.shell("git", &["remote", "add", "origin", "https://user:hunter2-and-more@example.com/shop.git"]);
    let good = commit(pushback, "shop/app.yaml", &config_map("a", "1"));
    let apply = ["apply", "-a", "shop", "-n", &app.namespace, "-f", "shop", "--yes", "-o", "json", "--wait-timeout=2s"];
    pushback.run(&apply).expect(0);
    // It is never ready: nobody schedules it.
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  schedulerName: nobody\n  containers:\n  - \
               name: main\n    image: app:1\n";
    let bad = commit(pushback, "shop/app.yaml", &[&config_map("a", "2"), pod].concat());
    let ran = pushback.run(&apply).expect(22);
    let hints = ran.end()["hints"].clone();
    let way = hints.as_array().into_iter().flatten().filter_map(Value::as_str).find(|hint| hint.contains(&good));
    let way = way.unwrap_or_else(|| panic!("{hints}"));
    let (_, commands) = way.split_once(": ").expect("commands");
    let (checkout, again) = commands.split_once(" && ").expect("two commands");
    assert_eq!(checkout, format!("git checkout {good} -- shop"));
    assert_eq!(again, format!("pushback {}", apply.join(" ")));
    // The same commit has just failed: it is no way back.
    let hints = pushback.run(&apply).expect(22).end()["hints"].to_string();
    assert!(hints.contains(&good), "{hints}");
    let checkout: Vec<&str> = checkout.split(' ').skip(1).collect();
    pushback.shell("git", &checkout);
    pushback.run(&apply).expect(0);

    let changes = listed(&app, &[]);
    let commits: Vec<&str> = changes.iter().filter_map(|change| change["commit"].as_str()).collect();
    assert_eq!((commits.first(), commits.last()), (Some(&bad.as_str()), Some(&good.as_str())));
    // What was applied last is not what the commit has that is checked out.
    let modified: Vec<bool> = changes.iter().filter_map(|change| change["modified"].as_bool()).collect();
    assert_eq!((modified.first(), modified.last()), (Some(&true), Some(&false)));
    let table = app.pushback.run(&["history", "-a", "shop", "-n", &app.namespace]).expect(0).stdout;
    assert!(table.contains(&good[..12]) && !table.contains(&good), "{table}");
    assert!(!format!("{:?}", app.history()).contains("hunter2"));
}

fn under_kapps_name_a_deploy_tells_what_left_the_history() {
    let app = deployed("shop", 3);
    let deploy = |value: &str| {
        let kapp = as_kapp(&app);
        kapp.write("app.yaml", config_map("a", value));
        kapp.run(&["deploy", "-a", "shop", "-f", "app.yaml", "-y", "--app-changes-max-to-keep", "2"]).expect(0).stdout
    };
    let told = deploy("4");
    assert!(told.ends_with("waiting complete [1/1 done] ----\n\nDeleted 2 older app changes\n\nSucceeded\n"), "{told}");
    assert!(!deploy("4").contains("older app changes"), "nothing was deployed");
}
