//! Field selectors, as `--field-selector` writes them: `metadata.name` and `metadata.namespace`.

use pushback_objects::object::ObjectExt;
use serde_json::Value;

use crate::{ClusterError, ErrorKind};

/// Parses a field selector into a predicate; the empty text selects everything.
pub(super) fn field_selector(text: &str) -> Result<impl Fn(&Value) -> bool + use<>, ClusterError> {
    let mut tests: Vec<(&'static str, bool, String)> = Vec::new();
    for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
        let (field, equal, value) = if let Some((field, value)) = term.split_once("!=") {
            (field, false, value)
        } else if let Some((field, value)) = term.split_once('=') {
            (field, true, value.strip_prefix('=').unwrap_or(value))
        } else {
            (term, true, "")
        };
        let pointer = match field.trim() {
            "metadata.name" => "/metadata/name",
            "metadata.namespace" => "/metadata/namespace",
            other => {
                let message = format!("field selector {other:?} is not supported in a folder; metadata.name is");
                return Err(ClusterError::new(ErrorKind::Invalid, message));
            }
        };
        tests.push((pointer, equal, value.trim().to_owned()));
    }
    Ok(move |object: &Value| {
        tests.iter().all(|(pointer, equal, value)| (object.text(pointer) == value.as_str()) == *equal)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_select_by_name_and_namespace() {
        let object = json!({"metadata": {"name": "web", "namespace": "shop"}});
        for (text, expected) in [
            ("metadata.name=web", true),
            ("metadata.name!=web", false),
            ("", true),
            ("metadata.name==web,metadata.namespace=shop", true),
            ("metadata.name=web,metadata.namespace=x", false),
        ] {
            assert_eq!(field_selector(text).unwrap()(&object), expected, "{text}");
        }
    }

    #[test]
    fn a_field_that_a_folder_does_not_know_is_refused() {
        assert!(field_selector("spec.nodeName=a").is_err());
    }
}
