//! Experiments for added webhooks, finalizers and dependencies of a component.

use super::*;

fn webhook(name: &str, kind: &str, configuration: Option<&str>) -> Webhook {
    let details =
        configuration.map(|name| WebhookDetails { configuration: name.to_owned(), ..WebhookDetails::default() });
    Webhook { name: name.to_owned(), kind: kind.to_owned(), path: "/check".to_owned(), details, ..Webhook::default() }
}

fn webhook_change(webhook: &Webhook) -> Change {
    let mut change = change(ChangeType::WebhookAdded);
    change.webhook = Some(WebhookSummary {
        name: webhook.name.clone(),
        kind: webhook.kind.clone(),
        path: webhook.path.clone(),
        configuration: webhook.details.as_ref().map(|details| details.configuration.clone()),
    });
    change
}

#[test]
fn a_new_webhook_fails_closed() {
    let table = [
        (
            webhook("v.web.io", "validating", Some("Web-Checks")),
            "webhook-added-web-validator.yaml upgrade-test-web-webhook-added post-upgrade WebhookDisrupt high web [] action=setFailurePolicy value=Fail webhookName=Web-Checks webhookType=validating",
        ),
        (
            webhook("m.web.io", "mutating", None),
            "webhook-added-web-mutator.yaml upgrade-test-web-webhook-added post-upgrade (disabled) WebhookDisrupt high web [] action=setFailurePolicy value=Fail webhookName=m.web.io webhookType=mutating",
        ),
        (
            webhook("baskets.shop.io", "conversion", None),
            "review baskets.shop.io: a webhook that converts has no failure policy to change: check that objects of every version are served while its backend is down",
        ),
        (
            webhook("v.web.io", "validating", Some("cert-manager-webhook")),
            "review v.web.io: no WebhookDisrupt can test it: the cluster depends on cert-manager-webhook",
        ),
    ];
    for (webhook, expected) in table {
        let mut web = component("web");
        let change = webhook_change(&webhook);
        web.webhooks = vec![webhook];
        assert_eq!(shown(&suite_for(change, web)), [expected]);
    }
}

#[test]
fn several_webhooks_of_a_component_are_named_by_themselves() {
    let mut web = component("web");
    web.webhooks =
        vec![webhook("a.web.io", "validating", Some("checks")), webhook("b.web.io", "validating", Some("checks"))];
    let changes = web.webhooks.iter().map(webhook_change).collect();
    let diff =
        ReleaseDiff { component_changes: vec![row("web", MatchType::Exact, None, changes)], ..ReleaseDiff::default() };
    let suite = generate(&release("1", vec![component("web")]), &release("2", vec![web]), &diff, &Options::default());
    let files: Vec<&str> = suite.experiments.iter().map(|entry| entry.file.as_str()).collect();
    assert_eq!(files, ["webhook-added-a-web-io-validator.yaml", "webhook-added-b-web-io-validator.yaml"]);
}

fn list_change(change_type: ChangeType, name: &str) -> Change {
    let mut change = change(change_type).values(None, Some(json!(name)));
    name.clone_into(&mut change.path);
    change
}

#[test]
fn a_new_finalizer_blocks_an_object_that_carries_it() {
    let finalizer = "shop.io/cleanup";
    let mut web = component("web");
    web.finalizers = vec![finalizer.to_owned()];
    let diff = ReleaseDiff {
        component_changes: vec![row(
            "web",
            MatchType::Exact,
            None,
            vec![list_change(ChangeType::FinalizerAdded, finalizer)],
        )],
        ..ReleaseDiff::default()
    };
    let mut new = release("2", vec![web]);
    let old = release("1", vec![component("web")]);
    assert_eq!(shown(&generate(&old, &new, &diff, &Options::default())).len(), 1, "nothing carries it");
    new.definitions = vec![definition(json!({}))];
    let suite = generate(&old, &new, &diff, &Options::default());
    assert_eq!(
        shown(&suite),
        [
            "finalizer-added-web-cleanup.yaml upgrade-test-web-finalizer-added post-upgrade (disabled) FinalizerBlock high web \
         [\"shop\"] apiVersion=shop.io/v1 finalizer=chaos.operatorchaos.io/block kind=Basket name=name-of-the-basket",
        ]
    );
    assert_eq!(suite.experiments[0].experiment.annotations["chaos.operatorchaos.io/finalizer"], finalizer);
    new.operators[0].components[0].resources.push(resource("shop.io/v1", "Basket", "one", &[]));
    assert_eq!(
        shown(&generate(&old, &new, &diff, &Options::default())),
        ["finalizer-added-web-cleanup.yaml upgrade-test-web-finalizer-added post-upgrade FinalizerBlock high web \
         [\"shop\"] apiVersion=shop.io/v1 finalizer=chaos.operatorchaos.io/block kind=Basket name=one",]
    );
}

#[test]
fn a_new_dependency_dies_and_its_dependents_are_checked() {
    let mut web = component("web");
    web.dependencies = vec!["db".to_owned()];
    let suite = suite_for(list_change(ChangeType::DependencyAdded, "db"), web.clone());
    assert_eq!(
        shown(&suite),
        [
            "dependency-added-db.yaml upgrade-test-db-dependency-added post-upgrade PodKill low db [\"shop\"] labelSelector=app=db",
        ]
    );
    let checked: Vec<&str> = suite.experiments[0].experiment.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(checked, ["db", "web"]);
    let by_operator = suite_for(list_change(ChangeType::DependencyAdded, "shop-operator"), web.clone());
    assert_eq!(by_operator.experiments[0].experiment.target.component, "db");
    for (name, reason) in [("external:s3", "nobody in the release owns it"), ("nobody", "no component and no operator")]
    {
        let suite = suite_for(list_change(ChangeType::DependencyAdded, name), web.clone());
        assert!(suite.experiments.is_empty() && suite.manual.first().unwrap().reason.starts_with(reason));
    }
}
