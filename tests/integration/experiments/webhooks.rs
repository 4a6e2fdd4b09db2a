//! WebhookDisrupt and webhooks in the way of other experiments: backends that nobody reaches, slow ones, and requests
//! that are none of a webhook's business.

use std::time::Duration;

use serde_json::{Value, json};

use super::Operator;
use crate::support::webhook::{Form, Verdict, Webhook, configuration};
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_webhook_whose_backend_goes_is_seen_by_its_policy_and_comes_back,
        Controllers: a_service_loses_the_port_that_is_asked_and_nothing_else,
        Controllers: a_webhook_that_is_never_asked_proves_nothing,
        Controllers: a_webhook_that_nobody_reaches_is_left_as_it_is,
        Controllers: a_slow_webhook_is_a_warning,
        Controllers: a_request_outside_of_the_scope_passes_and_one_that_does_not_is_a_failure,
        Controllers: what_a_dead_webhook_refuses_is_taken_back_once_it_answers,
    ]
}

/// Longer than admission may take without a warning.
const SLOW: Duration = Duration::from_millis(10_500);

impl Operator {
    fn configuration(&self) -> String {
        let namespace = &self.namespace;
        format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}")
    }

    /// The webhook's entry with other fields, for the whole test.
    fn reconfigure(&self, fields: &Value) {
        let mut configuration = self.cluster.api().get(&self.configuration()).ok();
        configuration["webhooks"][0]
            .as_object_mut()
            .expect("an entry")
            .extend(fields.as_object().expect("a map").clone());
        self.cluster.api().put(&self.configuration(), &configuration).ok();
    }

    /// A request as the one that is measured.
    fn probe(&self) -> u16 {
        let change = json!({"metadata": {"annotations": {"somebody": "asks"}}});
        self.cluster.api().merge_patch(&format!("{}?dryRun=All", self.backup()), &change).status
    }

    /// Runs a WebhookDisrupt with this policy.
    fn disrupt(&self, policy: &str) -> Value {
        let mut experiment = self.experiment_named("webhook");
        experiment["spec"]["injection"]["parameters"]["value"] = json!(policy);
        let file = self.write(&experiment);
        self.run(&file).expect(0).json()["experiments"][0].clone()
    }
}

fn answers(outcome: &Value, when: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let admissions = outcome[when].as_array().into_iter().flatten();
    admissions.map(|admission| (text(&admission["webhook"]), text(&admission["answer"]))).collect()
}

fn answer(webhook: &str, answer: &str) -> (String, String) {
    (webhook.to_owned(), answer.to_owned())
}

fn deviations(outcome: &Value) -> Vec<&str> {
    let deviations = outcome["deviations"].as_array().into_iter().flatten();
    deviations.filter_map(|deviation| deviation["name"].as_str()).collect()
}

/// What is measured before the injection and under it.
const BEFORE: &str = "admissionsBefore";
const UNDER: &str = "admissions";

fn a_webhook_whose_backend_goes_is_seen_by_its_policy_and_comes_back() {
    let operator = Operator::deploy();
    let before = operator.contents();
    let outcome = operator.disrupt("Fail");
    let place = |field: &str| format!("webhooks[backups.example.com].{field}");
    let changed =
        format!("{} of ValidatingWebhookConfiguration {} changed", place("clientConfig.url"), operator.namespace);
    assert_eq!(outcome["changes"], json!([changed]), "its policy is Fail already");
    assert_eq!(answers(&outcome, BEFORE), [answer("backups.example.com", "admitted"), answer("", "admitted")]);
    assert_eq!(answers(&outcome, UNDER), [answer("backups.example.com", "unavailable"), answer("", "admitted")]);
    assert_eq!(outcome["verdict"], "Resilient", "{outcome}");
    operator.assert_as(&before, "refused by policy");
    assert_eq!(operator.probe(), 200, "its backend is asked again");
    let outcome = operator.disrupt("Ignore");
    let places = [place("failurePolicy"), place("clientConfig.url")].join(", ");
    assert_eq!(outcome["changes"][0].as_str().and_then(|change| change.split(" of ").next()), Some(places.as_str()));
    assert_eq!(answers(&outcome, UNDER), [answer("backups.example.com", "admitted"), answer("", "admitted")]);
    assert_eq!(outcome["verdict"], "Resilient", "{outcome}");
    operator.assert_as(&before, "passed over");
}

/// The API server knows the ports of a Service, and asks nobody at one that it does not have.
fn a_service_loses_the_port_that_is_asked_and_nothing_else() {
    let mut operator = Operator::deploy();
    let namespace = operator.namespace.clone();
    let ports = json!([{"name": "first", "port": 1}, {"name": "webhook", "port": 443}]);
    let behind = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": "webhook"},
        "spec": {"ports": ports}});
    operator.cluster.api().apply(&behind).ok();
    let service = json!({"service": {"namespace": namespace, "name": "webhook", "port": 443}});
    let mut configuration = operator.cluster.api().get(&operator.configuration()).ok();
    configuration["webhooks"][0]["clientConfig"] = service;
    configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
    operator.cluster.api().put(&operator.configuration(), &configuration).ok();
    let before = operator.contents();
    let outcome = operator.disrupt("Fail");
    let change = outcome["changes"][0].as_str().unwrap_or_default();
    assert!(change.contains("webhooks[backups.example.com].clientConfig.service.port"), "{outcome}");
    let refused = outcome["admissions"][0]["detail"].as_str().unwrap_or_default();
    assert!(refused.contains("no service port 2 found for service"), "{outcome}");
    operator.assert_as(&before, "service");
    operator.webhook.stop();
}

fn a_webhook_that_is_never_asked_proves_nothing() {
    let operator = Operator::deploy();
    operator.reconfigure(&json!({"objectSelector": {"matchLabels": {"nobody": "has-it"}}}));
    let outcome = operator.disrupt("Fail");
    assert_eq!(outcome["verdict"], "Inconclusive", "{outcome}");
    let reason = outcome["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("not exercised: no write reached webhook backups.example.com: the update of"),
        "{reason}"
    );
    // Pods of every namespace would wait for it, and so would the run's own journal.
    for (resource, part) in
        [("pods", "in other namespaces, too, such as"), ("configmaps", "which the run itself writes")]
    {
        let rules =
            json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}]);
        operator.reconfigure(&json!({"rules": rules, "failurePolicy": "Ignore"}));
        let outcome = operator.disrupt("Fail");
        assert_eq!(outcome["verdict"], "Skipped", "{outcome}");
        assert!(outcome["reason"].as_str().is_some_and(|reason| reason.contains(part)), "{outcome}");
    }
}

fn a_webhook_that_nobody_reaches_is_left_as_it_is() {
    let mut operator = Operator::deploy();
    operator.webhook.stop();
    wait_until("the webhook is dead", Duration::from_secs(60), || (operator.probe() >= 400).then_some(()));
    let before = operator.contents();
    let outcome = operator.disrupt("Fail");
    assert_eq!(outcome["verdict"], "Degraded", "{outcome}");
    assert_eq!(outcome["reason"], "requests in the webhook's scope were not answered");
    assert_eq!(answers(&outcome, BEFORE), [answer("backups.example.com", "unavailable"), answer("", "admitted")]);
    assert_eq!((&outcome["changes"], deviations(&outcome)), (&Value::Null, vec!["admission_unavailable"]));
    operator.assert_as(&before, "disrupted");
    // What it would have to admit is not begun.
    let file = operator.write(&operator.experiment_named("mutate"));
    let outcome = operator.run(&file).expect(0).json()["experiments"][0].clone();
    assert_eq!(outcome["verdict"], "Inconclusive", "{outcome}");
    assert!(
        outcome["reason"].as_str().is_some_and(|reason| reason.starts_with("the server would refuse")),
        "{outcome}"
    );
    operator.assert_as(&before, "refused");
}

fn a_slow_webhook_is_a_warning() {
    let operator = Operator::deploy();
    let slow = Webhook::start(&[], |request| {
        if request["object"]["metadata"]["annotations"]["pushback.dev/probe"].is_string() {
            std::thread::sleep(SLOW);
        }
        Verdict::Allow
    });
    operator.reconfigure(&json!({"clientConfig": slow.by_url(), "timeoutSeconds": 30}));
    wait_until("the slow webhook is asked", Duration::from_secs(60), || {
        operator.probe();
        (!slow.asked().is_empty()).then_some(())
    });
    let before = operator.contents();
    let outcome = operator.disrupt("Ignore");
    assert_eq!(outcome["verdict"], "Resilient", "{outcome}");
    assert_eq!(deviations(&outcome), ["slow_admission"], "{outcome}");
    assert!(outcome["admissionsBefore"][0]["seconds"].as_f64().is_some_and(|seconds| seconds > 10.0), "{outcome}");
    // While nobody reaches it, nobody waits for it.
    assert_eq!(answers(&outcome, UNDER), [answer("backups.example.com", "admitted"), answer("", "admitted")]);
    assert!(outcome["admissions"][0]["seconds"].as_f64().is_some_and(|seconds| seconds < 10.0), "{outcome}");
    operator.assert_as(&before, "slow");
    let mut command = vec!["upgrade", "run", "webhook.yaml", "--allow-namespace", &operator.namespace, "--yes"];
    let consent = operator.consent();
    command.extend(["--max-danger", "high", "--allow-cluster-scoped", &consent]);
    let shown = operator.place.run(&command).expect(0).stdout;
    assert!(shown.contains("slow_admission: webhook backups.example.com took 1"), "{shown}");
}

fn a_request_outside_of_the_scope_passes_and_one_that_does_not_is_a_failure() {
    let mut operator = Operator::deploy();
    let deny = Webhook::start(&[], |_| Verdict::Deny("not today".to_owned()));
    operator.reconfigure(&json!({"clientConfig": deny.by_url()}));
    wait_until("it denies", Duration::from_secs(60), || (operator.probe() == 403).then_some(()));
    let outcome = operator.disrupt("Ignore");
    // What it denies is its own to say; what is none of its business passes.
    assert_eq!(answers(&outcome, BEFORE), [answer("backups.example.com", "denied"), answer("", "admitted")]);
    assert_eq!(answers(&outcome, UNDER), [answer("backups.example.com", "admitted"), answer("", "admitted")]);
    assert_eq!(outcome["verdict"], "Resilient", "{outcome}");
    assert!(deny.asked().iter().all(|request| request["resource"]["resource"] == "backups"), "{:?}", deny.asked());
    // Another webhook refuses what this one is not about.
    let namespace = operator.namespace.clone();
    let accounts =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts"], "operations": ["CREATE"]}]);
    let mut other = configuration(Form::Validating, &namespace, &deny.by_url(), json!({"rules": accounts}));
    other["metadata"]["name"] = json!(format!("other-{namespace}"));
    let _registration = deny.register_unseen(operator.cluster, &other);
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": "asks"}});
    wait_until("it denies accounts", Duration::from_secs(60), || {
        let answer = operator.cluster.api().apply_with(&account, "fieldManager=test&dryRun=All");
        (answer.status == 403).then_some(())
    });
    let outcome = operator.disrupt("Ignore");
    assert_eq!(outcome["verdict"], "Failed", "{outcome}");
    assert_eq!(outcome["reason"], "a request outside of the webhook's scope was refused");
    assert_eq!(answers(&outcome, BEFORE), [answer("backups.example.com", "denied"), answer("", "denied")]);
    assert_eq!(answers(&outcome, UNDER), [answer("backups.example.com", "admitted"), answer("", "denied")]);
    operator.webhook.stop();
}

/// Taking back needs the server's consent as everything does.
fn what_a_dead_webhook_refuses_is_taken_back_once_it_answers() {
    let mut operator = Operator::deploy();
    let before = operator.contents();
    operator.kill_after_injection(&operator.experiment_named("mutate"));
    operator.webhook.stop();
    wait_until("the webhook is dead", Duration::from_secs(60), || (operator.probe() >= 400).then_some(()));
    let ran = operator.recover().expect(20);
    assert!(ran.stdout.starts_with("failed: mutate: "), "{}", ran.stdout);
    assert_eq!(operator.journals().len(), 1, "its journal is kept");
    // A webhook that can be reached again, where it was.
    let alive = Webhook::start(&[], |_| Verdict::Allow);
    let dead = operator.cluster.api().get(&operator.configuration()).ok()["webhooks"][0]["clientConfig"].clone();
    operator.reconfigure(&json!({"clientConfig": alive.by_url()}));
    wait_until("the webhook answers", Duration::from_secs(60), || (operator.probe() < 400).then_some(()));
    operator.recover().expect(0);
    operator.assert_nothing_left("answered");
    operator.reconfigure(&json!({"clientConfig": dead}));
    let after = operator.contents();
    let path = operator.backup();
    let nightly = |contents: &std::collections::BTreeMap<String, Value>| {
        contents.iter().find(|(key, _)| key.contains("/backups/")).map(|(_, object)| object.clone())
    };
    assert_eq!(nightly(&after), nightly(&before), "{path}");
}
