//! Artifacts of registries as manifests: of every tool, with credentials, on both sides of a comparison, and hostile ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::rendering::{PROPERTIES, REMOVED, crd, findings, without_b};
use crate::support::registry::{IMAGE_LAYER, Layer, Registry};
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: artifacts_of_every_tool_are_applied,
        Nothing: field_removed_in_an_artifact_is_found_at_its_line,
        Nothing: digest_is_reported_and_held_in_a_saved_plan,
        Nothing: content_with_another_digest_is_refused,
        Nothing: private_artifact_is_read_with_the_users_credentials,
        Nothing: credentials_do_not_follow_a_redirect,
        Nothing: hostile_artifacts_are_refused_by_layer_and_entry,
        Nothing: refusals_of_a_registry_are_errors,
        Nothing: missing_base_is_allowed_for_a_first_release,
        Renderers: charts_and_overlays_in_a_registry_are_rendered,
    ]
}

const FLUX: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {a: b}\n";

fn titled(name: &str, media_type: &str, bytes: &[u8]) -> Layer {
    Layer::new(media_type, bytes.to_vec()).annotated(json!({"org.opencontainers.image.title": name}))
}

fn artifacts_of_every_tool_are_applied() {
    let registry = Registry::start();
    let image = [
        Layer::archive(IMAGE_LAYER, &[("config/map.yaml", "old"), (".imgpkg/images.yml", "kind: ImagesLock\n")]),
        Layer::archive(IMAGE_LAYER, &[("config/map.yaml", MAP)]),
    ];
    let folder = Layer::archive(IMAGE_LAYER, &[("deploy/map.yaml", MAP)])
        .annotated(json!({"org.opencontainers.image.title": "deploy", "io.deis.oras.content.unpack": "true"}));
    registry.push("flux", "v1", &[Layer::archive(FLUX, &[("./map.yaml", MAP), ("./README.md", "x")])]);
    registry.push("imgpkg", "latest", &image);
    registry.push("oras/file", "v1", &[titled("map.yaml", "application/yaml", MAP.as_bytes())]);
    let by_digest = registry.push("oras/folder", "v1", &[folder]);
    registry.push_index("oras/folder", "index", &[&by_digest]);
    for name in [
        "flux:v1".to_owned(),
        "imgpkg".to_owned(),
        "oras/file:v1".to_owned(),
        format!("oras/folder@{by_digest}"),
        "oras/folder:index".to_owned(),
    ] {
        let pushback = Pushback::new();
        let input = registry.oci(&name);
        pushback.run(&["apply", "-a", "x", "-f", &input, "--cluster", "dir:live", "--yes"]).expect(0);
        assert!(pushback.read("live/default/configmap_map.yaml").contains("a: b"), "{name}");
    }
}

/// An artifact with a CRD in version `v1`, and without a field in `v2`.
fn releases(registry: &Registry) {
    let layer = |crd: &str| Layer::archive(FLUX, &[("crds/foos.yaml", crd), ("map.yaml", MAP)]);
    registry.push("app", "v1", &[layer(&crd("foos"))]);
    registry.push("app", "v2", &[layer(&without_b(&crd("foos")))]);
}

fn field_removed_in_an_artifact_is_found_at_its_line() {
    let registry = Registry::start();
    releases(&registry);
    let (old, new) = (registry.oci("app:v1"), registry.oci("app:v2"));
    let pushback = Pushback::new();
    pushback.run(&["check", "-f", &old, "--cluster", &old]).expect(0);
    pushback.run(&["check", "-f", &new, "--cluster", &old, "--report=json=r.json"]).expect(10);
    let expected = (REMOVED.to_owned(), format!("{new}/crds/foos.yaml"), u64::from(PROPERTIES));
    assert_eq!(findings(&pushback), [expected]);
    for command in ["diff", "diff-crds"] {
        pushback.run(&["upgrade", command, "--from", &old, "--to", &old]).expect(0);
        pushback.run(&["upgrade", command, "--from", &old, "--to", &new]).expect(10);
    }
    // An artifact is not written, and has no record of an app.
    pushback.run(&["apply", "-a", "x", "-f", &new, "--cluster", &old, "--yes"]).expect(1);
    pushback.run(&["check", "-a", "x", "-f", &new, "--cluster", &old]).expect(1);
}

fn digest_is_reported_and_held_in_a_saved_plan() {
    let registry = Registry::start();
    let digest = registry.push("app", "v1", &[Layer::archive(FLUX, &[("map.yaml", MAP)])]);
    let (pushback, input) = (Pushback::new(), registry.oci("app:v1"));
    pushback.write("live/.keep", "");
    let app = |command: &str, more: &[&str]| {
        let all = [command, "-a", "x", "-f", &input, "--cluster", "dir:live"];
        pushback.run(&[&all[..], more].concat())
    };
    let ran = app("diff", &["-o", "json"]).expect(0);
    let messages: Vec<Value> = ran
        .events_of("diagnostic")
        .into_iter()
        .filter(|event| event["code"] == "rendered")
        .map(|event| event["message"].clone())
        .collect();
    assert_eq!(messages, [format!("{input} is {digest}")]);
    app("plan", &["--out", "plan.json"]).expect(0);
    let saved: Value = pushback.read_json("plan.json");
    let names: Vec<&Value> = saved["inputs"].as_array().expect("inputs").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!(input), &json!(format!("{input}/map.yaml"))]);
    // The objects stay, and the artifact is another one.
    registry.push("app", "v1", &[Layer::archive(FLUX, &[("map.yaml", MAP), ("README.md", "x")])]);
    app("apply", &["--plan", "plan.json"]).expect(11);
    registry.push("app", "v1", &[Layer::archive(FLUX, &[("map.yaml", MAP)])]);
    app("apply", &["--plan", "plan.json"]).expect(0);
}

fn diff(pushback: &Pushback, input: &str) -> (i32, String) {
    pushback.write("live/.keep", "");
    let ran = pushback.run(&["diff", "-a", "x", "-f", input, "--cluster", "dir:live"]);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"), "{ran:?}");
    (ran.code, ran.stderr)
}

fn content_with_another_digest_is_refused() {
    let registry = Registry::start();
    let layer = Layer::archive(FLUX, &[("map.yaml", MAP)]);
    registry.push("app", "v1", std::slice::from_ref(&layer));
    let pushback = Pushback::new();
    let wrong = format!("app@sha256:{}", "0".repeat(64));
    assert_eq!(diff(&pushback, &registry.oci(&wrong)).0, 1);
    for content in [&b"other"[..], b"", &[0; 100_000]] {
        registry.corrupt(&layer, content);
        let (code, stderr) = diff(&pushback, &registry.oci("app:v1"));
        assert!(code == 1 && stderr.contains("layer 1") && stderr.contains("another content"), "{stderr}");
    }
}

/// A folder for DOCKER_CONFIG.
fn docker_config(pushback: &Pushback, registry: &Registry, login: &str) -> String {
    let folder = pushback.place().join("docker");
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = json!({"auths": {registry.host(): {"auth": STANDARD.encode(login)}}});
    std::fs::write(folder.join("config.json"), config.to_string()).expect("a file");
    folder.display().to_string()
}

fn private_artifact_is_read_with_the_users_credentials() {
    let registry = Registry::start();
    releases(&registry);
    registry.protect("robot", "hunter2");
    let input = registry.oci("app:v1");
    let (code, stderr) = diff(&Pushback::new(), &input);
    assert!(code == 1 && stderr.contains("demands credentials"), "{stderr}");
    let pushback = Pushback::new();
    let wrong = docker_config(&pushback, &registry, "robot:hunter2-wrong");
    let pushback = pushback.with("DOCKER_CONFIG", wrong);
    let (code, stderr) = diff(&pushback, &input);
    assert!(code == 1 && stderr.contains("does not accept the configured credentials"), "{stderr}");
    docker_config(&pushback, &registry, "robot:hunter2");
    assert_eq!(diff(&pushback, &input).0, 0);
    let podman = pushback.place().join("docker/config.json").display().to_string();
    let other = Pushback::new().with("REGISTRY_AUTH_FILE", podman);
    assert_eq!(diff(&other, &input).0, 0);
    let (code, stderr) = diff(&other, &format!("oci://robot:hunter2@{}/app:v1", registry.host()));
    assert!(code == 1 && stderr.contains("not a SHA-256 digest"), "{stderr}");
}

fn credentials_do_not_follow_a_redirect() {
    let (registry, store) = (Registry::start(), Registry::start());
    let layer = Layer::archive(FLUX, &[("map.yaml", MAP)]);
    registry.push("app", "v1", std::slice::from_ref(&layer));
    store.push("app", "v1", std::slice::from_ref(&layer));
    registry.protect("robot", "hunter2");
    let pushback = Pushback::new();
    let config = docker_config(&pushback, &registry, "robot:hunter2");
    let pushback = pushback.with("DOCKER_CONFIG", config);
    assert_eq!(diff(&pushback, &registry.oci("app:v1")).0, 0);
    let path = registry.requests().into_iter().map(|head| head[0].clone()).find(|line| line.contains("/blobs/"));
    let path = path.expect("a blob").split(' ').nth(1).expect("a path").to_owned();
    registry.redirect("/blobs/", &format!("http://{}{path}", store.host()));
    assert_eq!(diff(&pushback, &registry.oci("app:v1")).0, 0);
    let has_credentials = |head: &Vec<String>| head.iter().any(|line| line.to_lowercase().starts_with("authorization"));
    let requests = store.requests();
    assert!(requests.len() == 1 && !requests.iter().any(has_credentials), "{requests:?}");
    registry.redirect("/manifests/", &format!("http://{}/manifests/", registry.host()));
    let (code, stderr) = diff(&pushback, &registry.oci("app:v1"));
    assert!(code == 1 && stderr.contains("more than 5 redirects"), "{stderr}");
}

fn hostile_artifacts_are_refused_by_layer_and_entry() {
    let registry = Registry::start();
    let good = Layer::archive(FLUX, &[("map.yaml", MAP)]);
    for (tag, layers, expected) in [
        ("path", vec![Layer::archive(FLUX, &[("../a.yaml", MAP)])], "entry ../a.yaml: its path leads out"),
        ("title", vec![titled("../a.yaml", "text/yaml", b"x")], "entry ../a.yaml: its path leads out"),
        ("second", vec![good.clone(), Layer::archive(FLUX, &[("/a.yaml", MAP)])], "layer 2 (sha256:"),
        ("type", vec![good.clone(), Layer::new("application/wasm", vec![0])], "application/wasm"),
        ("broken", vec![Layer::new(FLUX, b"not an archive".to_vec())], "not complete or not valid"),
        ("none", vec![], "the artifact has no layer"),
        ("text", vec![Layer::archive(FLUX, &[("README.md", "x")])], "no .yaml, .yml or .json file"),
        ("chart", vec![Layer::archive(CHART, &[("a.yaml", "x")])], "one folder with Chart.yaml"),
    ] {
        registry.push("bad", tag, &layers);
        let pushback = Pushback::new();
        let (code, stderr) = diff(&pushback, &registry.oci(&format!("bad:{tag}")));
        assert!(code == 1 && stderr.contains(expected), "{tag}: {stderr}");
        assert!(!pushback.place().join("a.yaml").exists(), "{tag}");
    }
    registry.push_index("bad", "index", &[&"sha256:0".to_owned(), &"sha256:1".to_owned()].map(String::as_str));
    assert_eq!(diff(&Pushback::new(), &registry.oci("bad:index")).0, 1);
}

fn refusals_of_a_registry_are_errors() {
    let registry = Registry::start();
    releases(&registry);
    let (code, stderr) = diff(&Pushback::new(), &registry.oci("app:v3"));
    assert!(code == 1 && stderr.contains("404"), "{stderr}");
    for (repository, status) in [("limited", 429), ("failing", 500), ("forbidden", 403)] {
        registry.refuse(repository, status);
        let (code, stderr) = diff(&Pushback::new(), &registry.oci(&format!("{repository}:v1")));
        assert!(code == 1 && stderr.contains(&registry.oci(repository)), "{stderr}");
    }
    // A port that nobody listens on.
    let (code, stderr) = diff(&Pushback::new(), "oci://127.0.0.1:1/app:v1");
    assert!(code == 1 && stderr.contains("no connection"), "{stderr}");
}

fn missing_base_is_allowed_for_a_first_release() {
    let registry = Registry::start();
    releases(&registry);
    let (new, base) = (registry.oci("app:v1"), registry.oci("app:v0"));
    let pushback = Pushback::new();
    pushback.run(&["check", "-f", &new, "--cluster", &base]).expect(1);
    pushback.run(&["check", "-f", &new, "--cluster", &base, "--new-base"]).expect(0);
    registry.refuse("v0", 500);
    pushback.run(&["check", "-f", &new, "--cluster", &base, "--new-base"]).expect(1);
}

fn charts_and_overlays_in_a_registry_are_rendered() {
    let registry = Registry::start();
    let chart = |crd: &str, version: &str| {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {a: b}\n";
        let about = format!("apiVersion: v2\nname: op\nversion: {version}\n");
        Layer::archive(CHART, &[("op/Chart.yaml", &about), ("op/crds/foos.yaml", crd), ("op/templates/map.yaml", map)])
    };
    registry.push("charts/op", "1.9.0", &[chart(&crd("foos"), "1.9.0")]);
    registry.push("charts/op", "1.10.0", &[chart(&without_b(&crd("foos")), "1.10.0")]);
    registry.push("charts/op", "2.0.0-rc.1", &[chart(&crd("foos"), "2.0.0-rc.1")]);
    let helm = |version: &str| format!("helm:{}{version}", registry.oci("charts/op"));
    let pushback = Pushback::new().with_renderers();
    let expected = |input: &str| (REMOVED.to_owned(), format!("{input}/op/crds/foos.yaml"), u64::from(PROPERTIES));
    let latest = registry.oci("charts/op:1.10.0");
    for (new, base) in [
        (helm("@1.10.0"), helm("@1.9.0")),
        (helm(""), registry.oci("charts/op:1.9.0")),
        (latest.clone(), helm(":1.9.0")),
    ] {
        pushback.run(&["check", "-f", &base, "--cluster", &base]).expect(0);
        pushback.run(&["check", "-f", &new, "--cluster", &base, "--report=json=r.json"]).expect(10);
        assert_eq!(findings(&pushback), [expected(&latest)], "{new} {base}");
    }
    pushback.run(&["apply", "-a", "x", "-f", &helm("@1.9.0"), "--cluster", "dir:live", "--yes"]).expect(0);
    assert!(pushback.read("live/default/configmap_op.yaml").contains("a: b"));
    for refused in ["@^1", "@3.0.0", ":latest"] {
        let (code, stderr) = diff(&pushback, &helm(refused));
        assert_eq!(code, 1, "{stderr}");
    }
    let overlay = |prefix: &str| {
        let kustomization = format!("namePrefix: {prefix}-\nresources: [base]\n");
        let base = ("base/kustomization.yaml", "resources: [map.yaml]\n");
        Layer::archive(FLUX, &[("kustomization.yaml", &kustomization), base, ("base/map.yaml", MAP)])
    };
    registry.push("overlay", "v1", &[overlay("prod")]);
    let input = registry.oci("overlay:v1");
    pushback.run(&["apply", "-a", "y", "-f", &input, "--cluster", "dir:live", "--yes"]).expect(0);
    assert!(pushback.read("live/default/configmap_prod-map.yaml").contains("a: b"));
    pushback.run(&["check", "-f", &input, "--cluster", &input]).expect(0);
}
