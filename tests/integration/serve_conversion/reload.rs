//! Plans and certificates that are exchanged while the API server asks: no request fails, and what cannot be used
//! changes nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use super::behind::Behind;
use super::{definition, object, plan, review};
use crate::storage::crd::DEADLINE;
use crate::support::conversion_server::ConversionServer;
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: plans_and_certificates_are_exchanged_under_load,
        Nothing: files_that_cannot_be_used_change_nothing,
        Nothing: the_way_in_which_the_kubelet_exchanges_files_is_noticed,
    ]
}

fn generation(server: &ConversionServer) -> f64 {
    server.metric("plan_generation")
}

fn plans_and_certificates_are_exchanged_under_load() {
    let behind = Behind::start("serve-reload");
    for number in 0..4 {
        behind.post("v2", &format!("cog-{number}"), &json!({"size": number, "colour": "red"}));
    }
    let (ended, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let server = &behind.server;
    std::thread::scope(|scope| {
        for version in ["v1", "v3"] {
            let (behind, ended, reads) = (&behind, &ended, &reads);
            scope.spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    for number in 0..4 {
                        let answer = behind.get(version, &format!("cog-{number}"));
                        assert_eq!(answer.status, 200, "{}", answer.body);
                        reads.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        // Ends the load also where an assertion fails.
        let exchanged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let changed = json!({"up": [{"set": "spec.grade", "cel": "'graded'"}]});
            server.place.write("plan.yaml", Behind::plan(&behind.crd, &changed).to_string());
            wait_until("the new plan converts", DEADLINE, || {
                (behind.get("v3", "cog-1").ok()["spec"]["grade"] == "graded").then_some(())
            });
            assert_eq!(generation(server), 2.0);

            server.place.write("plan.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: ConversionPlan\nhub: v9\n");
            server.wait_for("plans have changed and cannot be used, those before stay: plan.yaml:");
            assert_eq!(behind.get("v3", "cog-1").ok()["spec"]["grade"], "graded");
            assert_eq!((generation(server), server.metric("stale{source=\"plans\"}")), (2.0, 1.0));

            let before = certificate(server);
            for _ in 0..2 {
                server.certify();
                let shown = wait_until("another certificate is shown", DEADLINE, || {
                    let shown = certificate(server);
                    (shown != before).then_some(shown)
                });
                assert_ne!(shown, before);
            }
            server.place.write("plan.yaml", Behind::plan(&behind.crd, &json!({})).to_string());
            wait_until("the first plan is back", DEADLINE, || (generation(server) == 3.0).then_some(()));
            assert_eq!(server.metric("stale{source=\"plans\"}"), 0.0);
        }));
        ended.store(true, Ordering::SeqCst);
        if let Err(panic) = exchanged {
            std::panic::resume_unwind(panic);
        }
    });
    assert!(reads.load(Ordering::SeqCst) > 20, "{} reads", reads.load(Ordering::SeqCst));
    for result in ["failed", "malformed", "broken", "timed_out", "panicked"] {
        assert_eq!(server.metric(&format!("requests_total{{result=\"{result}\"}}")), 0.0, "{}", server.log());
    }
}

fn certificate(server: &ConversionServer) -> Vec<u8> {
    let mut connection = server.connect();
    connection.request("GET", "/healthz", b"").expect("an answer");
    connection.server_certificate()
}

fn files_that_cannot_be_used_change_nothing() {
    let server = ConversionServer::start(&definition(), &plan("tests.example.com", json!({})));
    let before = certificate(&server);
    // A certificate whose key has not been written yet.
    let (certificate_file, key) = (server.place.read("tls.crt"), server.place.read("tls.key"));
    server.certify();
    server.place.write("tls.key", &key);
    server.wait_for(
        "certificate or key has changed and cannot be used, those before stay: tls.crt, tls.key: the key is not",
    );
    assert_eq!(certificate(&server), before);
    server.place.write("tls.crt", &certificate_file[..200]);
    server.wait_for("tls.crt, tls.key: the certificate is not PEM");
    assert_eq!((certificate(&server), server.metric("stale{source=\"certificate\"}")), (before, 1.0));
    server.place.write("tls.crt", &certificate_file);
    wait_until("the certificate is used", DEADLINE, || {
        (server.metric("stale{source=\"certificate\"}") == 0.0).then_some(())
    });
    assert!(server.metric("reload_failures_total{source=\"certificate\"}") >= 2.0);

    std::fs::remove_file(server.place.directory().join("plan.yaml")).expect("a file");
    server.wait_for("plan.yaml: it cannot be read: no such file or directory");
    let mut connection = server.connect();
    let answer =
        connection.request("POST", "/convert", &review(&[object("a", &json!({"both": "x"}))])).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(answer["response"]["convertedObjects"][0]["spec"], json!({"both": "x"}));
    // Each state of the files is told once.
    let told = server.log().matches("plan.yaml: it cannot be read").count();
    server.place.write("plan.yaml", plan("tests.example.com", json!({})).to_string());
    wait_until("the plan is used", DEADLINE, || (generation(&server) == 2.0).then_some(()));
    assert_eq!((told, server.log().matches("plan.yaml: it cannot be read").count()), (1, 1));
}

/// Files are links into a folder that is itself a link, which is replaced.
fn the_way_in_which_the_kubelet_exchanges_files_is_noticed() {
    let server = ConversionServer::start(&definition(), &plan("tests.example.com", json!({})));
    let directory = server.place.directory();
    let publish = |name: &str| {
        for file in ["tls.crt", "tls.key", "plan.yaml"] {
            server.place.write(&format!("{name}/{file}"), server.place.read(file));
        }
        link(Path::new(name), &directory.join("..next"));
        std::fs::rename(directory.join("..next"), directory.join("..data")).expect("a link that is replaced");
    };
    publish("..first");
    for file in ["tls.crt", "tls.key", "plan.yaml"] {
        std::fs::remove_file(directory.join(file)).expect("a file");
        link(&Path::new("..data").join(file), &directory.join(file));
    }
    let (before, generation_before) = (certificate(&server), generation(&server));
    let other = crate::support::certificates::Authority::server(&server.authority).expect("a certificate");
    server.place.write("..second/tls.crt", other.certificate).write("..second/tls.key", other.key);
    let changed = json!({"hub": "v1"});
    server.place.write("..second/plan.yaml", plan("tests.example.com", changed).to_string());
    link(Path::new("..second"), &directory.join("..next"));
    std::fs::rename(directory.join("..next"), directory.join("..data")).expect("a link that is replaced");
    wait_until("the certificate is used", DEADLINE, || (certificate(&server) != before).then_some(()));
    wait_until("the plan is used", DEADLINE, || (generation(&server) > generation_before).then_some(()));
}

fn link(target: &Path, place: &Path) {
    std::os::unix::fs::symlink(target, place).expect("a link");
}
