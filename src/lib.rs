//! `pushback` applies Kubernetes manifests as one app, and pushes back before anything is written
//! when the change is not safe. The rooms, in the order of the data's way:

pub mod event;

pub mod stop;

pub mod manifest;

pub mod config;

pub mod app;

pub mod cluster;

pub mod plan;

pub mod check;

pub mod apply;

pub mod upgrade;

pub mod report;

pub mod run;

pub mod cli;

pub mod exit;

pub mod environment;

mod atomic_file;

mod path_safety;

mod redact;

mod text;
