//! A kubeconfig from anywhere: understood or refused, and no word of it quoted but names. No plugin is run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_cluster::kube::fuzzing::read_kubeconfig;

fuzz_target!(|text: &str| {
    if let Err(error) = read_kubeconfig(text) {
        assert!(!error.message.is_empty());
    }
});
