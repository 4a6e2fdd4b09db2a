//! What a model file overrides in a derived model, and what it leaves.

use pushback_objects::object::ObjectRef;
use serde_json::{Map, json};

use super::merge;
use crate::model::{Component, Definition, Operator, Origin, Recovery, Release, Resource, Webhook, WebhookDetails};

fn resource(kind: &str, name: &str) -> Resource {
    let object = ObjectRef { kind: kind.to_owned(), name: name.to_owned(), ..ObjectRef::default() };
    Resource { object, ..Resource::default() }
}

fn webhook(name: &str, kind: &str, configuration: &str) -> Webhook {
    let details = WebhookDetails { configuration: configuration.to_owned(), ..WebhookDetails::default() };
    let details = (!configuration.is_empty()).then_some(details);
    Webhook { name: name.to_owned(), kind: kind.to_owned(), details, ..Webhook::default() }
}

fn release(origin: Origin, components: Vec<Component>) -> Release {
    let operator = Operator { name: "shop".to_owned(), components, ..Operator::default() };
    Release { origin, operators: vec![operator], ..Release::default() }
}

fn derived() -> Release {
    let mut deployment = resource("Deployment", "web");
    deployment.manifest = Some(json!({"kind": "Deployment"}).into());
    deployment.labels.insert("app".to_owned(), "web".to_owned());
    deployment.expected_spec = Map::from_iter([("replicas".to_owned(), json!(1))]);
    let web = Component {
        name: "web".to_owned(),
        controller: "image".to_owned(),
        resources: vec![deployment, resource("Service", "web")],
        dependencies: vec!["db".to_owned(), "external:mail.prod".to_owned()],
        webhooks: vec![webhook("check", "validating", "hooks"), webhook("crd", "conversion", "crd")],
        specific: ["image:web".to_owned()].into(),
        ..Component::default()
    };
    let db = Component { name: "db".to_owned(), ..Component::default() };
    release(Origin::Derived, vec![db, web])
}

fn component<'a>(release: &'a Release, name: &str) -> &'a Component {
    release.operators[0].components.iter().find(|component| component.name == name).expect(name)
}

#[test]
fn what_a_person_gives_counts_and_what_is_left_out_stays() {
    let written = Component {
        name: "web".to_owned(),
        controller: "Shop".to_owned(),
        resources: vec![resource("Deployment", "web"), resource("Lease", "leader")],
        dependencies: vec!["cache".to_owned()],
        webhooks: vec![webhook("check", "validating", ""), webhook("other", "mutating", "")],
        finalizers: vec!["shop.example.com/cleanup".to_owned()],
        ..Component::default()
    };
    let merged = merge(derived(), release(Origin::Written, vec![written]));
    assert_eq!(merged.origin, Origin::Derived);
    let web = component(&merged, "web");
    assert_eq!(web.controller, "Shop");
    let names: Vec<&str> = web.resources.iter().map(|resource| resource.object.kind.as_str()).collect();
    assert_eq!(names, ["Deployment", "Lease"]);
    assert!(web.resources[0].manifest.is_some(), "what its manifest shows is still known");
    assert_eq!(web.resources[0].labels["app"], "web");
    assert_eq!(web.resources[0].expected_spec["replicas"], 1);
    assert_eq!(web.dependencies, ["cache", "external:mail.prod"]);
    let hooks: Vec<(&str, bool)> = web.webhooks.iter().map(|it| (it.name.as_str(), it.details.is_some())).collect();
    assert_eq!(hooks, [("check", true), ("other", false), ("crd", true)]);
    assert_eq!(web.finalizers, ["shop.example.com/cleanup"]);
    assert!(web.specific.contains("image:web"));
    assert_eq!(component(&merged, "db"), component(&derived(), "db"), "what is not written of stays as it was");
}

#[test]
fn a_component_with_nothing_but_a_name_changes_nothing() {
    let named = Component { name: "web".to_owned(), ..Component::default() };
    let merged = merge(derived(), release(Origin::Written, vec![named]));
    assert_eq!(component(&merged, "web"), component(&derived(), "web"));
}

#[test]
fn what_only_the_written_model_has_is_added() {
    let mut written = release(Origin::Written, vec![Component { name: "new".to_owned(), ..Component::default() }]);
    written.operators.push(Operator { name: "alpha".to_owned(), ..Operator::default() });
    written.operators[0].recovery = Recovery { reconcile_timeout_seconds: 60, max_reconcile_cycles: 2 };
    written.definitions.push(Definition { name: "a".to_owned(), value: json!({"new": 1}).into(), positions: None });
    let mut old = derived();
    old.definitions.push(Definition { name: "a".to_owned(), value: json!({"old": 1}).into(), positions: None });
    let merged = merge(old, written);
    let operators: Vec<&str> = merged.operators.iter().map(|operator| operator.name.as_str()).collect();
    assert_eq!(operators, ["alpha", "shop"]);
    let names: Vec<&str> = merged.operators[1].components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["db", "web", "new"]);
    assert_eq!(merged.operators[1].recovery.reconcile_timeout_seconds, 60);
    assert_eq!(merged.definitions.len(), 1);
    assert_eq!(*merged.definitions[0].value, json!({"new": 1}));
}
