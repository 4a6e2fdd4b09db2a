//! What the integration tests stand on: the list of tests and what each needs, and real clusters
//! that live as long as the test run.

pub(crate) mod api;
pub(crate) mod apply;
pub(crate) mod binaries;
pub(crate) mod bookkeeping;
pub(crate) mod browser;
pub(crate) mod case;
pub(crate) mod certificates;
pub(crate) mod cluster;
pub(crate) mod conversion_server;
pub(crate) mod dice;
pub(crate) mod etcd;
pub(crate) mod gate;
pub(crate) mod go_toolchain;
pub(crate) mod http;
pub(crate) mod https;
pub(crate) mod https_client;
pub(crate) mod kapp;
pub(crate) mod markers;
pub(crate) mod poll;
pub(crate) mod proxy;
pub(crate) mod pushback;
pub(crate) mod registry;
pub(crate) mod retry;
pub(crate) mod running;
pub(crate) mod snapshot;
pub(crate) mod supervisor;
pub(crate) mod terminal;
pub(crate) mod webhook;

pub(crate) use case::{Needs, TestCase, cases, rounds};
pub(crate) use cluster::{Options, TestCluster};
pub(crate) use poll::{poll, wait_until};
pub(crate) use pushback::{Pushback, Ran};
pub(crate) use running::Running;
