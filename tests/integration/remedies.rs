//! The ways out of a refusal, followed to the letter on a real API server: the commands are run as they are printed, the
//! lines of a Config document are put into one; the finding goes, and no new one comes.

mod facts;
mod ways;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Map, Value, json};

use self::facts::*;
use self::ways::*;
use crate::support::apply::TestApp;
use crate::support::binaries::Binaries;
use crate::support::case::show;
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: objects_are_moved_in_the_same_apply,
        ApiServer: objects_are_moved_step_by_step,
        ApiServer: objects_are_carried_over_by_a_bridge,
        ApiServer: clients_of_bridged_versions_are_accepted_by_one_command,
        ApiServer: old_entries_of_the_list_are_cleared,
        ApiServer: objects_that_would_be_refused_are_corrected,
        ApiServer: an_object_that_would_be_changed_is_corrected,
        ApiServer: a_definition_is_kept_that_leaves_the_app,
        ApiServer: a_volume_is_kept_when_its_claim_goes,
        ApiServer: a_claim_is_kept_that_leaves_the_app,
        ApiServer: pods_are_kept_when_their_stateful_set_is_replaced,
        ApiServer: the_rest_of_an_app_is_kept,
        ApiServer: a_permission_is_granted,
        ApiServer: objects_decide_when_they_are_asked_to,
        ApiServer: a_version_that_nobody_uses_any_more_goes,
        ApiServer: a_loss_is_intended,
        ApiServer: a_field_is_taken_over_on_purpose,
        ApiServer: a_field_is_left_to_its_owner,
        ApiServer: an_author_keeps_what_clients_use,
        ApiServer: the_cluster_is_asked_in_place_of_a_folder,
        ApiServer: bridge_that_a_folder_recommends_is_not_refused_by_the_cluster,
        ApiServer: a_cause_is_accepted_with_its_members,
        ApiServer: renamed_field_is_converted_by_the_drafted_plan,
        ApiServer: bridge_that_would_lose_a_renamed_field_is_given_a_plan,
        ApiServer: bridge_passes_once_the_objects_lack_the_field,
        ApiServer: renamed_field_between_served_versions_gets_a_draft,
        ApiServer: plan_for_a_folder_is_drafted_from_its_files,
        ApiServer: status_field_is_edited_through_its_subresource,
        ApiServer: object_of_the_manifests_is_corrected_there,
        ApiServer: content_that_is_fixed_is_renamed_kept_or_replaced,
        ApiServer: claim_that_has_grown_keeps_its_size,
        ApiServer: namespace_that_is_missing_is_created,
        ApiServer: unknown_field_is_left_out,
        ApiServer: namespace_with_objects_of_others_stays_when_its_app_is_deleted,
        ApiServer: objects_of_a_renamed_kind_are_copied,
        ApiServer: account_that_a_pod_needs_is_created,
        ApiServer: reference_that_is_created_elsewhere_is_ignored,
        ApiServer: stored_version_without_objects_is_removed_by_the_first_remedy,
    ]
}

/// A run that was refused, and what it said.
struct Refused {
    app: TestApp,
    /// The arguments after the app's.
    arguments: Vec<String>,
    report: Value,
}

/// An app in whose surroundings `pushback` and `kubectl` are on the path, and an editor that replaces text.
fn app(namespace: &str, editing: [&str; 2]) -> TestApp {
    let pushback = Pushback::on(TestCluster::shared());
    let programs = pushback.place().join("programs");
    fs::create_dir(&programs).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_pushback"), programs.join("pushback")).expect("a link");
    let kubectl = Binaries::get(true).and_then(|binaries| binaries.command("kubectl")).expect("kubectl");
    script(&programs.join("kubectl"), &format!("exec {} \"$@\"", kubectl.join(" ")));
    script(&programs.join("editor"), &format!("exec sed -i 's/{}/{}/' \"$1\"", editing[0], editing[1]));
    let mut path = OsString::from(&programs);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let pushback = pushback.with("PATH", path).with("KUBE_EDITOR", programs.join("editor"));
    TestApp::of(pushback, "app", namespace)
}

fn script(path: &Path, line: &str) {
    fs::write(path, format!("#!/bin/sh\n{line}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}

fn new_app(namespace: &str) -> TestApp {
    app(namespace, ["nothing", "nothing"])
}

/// The fingerprints of findings that refuse.
fn refusing(report: &Value) -> BTreeSet<String> {
    let findings = report["findings"].as_array().expect("findings").iter();
    let refusing = findings.filter(|finding| finding["severity"] == "error" && finding["waived"].is_null());
    refusing.map(|finding| finding["fingerprint"].as_str().expect("a fingerprint").to_owned()).collect()
}

impl Refused {
    /// Applies an input that is refused.
    #[track_caller]
    fn of(app: TestApp, input: &str, more: &[&str]) -> Self {
        app.pushback.write("new.yaml", input);
        let mut arguments = vec!["-f", "new.yaml", "--yes", "--wait=false", "--report", "json=report.json"];
        arguments.extend(more);
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let mut refused = Self { app, arguments, report: Value::Null };
        refused.again().expect(10);
        refused.report = refused.app.pushback.read_json("report.json");
        refused
    }

    /// Runs the same once more.
    fn again(&self) -> Ran {
        self.app.run("apply", &self.arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The finding of a check; there is one.
    #[track_caller]
    fn finding(&self, check: &str) -> &Value {
        let mut findings = self.report["findings"].as_array().expect("findings").iter();
        findings.find(|it| it["check"] == check).unwrap_or_else(|| panic!("no {check} in {:#}", self.report))
    }

    /// The ways out of a finding that are of a kind.
    #[track_caller]
    fn ways(&self, check: &str, kind: &str) -> Vec<&Value> {
        let all = self.finding(check)["remedies"].as_array().expect("remedies").iter();
        let ways: Vec<&Value> = all.filter(|way| way["kind"] == kind).collect();
        assert!(!ways.is_empty(), "no way of kind {kind} in {:#}", self.finding(check));
        ways
    }

    /// Runs the commands of a way as a shell reads them, and puts its lines into the Config document of the next run.
    #[track_caller]
    fn follow(&mut self, way: &Value) -> Vec<Ran> {
        let commands = way["commands"].as_array().cloned().unwrap_or_default();
        let run = |command: &Value| self.shell(command.as_str().expect("a command"));
        let ran = commands.iter().map(run).collect();
        if let Some(config) = way["config"].as_object() {
            let mut document = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config"});
            document.as_object_mut().expect("a map").extend(Map::clone(config));
            self.app.pushback.write("config.yaml", document.to_string());
            if !self.arguments.iter().any(|argument| argument == "--config") {
                self.arguments.extend(["--config".to_owned(), "config.yaml".to_owned()]);
            }
        }
        ran
    }

    /// Runs a line of the shell; it succeeds.
    #[track_caller]
    fn shell(&self, line: &str) -> Ran {
        self.app.pushback.run_in_shell(line).expect(0)
    }

    /// The finding refuses no more, nothing else does, and the apply goes through.
    #[track_caller]
    fn assert_settled(&self, title: &str, check: &str, way: &Value) {
        let ran = self.again().expect(0);
        let after = self.app.pushback.read_json("report.json");
        let finding = self.finding(check)["fingerprint"].as_str().expect("a fingerprint");
        assert!(refusing(&self.report).contains(finding), "it did not refuse before");
        assert_eq!(refusing(&after), BTreeSet::new(), "{after:#}");
        let commands: Vec<&str> = way["commands"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let config = way["config"].as_object().map(|config| format!("    {}\n", json!(config))).unwrap_or_default();
        let steps: Vec<&str> = way["steps"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let lines: String = commands.iter().map(|command| format!("    $ {command}\n")).collect();
        let end = after["outcome"].as_str().unwrap_or_default();
        show(&format!(
            "{title}: {}\n  {}\n{lines}{config}  -> exit {}, {end}",
            way["kind"],
            steps.join("; "),
            ran.code
        ));
    }

    /// Follows a way of a kind, the only one or the first, and looks at what comes of it.
    #[track_caller]
    fn settled_by(mut self, title: &str, check: &str, kind: &str) -> Self {
        let way = self.ways(check, kind)[0].clone();
        self.follow(&way);
        self.assert_settled(title, check, &way);
        self
    }
}
