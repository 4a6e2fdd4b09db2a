//! WebhookDisrupt: makes the backend of every entry of a webhook configuration unreachable, and sets its failure policy.
//! Only the configuration is changed: a Service without endpoints would also cut off what else it serves, conversion of
//! stored objects among it, and a write to the configuration itself is never sent to a webhook.

use std::sync::Arc;

use pushback_cluster::{Address, ListQuery, label_query, list_all};
use pushback_objects::ObjectExt;
use pushback_objects::object::is_custom_group;
use serde_json::{Value, json};

use super::super::change::{Step, Target};
use super::super::place::{Place, Segment};
use super::planning::{Planned, Planning};
use super::scope::Refusal;

const API_VERSION: &str = "admissionregistration.k8s.io/v1";
/// Nobody listens on port 1 of the API server's own machine, so that no request leaves it.
const NOWHERE: &str = "https://127.0.0.1:1/";
/// Ports of which a Service lacks one. The API server refuses a port that the Service does not have, and asks nobody.
const PORTS: std::ops::RangeInclusive<u64> = 1..=65_535;

pub(super) async fn unreachable(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let value = Some(planning.parameter("value")).filter(|given| !given.is_empty()).unwrap_or("Ignore");
    let mut planned = Planned::default();
    for address in configurations(planning).await? {
        let live = planning.target(&address).await?;
        planned.measured.push(Target::of(&live));
        let mut wanted = Vec::new();
        for entry in live.get("webhooks").and_then(Value::as_array).into_iter().flatten() {
            bounded(planning, &address, entry).await?;
            wanted.push((place(entry, &["failurePolicy"]), Some(json!(value))));
            wanted.push(match entry.pointer("/clientConfig/service") {
                Some(service) => {
                    let port = missing_port(planning, service).await?;
                    (place(entry, &["clientConfig", "service", "port"]), Some(json!(port)))
                }
                None => (place(entry, &["clientConfig", "url"]), Some(json!(NOWHERE))),
            });
        }
        planned.steps.extend(Step::fields(&live, wanted));
    }
    Ok(planned)
}

fn place(entry: &Value, keys: &[&str]) -> Place {
    let key = |key: &&str| Segment::Key((*key).to_owned());
    let name = Segment::Named(entry.text("/name").to_owned());
    Place::new([Segment::Key("webhooks".to_owned()), name].into_iter().chain(keys.iter().map(key)).collect())
}

/// A port that the Service does not have.
async fn missing_port(planning: &Planning<'_>, service: &Value) -> Result<u64, Refusal> {
    let kind = planning.address("v1", "Service", service.text("/name"))?.kind;
    let address = Address::new(kind, service.text("/namespace"), service.text("/name"));
    let live = planning.cluster.get(&address).await.map_err(Refusal::Cluster)?;
    let ports = live.as_deref().and_then(|live| live.pointer("/spec/ports")?.as_array()).into_iter().flatten();
    let ports: Vec<u64> = ports.filter_map(|port| port.get("port")?.as_u64()).collect();
    Ok(PORTS.into_iter().find(|port| !ports.contains(port)).unwrap_or(1))
}

/// Refuses an entry for objects of Kubernetes itself outside of the experiment's namespace: the whole cluster would wait
/// for it. Nor may it be asked about what the run writes.
async fn bounded(planning: &Planning<'_>, configuration: &Address, entry: &Value) -> Result<(), Refusal> {
    let rules: Vec<&Value> = entry.get("rules").and_then(Value::as_array).into_iter().flatten().collect();
    let Some(rule) = rules.iter().find(|rule| listed(rule, "apiGroups").any(|group| !is_custom_group(group))) else {
        return Ok(());
    };
    let name = entry.text("/name");
    let own = ["configmaps", "secrets", "leases", "*", "*/*"];
    if let Some(own) = listed(rule, "resources").find(|resource| own.contains(resource)) {
        let message = format!("webhook {name} of {configuration} is asked about {own}, which the run itself writes");
        return Err(Refusal::Forbidden(message));
    }
    let reached = namespaces(planning, entry).await?;
    match reached.iter().find(|namespace| *namespace != planning.namespace) {
        None => Ok(()),
        Some(other) => Err(Refusal::Forbidden(format!(
            "webhook {name} of {configuration} is asked about {} in other namespaces, too, such as {other}",
            listed(rule, "resources").collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn listed<'r>(rule: &'r Value, list: &str) -> impl Iterator<Item = &'r str> {
    rule.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Namespaces that an entry selects.
async fn namespaces(planning: &Planning<'_>, entry: &Value) -> Result<Vec<String>, Refusal> {
    let kind = planning.address("v1", "Namespace", "")?.kind;
    let query = ListQuery::new(Arc::clone(&kind), None, &label_query(entry.get("namespaceSelector")));
    let found = list_all(planning.cluster, &query).await.map_err(Refusal::Cluster)?.items;
    Ok(found.iter().map(|namespace| namespace.name().to_owned()).collect())
}

/// The configurations that an experiment names or selects by label.
async fn configurations(planning: &Planning<'_>) -> Result<Vec<Address>, Refusal> {
    let kind = match planning.parameter("webhookType") {
        "mutating" => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    };
    let labels = planning.parameter("webhookLabelSelector");
    let address = planning.address(API_VERSION, kind, planning.parameter("webhookName"))?;
    if labels.is_empty() {
        return Ok(vec![address]);
    }
    let query = ListQuery::new(address.kind.clone(), None, labels);
    let found = list_all(planning.cluster, &query).await.map_err(Refusal::Cluster)?.items;
    if found.is_empty() {
        return Err(Refusal::Impossible(format!("no {kind} has the labels {labels}")));
    }
    Ok(found.iter().map(|object| Address::new(address.kind.clone(), "", object.name())).collect())
}
