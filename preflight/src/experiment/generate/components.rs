//! Experiments for components: new, renamed and moved ones, and their new webhooks, finalizers and dependencies.

use std::collections::BTreeMap;

use pushback_objects::object::split_api_version;
use pushback_releases::difference::{ChangeType, ReleaseDiff};
use pushback_releases::model::Webhook;

use super::context::{Place, Pods};
use super::draft::{Draft, Injected};
use super::kinds::Kind;
use super::names::{short, slug};
use super::{Generation, Options, Subject};
use crate::experiment::suite::{Need, Origin};
use crate::experiment::{DangerLevel, InjectionType};

/// Time for pods to recover, in seconds.
pub(super) const POD_TTL: u64 = 300;
/// Duration of a network or webhook fault, in seconds.
pub(super) const DISTURBANCE_TTL: u64 = 120;
/// Time for which objects stay changed, in seconds: long enough for an upgrade.
pub(super) const UPGRADE_TTL: u64 = 3600;
/// A finalizer that no operator handles.
const OWN_FINALIZER: &str = "chaos.operatorchaos.io/block";
/// Prefix of dependencies outside the release.
const EXTERNAL: &str = "external:";

impl<'a> Generation<'a> {
    /// The new component and its resources. Its webhooks, finalizers and dependencies are separate changes.
    pub(super) fn component_added(&mut self, subject: &Subject<'_, 'a>) {
        let Some(place) = subject.new else { return };
        let origin = subject.origin();
        match place.pods() {
            Some(pods) => self.keep(pod_kill(
                origin.clone(),
                "component-added",
                place,
                &pods,
                &format!("the new component {} must be back in its steady state", place.component.name),
            )),
            None => self.review(origin.clone(), "", NO_PODS),
        }
        for resource in &place.component.resources {
            if !self.old.objects.contains(&resource.object.key()) {
                let origin = Origin { change_type: ChangeType::ResourceAdded.name(), ..origin.clone() };
                self.resource_of_new_component(origin, place, resource);
            }
        }
    }

    pub(super) fn component_removed(&mut self, subject: &Subject<'_, 'a>) {
        let resources = match subject.old.map_or(0, |place| place.component.resources.len()) {
            1 => "resource".to_owned(),
            count => format!("{count} resources"),
        };
        let reason = format!(
            "no experiment tests what is gone: after the upgrade, check that the operator cleaned up the {resources} that \
             the component managed"
        );
        self.review(subject.origin(), "", reason);
    }

    pub(super) fn component_renamed(&mut self, subject: &Subject<'_, 'a>) {
        let Some(place) = subject.new else { return };
        let old = subject.component.renamed_from.as_deref().unwrap_or_default();
        match place.pods() {
            Some(pods) => {
                let expected = format!("{}, formerly {old}, must be back in its steady state", place.component.name);
                self.keep(pod_kill(subject.origin(), "component-renamed", place, &pods, &expected));
            }
            None => self.review(subject.origin(), "", NO_PODS),
        }
    }

    /// One experiment for each of both namespaces, because a runner needs to know where to inject.
    pub(super) fn namespace_changed(&mut self, subject: &Subject<'_, 'a>) {
        let sides = [(subject.old, "old"), (subject.new, "new")];
        for (place, side) in sides.into_iter().filter_map(|(place, side)| Some((place?, side))) {
            let Some(pods) = place.pods() else {
                self.review(subject.origin(), format!("{side} namespace"), NO_PODS);
                continue;
            };
            let expected = match side {
                "old" => "the upgrade must bring it up in its new namespace, in its steady state",
                _ => "in its new namespace it must be back in its steady state",
            };
            let injected = Injected {
                kind: InjectionType::NetworkPartition,
                danger: DangerLevel::Medium,
                namespace: Some(pods.namespace.clone()),
                parameters: vec![("labelSelector", pods.selector.clone())],
                ttl: DISTURBANCE_TTL,
                pods: pods.replicas,
                recovers_as: subject.new,
                hypothesis: format!(
                    "All traffic of the pods of {} ({}) in namespace {} is denied for {DISTURBANCE_TTL}s; {expected}",
                    pods.workload, pods.selector, pods.namespace
                ),
            };
            let mut draft = Draft::new(subject.origin(), "namespace-moved", place, injected)
                .about(short(&place.component.name))
                .what(side)
                .subject(format!("{side} namespace"))
                .needs(Need::NetworkPolicies);
            draft.change = format!("namespace-moved-{side}");
            self.keep(match subject.new {
                Some(new) if side == "old" => draft.before_upgrade(place, new),
                _ => draft,
            });
        }
    }

    pub(super) fn webhook_added(&mut self, subject: &Subject<'_, 'a>) {
        let (Some(place), Some(summary)) = (subject.new, &subject.change.webhook) else { return };
        let is_added = |change: &&pushback_releases::Change| change.change_type == ChangeType::WebhookAdded;
        let several = subject.component.changes.iter().filter(is_added).count() > 1;
        let known = place.component.webhooks.iter();
        let known = known.filter(|webhook| webhook.name == summary.name && webhook.kind == summary.kind);
        let named = |webhook: &&Webhook| {
            let configuration = webhook.details.as_ref().map(|details| details.configuration.as_str());
            summary.configuration.is_none() || configuration == summary.configuration.as_deref()
        };
        let Some(webhook) = known.filter(named).min_by_key(|webhook| &webhook.path) else { return };
        self.webhook(subject.origin(), place, webhook, several);
    }

    /// No experiment can test a removed webhook: people know who relied on it.
    pub(super) fn webhook_removed(&mut self, subject: &Subject<'_, 'a>) {
        let Some(webhook) = &subject.change.webhook else { return };
        let lost = match webhook.kind.as_str() {
            "validating" => "what it rejected is now accepted: make sure that something else checks it",
            "mutating" => "what it set is now missing: check that manifests and clients set it",
            _ => "objects are no longer converted: check that they are stored in a version that stays",
        };
        self.review(subject.origin(), &webhook.name, format!("the {} webhook is gone, and {lost}", webhook.kind));
    }

    fn webhook(&mut self, origin: Origin, place: Place<'a>, webhook: &Webhook, several: bool) {
        let what = match webhook.kind.as_str() {
            "validating" => "validator",
            "mutating" => "mutator",
            _ => {
                let reason = "a webhook that converts has no failure policy to change: check that objects of every version are served while its backend is down";
                return self.review(origin, &webhook.name, reason);
            }
        };
        let configuration = webhook.details.as_ref().map(|details| details.configuration.as_str());
        let configuration = configuration.filter(|name| !name.is_empty());
        let configuration =
            configuration.or_else(|| self.live_configuration(configuration_kind(&webhook.kind), &webhook.name));
        let name = configuration.unwrap_or(&webhook.name);
        let injected = Injected {
            kind: InjectionType::WebhookDisrupt,
            danger: DangerLevel::High,
            namespace: None,
            parameters: vec![
                ("webhookName", name.to_owned()),
                ("webhookType", webhook.kind.clone()),
                ("action", "setFailurePolicy".to_owned()),
                ("value", "Fail".to_owned()),
            ],
            ttl: DISTURBANCE_TTL,
            pods: 1,
            recovers_as: None,
            hypothesis: format!(
                "failurePolicy of all webhooks in {} {name} is Fail for {DISTURBANCE_TTL}s, webhook {} among them; \
                 requests in its scope must be answered without running into its timeout, requests outside must not \
                 notice, and {} must be in its steady state",
                configuration_kind(&webhook.kind),
                webhook.name,
                place.component.name,
            ),
        };
        let about = if several { webhook.name.as_str() } else { short(&place.component.name) };
        let mut draft = Draft::new(origin, "webhook-added", place, injected)
            .about(about)
            .what(what)
            .subject(&webhook.name)
            .annotate("webhook", &webhook.name);
        if configuration.is_none() {
            draft = draft.needs(Need::WebhookConfiguration).note(format!(
                "the model names the webhook and not the {} that holds it: put the name of that object into webhookName",
                configuration_kind(&webhook.kind)
            ));
        }
        self.keep(draft);
    }

    pub(super) fn finalizer_added(&mut self, subject: &Subject<'_, 'a>) {
        if let Some(place) = subject.new {
            self.finalizer(subject.origin(), place, named_in(subject));
        }
    }

    /// Uses our own finalizer on an object that will carry the new one: the real one may be set already, and a runner
    /// removes what it adds.
    fn finalizer(&mut self, origin: Origin, place: Place<'a>, finalizer: &str) {
        let Some(target) = self.carrier(place, finalizer) else {
            let reason = "no definition of the models and no custom resource carries it: add a finalizer of your own \
                          to an object that the operator finalizes, delete the object, and check that the operator copes";
            return self.review(origin, finalizer, reason);
        };
        let (api_version, kind) = (target.api_version.as_str(), target.kind.as_str());
        let injected = Injected {
            kind: InjectionType::FinalizerBlock,
            // It deletes an object that its operator finalizes.
            danger: DangerLevel::High,
            namespace: Some(target.namespace.clone()),
            parameters: vec![
                ("apiVersion", api_version.to_owned()),
                ("kind", kind.to_owned()),
                ("name", target.name.clone()),
                ("finalizer", OWN_FINALIZER.to_owned()),
            ],
            ttl: POD_TTL,
            pods: 1,
            recovers_as: None,
            hypothesis: format!(
                "Finalizer {OWN_FINALIZER} keeps {kind} {} from being deleted, as {finalizer} does from this release on; \
                 {} must stay in its steady state and finish the deletion once the finalizer is gone,",
                target.name, place.component.name
            ),
        };
        let mut draft = Draft::new(origin, "finalizer-added", place, injected)
            .subject(finalizer)
            .what(&slug(finalizer.rsplit('/').next().unwrap_or(finalizer)))
            .resource(kind, &target.name)
            .annotate("finalizer", finalizer);
        if !target.exists {
            draft = draft.needs(Need::Instance).note(instance_note(kind, &target.namespace));
        }
        self.keep(draft);
    }

    pub(super) fn dependency_added(&mut self, subject: &Subject<'_, 'a>) {
        if let Some(place) = subject.new {
            self.dependency(subject.origin(), place, named_in(subject));
        }
    }

    /// Kills pods of the dependency, and also checks the components that depend on it.
    fn dependency(&mut self, origin: Origin, dependent: Place<'a>, name: &str) {
        if let Some(external) = name.strip_prefix(EXTERNAL) {
            let reason = "nobody in the release owns it: check that the component copes while it is away";
            return self.review(origin, external, reason);
        }
        let places = self.new.dependency(&dependent.operator.name, name);
        if places.is_empty() {
            let reason = "no component and no operator of the release has this name";
            return self.review(origin, name, reason);
        }
        let Some((place, pods)) = places.iter().find_map(|place| Some((*place, place.pods()?))) else {
            return self.review(origin, name, NO_PODS);
        };
        let expected = format!(
            "{} must be back in its steady state, and {}, which depends on it from this release on, must hold or reach its own",
            place.component.name, dependent.component.name
        );
        let draft = pod_kill(origin, "dependency-added", place, &pods, &expected);
        self.keep(draft.about(short(name)).subject(name).collateral(dependent));
    }
}

impl<'a> Generation<'a> {
    /// A restart of each component that is changed, or that owns a changed CRD: the new version has to come up with the
    /// objects that the old one left.
    pub(super) fn restarts(&mut self, diff: &ReleaseDiff, options: &Options) {
        let mut restarted: BTreeMap<(&str, &str), (Place<'a>, Origin)> = BTreeMap::new();
        let own = diff.component_changes.iter().filter_map(|component| {
            let change = component.changes.iter().max_by_key(|change| change.severity)?;
            Some((component.operator.as_str(), component.component_name.as_str(), change.change_type, &change.id))
        });
        for (operator, name, change_type, id) in own {
            let Some(place) = self.new.component(operator, name) else { continue };
            restarted.entry(place.names()).or_insert_with(|| (place, origin_of(place, change_type, id)));
        }
        for change in &diff.crd_changes {
            let kind = self.new.release().definitions.iter().find(|known| known.name == change.crd_name);
            let kind = kind.map(Kind::of).unwrap_or_default();
            let Some((_, place)) = self.owner(&change.crd_name, &kind) else { continue };
            restarted.entry(place.names()).or_insert_with(|| (place, origin_of(place, change.change_type, &change.id)));
        }
        for ((_, name), (place, origin)) in restarted {
            let is_wanted = options.components.is_empty() || options.components.contains(name);
            let Some(pods) = place.pods().filter(|_| is_wanted) else { continue };
            let expected = format!(
                "the new {name} must come up again with the objects that the old release left, in its steady state"
            );
            self.keep(pod_kill(origin, "restart", place, &pods, &expected));
        }
    }
}

fn origin_of(place: Place<'_>, change_type: ChangeType, id: &str) -> Origin {
    Origin {
        operator: place.operator.name.clone(),
        component: place.component.name.clone(),
        change_type: change_type.name(),
        change_id: id.to_owned(),
        ..Origin::default()
    }
}

/// Why the pods of a component cannot be selected.
const NO_PODS: &str = "its model has no Deployment, StatefulSet or DaemonSet with labels that select its pods";

/// Kills one pod without a grace period.
pub(super) fn pod_kill(origin: Origin, class: &'static str, place: Place<'_>, pods: &Pods, expected: &str) -> Draft {
    let injected = Injected {
        kind: InjectionType::PodKill,
        danger: DangerLevel::Low,
        namespace: Some(pods.namespace.clone()),
        parameters: vec![("labelSelector", pods.selector.clone())],
        ttl: POD_TTL,
        pods: 1,
        recovers_as: None,
        hypothesis: format!(
            "One pod of {} ({}) in namespace {} is deleted without grace; {expected}",
            pods.workload, pods.selector, pods.namespace
        ),
    };
    Draft::new(origin, class, place, injected)
}

pub(super) fn instance_note(kind: &str, namespace: &str) -> String {
    format!(
        "put the name of a {kind} into the parameter name; where it is in another namespace than {namespace}, put that into \
         allowedNamespaces and metadata.namespace"
    )
}

/// Kind of the configuration object for webhooks of this kind.
fn configuration_kind(kind: &str) -> &'static str {
    if kind == "mutating" { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" }
}

/// The name that was added to a list.
fn named_in<'c>(subject: &Subject<'c, '_>) -> &'c str {
    subject.change.new.as_ref().and_then(serde_json::Value::as_str).unwrap_or(&subject.change.path)
}

/// The API group in the prefix of a finalizer.
pub(super) fn group_of(finalizer: &str) -> &str {
    let (group, name) = split_api_version(finalizer);
    if group.is_empty() { name } else { group }
}
