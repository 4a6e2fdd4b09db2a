//! Webhooks that refuse, hang or write only when it is for real, and those that write something else every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{app, lock, secret, sound, unfinished};
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::https::HttpsServer;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Ran, Running, TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_webhook_that_denies_only_for_real_fails_that_object_and_what_depends_on_it,
        ApiServer: a_webhook_that_fails_only_for_real_is_named_and_waited_for_no_longer_than_asked,
        ApiServer: a_webhook_that_comes_back_in_time_is_no_failure,
        ApiServer: a_webhook_that_changes_every_write_makes_no_change_of_its_own,
        ApiServer: a_conversion_webhook_that_comes_up_late_is_waited_for,
    ]
}

/// `denied`, what depends on it, and what does not.
fn input() -> String {
    let annotated = |name: &str, annotation: &str| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {{{annotation}}}}}\n")
    };
    config_map("free", "1")
        + &secret()
        + &annotated("judged", "kapp.k14s.io/change-group: example.com/judged")
        + &annotated("after", "kapp.k14s.io/change-rule: upsert after upserting example.com/judged")
}

fn is_there(app: &TestApp, name: &str) -> bool {
    TestCluster::shared().api().get(&config_map_path(&app.namespace, name)).status == 200
}

/// Whether a webhook is asked about the object in question, for real.
fn for_real(request: &Value) -> bool {
    request["name"] == "judged" && request["dryRun"] != true
}

#[track_caller]
fn assert_partly_written(app: &TestApp, ran: &Ran, reason: &str) {
    let left = unfinished(ran);
    let states: Vec<&str> = left.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(states, ["ConfigMap/judged failed", "ConfigMap/after not applied"], "{left:?}");
    assert!(left[0].1.contains(reason), "{left:?}");
    assert!(is_there(app, "free") && !is_there(app, "judged") && !is_there(app, "after"));
    assert_eq!(lock(app), Value::Null, "the lock is released");
    assert_eq!(ran.end()["done"]["create"], 2, "{}", ran.stdout);
}

fn a_webhook_that_denies_only_for_real_fails_that_object_and_what_depends_on_it() {
    let app = app("denies-for-real");
    let allows = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&allows);
    let webhook = Webhook::start(&[], move |request| {
        if for_real(request) && !switch.load(Ordering::Relaxed) {
            return Verdict::Deny("not on a Saturday".to_owned());
        }
        Verdict::Allow
    });
    let _registered = webhook.register(TestCluster::shared(), Form::Validating, &app.namespace, json!({}));
    let ran = sound(app.apply(&input(), &[]), 20);
    assert_partly_written(&app, &ran, "not on a Saturday");
    // It said no, and is not asked again and again.
    assert_eq!(webhook.asked().iter().filter(|request| for_real(request)).count(), 1);

    allows.store(true, Ordering::Relaxed);
    sound(app.apply(&input(), &[]), 0);
    assert!(is_there(&app, "judged") && is_there(&app, "after"));
    assert_eq!(sound(app.apply(&input(), &[]), 0).end()["outcome"], "unchanged");
}

/// A webhook that takes longer than the API server waits for it, as long as `away` says so.
fn hanging(away: impl Fn() -> bool + Send + Sync + 'static) -> Webhook {
    Webhook::start(&[], move |request| {
        if for_real(request) && away() {
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
        Verdict::Allow
    })
}

fn a_webhook_that_fails_only_for_real_is_named_and_waited_for_no_longer_than_asked() {
    let app = app("hangs-for-real");
    let away = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&away);
    let webhook = hanging(move || switch.load(Ordering::Relaxed));
    let overrides = json!({"timeoutSeconds": 1});
    let _registered = webhook.register(TestCluster::shared(), Form::Validating, &app.namespace, overrides);
    // Room for a second attempt, however slowly the first one is answered.
    let ran = sound(app.apply(&input(), &["--apply-timeout", "12s"]), 20);
    assert_partly_written(&app, &ran, &format!("{}.webhook.example", app.namespace));
    assert!(!ran.events_of("retry").is_empty(), "{}", ran.stdout);
    away.store(false, Ordering::Relaxed);
    sound(app.apply(&input(), &[]), 0);
}

fn a_webhook_that_comes_back_in_time_is_no_failure() {
    let app = app("comes-back");
    let asked = AtomicUsize::new(0);
    let webhook = hanging(move || asked.fetch_add(1, Ordering::Relaxed) < 2);
    let overrides = json!({"timeoutSeconds": 1});
    let _registered = webhook.register(TestCluster::shared(), Form::Validating, &app.namespace, overrides);
    let ran = sound(app.apply(&input(), &[]), 0);
    let told = ran.events_of("retry");
    assert!(told.iter().any(|event| event["reason"].to_string().contains("webhook.example")), "{told:?}");
    assert!(is_there(&app, "after"));
}

fn a_webhook_that_changes_every_write_makes_no_change_of_its_own() {
    let app = app("noisy");
    let number = AtomicUsize::new(0);
    let webhook = Webhook::start(&[], move |request| {
        if request["name"] != "stamped" {
            return Verdict::Allow;
        }
        let number = number.fetch_add(1, Ordering::Relaxed);
        // One field of its own, and one that the manifest sets, which has to be the same in a dry-run.
        let image = request["object"]["data"]["image"].as_str().unwrap_or_default();
        let image = image.split('@').next().unwrap_or_default();
        Verdict::Patch(json!([
            {"op": "add", "path": "/data/stamp", "value": format!("{number}")},
            {"op": "replace", "path": "/data/image", "value": format!("{image}@sha256:0")},
        ]))
    });
    let _registered = webhook.register(TestCluster::shared(), Form::Mutating, &app.namespace, json!({}));
    let stamped = |image: &str| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: stamped}}\ndata: {{image: {image:?}}}\n")
    };
    let path = config_map_path(&app.namespace, "stamped");
    let version = || TestCluster::shared().api().get(&path).ok()["metadata"]["resourceVersion"].take();
    sound(app.apply(&stamped("web:1"), &[]), 0);
    let first = version();
    for _ in 0..2 {
        assert_eq!(sound(app.apply(&stamped("web:1"), &[]), 0).end()["outcome"], "unchanged");
    }
    assert_eq!(version(), first);
    // A change of the manifest is one all the same, once.
    assert_eq!(sound(app.apply(&stamped("web:2"), &[]), 0).end()["done"]["update"], 1);
    assert_eq!(sound(app.apply(&stamped("web:2"), &[]), 0).end()["outcome"], "unchanged");
}

/// Converts by changing the version alone, once it is up.
fn converter(up: Arc<AtomicBool>) -> HttpsServer {
    HttpsServer::start(&[], move |request| {
        if !up.load(Ordering::Relaxed) {
            return (503, json!({}));
        }
        let asked = &request.body["request"];
        let mut objects = asked["objects"].clone();
        objects.as_array_mut().into_iter().flatten().for_each(|object| {
            object["apiVersion"] = asked["desiredAPIVersion"].clone();
        });
        let response = json!({"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
        (200, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}))
    })
}

/// An app with a definition and an object that is stored in another version than it is sent in.
fn converted(prefix: &str, server: &HttpsServer) -> (TestApp, String) {
    let app = app(prefix);
    let group = format!("{}.example.com", app.namespace);
    let client = json!({
        "url": format!("https://127.0.0.1:{}/", server.port()),
        "caBundle": BASE64.encode(server.certificate_authority()),
    });
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gears.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": "Gear", "plural": "gears"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}},
        },
    });
    let gear = json!({"apiVersion": format!("{group}/v2"), "kind": "Gear", "metadata": {"name": "gear"}, "teeth": 12});
    let input = config_map("free", "1") + &format!("---\n{definition}\n---\n{gear}\n");
    (app, input)
}

fn a_conversion_webhook_that_comes_up_late_is_waited_for() {
    let up = Arc::new(AtomicBool::new(false));
    let server = converter(Arc::clone(&up));
    let (app, input) = converted("converts", &server);
    let ran = sound(app.apply(&input, &["--apply-timeout", "4s"]), 20);
    let left = unfinished(&ran);
    assert_eq!((left.len(), left[0].0.as_str()), (1, "Gear/gear failed"), "{left:?}");
    assert!(left[0].1.contains("conversion webhook for"), "{left:?}");
    assert!(!ran.events_of("retry").is_empty(), "{}", ran.stdout);
    assert_eq!(lock(&app), Value::Null);
    // Now that the definition is there, the server can be asked first.
    let ran = sound(app.apply(&input, &[]), 10);
    assert!(ran.stdout.contains("conversion webhook for"), "{}", ran.stdout);

    // It comes up while it is waited for.
    let (late, late_input) = converted("converts-late", &server);
    late.pushback.write("app.yaml", &late_input);
    let arguments = ["apply", "-a", "shop", "-n", &late.namespace, "-f", "app.yaml", "--yes", "-o", "json"];
    let mut run = Running::start(late.pushback.command(&arguments));
    run.wait_for("it is asked in vain", |event| {
        event["type"] == "retry" && event["reason"].as_str().is_some_and(|reason| reason.contains("conversion webhook"))
    });
    up.store(true, Ordering::Relaxed);
    sound(run.finish(), 0);
    for (app, input) in [(app, input), (late, late_input)] {
        sound(app.apply(&input, &[]), 0);
        assert_eq!(sound(app.apply(&input, &[]), 0).end()["outcome"], "unchanged");
        sound(app.delete(&[]), 0);
    }
}
