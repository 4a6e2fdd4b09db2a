//! Names in experiments: Kubernetes' rules, or those of the original's runner if they are more permissive.

use pushback_crd::names::LONGEST_NAME;

/// Names of bindings and webhook configurations: the Operator Lifecycle Manager creates some with upper-case letters.
pub(super) fn is_resource_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_NAME
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte))
}

/// A field name that CRDMutation accepts.
pub(super) fn is_field_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= LONGEST_NAME
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
