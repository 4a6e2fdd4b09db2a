//! kro: a ResourceGraphDefinition defines the kind of its instances, in SimpleSchema.
//!
//! Source: kubernetes-sigs/kro `pkg/graph/crd`, and `pkg/simpleschema` for the schema of `spec`. kro infers the types of
//! status fields from the CEL expressions that compute them; here such a field has any type.

use serde_json::{Map, Value, json};

use super::fields::Field;
use super::layout::{Origins, path};
use super::{DEEPEST, DerivedCrd, SourceError, crd, insert_present, simple_schema};

pub(super) fn derive(source: &Value) -> Result<Vec<DerivedCrd>, SourceError> {
    let schema = Field::root(source).at(&["spec", "schema"])?;
    let kind = schema.get("kind")?.text()?;
    let version = schema.get("apiVersion")?;
    let group = schema.get("group")?;
    let group_name = match group.text_or("")? {
        "" => "kro.run",
        group => group,
    };
    let scope = schema.get("scope")?;
    let scope = match scope.text_or("Namespaced")? {
        scope @ ("Namespaced" | "Cluster") => scope,
        _ => return Err(scope.error("expected Namespaced or Cluster")),
    };
    let singular = kind.to_lowercase();
    let plural = pluralized(&singular);

    let mut of_version = path(&["spec", "versions"]);
    of_version.push(0.into());
    let below = |keys: &[&str]| [of_version.clone(), path(keys)].concat();
    let mut origins = Origins::default();
    origins.add(Vec::new(), schema.path.clone());
    origins.add(path(&["spec"]), schema.path.clone());
    origins.add(path(&["spec", "names"]), schema.get("kind")?.path);
    for key in ["shortNames", "categories"] {
        origins.add(path(&["spec", "names", key]), schema.get(key)?.path);
    }
    origins.add(of_version.clone(), schema.path.clone());
    origins.add(below(&["name"]), version.path.clone());
    let of_root = below(&["schema", "openAPIV3Schema"]);
    origins.add(of_root.clone(), schema.path.clone());
    let in_root = |key: &str| [of_root.clone(), path(&["properties", key])].concat();
    origins.add(in_root("spec"), schema.get("spec")?.path);
    let spec = simple_schema::expand(&schema.get("spec")?, &schema.get("types")?)?;
    for (part, origin) in spec.origins {
        origins.add([in_root("spec"), part].concat(), origin);
    }
    origins.add(in_root("status"), schema.get("status")?.path);
    let status = derive_status(&schema.get("status")?, &in_root("status"), &mut origins)?;

    let mut names = json!({"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular});
    if let Some(names) = names.as_object_mut() {
        insert_present(names, "shortNames", &schema.get("shortNames")?);
        insert_present(names, "categories", &schema.get("categories")?);
    }
    let mut columns: Vec<Value> =
        schema.get("additionalPrinterColumns")?.items()?.iter().map(|column| column.value.clone()).collect();
    if columns.is_empty() {
        columns = default_columns();
    }
    let mut crd_spec = Map::new();
    crd_spec.insert("group".to_owned(), group_name.into());
    crd_spec.insert("names".to_owned(), names);
    crd_spec.insert("scope".to_owned(), scope.into());
    crd_spec.insert(
        "versions".to_owned(),
        json!([{
            "name": version.text()?, "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": spec.schema,
                "status": status,
            }}},
            "subresources": {"status": {}},
            "additionalPrinterColumns": columns,
        }]),
    );
    Ok(vec![DerivedCrd { crd: crd(&format!("{plural}.{group_name}"), crd_spec), origins }])
}

/// The schema of `status`: the fields of the source object, and those that kro adds.
fn derive_status(status: &Field<'_>, part: &[super::PathSegment], origins: &mut Origins) -> Result<Value, SourceError> {
    let mut schema = status_field(status, part, origins, 0)?;
    // Conditions of the author are merged into those of kro.
    if !schema["properties"].is_object() {
        schema = json!({"type": "object", "properties": {}});
    }
    if schema["properties"].get("state").is_none() {
        schema["properties"]["state"] = json!({"type": "string"});
    }
    let text = || json!({"type": "string"});
    schema["properties"]["conditions"] = json!({"type": "array", "items": {"type": "object", "properties": {
        "type": text(), "status": text(), "reason": text(), "message": text(), "lastTransitionTime": text(),
        "observedGeneration": {"type": "integer"},
    }}});
    Ok(schema)
}

fn status_field(
    field: &Field<'_>,
    part: &[super::PathSegment],
    origins: &mut Origins,
    depth: usize,
) -> Result<Value, SourceError> {
    if depth > DEEPEST {
        return Err(field.error("the fields are nested too deeply"));
    }
    if !field.value.is_object() {
        return match field.value {
            Value::Null if depth > 0 => Err(field.expected("a CEL expression")),
            Value::String(_) | Value::Array(_) if depth > 0 => {
                Ok(json!({"x-kubernetes-preserve-unknown-fields": true}))
            }
            Value::Null => Ok(json!({"type": "object", "properties": {}})),
            _ => Err(field.expected(if depth > 0 { "a CEL expression" } else { "a map" })),
        };
    }
    let mut properties = Map::new();
    for (name, field) in field.entries()? {
        let part = [part, &path(&["properties", name])].concat();
        origins.add(part.clone(), field.path.clone());
        properties.insert(name.to_owned(), status_field(&field, &part, origins, depth + 1)?);
    }
    Ok(json!({"type": "object", "properties": properties}))
}

fn default_columns() -> Vec<Value> {
    let text = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    vec![
        text("State", ".status.state"),
        text("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
    ]
}

/// Endings with their plural, as far as the kinds of Kubernetes have them; the first that fits decides. A word that has
/// the plural already stays as it is.
///
/// Source: gobuffalo/flect `plural_rules.go`, which kro calls.
const PLURALS: &[(&str, &str)] = &[
    ("fish", "fish"),
    ("crisis", "crises"),
    ("thesis", "theses"),
    ("tomato", "tomatoes"),
    ("stadium", "stadiums"),
    ("child", "children"),
    ("human", "humans"),
    ("man", "men"),
    ("person", "people"),
    ("mouse", "mice"),
    ("criterion", "criteria"),
    ("medium", "media"),
    ("index", "indices"),
    ("vertex", "vertices"),
    ("focus", "foci"),
    ("radius", "radii"),
    ("base", "bases"),
    ("basis", "bases"),
    ("use", "uses"),
    ("cause", "causes"),
    ("equipment", "equipment"),
    ("information", "information"),
    ("news", "news"),
    ("series", "series"),
    ("species", "species"),
    ("move", "moves"),
    ("hive", "hives"),
    ("cookie", "cookies"),
    ("tive", "tives"),
    ("eaf", "eaves"),
    ("arf", "arves"),
    ("lf", "lves"),
    ("fe", "ves"),
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    ("ium", "ia"),
    ("seum", "seums"),
    ("imum", "ima"),
    ("trum", "tra"),
    ("atum", "ata"),
    ("trix", "trices"),
    ("opsis", "opses"),
    ("ysis", "yses"),
    ("ouse", "ouses"),
    ("us", "uses"),
    ("ch", "ches"),
    ("io", "ios"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ez", "ezzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    ("ano", "anos"),
    ("lo", "los"),
    ("to", "tos"),
    ("oo", "oos"),
    ("o", "oes"),
    ("x", "xes"),
    ("s", "s"),
];

/// Whole words with their plural. A longer word that ends like one of them follows the endings.
const WHOLE_WORDS: &[(&str, &str)] = &[("alias", "aliases"), ("axis", "axes"), ("ox", "oxen")];

/// The plural of a kind in lower case.
fn pluralized(word: &str) -> String {
    if let Some((_, plural)) = WHOLE_WORDS.iter().find(|(singular, _)| *singular == word) {
        return (*plural).to_owned();
    }
    for (singular, plural) in PLURALS {
        if word.ends_with(plural) {
            return word.to_owned();
        }
        if let Some(stem) = word.strip_suffix(singular) {
            return format!("{stem}{plural}");
        }
    }
    format!("{word}s")
}

#[cfg(test)]
mod tests {
    use super::pluralized;

    #[test]
    fn kind_in_the_plural_follows_the_rules_of_kro() {
        for (kind, plural) in [
            ("application", "applications"),
            ("policy", "policies"),
            ("gateway", "gateways"),
            ("ingress", "ingresses"),
            ("box", "boxes"),
            ("analysis", "analyses"),
            ("batch", "batches"),
            ("webapps", "webapps"),
            ("database", "databases"),
            ("dns", "dns"),
            ("alias", "aliases"),
            ("useralias", "useralias"),
            ("y", "ies"),
            ("", "s"),
        ] {
            assert_eq!(pluralized(kind), plural);
        }
    }
}
