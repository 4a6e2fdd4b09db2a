//! FinalizerBlock: deletes an object while a finalizer of the experiment's own holds it. Only objects that can be made
//! again exactly, because a deletion that has begun cannot be taken back otherwise.

use pushback_preflight::experiment::suite::Phase;
use pushback_preflight::experiment::{DangerLevel, PREFIX};
use serde_json::Value;

use super::super::change::Step;
use super::super::reconciler::holds_finalizer;
use super::deleted::{Allowed, irretrievable};
use super::planning::{Planned, Planning};
use super::scope::Refusal;

/// Default finalizer of experiments that name none.
const FINALIZER: &str = "chaos.operatorchaos.io/block";

pub(super) async fn deletion(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let api_version = Some(planning.parameter("apiVersion")).filter(|given| !given.is_empty()).unwrap_or("v1");
    let address = planning.address(api_version, planning.parameter("kind"), planning.parameter("name"))?;
    let untried = |why: String| Refusal::Impossible(format!("the deletion was not tried: {why}"));
    if !address.kind.namespaced {
        return Err(untried(format!("{address} is in no namespace, and what depends on it is not known")));
    }
    let live = planning.target(&address).await?;
    if planning.experiment.annotations.get(&format!("{PREFIX}phase")).map(String::as_str)
        == Some(Phase::PreUpgrade.as_str())
    {
        return Err(untried("an upgrade would wait for an object in deletion; inject it after the upgrade".to_owned()));
    }
    if (address.kind.group.as_str(), address.kind.kind.as_str()) == ("", "Pod") {
        return Err(untried(format!("{address} would stop, and not come back under its name")));
    }
    let name = Some(planning.parameter("finalizer")).filter(|given| !given.is_empty()).unwrap_or(FINALIZER);
    let present = live.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    let present: Vec<&str> = present.filter_map(Value::as_str).collect();
    if present.contains(&name) {
        // A revert would remove it.
        return Err(Refusal::Impossible(format!("{address} has finalizer {name} already: it could not be told apart")));
    }
    let is_high = planning.experiment.injection.danger == DangerLevel::High;
    if let Some(theirs) = present.iter().find(|finalizer| !is_high || !holds_finalizer(&live, finalizer)) {
        return Err(untried(if is_high {
            format!("{address} has finalizer {theirs}, and nothing shows an operator that would remove it")
        } else {
            format!("{address} has finalizer {theirs}, whose operator would clean up; dangerLevel high allows that")
        }));
    }
    let allowed = if is_high { Allowed::Remade } else { Allowed::Nothing };
    irretrievable(planning, &address, &live, allowed).await.map_err(|refusal| match refusal {
        Refusal::Forbidden(why) => untried(why),
        other => other,
    })?;
    Ok(Planned { steps: vec![Step::held_deletion(&live, name)], ..Planned::default() })
}
