//! The integration tests, in one binary. A test module lists its tests in `tests()`, each with what it
//! needs; `support` brings a real control plane to those that need one.

mod aggregated;
mod agreement;
mod annotations;
mod app_groups;
mod app_history;
mod architecture;
mod artifacts;
mod bad_input;
mod bases;
mod budgets;
mod bystanders;
mod cascades;
mod command_line;
mod command_reference;
mod completion;
mod config;
mod connections;
mod conversion;
mod conversion_backends;
mod crd_pairs;
mod create_strategy;
mod custom_rules;
mod decided;
mod default_set;
mod derived_crds;
mod derived_models;
mod destructive_change;
mod diff_crds;
mod directory;
mod documents;
mod drift;
mod examples;
mod exists;
mod experiments;
mod facts_files;
mod failures;
mod field_conflicts;
mod filters;
mod gates;
mod harness;
mod helm_annotations;
mod hostile;
mod hostile_definitions;
mod hot_fixes;
mod images;
mod judge;
mod judged;
mod kapp;
mod kapp_behaviour;
mod kapp_surface;
mod kapp_tools;
mod kapp_voice;
mod kept_fields;
mod kill_points;
mod label_apps;
mod lenient;
mod links;
mod live_objects;
mod locking;
mod logs;
mod losses;
#[path = "../../benches/shared/measure.rs"]
#[expect(dead_code, reason = "the benchmarks ask for more than peak memory")]
mod measure;
mod ordering;
mod output;
mod ownership;
mod packaging;
mod pages;
mod plain_writes;
mod pod_admission;
mod policy;
mod preflight;
mod proxy;
mod prune;
mod published_upgrade_diff;
mod races;
mod readme;
mod references;
mod refusal_pages;
mod refusals;
mod remedies;
mod renames;
mod rendering;
mod replaced_parents;
mod reserved;
mod safety;
mod saved_plans;
mod schemas;
mod secrets;
mod security;
mod serve_admission;
mod serve_conversion;
mod sides;
mod simulate;
mod smoke;
mod soak;
mod storage;
mod support;
mod takeover;
mod terminal_pictures;
mod unchanged;
mod unverified;
mod upgrade_diff;
mod upgrade_rule;
mod version;
mod versioned;
mod waiting;
mod whole_base;

use std::io::Write as _;
use std::process::ExitCode;

use support::binaries::{Availability, Binaries};
use support::retry::run_with_retry;
use support::{TestCase, TestCluster};

/// Every test of every module.
fn all_tests() -> Vec<TestCase> {
    [
        aggregated::tests(),
        agreement::tests(),
        annotations::tests(),
        app_groups::tests(),
        app_history::tests(),
        architecture::tests(),
        artifacts::tests(),
        bad_input::tests(),
        bases::tests(),
        budgets::tests(),
        bystanders::tests(),
        cascades::tests(),
        command_line::tests(),
        command_reference::tests(),
        completion::tests(),
        config::tests(),
        connections::tests(),
        conversion::tests(),
        conversion_backends::tests(),
        create_strategy::tests(),
        crd_pairs::tests(),
        decided::tests(),
        default_set::tests(),
        derived_crds::tests(),
        derived_models::tests(),
        destructive_change::tests(),
        diff_crds::tests(),
        directory::tests(),
        documents::tests(),
        drift::tests(),
        examples::tests(),
        exists::tests(),
        experiments::tests(),
        failures::tests(),
        facts_files::tests(),
        field_conflicts::tests(),
        filters::tests(),
        gates::tests(),
        harness::tests(),
        hostile::tests(),
        hostile_definitions::tests(),
        helm_annotations::tests(),
        hot_fixes::tests(),
        images::tests(),
        judge::tests(),
        judged::tests(),
        kapp::tests(),
        kapp_behaviour::tests(),
        kapp_surface::tests(),
        kapp_tools::tests(),
        kapp_voice::tests(),
        lenient::tests(),
        kept_fields::tests(),
        kill_points::tests(),
        label_apps::tests(),
        links::tests(),
        live_objects::tests(),
        locking::tests(),
        logs::tests(),
        losses::tests(),
        ordering::tests(),
        output::tests(),
        ownership::tests(),
        packaging::tests(),
        pages::tests(),
        plain_writes::tests(),
        pod_admission::tests(),
        custom_rules::tests(),
        policy::tests(),
        preflight::tests(),
        proxy::tests(),
        prune::tests(),
        published_upgrade_diff::tests(),
        races::tests(),
        readme::tests(),
        references::tests(),
        refusal_pages::tests(),
        refusals::tests(),
        remedies::tests(),
        rendering::tests(),
        renames::tests(),
        replaced_parents::tests(),
        reserved::tests(),
        safety::tests(),
        saved_plans::tests(),
        schemas::tests(),
        secrets::tests(),
        security::tests(),
        serve_admission::tests(),
        serve_conversion::tests(),
        sides::tests(),
        simulate::tests(),
        smoke::tests(),
        soak::tests(),
        storage::tests(),
        takeover::tests(),
        terminal_pictures::tests(),
        unchanged::tests(),
        unverified::tests(),
        upgrade_rule::tests(),
        upgrade_diff::tests(),
        version::tests(),
        versioned::tests(),
        waiting::tests(),
        whole_base::tests(),
    ]
    .concat()
}

/// Maximum number of tests at once: they share one API server.
const MOST_THREADS: usize = 12;

/// The tests in an order in which those of a module are far apart: some modules wait and others compute, and together
/// they take less time than one after the other.
fn mixed(cases: Vec<TestCase>) -> Vec<TestCase> {
    /// Tests that follow each other are this far apart in the list.
    const STRIDE: usize = 37;
    let mut mixed: Vec<(usize, TestCase)> = cases.into_iter().enumerate().collect();
    mixed.sort_by_key(|(place, _)| (place % STRIDE, *place));
    mixed.into_iter().map(|(_, case)| case).collect()
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given.first().map(String::as_str) == Some(measure::FLAG) {
        return measure::copy(&given[1..]);
    }
    // `tests/cluster/up` keeps a cluster for people with this.
    if given.first().map(String::as_str) == Some("--serve-cluster") {
        return serve_cluster(given.get(1).map(String::as_str));
    }
    // `.ci/run` and `tests/cluster/up` build it beforehand.
    if given.first().map(String::as_str) == Some("--build-cluster") {
        return build_cluster();
    }
    // The harness tests its own retry with this.
    if given.first().map(String::as_str) == Some(harness::UNSTABLE) {
        return harness::run_unstable(&given[1..]);
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
    let available = match Availability::detect() {
        Ok(available) => available,
        Err(error) => return complain(&error),
    };
    // Most tests wait for the cluster most of the time.
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    arguments.test_threads.get_or_insert((2 * processors).min(MOST_THREADS));

    let code = run_with_retry(arguments, mixed(all_tests()), available, support::browser::is_wanted());
    TestCluster::shut_down_shared();
    code
}

/// Starts a cluster, prints the path of its kubeconfig, and keeps it until this process is ended.
fn serve_cluster(kind: Option<&str>) -> ExitCode {
    let options = match kind {
        Some("api-server") => support::Options::default(),
        Some("whole") => support::Options::whole(),
        _ => return complain("--serve-cluster takes \"whole\" or \"api-server\""),
    };
    match TestCluster::try_start(&options) {
        Ok(cluster) => {
            let _ = writeln!(std::io::stdout(), "{}", cluster.kubeconfig_path().display());
            loop {
                std::thread::park();
            }
        }
        Err(error) => complain(&error),
    }
}

/// Builds what the tests' clusters are made of, where it is not there yet, and prints its directory.
fn build_cluster() -> ExitCode {
    // Helm and kustomize, too.
    support::binaries::renderers();
    match Binaries::get(true) {
        Ok(built) => {
            let directory = built.directory().unwrap_or(std::path::Path::new(""));
            let _ = writeln!(std::io::stdout(), "{}", directory.display());
            ExitCode::SUCCESS
        }
        Err(error) => complain(&error),
    }
}

fn complain(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {message}");
    ExitCode::FAILURE
}
