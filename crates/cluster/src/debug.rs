//! Debug output of types that carry objects: shows their identities, never their content, which may be secret.

use std::fmt;

use pushback_objects::ObjectRef;
use serde_json::Value;

use super::{Deleted, Page, Patch, WatchEvent, Written};

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("items", &self.items.iter().map(|item| ObjectRef::of(item)).collect::<Vec<_>>())
            .field("continue_token", &self.continue_token)
            .field("resource_version", &self.resource_version)
            .finish()
    }
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(Value::Array(operations)) => write!(f, "Json({} operations)", operations.len()),
            Self::Json(_) => f.write_str("Json"),
            Self::Merge(_) => f.write_str("Merge"),
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("object", &ObjectRef::of(&self.object))
            .field("created", &self.created)
            .field("warnings", &self.warnings)
            .finish()
    }
}

impl fmt::Debug for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deleted")
            .field("object", &ObjectRef::of(&self.object))
            .field("warnings", &self.warnings)
            .finish()
    }
}

impl fmt::Debug for WatchEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(object) => f.debug_tuple("Applied").field(&ObjectRef::of(object)).finish(),
            Self::Deleted(object) => f.debug_tuple("Deleted").field(&ObjectRef::of(object)).finish(),
            Self::Bookmark(version) => f.debug_tuple("Bookmark").field(version).finish(),
        }
    }
}
