//! Gatekeeper: a ConstraintTemplate defines a kind of constraints.
//!
//! Source: open-policy-agent/frameworks `constraint/pkg/client/crds` and `constraint/pkg/schema/transform.go`; the schema
//! of `spec.match` is that of Gatekeeper, `config/crd/bases/match.gatekeeper.sh_matchcrd.yaml`.

use serde_json::{Map, Value, json};

use super::fields::Field;
use super::layout::{Origins, path};
use super::{DEEPEST, DerivedCrd, SourceError, crd, insert_present};

const GROUP: &str = "constraints.gatekeeper.sh";

pub(super) fn derive(source: &Value) -> Result<Vec<DerivedCrd>, SourceError> {
    let root = Field::root(source);
    let spec = root.at(&["spec", "crd", "spec"])?;
    let names = spec.get("names")?;
    let kind = names.get("kind")?.text()?;
    let plural = kind.to_lowercase();
    let name = root.at(&["metadata", "name"])?;
    if name.text()? != plural {
        return Err(name.error(format!("must be the kind in lower case, {plural}")));
    }
    let is_v1 = root.get("apiVersion")?.text_or("")?.ends_with("/v1");
    let validation = spec.get("validation")?;
    let is_legacy = validation.get("legacySchema")?.flag_or(!is_v1)?;
    let parameters = validation.get("openAPIV3Schema")?;
    let mut of_parameters = parameters.map()?.cloned().map(Value::Object);
    if is_legacy {
        let schema = of_parameters.get_or_insert_with(|| json!({}));
        keep_unknown_fields(schema, 0).map_err(|message| parameters.error(message))?;
    }

    let mut all_names = json!({
        "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": plural,
        "categories": ["constraint", "constraints"],
    });
    if let Some(all_names) = all_names.as_object_mut() {
        insert_present(all_names, "shortNames", &names.get("shortNames")?);
    }
    let schema = derive_schema(of_parameters);
    let mut origins = Origins::default();
    origins.add(Vec::new(), spec.path.clone());
    origins.add(path(&["spec"]), spec.path.clone());
    let mut versions = Vec::new();
    for (index, (version, is_stored)) in [("v1beta1", true), ("v1alpha1", false)].into_iter().enumerate() {
        versions.push(derive_version(version, is_stored, &schema));
        let mut part = path(&["spec", "versions"]);
        part.push(index.into());
        part.extend(path(&["schema", "openAPIV3Schema", "properties", "spec", "properties", "parameters"]));
        origins.add(part, parameters.path.clone());
    }
    let mut crd_spec = Map::new();
    crd_spec.insert("group".to_owned(), GROUP.into());
    crd_spec.insert("names".to_owned(), all_names);
    crd_spec.insert("scope".to_owned(), "Cluster".into());
    crd_spec.insert("versions".to_owned(), versions.into());
    Ok(vec![DerivedCrd { crd: crd(&format!("{plural}.{GROUP}"), crd_spec), origins }])
}

fn derive_version(name: &str, is_stored: bool, schema: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": is_stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "enforcement-action", "description": "Type of enforcement action", "type": "string",
             "jsonPath": ".spec.enforcementAction"},
            {"name": "total-violations", "description": "Total number of violations", "type": "integer",
             "jsonPath": ".status.totalViolations"},
        ],
    })
}

fn derive_schema(parameters: Option<Value>) -> Value {
    let text = || json!({"type": "string"});
    let mut of_spec = json!({
        "match": match_schema(),
        "enforcementAction": {"type": "string", "default": "deny"},
        "scopedEnforcementActions": {"type": "array", "items": {"type": "object", "properties": {
            "action": text(),
            "enforcementPoints": {"type": "array", "items": {"type": "object", "properties": {"name": text()}}},
        }}},
    });
    if let Some(parameters) = parameters {
        of_spec["parameters"] = parameters;
    }
    json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
            "spec": {"type": "object", "properties": of_spec},
            "status": {"x-kubernetes-preserve-unknown-fields": true},
        },
    })
}

/// The schema of `spec.match`.
fn match_schema() -> Value {
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let atomic = || json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"});
    let pattern = || json!({"type": "string", "pattern": r"^\*?[-:a-z0-9]*\*?$"});
    let patterns = || json!({"type": "array", "items": pattern()});
    let selector = || {
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "matchExpressions": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {
                "type": "object", "required": ["key", "operator"],
                "properties": {"key": {"type": "string"}, "operator": {"type": "string"}, "values": atomic()},
            }},
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        }})
    };
    json!({"type": "object", "properties": {
        "excludedNamespaces": patterns(),
        "kinds": {"type": "array", "items": {"type": "object", "properties": {"apiGroups": texts(), "kinds": texts()}}},
        "labelSelector": selector(),
        "name": pattern(),
        "namespaceSelector": selector(),
        "namespaces": patterns(),
        "scope": {"type": "string"},
        "source": {"type": "string", "enum": ["All", "Generated", "Original"]},
    }})
}

/// Opens a schema without a type for the unknown fields of its objects, as `legacySchema` does.
fn keep_unknown_fields(schema: &mut Value, depth: usize) -> Result<(), &'static str> {
    if depth > DEEPEST {
        return Err("the schema is nested too deeply");
    }
    let Some(map) = schema.as_object_mut() else { return Ok(()) };
    match map.get("type").and_then(Value::as_str).unwrap_or_default() {
        "" | "object" => {
            map.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        }
        "array" if !map.get("items").is_some_and(Value::is_object) => {
            map.insert("items".to_owned(), json!({}));
        }
        _ => {}
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().try_for_each(|schema| keep_unknown_fields(schema, depth + 1))?;
    }
    for key in ["items", "additionalProperties"] {
        map.get_mut(key).map_or(Ok(()), |schema| keep_unknown_fields(schema, depth + 1))?;
    }
    Ok(())
}
