//! Writes of users who may create and update, but not patch: what a patch would make of the object is worked out here, and
//! sent as a whole under its resourceVersion.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::{Address, ClusterError, ErrorKind};

/// The resources, by namespace, that the user may write but not patch.
#[derive(Debug, Default)]
pub(super) struct PlainWrites(Mutex<BTreeSet<String>>);

impl PlainWrites {
    /// Whether a patch of the object was forbidden before, and a plain write was not.
    pub(super) fn serve(&self, address: &Address) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&place(address))
    }

    /// Remembers that plain writes work; returns a sentence the first time.
    pub(super) fn remember(&self, address: &Address) -> Option<String> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place(address));
        is_new.then(|| {
            format!(
                "this user may not patch {}: objects are read, merged here and written whole, and who owns which field is \
                 recorded less exactly",
                place(address)
            )
        })
    }
}

/// `deployments.apps in shop`.
fn place(address: &Address) -> String {
    let kind = &address.kind;
    let subresource = if address.subresource.is_empty() { "" } else { "/" };
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let namespace =
        if address.namespace.is_empty() { String::new() } else { format!(" in namespace {}", address.namespace) };
    format!("{}{subresource}{}{group}{namespace}", kind.plural, address.subresource)
}

/// Whether a plain write may be allowed where this was not: the user lacks the verb, and nothing else is wrong.
pub(super) fn may_serve(error: &ClusterError) -> bool {
    error.kind == ErrorKind::Forbidden && error.message.contains("cannot patch resource")
}

/// Takes a precondition out of a body.
pub(super) fn take_metadata(body: &mut Value, key: &str) -> String {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    let value = metadata.and_then(|metadata| metadata.shift_remove(key));
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_right_to_patch_is_replaced() {
        let error = |kind, message: &str| ClusterError::new(kind, message);
        let forbidden =
            "configmaps \"a\" is forbidden: User \"u\" cannot patch resource \"configmaps\" in API group \"\"";
        assert!(may_serve(&error(ErrorKind::Forbidden, forbidden)));
        assert!(!may_serve(&error(ErrorKind::Forbidden, "User \"u\" cannot create resource \"configmaps\"")));
        assert!(!may_serve(&error(ErrorKind::Denied, forbidden)));
    }
}
