//! A world that changes at any request of an upgrade: whatever somebody creates, edits, deletes or labels, what comes of
//! the run was judged, is refused, or ends with 20 and the difference named. `PUSHBACK_ROUNDS=full` tries every change at
//! every request; without it a few, spread over all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map_path};
use crate::support::case::{rounds, show};
use crate::support::proxy::{FaultProxy, any};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: whatever_changes_at_whatever_request_is_judged_or_told]
}

/// An app before its upgrade, and what the upgrade applies. Everything has a namespace and an API group of its own.
struct Upgrade {
    namespace: String,
    app: TestApp,
    proxy: FaultProxy,
}

impl Upgrade {
    fn new() -> Self {
        let cluster = TestCluster::shared();
        let namespace = cluster.namespace("world");
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let app = TestApp::of(Pushback::on(cluster), "world", &namespace);
        let upgrade = Self { namespace, app, proxy };
        upgrade.app.apply(&upgrade.before(), &["--wait=false"]).expect(0);
        upgrade
    }

    fn api(&self) -> &'static ApiClient {
        TestCluster::shared().api()
    }

    fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    fn definition(&self, plural: &str, fields: &[&str]) -> Value {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{}", self.group())},
            "spec": {
                "group": self.group(), "scope": "Namespaced",
                "names": {"kind": plural.to_uppercase(), "plural": plural, "singular": plural, "listKind": format!("{plural}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": fields}},
                }}}],
            },
        })
    }

    fn resource(&self, plural: &str, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group()), "kind": plural.to_uppercase(),
            "metadata": {"name": name, "namespace": self.namespace}, "spec": {"size": "big"},
        })
    }

    fn config_map(&self, name: &str, step: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace},
            "data": {"step": step}})
    }

    fn before(&self) -> String {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pruned"}, "stringData": {"a": "b"}});
        documents(&[
            self.config_map("changed", "1"),
            secret,
            self.definition("boxes", &["size"]),
            self.resource("boxes", "one"),
            self.definition("bags", &["size"]),
            self.resource("bags", "one"),
            self.definition("cans", &["size"]),
        ])
    }

    /// Something is created, updated and pruned; of definitions, one gains a field, one comes, two go, with objects and
    /// without.
    fn after(&self) -> String {
        documents(&[
            self.config_map("changed", "2"),
            self.config_map("created", "2"),
            self.definition("boxes", &["size", "colour"]),
            self.resource("boxes", "one"),
            self.definition("jars", &["size"]),
            self.resource("jars", "one"),
        ])
    }

    fn collection(&self, plural: &str) -> String {
        format!("/apis/{}/v1/namespaces/{}/{plural}", self.group(), self.namespace)
    }

    fn definition_path(&self, plural: &str) -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{}", self.group())
    }

    fn config_map_path(&self, name: &str) -> String {
        config_map_path(&self.namespace, name)
    }

    fn secret_path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets/pruned", self.namespace)
    }

    /// Whether a definition that is there has a field.
    fn has_field(&self, plural: &str, field: &str) -> bool {
        let definition = self.api().get(&self.definition_path(plural));
        let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        definition.body.pointer(place).is_some_and(|fields| fields.get(field).is_some())
    }

    fn run(&self) -> Ran {
        let app = TestApp::of(Pushback::with_kubeconfig(&self.proxy.kubeconfig()), "world", &self.namespace);
        app.apply(&self.after(), &["--wait=false"])
    }
}

impl Drop for Upgrade {
    fn drop(&mut self) {
        for plural in ["boxes", "bags", "cans", "jars"] {
            drop(self.api().request("DELETE", &self.definition_path(plural), None, None));
        }
    }
}

fn documents(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

/// What somebody does, and what has to hold at the end if it was possible.
struct Doing {
    name: &'static str,
    /// False where the server did not let it happen.
    act: fn(&Upgrade) -> bool,
    holds: fn(&Upgrade, &Ran) -> bool,
}

const OTHER_APP: &str = "somebody-else";

/// The run told of an object by its name, and did not call itself a success.
fn told(ran: &Ran, name: &str) -> bool {
    ran.code == 20 && ran.end().to_string().contains(name)
}

const DOINGS: [Doing; 12] = [
    Doing {
        name: "creates an object of a definition that goes",
        act: |it| it.api().post(&it.collection("bags"), &it.resource("bags", "guest")).status == 201,
        holds: |it, ran| it.api().get(&format!("{}/guest", it.collection("bags"))).status == 200 || told(ran, "/guest"),
    },
    Doing {
        name: "creates the first object of a definition that goes",
        act: |it| it.api().post(&it.collection("cans"), &it.resource("cans", "guest")).status == 201,
        holds: |it, ran| it.api().get(&format!("{}/guest", it.collection("cans"))).status == 200 || told(ran, "/guest"),
    },
    Doing {
        name: "creates an object of a definition that changes",
        act: |it| it.api().post(&it.collection("boxes"), &it.resource("boxes", "guest")).status == 201,
        holds: |it, _| it.api().get(&format!("{}/guest", it.collection("boxes"))).status == 200,
    },
    Doing {
        name: "creates what is about to be created",
        act: |it| {
            let mut theirs = it.config_map("created", "theirs");
            theirs["data"]["theirs"] = json!("kept");
            it.api().post(&format!("/api/v1/namespaces/{}/configmaps", it.namespace), &theirs).status == 201
        },
        holds: |it, _| it.api().get(&it.config_map_path("created")).body["data"]["theirs"] == "kept",
    },
    Doing {
        name: "creates a definition that is about to be created",
        act: |it| {
            let theirs = it.definition("jars", &["size", "theirs"]);
            it.api().post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &theirs).status == 201
        },
        holds: |it, _| it.has_field("jars", "theirs"),
    },
    Doing {
        name: "gives a definition a field",
        act: |it| {
            let theirs = it.definition("boxes", &["size", "theirs"]);
            it.api().apply_with(&theirs, "fieldManager=somebody&force=true").status == 200
        },
        holds: |it, _| it.has_field("boxes", "theirs"),
    },
    Doing {
        name: "edits the value that changes",
        act: |it| {
            let theirs = json!({"data": {"step": "theirs"}});
            it.api().merge_patch(&it.config_map_path("changed"), &theirs).status == 200
        },
        holds: |it, ran| {
            let step = it.api().get(&it.config_map_path("changed")).body["data"]["step"].take();
            // Written over only where somebody has been shown that it is.
            let shown = ran.events_of("plan").iter().any(|plan| plan.to_string().contains("theirs"));
            step == "theirs" || (step == "2" && shown)
        },
    },
    Doing {
        name: "adds a value beside",
        act: |it| {
            let theirs = json!({"data": {"theirs": "kept"}});
            it.api().merge_patch(&it.config_map_path("changed"), &theirs).status == 200
        },
        holds: |it, _| it.api().get(&it.config_map_path("changed")).body["data"]["theirs"] == "kept",
    },
    Doing {
        name: "takes what is about to be pruned out of the app",
        act: |it| {
            let label = json!({"metadata": {"labels": {"kapp.k14s.io/app": null}}});
            it.api().merge_patch(&it.secret_path(), &label).status == 200
        },
        holds: |it, _| it.api().get(&it.secret_path()).status == 200,
    },
    Doing {
        name: "gives what is about to be changed to another app",
        act: |it| {
            let label = json!({"metadata": {"labels": {"kapp.k14s.io/app": OTHER_APP}}});
            it.api().merge_patch(&it.config_map_path("changed"), &label).status == 200
        },
        holds: |it, _| {
            let live = it.api().get(&it.config_map_path("changed")).body;
            live["metadata"]["labels"]["kapp.k14s.io/app"] == OTHER_APP
        },
    },
    Doing {
        name: "replaces an object of a definition that goes",
        act: |it| {
            it.api().delete(&format!("{}/one", it.collection("bags"))).status == 200
                && it.api().post(&it.collection("bags"), &it.resource("bags", "one")).status == 201
        },
        holds: |it, ran| it.api().get(&format!("{}/one", it.collection("bags"))).status == 200 || told(ran, "/one"),
    },
    Doing {
        name: "deletes what is about to be changed",
        act: |it| it.api().delete(&it.config_map_path("changed")).status == 200,
        holds: |it, ran| {
            // Gone after its write, made anew by a new plan, or told.
            let there = it.api().get(&it.config_map_path("changed")).body;
            ran.code == 20 || there["data"]["step"] == "2" || there["code"] == 404
        },
    },
];

/// What one try came to.
fn attempt(doing: &'static Doing, request: usize) -> String {
    let upgrade = Arc::new(Upgrade::new());
    let done = Arc::new(AtomicBool::new(false));
    let (actor, noted) = (Arc::downgrade(&upgrade), Arc::clone(&done));
    upgrade.proxy.before(any().nth(request), move |_| {
        let acted = actor.upgrade().is_some_and(|upgrade| (doing.act)(&upgrade));
        noted.store(acted, Ordering::SeqCst);
    });
    let ran = upgrade.run();
    let context = format!("somebody {} before request {request}: exit {}\n{}", doing.name, ran.code, ran.stdout);
    assert!([0, 1, 10, 20].contains(&ran.code), "{context}\n{}", ran.stderr);
    if !done.load(Ordering::SeqCst) {
        // Too late for it, or in vain: the run is as if nothing had been.
        return format!("could not be done, exit {}", ran.code);
    }
    assert!((doing.holds)(&upgrade, &ran), "{context}");
    if ran.code == 20 {
        assert!(ran.end()["unfinished"].as_array().is_some_and(|it| !it.is_empty()), "nothing is named: {context}");
    }
    format!("exit {}", ran.code)
}

fn shares_no_factor(one: usize, other: usize) -> bool {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one == 1
}

fn whatever_changes_at_whatever_request_is_judged_or_told() {
    let quiet = Upgrade::new();
    quiet.run().expect(0);
    let requests = quiet.proxy.requests().len();
    drop(quiet);
    let all: Vec<(usize, usize)> =
        (1..=requests).flat_map(|request| (0..DOINGS.len()).map(move |doing| (request, doing))).collect();
    let tries = rounds(8, all.len()).clamp(1, all.len());
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    // A step that leads through all of them, and spreads a few over requests and doings alike.
    let step = (all.len() * 618 / 1000..).find(|step| shares_no_factor(*step, all.len())).unwrap_or(1);
    for number in 0..tries {
        let (request, doing) = all[number * step % all.len()];
        *outcomes.entry(attempt(&DOINGS[doing], request)).or_default() += 1;
    }
    show(&format!("a world that changes: {requests} requests, {tries} of {} changes tried, {outcomes:?}", all.len()));
}
