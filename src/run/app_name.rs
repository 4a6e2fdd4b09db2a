//! What names an app on the command line.

use pushback_app::identity::BY_LABEL;
use pushback_crd::names::{is_dns_label, is_label_value, is_qualified_name};

/// Checks an app name, which is also the name of its record, a ConfigMap.
pub(crate) fn app_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let edges = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if text.len() <= 240 && text.chars().all(plain) && edges(text.chars().next()) && edges(text.chars().last()) {
        Ok(text.to_owned())
    } else {
        Err("expected lower-case letters, digits, - and ., at most 240, with a letter or digit at both ends".to_owned())
    }
}

/// Checks the name of a namespace: it becomes part of paths.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    // Empty stands for none, as where a variable of a script is unset.
    if text.is_empty() || is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("expected lower-case letters, digits and -, at most 63, with a letter or digit at both ends".to_owned())
}

/// The same, or the label that defines an app.
pub(crate) fn app_or_label(text: &str) -> Result<String, String> {
    match text.strip_prefix(BY_LABEL).map(|label| label.split_once('=')) {
        Some(Some((key, value))) if is_qualified_name(key) && !value.is_empty() && is_label_value(value) => {
            Ok(text.to_owned())
        }
        Some(_) => Err("expected label:KEY=VALUE, a single label with its value".to_owned()),
        None => app_name(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_namespace_is_a_dns_label() {
        assert!(namespace("shop-1").is_ok() && namespace("").is_ok());
        for wrong in ["../x", "a/b", "a.b", "Shop", "-shop", &"a".repeat(64)] {
            assert!(namespace(wrong).is_err(), "{wrong} is not the name of a namespace");
        }
    }

    #[test]
    fn an_app_name_must_be_the_name_of_a_config_map() {
        assert!(app_name("shop.apps").is_ok());
        for wrong in ["", "Shop", "-shop", "a b", "label:x=y"] {
            assert!(app_name(wrong).is_err(), "{wrong} is no app name");
        }
        assert!(app_or_label("label:example.com/x=y").is_ok() && app_or_label("shop").is_ok());
        for wrong in ["label:", "label:x", "label:x=", "label:x=y,z=a", "label:x!=y", "label:x in (y)"] {
            assert!(app_or_label(wrong).is_err(), "{wrong} is no single label");
        }
    }
}
