//! WebhookDisrupt: changes the failure policy of every entry of a webhook configuration.

use pushback_preflight::ObjectExt;
use serde_json::{Value, json};

use super::super::change::{Step, Target};
use super::super::place::{Place, Segment};
use super::planning::{Planned, Planning, Refusal, allow_object, existing};
use crate::cluster::{Address, ListQuery, list_all};

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

pub(super) async fn policy(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let value = Some(planning.parameter("value")).filter(|given| !given.is_empty()).unwrap_or("Ignore");
    let mut planned = Planned::default();
    for address in configurations(planning).await? {
        let live = existing(planning.cluster, &address).await?;
        allow_object(&live)?;
        planned.measured.push(Target::of(&live));
        let entries = live.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let wanted = entries.map(|entry| (place(entry.text("/name")), Some(json!(value)))).collect();
        match Step::fields(&live, wanted) {
            Some(step) => planned.steps.push(step),
            None => planned
                .notes
                .push(format!("{address} has failure policy {value} already: it is not changed, only measured")),
        }
    }
    Ok(planned)
}

fn place(entry: &str) -> Place {
    let key = |key: &str| Segment::Key(key.to_owned());
    Place::new(vec![key("webhooks"), Segment::Named(entry.to_owned()), key("failurePolicy")])
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
