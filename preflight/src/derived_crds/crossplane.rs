//! Crossplane: a CompositeResourceDefinition defines a composite resource and, with `claimNames`, a claim.
//!
//! Source: crossplane-runtime `pkg/xcrd/crd.go` and `schemas.go` (in Crossplane before 2.1 `internal/xcrd`).

use serde_json::{Map, Value, json};

use super::fields::Field;
use super::layout::{Origins, path};
use super::{DerivedCrd, SourceError, crd, insert_present};

/// Longest name of a composite resource or claim, as it becomes a label value.
const LONGEST_NAME: u64 = 63;

/// How a composite resource is scoped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
    /// As in Crossplane 1: cluster-scoped, with claims and connection secrets.
    LegacyCluster,
}

/// The two kinds that a definition makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DerivedKind {
    Composite(Scope),
    Claim,
}

pub(super) fn derive(source: &Value) -> Result<Vec<DerivedCrd>, SourceError> {
    let root = Field::root(source);
    let spec = root.get("spec")?;
    let is_v2 = root.get("apiVersion")?.text_or("")?.ends_with("/v2");
    let scope = spec.get("scope")?;
    let scope = match scope.text_or(if is_v2 { "Namespaced" } else { "LegacyCluster" })? {
        "Namespaced" => Scope::Namespaced,
        "Cluster" => Scope::Cluster,
        "LegacyCluster" => Scope::LegacyCluster,
        _ => return Err(scope.error("expected Namespaced, Cluster or LegacyCluster")),
    };
    let mut derived = vec![derive_one(&spec, DerivedKind::Composite(scope))?];
    if spec.get("claimNames")?.present().is_some() {
        derived.push(derive_one(&spec, DerivedKind::Claim)?);
    }
    Ok(derived)
}

fn derive_one(spec: &Field<'_>, kind: DerivedKind) -> Result<DerivedCrd, SourceError> {
    let group = spec.get("group")?.text()?;
    let names_key = if kind == DerivedKind::Claim { "claimNames" } else { "names" };
    let names = spec.get(names_key)?;
    let plural = names.get("plural")?.text()?;
    names.get("kind")?.text()?;
    if kind == DerivedKind::Claim {
        check_claim_names(spec)?;
    }
    let category = if kind == DerivedKind::Claim { "claim" } else { "composite" };
    let mut all_names = names.map()?.cloned().unwrap_or_default();
    let mut categories: Vec<Value> = names.get("categories")?.items()?.iter().map(|it| it.value.clone()).collect();
    categories.push(category.into());
    all_names.insert("categories".to_owned(), categories.into());

    let mut origins = Origins::default();
    origins.add(path(&["spec", "names"]), names.path.clone());
    let version_fields = spec.get("versions")?.items()?;
    if version_fields.is_empty() {
        return Err(spec.get("versions")?.expected("at least one version"));
    }
    let mut versions = Vec::new();
    for (index, version) in version_fields.iter().enumerate() {
        let mut storage = path(&["spec", "versions"]);
        storage.extend([index.into(), "storage".into()]);
        origins.add(storage, version.get("referenceable")?.path);
        versions.push(derive_version(spec, version, kind)?);
    }
    let is_namespaced = matches!(kind, DerivedKind::Claim | DerivedKind::Composite(Scope::Namespaced));
    let mut crd_spec = Map::new();
    crd_spec.insert("group".to_owned(), group.into());
    crd_spec.insert("names".to_owned(), all_names.into());
    crd_spec.insert("scope".to_owned(), if is_namespaced { "Namespaced" } else { "Cluster" }.into());
    crd_spec.insert("versions".to_owned(), versions.into());
    insert_present(&mut crd_spec, "conversion", &spec.get("conversion")?);
    Ok(DerivedCrd { crd: crd(&format!("{plural}.{group}"), crd_spec), origins })
}

/// The names of a claim must differ from those of the composite resource.
fn check_claim_names(spec: &Field<'_>) -> Result<(), SourceError> {
    for key in ["kind", "plural", "singular", "listKind"] {
        let (own, claim) = (spec.at(&["names", key])?, spec.at(&["claimNames", key])?);
        let name = claim.text_or("")?;
        if !name.is_empty() && name == own.text_or("")? {
            return Err(claim.error("must differ from the name of the composite resource"));
        }
    }
    Ok(())
}

fn derive_version(spec: &Field<'_>, version: &Field<'_>, kind: DerivedKind) -> Result<Value, SourceError> {
    let mut derived = Map::new();
    derived.insert("name".to_owned(), version.get("name")?.text()?.into());
    derived.insert("served".to_owned(), version.get("served")?.flag_or(false)?.into());
    derived.insert("storage".to_owned(), version.get("referenceable")?.flag_or(false)?.into());
    if version.get("deprecated")?.flag_or(false)? {
        derived.insert("deprecated".to_owned(), true.into());
    }
    insert_present(&mut derived, "deprecationWarning", &version.get("deprecationWarning")?);
    let mut subresources = json!({"status": {}});
    if let Some(scale) = version.at(&["subresources", "scale"])?.present() {
        subresources["scale"] = scale.clone();
    }
    derived.insert("subresources".to_owned(), subresources);
    let mut columns: Vec<Value> =
        version.get("additionalPrinterColumns")?.items()?.iter().map(|column| column.value.clone()).collect();
    columns.extend(printer_columns(kind));
    derived.insert("additionalPrinterColumns".to_owned(), columns.into());
    let schema = version.at(&["schema", "openAPIV3Schema"])?;
    if schema.map()?.is_none() {
        return Err(schema.expected("the schema of the composite resource"));
    }
    derived.insert("schema".to_owned(), json!({"openAPIV3Schema": derive_schema(spec, &schema, kind)?}));
    Ok(Value::Object(derived))
}

fn derive_schema(spec: &Field<'_>, schema: &Field<'_>, kind: DerivedKind) -> Result<Value, SourceError> {
    let properties = schema.get("properties")?;
    let longest = properties.at(&["metadata", "properties", "name", "maxLength"])?;
    let longest = longest.value.as_u64().map_or(LONGEST_NAME, |own| own.min(LONGEST_NAME));
    let mut of_spec = taken_over(&properties.get("spec")?, &["x-kubernetes-preserve-unknown-fields"])?;
    let own = match kind {
        DerivedKind::Composite(scope) => composite_spec(scope, &spec.get("defaultCompositionUpdatePolicy")?),
        DerivedKind::Claim => claim_spec(&spec.get("defaultCompositeDeletePolicy")?),
    };
    add_properties(&mut of_spec, own);
    let mut of_status = taken_over(&properties.get("status")?, &[])?;
    add_properties(&mut of_status, status(kind));
    let mut derived = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": longest}}},
            "spec": of_spec,
            "status": of_status,
        },
    });
    if let Some(derived) = derived.as_object_mut() {
        insert_present(derived, "description", &schema.get("description")?);
        insert_present(derived, "x-kubernetes-validations", &schema.get("x-kubernetes-validations")?);
    }
    Ok(derived)
}

/// The keywords of `spec` or `status` that Crossplane takes over; it drops all others.
fn taken_over(field: &Field<'_>, further: &[&str]) -> Result<Map<String, Value>, SourceError> {
    let mut taken = Map::new();
    taken.insert("type".to_owned(), "object".into());
    for key in ["description", "required", "oneOf", "x-kubernetes-validations"].iter().chain(further) {
        insert_present(&mut taken, key, &field.get(key)?);
    }
    let properties = field.get("properties")?.map()?.cloned().unwrap_or_default();
    taken.insert("properties".to_owned(), properties.into());
    Ok(taken)
}

fn add_properties(schema: &mut Map<String, Value>, properties: Value) {
    let Value::Object(properties) = properties else { return };
    if let Some(own) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        own.extend(properties);
    }
}

fn reference(required: &[&str], properties: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

/// The fields that composite resources and claims have in common.
fn composition_fields() -> Value {
    let selector = json!({"type": "object", "required": ["matchLabels"], "properties": {
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    json!({
        "compositionRef": reference(&["name"], &["name"]),
        "compositionSelector": selector,
        "compositionRevisionRef": reference(&["name"], &["name"]),
        "compositionRevisionSelector": selector,
        "compositionUpdatePolicy": {"type": "string", "enum": ["Automatic", "Manual"]},
    })
}

fn composite_spec(scope: Scope, default_policy: &Field<'_>) -> Value {
    let mut fields = composition_fields();
    if let Some(policy) = default_policy.present() {
        fields["compositionUpdatePolicy"]["default"] = policy.clone();
    }
    let of_resource: &[&str] = match scope {
        Scope::Namespaced => &["apiVersion", "name", "kind"],
        Scope::Cluster | Scope::LegacyCluster => &["apiVersion", "name", "namespace", "kind"],
    };
    fields["resourceRefs"] = json!({
        "type": "array", "x-kubernetes-list-type": "atomic", "items": reference(&["apiVersion", "kind"], of_resource),
    });
    if scope != Scope::LegacyCluster {
        return json!({"crossplane": {
            "type": "object",
            "description": "Configures how Crossplane will reconcile this composite resource",
            "properties": fields,
        }});
    }
    let of_claim = ["apiVersion", "kind", "namespace", "name"];
    fields["claimRef"] = reference(&of_claim, &of_claim);
    fields["writeConnectionSecretToRef"] = reference(&["name", "namespace"], &["name", "namespace"]);
    fields
}

fn claim_spec(default_policy: &Field<'_>) -> Value {
    let mut fields = composition_fields();
    fields["compositeDeletePolicy"] = json!({"type": "string", "enum": ["Background", "Foreground"]});
    if let Some(policy) = default_policy.present() {
        fields["compositeDeletePolicy"]["default"] = policy.clone();
    }
    let of_composite = ["apiVersion", "kind", "name"];
    fields["resourceRef"] = reference(&of_composite, &of_composite);
    fields["writeConnectionSecretToRef"] = reference(&["name"], &["name"]);
    fields
}

fn status(kind: DerivedKind) -> Value {
    let mut fields = json!({"conditions": {
        "description": "Conditions of the resource.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "message": {"type": "string"},
                "reason": {"type": "string"},
                "status": {"type": "string"},
                "type": {"type": "string"},
                "observedGeneration": {"type": "integer", "format": "int64"},
            },
        },
    }});
    if matches!(kind, DerivedKind::Claim | DerivedKind::Composite(Scope::LegacyCluster)) {
        fields["connectionDetails"] = json!({"type": "object", "properties": {
            "lastPublishedTime": {"type": "string", "format": "date-time"},
        }});
        fields["claimConditionTypes"] =
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    }
    fields
}

fn printer_columns(kind: DerivedKind) -> Vec<Value> {
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let mut columns = vec![
        column("SYNCED", ".status.conditions[?(@.type=='Synced')].status"),
        column("READY", ".status.conditions[?(@.type=='Ready')].status"),
    ];
    match kind {
        DerivedKind::Claim => columns.push(column("CONNECTION-SECRET", ".spec.writeConnectionSecretToRef.name")),
        DerivedKind::Composite(scope) => {
            let place = if scope == Scope::LegacyCluster { ".spec" } else { ".spec.crossplane" };
            columns.push(column("COMPOSITION", &format!("{place}.compositionRef.name")));
            let mut revision = column("COMPOSITIONREVISION", &format!("{place}.compositionRevisionRef.name"));
            revision["priority"] = 1.into();
            columns.push(revision);
        }
    }
    columns.push(json!({"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    columns
}
