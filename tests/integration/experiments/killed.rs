//! Runs of experiments that are killed, interrupted or interfered with, and what is taken back afterwards.

use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Operator, SECRET};
use crate::kill_points::killed_once;
use crate::support::case::show;
use crate::support::proxy::{Fault, FaultProxy, Matching, Request, Verb, any, dry_runs, writes};
use crate::support::pushback::{Ran, finish};
use crate::support::running::Running;
use crate::support::{TestCase, cases, rounds, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: fields_that_a_run_killed_at_any_write_has_changed_get_their_values_and_owners_back,
        Controllers: objects_that_a_run_killed_at_any_write_has_made_or_deleted_are_gone_or_there_again,
        Controllers: a_recovery_killed_at_any_write_is_finished_by_the_next,
        Controllers: a_journal_that_is_cut_short_is_named_and_kept_and_the_others_are_taken_back,
        Controllers: a_signal_takes_back_what_is_injected_and_nobody_else_may_before,
        Controllers: what_somebody_has_changed_since_is_left_and_named,
        Controllers: nothing_runs_before_a_killed_run_is_taken_back,
        Controllers: a_forged_journal_changes_nothing,
        Controllers: a_journal_of_secret_values_is_a_secret,
        Controllers: a_lock_that_nobody_could_take_is_kept_and_one_that_was_taken_is_lost,
    ]
}

/// When a process ends that is at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// The server has not seen it.
    Unsent,
    /// The server has done it, and the answer is lost.
    Unheard,
    /// The answer has come, and nothing after it was sent.
    Heard,
}

pub(super) const MOMENTS: [Moment; 3] = [Moment::Unsent, Moment::Unheard, Moment::Heard];

/// Every write of a run, with the moments at which a run is killed there: one, taken in turns, or in a full run all.
pub(super) fn moments(number: usize) -> Vec<Moment> {
    if rounds(0, 1) > 0 { MOMENTS.into() } else { vec![MOMENTS[number % MOMENTS.len()]] }
}

/// How often a run renews its lock is its machine's to say.
fn renews_a_lock(request: &Request) -> bool {
    request.verb == Verb::Patch && request.resource == "leases"
}

impl Operator {
    pub(super) fn recover(&self) -> Ran {
        let arguments = self.recovery();
        self.place.run(&arguments.each_ref().map(String::as_str))
    }

    /// Leaves as it is what somebody has changed since.
    pub(super) fn accept_changed(&self) {
        let arguments = self.recovery();
        let arguments = [&arguments.each_ref().map(String::as_str)[..], &["--accept-changed"]].concat();
        self.place.run(&arguments).expect(0);
        self.assert_nothing_left("accepted");
    }

    fn recovery(&self) -> [String; 5] {
        ["upgrade", "recover", "--allow-namespace", &self.namespace, "--yes"].map(str::to_owned)
    }

    /// Kills a run at its write of this number; false where it has come to its end before.
    pub(super) fn killed(&self, arguments: &[String], number: usize, moment: Moment) -> bool {
        self.killed_at(arguments, || writes().that(|request| !renews_a_lock(request)).nth(number), moment)
    }

    /// Kills a run at a write; false where it has come to its end before.
    pub(super) fn killed_at(&self, arguments: &[String], at: impl Fn() -> Matching, moment: Moment) -> bool {
        let proxy = FaultProxy::start(self.cluster.kubeconfig_path());
        if moment == Moment::Unsent {
            let (sender, receiver) = mpsc::channel();
            proxy.before(at(), move |_| {
                let _ = sender.send(());
            });
            proxy.on(at(), Fault::stall());
            return killed_once(&proxy, &self.place, arguments, || receiver.try_recv().is_ok());
        }
        let mut reached = proxy.end_after(at(), moment == Moment::Heard);
        killed_once(&proxy, &self.place, arguments, || reached.try_recv().is_ok())
    }

    /// Kills runs at all their writes, one after the other, and looks each time. How many there were.
    pub(super) fn killed_everywhere(
        &self,
        arguments: &[String],
        turn: usize,
        mut look: impl FnMut(usize, Moment),
    ) -> usize {
        let mut points = 0;
        for number in 1.. {
            let before = points;
            for moment in moments(number + turn) {
                // Nothing is sent after the last answer: then the run has come to its end.
                let moment = match moment {
                    _ if self.killed(arguments, number, moment) => moment,
                    Moment::Heard if self.killed(arguments, number, Moment::Unheard) => Moment::Unheard,
                    _ => continue,
                };
                look(number, moment);
                points += 1;
            }
            if points == before {
                break;
            }
        }
        points
    }

    pub(super) fn assert_nothing_left(&self, point: &str) {
        assert_eq!(self.recover().expect(0).stdout, "Nothing is left to take back.\n", "{point}");
    }

    pub(super) fn journals(&self) -> Vec<Value> {
        let list = |kind: &str| {
            let path =
                format!("/api/v1/namespaces/{}/{kind}?labelSelector=pushback.dev/experiment=journal", self.namespace);
            self.cluster.api().list(&path)
        };
        [list("configmaps"), list("secrets")].concat()
    }

    /// Kills a run once its injection has been answered.
    pub(super) fn kill_after_injection(&self, experiment: &Value) {
        let file = self.write(experiment);
        assert!(self.killed(&self.arguments(&file), 3, Moment::Heard), "the run has ended");
        assert_eq!(self.journals().len(), 1);
    }
}

/// At the lock, the journal, the injection, the taking back, the end of the journal and of the lock.
fn kill_everywhere(is_meant: fn(&str) -> bool) {
    let operator = Operator::deploy();
    let mut before = operator.contents();
    show("| type | experiment | verdict | killed at | recovered | all else untouched | next deploy quiet |");
    for (turn, experiment) in operator.experiments().iter().enumerate() {
        let kind = experiment["spec"]["injection"]["type"].as_str().expect("a type");
        if !is_meant(kind) {
            continue;
        }
        let file = operator.write(experiment);
        let arguments = [operator.arguments(&file), vec!["--report=json=report.json".to_owned()]].concat();
        let mut deployed = 0;
        let points = operator.killed_everywhere(&arguments, turn, |number, moment| {
            let point = format!("{file} killed at write {number}, {moment:?}");
            operator.recover().expect(0);
            // Journals and locks are among the contents.
            operator.assert_as(&before, &point);
            // The injection is there from the third write on.
            if number == 3 || rounds(0, 1) > 0 {
                operator.assert_nothing_left(&point);
                operator.assert_quiet("operator", &point);
                deployed += 1;
                before = operator.contents();
            }
        });
        assert!(points > 4, "{file} has more than {points} writes");
        operator.assert_as(&before, &file);
        let verdict = operator.place.read_json("report.json")["experiments"][0]["verdict"].clone();
        let name = file.trim_end_matches(".yaml");
        let verdict = verdict.as_str().unwrap_or_default();
        show(&format!("| {kind} | {name} | {verdict} | {points} | {points} | {points} | {deployed} |"));
    }
}

fn makes_or_deletes(kind: &str) -> bool {
    ["PodKill", "NetworkPartition", "QuotaExhaustion", "ResourceDeletion", "SecretDeletion"].contains(&kind)
}

fn fields_that_a_run_killed_at_any_write_has_changed_get_their_values_and_owners_back() {
    kill_everywhere(|kind| !makes_or_deletes(kind));
}

fn objects_that_a_run_killed_at_any_write_has_made_or_deleted_are_gone_or_there_again() {
    kill_everywhere(makes_or_deletes);
}

fn a_recovery_killed_at_any_write_is_finished_by_the_next() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let mut points = Vec::new();
    for (turn, name) in ["drift", "partition", "delete", "finalizer"].into_iter().enumerate() {
        let experiment = operator.experiment_named(name);
        let mut number = 1;
        loop {
            let mut killed = false;
            for moment in moments(number + turn) {
                operator.kill_after_injection(&experiment);
                let point = format!("{name}: recovery killed at write {number}, {moment:?}");
                killed |= operator.killed(&operator.recovery(), number, moment);
                operator.recover().expect(0);
                operator.assert_as(&before, &point);
            }
            if !killed {
                break;
            }
            number += 1;
        }
        operator.assert_nothing_left(name);
        assert!(number > 3, "{name}: {number}");
        points.push(format!("{name} {}", number - 1));
    }
    show(&format!("recovery killed at writes: {}", points.join(", ")));
}

/// One request writes a journal, so that it is there whole or not at all; whatever else has come over it, nothing is
/// made of it.
fn a_journal_that_is_cut_short_is_named_and_kept_and_the_others_are_taken_back() {
    let operator = Operator::deploy();
    let before = operator.contents();
    operator.kill_after_injection(&operator.experiment_named("drift"));
    let text = operator.journals()[0]["data"]["journal"].as_str().expect("a journal").to_owned();
    let collection = format!("/api/v1/namespaces/{}/configmaps", operator.namespace);
    let lengths = [0, 1, text.len() / 2, text.len() - 1];
    for length in lengths {
        let torn = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("pushback-experiment-torn-{length}"),
                "labels": {"pushback.dev/experiment": "journal"}},
            "data": {"journal": text[..length]}});
        operator.cluster.api().post(&collection, &torn).ok();
    }
    for round in ["first", "second"] {
        let ran = operator.recover().expect(20);
        assert!(ran.stdout.contains("it is damaged at line 1"), "{}", ran.stdout);
        assert_eq!(operator.journals().len(), lengths.len(), "{round}");
        let taken_back = ran.stdout.contains("data.mode of ConfigMap");
        assert_eq!(taken_back, round == "first", "{}", ran.stdout);
    }
    for length in lengths {
        operator.cluster.api().delete(&format!("{collection}/pushback-experiment-torn-{length}")).ok();
    }
    operator.assert_as(&before, "cut short");
    operator.assert_nothing_left("cut short");
}

fn a_signal_takes_back_what_is_injected_and_nobody_else_may_before() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let selector = json!({"labelSelector": format!("app.kubernetes.io/name={}-operator", operator.namespace)});
    let mut partition = operator.experiment("partition", "NetworkPartition", "medium", &selector);
    partition["spec"]["hypothesis"]["recoveryTimeout"] = json!("10m");
    let file = operator.write(&partition);
    let arguments = operator.arguments(&file);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = Running::start(operator.place.command(&arguments));
    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", operator.namespace);
    wait_until("it is injected", Duration::from_secs(60), || {
        // One is somebody else's.
        (operator.cluster.api().list(&policies).len() > 1).then_some(())
    });
    let impatient = ["--allow-namespace", &operator.namespace, "--yes", "--lock-wait", "0s"];
    operator.place.run(&[&["upgrade", "recover"][..], &impatient].concat()).expect(12);
    operator.place.run(&[&["upgrade", "run", &file][..], &impatient].concat()).expect(12);
    run.signal(Signal::TERM);
    let ran = run.finish();
    assert_eq!(ran.code, 143, "{ran:?}");
    let outcome = &ran.json()["experiments"][0];
    assert_eq!(outcome["reason"], "interrupted; the injection is reverted");
    operator.assert_as(&before, "interrupted");
}

fn what_somebody_has_changed_since_is_left_and_named() {
    let operator = Operator::deploy();
    let drift = json!({"name": "settings", "key": "mode", "value": "chaos-drift"});
    operator.kill_after_injection(&operator.experiment("drift", "ConfigDrift", "medium", &drift));
    let path = format!("/api/v1/namespaces/{}/configmaps/settings", operator.namespace);
    operator.cluster.api().merge_patch(&path, &json!({"data": {"mode": "theirs", "more": "1"}})).ok();
    let line = format!(
        "left as it is: data.mode of ConfigMap {}/settings: changed since by somebody else; ConfigMap",
        operator.namespace
    );
    for round in ["first", "second"] {
        let ran = operator.recover().expect(20);
        assert!(ran.stdout.starts_with(&line) || round == "second", "{round}: {}", ran.stdout);
        assert!(ran.stdout.ends_with(" says what was before\n"), "{round}: {}", ran.stdout);
        assert_eq!(operator.journals().len(), 1, "{round}");
    }
    let object = operator.cluster.api().get(&path).ok();
    assert_eq!(object["data"], json!({"level": "1", "mode": "theirs", "more": "1"}));
    assert!(!object["metadata"]["annotations"].to_string().contains("pushback.dev/experiment"), "{object}");
    // Put back by hand, or accepted as it is.
    operator.cluster.api().merge_patch(&path, &json!({"data": {"mode": "fast"}})).ok();
    operator.recover().expect(0);
    assert_eq!(operator.journals().len(), 0);
    let drift = operator.experiment("drift", "ConfigDrift", "medium", &drift);
    operator.kill_after_injection(&drift);
    operator.cluster.api().merge_patch(&path, &json!({"data": {"mode": "theirs"}})).ok();
    operator.recover().expect(20);
    operator.accept_changed();
    assert_eq!(operator.cluster.api().get(&path).ok()["data"]["mode"], "theirs");
}

fn nothing_runs_before_a_killed_run_is_taken_back() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let drift = json!({"name": "settings", "key": "mode", "value": "chaos-drift"});
    let drift = operator.experiment("drift", "ConfigDrift", "medium", &drift);
    operator.kill_after_injection(&drift);
    let ran = operator.run("drift.yaml").expect(1);
    assert!(ran.stderr.contains("pushback upgrade recover"), "{}", ran.stderr);
    operator.recover().expect(0);
    operator.assert_as(&before, "recovered");
    operator.run("drift.yaml").expect(0);
}

/// Who may write ConfigMaps and Secrets of a namespace must gain nothing else by it when somebody recovers.
fn a_forged_journal_changes_nothing() {
    let operator = Operator::deploy();
    let namespace = operator.namespace.clone();
    let api = operator.cluster.api();
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{namespace}-operator");
    let target = api.get(&binding).ok();
    let before = operator.contents();
    let journal = |steps: Value| {
        json!({"schemaVersion": 1, "run": "forged", "experiment": "forged", "injection": "RBACRevoke",
            "started": "2026-01-01T00:00:00Z", "steps": steps})
        .to_string()
    };
    let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}]);
    let fields = journal(json!([{
        "target": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "name": format!("{namespace}-operator"), "uid": target["metadata"]["uid"], "resourceVersion": "1"},
        "change": {"fields": [{"place": [{"key": "subjects"}], "before": subjects, "after": target["subjects"]}]},
    }]));
    let elsewhere = journal(json!([{
        "target": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "kube-system", "name": "forged", "uid": "1"},
        "change": {"deleted": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "kube-system", "name": "forged"}}},
    }]));
    for (name, text) in [("fields", fields), ("elsewhere", elsewhere)] {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("pushback-experiment-{name}"), "labels": {"pushback.dev/experiment": "journal"}},
            "data": {"journal": base64::engine::general_purpose::STANDARD.encode(text)},
        });
        api.post(&format!("/api/v1/namespaces/{namespace}/secrets"), &object).ok();
    }
    let ran = operator.recover().expect(20);
    assert!(ran.stdout.contains("does not carry the experiment's mark"), "{}", ran.stdout);
    assert!(ran.stdout.contains("its journal is in another namespace"), "{}", ran.stdout);
    assert_eq!(api.get(&binding).ok()["subjects"], target["subjects"]);
    assert_eq!(api.get("/api/v1/namespaces/kube-system/configmaps/forged").status, 404);
    for name in ["fields", "elsewhere"] {
        api.delete(&format!("/api/v1/namespaces/{namespace}/secrets/pushback-experiment-{name}")).ok();
    }
    operator.assert_as(&before, "forged");
}

fn a_journal_of_secret_values_is_a_secret() {
    let operator = Operator::deploy();
    for (name, kind, parameters) in [
        (
            "drift-secret",
            "ConfigDrift",
            json!({"name": "credentials", "key": "password", "value": "y", "resourceType": "Secret"}),
        ),
        ("delete-secret", "SecretDeletion", json!({"name": "credentials", "namespace": operator.namespace})),
    ] {
        operator.kill_after_injection(&operator.experiment(name, kind, "high", &parameters));
        assert_eq!(operator.journals()[0]["data"]["journal"].as_str().map(str::is_empty), Some(false));
        let maps = operator.cluster.api().list(&format!("/api/v1/namespaces/{}/configmaps", operator.namespace));
        let encoded = base64::engine::general_purpose::STANDARD.encode(SECRET);
        assert!(!maps.iter().any(|map| map.to_string().contains(SECRET) || map.to_string().contains(&encoded)));
        let ran = operator.recover().expect(0);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET));
        let secret = format!("/api/v1/namespaces/{}/secrets/credentials", operator.namespace);
        assert_eq!(operator.cluster.api().get(&secret).ok()["data"]["password"], encoded.as_str(), "{name}");
    }
}

/// The lock ages while the server answers too late, and is renewed before the injection; or somebody else has it by then.
fn a_lock_that_nobody_could_take_is_kept_and_one_that_was_taken_is_lost() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let file = operator.write(&operator.experiment_named("drift"));
    let arguments = [operator.arguments(&file), vec!["--lock-lease=2s".to_owned()]].concat();
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/pushback-experiments", operator.namespace);
    for is_taken in [false, true] {
        let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
        // No renewal is answered before the lease is over, and until then nothing is injected.
        proxy.on(any().that(renews_a_lock).first(5), Fault::stall());
        proxy.on(dry_runs("configmaps").first(1), Fault::Delay(Duration::from_secs(3)));
        if is_taken {
            let (api, lease) = (operator.cluster.api().clone(), lease.clone());
            proxy.before(dry_runs("configmaps").first(1), move |_| {
                let holder = json!({"holder": "somebody", "host": "elsewhere", "boot": "", "process": 1, "run": "theirs",
                    "since": "2026-01-01T00:00:00Z", "leaseSeconds": 60, "renewals": 0});
                let taken = json!({"metadata": {"annotations": {"pushback.dev/lock": holder.to_string()}}});
                api.merge_patch(&lease, &taken).ok();
            });
        }
        let mut command = operator.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("KUBECONFIG", proxy.kubeconfig());
        let report = finish(command, b"").expect(0).json();
        let outcome = &report["experiments"][0];
        let expected = if is_taken { ("Inconclusive", 1) } else { ("Degraded", 0) };
        let left = usize::from(operator.cluster.api().get(&lease).status == 200);
        assert_eq!((outcome["verdict"].as_str().unwrap_or_default(), left), expected, "{outcome}");
        assert_eq!(outcome["reason"] == "the lock of its namespace was lost", is_taken, "{outcome}");
        if is_taken {
            operator.cluster.api().delete(&lease).ok();
        }
    }
    operator.assert_as(&before, "locked");
}
