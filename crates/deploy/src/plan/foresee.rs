//! What is known of a plan before it is whole: others can begin to ask the cluster about it.

use std::fmt::Debug;

/// Told of writes as soon as they are probable.
pub trait Foresee: Debug + Sync {
    /// An object in this namespace will probably be written, or one outside of namespaces if it is empty. Called for each
    /// object.
    fn write_in(&self, namespace: &str);
}

/// Nobody.
impl Foresee for () {
    fn write_in(&self, _namespace: &str) {}
}
