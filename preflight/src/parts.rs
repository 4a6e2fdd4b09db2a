//! What other objects can name in an object: the keys of a ConfigMap or Secret, the ports of a Service. Names only, never
//! a value.

use pushback_objects::object::ObjectExt;
use serde_json::Value;

/// The number or name of a port.
#[must_use]
pub fn port(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(name) if !name.is_empty() => Some(name.clone()),
        _ => None,
    }
}

/// What can be named in an object: the keys of a ConfigMap or Secret, the ports of a Service. `None` if all could be:
/// it has no parts, or something else fills them in.
#[must_use]
pub fn parts(object: &Value) -> Option<Vec<String>> {
    let keys = |fields: &[&str]| -> Vec<String> {
        let maps = fields.iter().filter_map(|field| object.get(field)?.as_object());
        maps.flat_map(|map| map.keys().cloned()).collect()
    };
    let parts = match object.text("/kind") {
        "ConfigMap" => keys(&["data", "binaryData"]),
        // A controller adds the token.
        "Secret" if object.text("/type") == "kubernetes.io/service-account-token" => return None,
        "Secret" => keys(&["data", "stringData"]),
        "Service" if object.text("/spec/type") == "ExternalName" => return None,
        "Service" => {
            let ports = object.pointer("/spec/ports").and_then(Value::as_array);
            let names = |value: &Value| [value.get("port").and_then(port), value.get("name").and_then(port)];
            ports.into_iter().flatten().flat_map(names).flatten().collect()
        }
        _ => return None,
    };
    // An empty one is there to be filled in at run time.
    Some(parts).filter(|parts| !parts.is_empty())
}
