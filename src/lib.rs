//! `pushback` applies Kubernetes manifests as one app, and refuses an unsafe change before anything is written.
//! The modules, in the order in which data flows through them:

pub mod run;

pub mod cli;

#[cfg(feature = "kapp")]
mod kapp;
