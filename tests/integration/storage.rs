//! Storage versions on a real API server: what is shown, what is moved, and what is really in etcd afterwards.

mod carried;
mod crd;
mod migrate;
mod owners;
mod strimzi;
mod troubles;

use crate::support::TestCase;

pub(crate) fn tests() -> Vec<TestCase> {
    [carried::tests(), migrate::tests(), owners::tests(), strimzi::tests(), troubles::tests()].concat()
}
