//! Rule ImagesExist: the answers of a registry about images, and the rule on an API server.

use std::time::Duration;

use pushback_registry::{Client, CredentialFiles, ErrorKind, ImageState, Reference, look_up};
use serde_json::{Value, json};

use crate::support::apply::TestApp;
use crate::support::http;
use crate::support::registry::Registry;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: images_are_found_for_their_platforms,
        Nothing: refusals_of_a_registry_are_told_apart,
        ApiServer: missing_images_are_refused_before_a_write,
    ]
}

fn look_up_in(registry: &Registry, name: &str, platforms: &[&str]) -> Result<ImageState, ErrorKind> {
    let image = Reference::parse_image(&format!("{}/{name}", registry.host())).expect("a name");
    let platforms: Vec<String> = platforms.iter().map(|platform| (*platform).to_owned()).collect();
    // Without the credentials of whoever runs the tests.
    look_up(&Client::new(CredentialFiles::default()), &image, &platforms).map_err(|error| error.kind)
}

fn images_are_found_for_their_platforms() {
    let registry = Registry::start();
    registry.push_image("one", "v1", "linux", "arm64");
    registry.push_platforms("many", "v1", &["amd64", "arm64"]);
    let digest = registry.push("artifact", "v1", &[]);
    for (name, platforms) in [
        ("one:v1".to_owned(), &["linux/arm64"][..]),
        ("many:v1".to_owned(), &["linux/amd64", "linux/arm64"]),
        ("artifact:v1".to_owned(), &["linux/amd64"]),
        (format!("artifact@{digest}"), &["linux/amd64"]),
    ] {
        assert_eq!(look_up_in(&registry, &name, platforms), Ok(ImageState::Found), "{name}");
    }
    let lacks = |missing: &str, found: &[&str]| {
        let found = found.iter().map(|platform| (*platform).to_owned()).collect();
        Ok(ImageState::Lacks { missing: vec![missing.to_owned()], found })
    };
    assert_eq!(look_up_in(&registry, "one:v1", &["linux/amd64"]), lacks("linux/amd64", &["linux/arm64"]));
    let many = look_up_in(&registry, "many:v1", &["linux/amd64", "linux/s390x"]);
    assert_eq!(many, lacks("linux/s390x", &["linux/amd64", "linux/arm64"]));
}

fn refusals_of_a_registry_are_told_apart() {
    let registry = Registry::start();
    let refusal = |name: &str| look_up_in(&registry, name, &["linux/amd64"]);
    assert_eq!(refusal("none:v1"), Err(ErrorKind::Absent));
    for (repository, status, kind) in [
        ("limited", 429, ErrorKind::Throttled),
        ("failing", 503, ErrorKind::Unreachable),
        ("forbidden", 403, ErrorKind::Denied),
    ] {
        registry.refuse(repository, status);
        assert_eq!(refusal(&format!("{repository}:v1")), Err(kind), "{status}");
    }
    registry.protect("robot", "hunter2");
    assert_eq!(refusal("private:v1"), Err(ErrorKind::Denied));
    // A registry that accepts a request and never answers.
    let (port, _) = http::start(|_, _| {
        std::thread::park();
        Ok(())
    });
    let slow = Reference::parse_image(&format!("127.0.0.1:{port}/app")).expect("a name");
    let client = Client::new(CredentialFiles::default()).with_time(Duration::from_millis(100));
    assert_eq!(look_up(&client, &slow, &[]).map_err(|error| error.kind), Err(ErrorKind::Unreachable));
    let nowhere = Reference::parse_image("127.0.0.1:1/app").expect("a name");
    let client = Client::new(CredentialFiles::default());
    assert_eq!(look_up(&client, &nowhere, &[]).map_err(|error| error.kind), Err(ErrorKind::Unreachable));
}

fn missing_images_are_refused_before_a_write() {
    let registry = Registry::start();
    let app = TestApp::new("images", &TestCluster::shared().namespace("images"));
    registry.push_image("web", "arm", "linux", "arm64");
    registry.push_platforms("web", "v1", &["amd64"]);
    registry.refuse("private", 403);
    let pod = |name: &str, image: &str| {
        let image = format!("{}/{image}", registry.host());
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"a": name}}, "template": {"metadata": {"labels": {"a": name}},
            "spec": {"containers": [{"name": "c", "image": image}]}}}})
        .to_string()
    };
    let check = |manifests: &[String]| {
        app.pushback.write("app.yaml", manifests.join("\n---\n"));
        app.run("check", &["-f", "app.yaml", "--preflight=ImagesExist", "--report=json=r.json"])
    };
    let checks = || {
        let report: Value = app.pushback.read_json("r.json");
        let findings = report["findings"].as_array().expect("findings").clone();
        let mut checks: Vec<String> =
            findings.iter().map(|it| it["check"].as_str().unwrap_or_default().to_owned()).collect();
        checks.sort();
        (checks, report["rules"][0]["outcome"].clone())
    };
    check(&[pod("good", "web:v1")]).expect(0);
    assert_eq!(checks(), (vec![], json!("passed")));
    check(&[pod("good", "web:v1"), pod("arm", "web:arm"), pod("none", "web:v2"), pod("private", "private:v1")])
        .expect(10);
    assert_eq!(checks().0, ["missing", "notChecked", "platform"]);
    check(&[pod("private", "private:v1")]).expect(0);
    assert_eq!(checks(), (vec![], json!("skipped")));
}
