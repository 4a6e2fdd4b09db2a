//! What is refused before the server starts, and the patch that is printed for definitions.

use serde_json::{Value, json};

use super::{definition, plan};
use crate::support::certificates::Authority;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: what_cannot_be_served_is_refused_at_the_start,
        Nothing: the_patch_has_what_the_api_server_needs,
        Nothing: definitions_are_printed_with_the_patch_and_nothing_else_changes,
        Nothing: addresses_and_authorities_that_cannot_be_used_are_refused,
    ]
}

fn place() -> Pushback {
    let place = Pushback::new();
    let authority = Authority::new().expect("an authority");
    let identity = authority.server().expect("a certificate");
    place
        .write("tls.crt", identity.certificate)
        .write("tls.key", identity.key)
        .write("ca.crt", authority.certificate());
    place.write("crd.yaml", definition().to_string());
    place.write("plan.yaml", plan("tests.example.com", json!({})).to_string());
    place
}

fn served(place: &Pushback, more: &[&str]) -> Ran {
    let start = ["serve-conversion", "--crd", "crd.yaml", "--tls-cert", "tls.crt", "--listen", "127.0.0.1:0"];
    place.run(&[&start[..], more].concat())
}

#[track_caller]
fn refused(ran: Ran, expected: &str) {
    let ran = ran.expect(1);
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(!ran.stderr.contains("answered on"), "{}", ran.stderr);
}

fn what_cannot_be_served_is_refused_at_the_start() {
    let place = place();
    let with = |plan: Value| {
        place.write("changed.yaml", plan.to_string());
        served(&place, &["--tls-key", "tls.key", "--plan", "changed.yaml"])
    };
    let program = json!({"steps": [{"from": "v1", "to": "v2", "up": [{"program": "translate"}]}]});
    refused(
        with(plan("tests.example.com", program)),
        "hands objects to the program \"translate\", and a webhook runs none",
    );
    let nowhere = json!({"policy": {"bag": "nowhere", "unassessed": "stash"}});
    refused(with(plan("tests.example.com", nowhere)), "with `bag: nowhere` every write through a version that lacks");
    refused(with(plan("others.example.com", json!({}))), "no file has the definition others.example.com");
    refused(with(plan("tests.example.com", json!({"hub": "v9"}))), "hub: there is no schema of version v9");
    refused(with(plan("tests.example.com", json!({"hubb": "v2"}))), "hubb");
    let twice = ["--tls-key", "tls.key", "--plan", "plan.yaml", "--plan", "changed.yaml"];
    place.write("changed.yaml", plan("tests.example.com", json!({})).to_string());
    refused(served(&place, &twice), "there is another plan for tests.example.com: plan.yaml");
    refused(
        served(&place, &["--tls-key", "tls.key", "--crd", "crd.yaml"]),
        "and tests.example.com define the same kind",
    );
    refused(
        served(&place, &["--tls-key", "tls.key", "--plan", "missing.yaml"]),
        "missing.yaml: it cannot be read: no such file",
    );
    refused(served(&place, &["--tls-key", "tls.crt"]), "the file of the key has no private key in PEM");
    let other = Authority::new().and_then(|authority| authority.server()).expect("a certificate");
    place.write("other.key", other.key);
    refused(served(&place, &["--tls-key", "other.key"]), "the key is not that of the certificate");
    place.write("empty.yaml", "kind: Other\n");
    let none = ["serve-conversion", "--crd", "empty.yaml", "--tls-cert", "tls.crt", "--tls-key", "tls.key"];
    refused(
        place.run(&none),
        "expected a ConversionPlan or a CustomResourceDefinition, found a document of kind Other",
    );
    place.write("empty.yaml", "---\n");
    refused(place.run(&none), "empty.yaml: expected a CustomResourceDefinition, found none");
    // Without its plan, the server would answer with empty objects.
    let whole = "apiVersion: pushback.dev/v1alpha1\nkind: ConversionPlan\nmetadata: {name: tests.example.com}\n";
    for cut in ["", whole, &whole[..40], &whole[..whole.len() - 3], "# plan\n", "apiVersion: v1\nkind: List\n"] {
        place.write("changed.yaml", cut);
        refused(served(&place, &["--tls-key", "tls.key", "--plan", "changed.yaml"]), "changed.yaml");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    refused(
        place.run(&[&none[..1], &["--crd", "crd.yaml"], &none[3..], &["--listen", &address]].concat()),
        "it cannot be opened: address already in use",
    );
}

fn the_patch_has_what_the_api_server_needs() {
    let place = place();
    let print = ["serve-conversion", "print-crd-patch", "--service", "team/conversion"];
    let text = place.run(&print).expect(0).stdout;
    assert_eq!(
        text,
        "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          namespace: team
          name: conversion
          path: /convert
          port: 443
      conversionReviewVersions:
      - v1
"
    );
    let more = ["--port", "8443", "--path", "/x", "--ca-file", "ca.crt", "-o", "json"];
    let patch = place.run(&[&print[..], &more].concat()).expect(0).json();
    let client = &patch["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(client["service"], json!({"namespace": "team", "name": "conversion", "path": "/x", "port": 8443}));
    use base64::Engine as _;
    let bundle = base64::engine::general_purpose::STANDARD.decode(client["caBundle"].as_str().expect("text"));
    assert_eq!(bundle.expect("base64"), place.read("ca.crt").into_bytes());
}

fn definitions_are_printed_with_the_patch_and_nothing_else_changes() {
    let place = place();
    let text = "# Before.\napiVersion: v1\nkind: ConfigMap # other\nmetadata: {name: a}\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: tests.example.com\nspec:\n  group: example.com\n  conversion: {strategy: None}\n";
    place.write("definitions.yaml", text);
    let print = ["serve-conversion", "print-crd-patch", "--url", "https://10.0.0.7/x", "--crd"];
    let printed = place.run(&[&print[..], &["definitions.yaml"]].concat()).expect(0).stdout;
    assert!(
        printed.starts_with("# Before.\napiVersion: v1\nkind: ConfigMap # other\nmetadata: {name: a}\n---\n"),
        "{printed}"
    );
    let documents: Vec<Value> = serde_yaml::from_multiple(&printed).expect("YAML");
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://10.0.0.7/x"}, "conversionReviewVersions": ["v1"],
    }});
    assert_eq!(documents[1]["spec"], json!({"group": "example.com", "conversion": conversion}));
    let none = place.run(&[&print[..], &["plan.yaml"]].concat()).expect(1);
    assert!(none.stderr.contains("plan.yaml: there is no definition in it"), "{}", none.stderr);
}

fn addresses_and_authorities_that_cannot_be_used_are_refused() {
    let place = place();
    place.write("text.crt", "not PEM").write("empty.crt", "");
    let damaged = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    place.write("damaged.crt", damaged).write("both.pem", place.read("ca.crt") + &place.read("tls.key"));
    for (arguments, expected) in [
        (&["--service", "team/conversion", "--ca-file", "text.crt"][..], "text.crt: it is not PEM"),
        (&["--service", "team/conversion", "--ca-file", "empty.crt"], "empty.crt: it is not PEM"),
        (&["--service", "team/conversion", "--ca-file", "damaged.crt"], "a certificate is damaged"),
        (&["--service", "team/conversion", "--ca-file", "both.pem"], "it holds a PRIVATE KEY, and everybody can read"),
        (&["--service", "team/conversion", "--ca-file", "none.crt"], "none.crt: it cannot be read"),
        (&["--service", "conversion"], "--service: expected NAMESPACE/NAME, found \"conversion\""),
        (&["--service", "a/b/c"], "--service: expected NAMESPACE/NAME"),
        (&["--service", "a/b", "--path", "x"], "--path: expected a path from /"),
        (&["--url", "http://a"], "the API server calls webhooks with https alone"),
        (&["--url", "https://a?b"], "a query or fragment is not allowed"),
        (&["--url", "https://u@a"], "a user is not allowed"),
        (&["--url", "nonsense"], "--url nonsense: "),
        (&["--url", "https://a", "--service", "a/b"], "cannot be used with"),
        (&[], "--service <NAMESPACE/NAME>"),
    ] {
        let ran = place.run(&[&["serve-conversion", "print-crd-patch"], arguments].concat()).expect(1);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(!ran.stderr.contains("-----BEGIN"), "{}", ran.stderr);
    }
}
