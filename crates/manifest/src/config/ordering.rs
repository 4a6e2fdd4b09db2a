//! The language of change groups and change rules: placeholders, group names, and
//! `upsert after upserting GROUP`. Annotations and Config bindings share it.

use pushback_objects::ObjectRef;
use pushback_objects::object::ObjectExt;
use serde_json::Value;

/// The placeholders, as error messages list them.
pub const PLACEHOLDERS: [&str; 6] = ["{api-group}", "{kind}", "{name}", "{namespace}", "{crd-kind}", "{crd-group}"];

/// `upsert after upserting GROUP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRule {
    /// The operation of the change that has the rule.
    pub action: OrderAction,
    /// Whether that change precedes or follows those of the group.
    pub side: OrderSide,
    /// The operation of the group's changes.
    pub target: OrderAction,
    /// Name of the change group.
    pub group: String,
}

/// The operation on an object, as rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OrderAction {
    /// Create or update.
    Upsert,
    /// Delete.
    Delete,
}

/// Before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OrderSide {
    /// Before.
    Before,
    /// After.
    After,
}

/// Expands the placeholders of a group or rule for an object.
///
/// # Errors
/// An unknown placeholder, or one without a value for this object.
pub fn expand(name: &str, object: &Value) -> Result<String, String> {
    let mut expanded = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, placeholder, after)) = next_placeholder(rest) {
        expanded.push_str(before);
        let value = placeholder_value(placeholder, object).ok_or_else(|| unknown_placeholder(placeholder))?;
        if value.is_empty() {
            let why = match placeholder {
                "{crd-group}" if is_definition(object) => "; its spec.group is missing",
                "{crd-kind}" if is_definition(object) => "; its spec.names.kind is missing",
                "{crd-group}" | "{crd-kind}" => "; only a CustomResourceDefinition has one",
                _ => "",
            };
            return Err(format!("placeholder {placeholder} has no value for {}{why}", ObjectRef::of(object)));
        }
        expanded.push_str(value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Parses a rule, whether or not its placeholders are expanded.
///
/// # Errors
/// What was expected.
pub fn parse_rule(text: &str) -> Result<OrderRule, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let expected = "expected `upsert|delete before|after upserting|deleting GROUP`";
    let &[action, side, target, group] = words.as_slice() else {
        return Err(format!("{expected}, found {} instead of 4 words", words.len()));
    };
    let action = match action {
        "upsert" => OrderAction::Upsert,
        "delete" => OrderAction::Delete,
        other => return Err(format!("{expected}, found {other:?} as the first word")),
    };
    let side = match side {
        "before" => OrderSide::Before,
        "after" => OrderSide::After,
        other => return Err(format!("{expected}, found {other:?} as the second word")),
    };
    let target = match target {
        "upserting" => OrderAction::Upsert,
        "deleting" => OrderAction::Delete,
        other => return Err(format!("{expected}, found {other:?} as the third word")),
    };
    check_group(group)?;
    Ok(OrderRule { action, side, target, group: group.to_owned() })
}

/// Checks a group name, such as `apps.big.co/etcd`: parts of letters, digits, `-`, `_` and `.`, separated by `/`.
/// Placeholders must be known.
///
/// # Errors
/// What is wrong with the name.
pub fn check_group(name: &str) -> Result<(), String> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, placeholder, after)) = next_placeholder(rest) {
        if !PLACEHOLDERS.contains(&placeholder) {
            return Err(unknown_placeholder(placeholder));
        }
        plain.push_str(before);
        plain.push('x');
        rest = after;
    }
    plain.push_str(rest);
    let well_formed = plain.split('/').map(str::as_bytes).all(|part| {
        part.first().is_some_and(u8::is_ascii_alphanumeric)
            && part.last().is_some_and(u8::is_ascii_alphanumeric)
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    });
    if well_formed {
        return Ok(());
    }
    Err(format!(
        "expected a group name such as apps.big.co/etcd (letters, digits, `-`, `_`, `.`, parts separated by `/`), found {name:?}"
    ))
}

/// The text before the next `{…}`, the placeholder, and the text after it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('{')?;
    let end = start + text[start..].find('}')? + 1;
    Some((&text[..start], &text[start..end], &text[end..]))
}

fn unknown_placeholder(placeholder: &str) -> String {
    format!("unknown placeholder {placeholder:?}; known are {}", PLACEHOLDERS.join(", "))
}

fn placeholder_value<'a>(placeholder: &str, object: &'a Value) -> Option<&'a str> {
    let api_version = object.text("/apiVersion");
    let group = pushback_objects::object::split_api_version(api_version).0;
    let of_crd = |pointer| if is_definition(object) { object.text(pointer) } else { "" };
    match placeholder {
        "{api-group}" => Some(group),
        "{kind}" => Some(object.text("/kind")),
        "{name}" => Some(object.name()),
        "{namespace}" => Some(object.namespace()),
        "{crd-kind}" => Some(of_crd("/spec/names/kind")),
        "{crd-group}" => Some(of_crd("/spec/group")),
        _ => None,
    }
}

fn is_definition(object: &Value) -> bool {
    object.text("/apiVersion").starts_with("apiextensions.k8s.io/")
        && object.text("/kind") == "CustomResourceDefinition"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_in_once() {
        let object =
            json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "{kind}", "namespace": "shop"}});
        assert_eq!(expand("a/{api-group}-{kind}", &object).as_deref(), Ok("a/ex.com-Foo"));
        assert_eq!(expand("{name}.{namespace}", &object).as_deref(), Ok("{kind}.shop"));
        assert_eq!(expand("plain {", &object).as_deref(), Ok("plain {"));
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"group": "ex.com", "names": {"kind": "Foo"}}});
        assert_eq!(expand("crds-{crd-group}-{crd-kind}", &crd).as_deref(), Ok("crds-ex.com-Foo"));
    }

    #[test]
    fn a_placeholder_that_is_unknown_or_empty_is_an_error() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let error = |name: &str| expand(name, &object).expect_err("it is refused");
        assert_eq!(
            error("{nam}"),
            "unknown placeholder \"{nam}\"; known are {api-group}, {kind}, {name}, {namespace}, {crd-kind}, {crd-group}"
        );
        assert_eq!(error("{namespace}"), "placeholder {namespace} has no value for ConfigMap a");
        assert_eq!(
            error("{crd-kind}"),
            "placeholder {crd-kind} has no value for ConfigMap a; only a CustomResourceDefinition has one"
        );
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.ex.com"}});
        assert_eq!(
            expand("{crd-group}", &crd).expect_err("it is refused"),
            "placeholder {crd-group} has no value for CustomResourceDefinition foos.ex.com; its spec.group is missing"
        );
    }

    #[test]
    fn rules_are_four_words() {
        let rule = parse_rule("delete before upserting apps.big.co/etcd").expect("it is valid");
        assert_eq!(
            rule,
            OrderRule {
                action: OrderAction::Delete,
                side: OrderSide::Before,
                target: OrderAction::Upsert,
                group: "apps.big.co/etcd".to_owned(),
            }
        );
        let expected = "expected `upsert|delete before|after upserting|deleting GROUP`";
        for (text, found) in [
            ("upsert after upserting", "3 instead of 4 words"),
            ("create after upserting a", "\"create\" as the first word"),
            ("upsert behind upserting a", "\"behind\" as the second word"),
            ("upsert after upsert a", "\"upsert\" as the third word"),
        ] {
            assert_eq!(parse_rule(text).expect_err("it is refused"), format!("{expected}, found {found}"));
        }
        assert!(
            parse_rule("upsert after upserting -a").expect_err("it is refused").starts_with("expected a group name")
        );
        assert!(
            parse_rule("upsert after upserting a-{unknown}")
                .expect_err("it is refused")
                .starts_with("unknown placeholder")
        );
    }

    #[test]
    fn group_names_are_checked() {
        for good in ["a", "apps.big.co/etcd", "a/b/c", "x-{name}", "{kind}"] {
            assert_eq!(check_group(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "a/", "a b", "a{", "{}", "ä", "a-"] {
            assert!(check_group(bad).is_err(), "{bad}");
        }
    }
}
