//! What the objects on a cluster decide where nobody asked for CRDUpgradeSafety: an upgrade of Argo CD whose definitions
//! reject more than before, with no Application, with many that stay valid, with one that does not, with a list that is
//! forbidden, and with an Application that comes after the verdict.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::TestApp;
use crate::support::case::show;
use crate::support::proxy::{FaultProxy, any};
use crate::support::{Options, Pushback, Ran, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
/// Tightenings of this upgrade: of Applications, ApplicationSets, AppProjects.
const TIGHTENINGS: [(&str, usize); 3] =
    [("applications.argoproj.io", 6), ("applicationsets.argoproj.io", 48), ("appprojects.argoproj.io", 1)];
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/applications";

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_upgrade_that_rejects_more_is_decided_by_the_objects_that_are_there,
        ApiServer: a_version_that_goes_is_told_with_those_who_write_in_it,
    ]
}

/// The definitions of a release of Argo CD.
fn definitions(version: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/apps/argo-cd/{version}.yaml.gz"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).expect("the release")).read_to_string(&mut text).expect("text");
    let documents = text.split("\n---").filter(|document| document.contains("\"kind\":\"CustomResourceDefinition\""));
    documents.collect::<Vec<_>>().join("\n---\n")
}

/// An Application whose hydrator writes below this path; the new release wants it not to be empty.
fn application(name: &str, path: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
        "spec": {
            "destination": {}, "project": "default",
            "sourceHydrator": {
                "drySource": {"path": "apps", "repoURL": "https://example.com/apps.git", "targetRevision": "main"},
                "syncSource": {"path": path, "targetBranch": "env"},
            },
        },
    })
}

fn create(api: &ApiClient, name: &str, path: &str) {
    api.post(APPLICATIONS, &application(name, path)).ok();
}

/// The findings that refuse, and those that were decided, by definition.
fn counted(report: &Value) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
    let (mut refusing, mut decided) = (BTreeMap::new(), BTreeMap::new());
    for finding in report["findings"].as_array().expect("findings") {
        let name = finding["object"]["name"].as_str().unwrap_or_default().to_owned();
        if finding["severity"] == "error" {
            *refusing.entry(name).or_insert(0) += 1;
        } else if !finding["decided"].is_null() {
            assert_eq!(finding["decided"], json!({"by": "liveObjects", "was": "breaking"}), "{finding}");
            assert_eq!((&finding["severity"], &finding["liveObjects"]["affected"]), (&json!("warning"), &json!(0)));
            *decided.entry(name).or_insert(0) += 1;
        }
    }
    (refusing, decided)
}

fn all_but(left_out: &[&str]) -> BTreeMap<String, usize> {
    let kept = TIGHTENINGS.iter().filter(|(name, _)| !left_out.contains(name));
    kept.map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// What is printed between the plan and the summary of the rules.
fn findings_text(ran: &Ran) -> String {
    let data = ran.data();
    let start = data.find("\nPlan: ").and_then(|start| Some(start + 2 + data[start + 1..].find('\n')?)).unwrap_or(0);
    data[start..data.find("\nPreflight").map_or(data.len(), |end| end + 1)].trim_start().to_owned()
}

fn an_upgrade_that_rejects_more_is_decided_by_the_objects_that_are_there() {
    let cluster = TestCluster::start(&Options::default());
    let api = cluster.api();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "argocd", "default");
    app.apply(&definitions("v2.14.21"), &[]).expect(0);
    wait_until("applications are served", SOON, || (api.get(APPLICATIONS).status == 200).then_some(()));
    app.pushback.write("new.yaml", definitions("v3.5.1"));
    let named = |mode: &str| {
        let rules = json!([{"name": "CRDUpgradeSafety", "config": {"liveObjects": mode}}]);
        json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules}).to_string()
    };
    app.pushback.write("auto.yaml", named("auto")).write("report.yaml", named("report"));
    let check = |more: &[&str]| app.run("check", &[&["-f", "new.yaml"][..], more].concat());
    let shown = |more: &[&str]| {
        let common = ["check", "-a", "argocd", "-n", "default", "-f", "new.yaml", "-o", "plain"];
        app.pushback.run(&[&common[..], more].concat())
    };

    // No object of any of the three kinds.
    let ran = check(&[]).expect(0);
    assert_eq!(counted(&ran.json()), (BTreeMap::new(), all_but(&[])));
    assert_eq!(ran.json()["outcome"], "warned");
    insta::assert_snapshot!(findings_text(&shown(&[]).expect(0)), @"
    warning[CRDUpgradeSafety]: 6 tightenings affect no applications.argoproj.io: there are none
    warning[CRDUpgradeSafety]: 48 tightenings affect no applicationsets.argoproj.io: there are none
    warning[CRDUpgradeSafety]: 1 tightening affects no appprojects.argoproj.io: there are none
     = decided by the objects that are there; --verbose shows each, `liveObjects: report` refuses them
    ");

    // 37 that stay valid.
    (0..37).for_each(|number| create(api, &format!("app-{number:02}"), "apps"));
    let ran = check(&[]).expect(0);
    assert_eq!(counted(&ran.json()), (BTreeMap::new(), all_but(&[])));
    let text = shown(&[]).expect(0);
    insta::assert_snapshot!(findings_text(&text), @"
    warning[CRDUpgradeSafety]: 6 tightenings affect none of 37 applications.argoproj.io
    warning[CRDUpgradeSafety]: 48 tightenings affect no applicationsets.argoproj.io: there are none
    warning[CRDUpgradeSafety]: 1 tightening affects no appprojects.argoproj.io: there are none
     = decided by the objects that are there; --verbose shows each, `liveObjects: report` refuses them
    ");
    let verbose = shown(&["--verbose"]).expect(0);
    let words = verbose.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("(no live object is affected)").count(), 55);
    assert!(!verbose.stdout.contains("affect none of"), "{}", verbose.stdout);
    show(&format!("37 unaffected: exit 0, {} lines", text.stdout.lines().count()));

    // Who names the rule gets what can be read from the schemas, and is told the way out.
    for arguments in [&["--preflight", "CRDUpgradeSafety"][..], &["--config", "report.yaml"]] {
        let ran = check(arguments).expect(10);
        assert_eq!(counted(&ran.json()), (all_but(&[]), BTreeMap::new()), "{arguments:?}");
        let complaints = shown(arguments).expect(10).complaints();
        let way_out = "no object that is there is affected by all of them, and writers would see an error: \
                       `liveObjects: auto` for CRDUpgradeSafety in preflightRules";
        assert!(complaints.contains(way_out), "{complaints}");
    }
    check(&["--config", "auto.yaml"]).expect(0);
    check(&["--config", "auto.yaml", "--preflight", "CRDUpgradeSafety"]).expect(0);

    // Nobody can tell what a user who may not list them would do to the objects.
    let unlisted = unlisted(&cluster);
    let common = ["check", "-a", "argocd", "-n", "default", "-f", "new.yaml", "-o", "json"];
    unlisted.write("new.yaml", definitions("v3.5.1"));
    let ran = unlisted.run(&common).expect(10);
    let (refusing, decided) = counted(&ran.json());
    assert_eq!((refusing, decided), (all_but(&[]), BTreeMap::new()));
    let report = ran.json();
    let is_told = |finding: &&Value| finding["message"].to_string().contains("its objects could not be listed");
    let told = report["findings"].as_array().into_iter().flatten().filter(is_told).count();
    assert_eq!(told, 3, "once a definition: {report}");

    // One that would be rejected.
    create(api, "empty", "");
    let ran = check(&[]).expect(10);
    let mut affected = BTreeMap::from([("applications.argoproj.io".to_owned(), 2)]);
    assert_eq!(counted(&ran.json()).0, affected);
    let report = ran.json();
    let findings = report["findings"].as_array().expect("findings");
    for finding in findings.iter().filter(|finding| finding["severity"] == "error") {
        assert_eq!(finding["liveObjects"], json!({"affected": 1, "examined": 38, "names": ["default/empty"]}));
    }
    affected.insert("applications.argoproj.io".to_owned(), 4);
    affected.extend(all_but(&["applications.argoproj.io"]));
    assert_eq!(counted(&report).1, affected);
    let text = shown(&[]).expect(10);
    show(&format!("1 of 38 affected: exit 10, {} lines", text.stdout.lines().count()));
    api.delete(&format!("{APPLICATIONS}/empty")).ok();

    // One that comes when the verdict has been given: its definition is not written.
    let (before, late) = (cluster.api_for("late", &["system:masters"]), application("late", ""));
    let locks = any().that(|request| request.writes() && request.resource == "configmaps").nth(1);
    proxy.before(locks, move |_| {
        before.post(APPLICATIONS, &late).ok();
    });
    let ran = app.apply(&definitions("v3.5.1"), &[]).expect(20);
    let failed = ran.end()["unfinished"].to_string();
    assert!(failed.contains("not written: preflight refuses it with the objects that are there now"), "{failed}");
    let stored = || {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/applications.argoproj.io";
        let definition = api.get(path).ok().to_string();
        definition.contains("^.{2,}|[^./]$")
    };
    assert!(!stored(), "the definition was written");
    proxy.clear();
    app.apply(&definitions("v3.5.1"), &[]).expect(10);
    api.delete(&format!("{APPLICATIONS}/late")).ok();
    app.apply(&definitions("v3.5.1"), &[]).expect(0);
    assert!(stored(), "the definition was not written");
    assert_eq!(api.list(APPLICATIONS).len(), 37);
}

/// A user who may do everything but list the objects of Argo CD.
fn unlisted(cluster: &TestCluster) -> Pushback {
    let groups = ["", "apiextensions.k8s.io", "coordination.k8s.io"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "unlisted"},
        "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "unlisted"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "unlisted"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "unlisted"}],
    });
    cluster.api().apply(&role).ok();
    cluster.api().apply(&binding).ok();
    Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed("unlisted", "default"))
}

fn a_version_that_goes_is_told_with_those_who_write_in_it() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("writers");
    let group = format!("{namespace}.example.com");
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"text": {"type": "string"}}}},
        }}})
    };
    let definition = |versions: &[Value]| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("notes.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": "notes", "singular": "note", "kind": "Note"},
                "versions": versions,
            },
        })
    };
    let app = TestApp::new("writers", &namespace);
    app.apply(&definition(&[version("v1", true), version("v1beta1", false)]).to_string(), &[]).expect(0);
    let api = cluster.api();
    let served = format!("/apis/{group}/v1beta1/namespaces/{namespace}/notes");
    wait_until("notes are served", SOON, || (api.get(&served).status == 200).then_some(()));
    for (name, of, manager) in
        [("a", "v1beta1", "helm"), ("b", "v1beta1", "helm"), ("c", "v1beta1", "flux"), ("d", "v1", "flux")]
    {
        let note = json!({
            "apiVersion": format!("{group}/{of}"), "kind": "Note", "metadata": {"name": name, "namespace": namespace},
            "spec": {"text": "x"},
        });
        api.apply_with(&note, &format!("fieldManager={manager}")).ok();
    }
    app.pushback.write("app.yaml", definition(&[version("v1", true)]).to_string());
    let report = app.run("check", &["-f", "app.yaml"]).expect(10).json();
    let findings = report["findings"].as_array().expect("findings");
    let removed = findings.iter().find(|finding| finding["check"] == "servedVersionRemoval").expect("a finding");
    let mut used = removed["versionUse"].clone();
    for writer in used["writers"].as_array_mut().expect("writers") {
        let time = writer["lastWrite"].take();
        assert!(time.as_str().is_some_and(|time| time.ends_with('Z')), "{time}");
    }
    let expected = json!([
        {"manager": "helm", "objects": 2, "lastWrite": null}, {"manager": "flux", "objects": 1, "lastWrite": null},
    ]);
    assert_eq!(used, json!({"objects": 3, "examined": 4, "writers": expected, "storedVersions": ["v1"]}));
    let common = ["check", "-a", "writers", "-n", &namespace, "-f", "app.yaml", "-o", "plain"];
    let text = app.pushback.run(&common).expect(10).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("= used: 3 of 4 objects were written in it: by helm (2, last 20"), "{words}");
    assert!(words.contains("; all are stored in v1 = "), "{words}");
}
