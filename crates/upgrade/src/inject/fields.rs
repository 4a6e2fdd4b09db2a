//! Injections that change fields of an object: ConfigDrift, CRDMutation, LabelStomping, DeploymentScaleZero, RBACRevoke.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::super::change::Step;
use super::super::place::Place;
use super::planning::{Planned, Planning};
use super::scope::{self, Refusal};

/// ConfigDrift: changes one key of a ConfigMap or Secret.
pub(super) async fn config(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let kind = match planning.parameter("resourceType") {
        "" => "ConfigMap",
        given => given,
    };
    let value = planning.parameter("value");
    let value = if kind == "Secret" { json!(BASE64.encode(value)) } else { json!(value) };
    let place = Place::keys(["data", planning.parameter("key")]);
    change(planning, "v1", kind, vec![(place, Some(value))], true).await
}

/// CRDMutation: changes one field of a custom resource.
pub(super) async fn custom_resource(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let (field, path) = (planning.parameter("field"), planning.parameter("path"));
    let dotted = match (field.trim_start_matches('.'), path.trim_start_matches('.')) {
        ("", path) => path.to_owned(),
        (field, _) if field.starts_with("spec.") => field.to_owned(),
        (field, _) => format!("spec.{field}"),
    };
    let place = Place::parse(&dotted)
        .filter(|place| !matches!(place.root(), "apiVersion" | "kind" | "metadata" | "status"))
        .ok_or_else(|| {
            Refusal::Forbidden(format!("{dotted:?} is no field of a custom resource that may be changed"))
        })?;
    let value = planning.parameter("value");
    // The format requires JSON; anything else is taken as text.
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    let (api_version, kind) = (planning.parameter("apiVersion"), planning.parameter("kind"));
    // The field is the user's, and no operator is expected to restore it.
    change(planning, api_version, kind, vec![(place, Some(value))], false).await
}

/// LabelStomping: changes one label of an object.
pub(super) async fn label(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let key = planning.parameter("labelKey");
    // These labels say who owns an object.
    if key == "app.kubernetes.io/managed-by" || key.split('/').next().is_some_and(|prefix| prefix == "kapp.k14s.io") {
        return Err(Refusal::Forbidden(format!("label {key} marks the owner of the object, and is never changed")));
    }
    let value = match planning.parameter("action") {
        "delete" => None,
        _ => Some(json!(planning.parameter("newValue"))),
    };
    let place = Place::keys(["metadata", "labels", key]);
    let (api_version, kind) = (planning.parameter("apiVersion"), planning.parameter("kind"));
    change(planning, api_version, kind, vec![(place, value)], true).await
}

/// DeploymentScaleZero: scales a Deployment to zero.
pub(super) async fn replicas(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    change(planning, "apps/v1", "Deployment", vec![(Place::keys(["spec", "replicas"]), Some(json!(0)))], true).await
}

/// RBACRevoke: removes the subjects of a binding.
pub(super) async fn binding_subjects(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let address = planning.address(
        "rbac.authorization.k8s.io/v1",
        planning.parameter("bindingType"),
        planning.parameter("bindingName"),
    )?;
    let live = planning.target(&address).await?;
    let step = Step::fields(&live, vec![(Place::keys(["subjects"]), None)])
        .ok_or_else(|| Refusal::Impossible(format!("{address} has no subjects")))?;
    Ok(Planned { steps: vec![step], heals: true, ..Planned::default() })
}

async fn change(
    planning: &Planning<'_>,
    api_version: &str,
    kind: &str,
    wanted: Vec<(Place, Option<Value>)>,
    heals: bool,
) -> Result<Planned, Refusal> {
    let address = planning.address(api_version, kind, planning.parameter("name"))?;
    let live = planning.target(&address).await?;
    for (place, value) in &wanted {
        scope::allow_field(&address, place.root(), value.as_ref().unwrap_or(&Value::Null))?;
    }
    let places: Vec<String> = wanted.iter().map(|(place, _)| place.to_string()).collect();
    let step = Step::fields(&live, wanted).ok_or_else(|| {
        Refusal::Impossible(format!("{} of {address} is already as the experiment would make it", places.join(", ")))
    })?;
    Ok(Planned { steps: vec![step], heals, ..Planned::default() })
}
