//! The harness keeps its own promises: no test is forgotten, the shared cluster is one, and no cluster
//! outlives the process that started it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Cursor};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::binaries::Availability;
use crate::support::case::trials;
use crate::support::go_toolchain::{fetch, is_new_enough};
use crate::support::http;
use crate::support::retry::{Progress, run_with_retry};
use crate::support::{Needs, Options, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: no_test_module_is_forgotten,
        Nothing: no_test_is_listed_twice,
        Nothing: a_toolchain_is_taken_from_the_first_proxy_that_has_it_and_only_as_it_is_pinned,
        Nothing: tests_that_cannot_run_are_left_out_by_name_and_number,
        Nothing: without_a_wish_no_test_is_left_out_silently,
        Nothing: test_that_fails_once_is_flaky_and_the_run_passes,
        Nothing: test_that_fails_twice_fails_the_run,
        Nothing: flaky_names_are_names_of_tests,
        ApiServer: tests_that_ask_at_the_same_time_share_one_cluster,
        ApiServer: clusters_run_side_by_side,
        ApiServer: an_api_server_comes_back_with_its_data,
        ApiServer: a_killed_run_leaves_no_cluster_behind,
    ]
}

fn no_test_module_is_forgotten() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration"));
    let mut modules = BTreeSet::new();
    find_modules(directory, "", &mut modules);
    assert!(modules.contains("harness"), "this very module was not found in {}", directory.display());

    let listed: BTreeSet<String> = crate::all_tests().iter().map(|case| case.module().to_owned()).collect();
    let forgotten: Vec<&String> = modules
        .iter()
        .filter(|module| !listed.iter().any(|name| name == *module || name.starts_with(&format!("{module}::"))))
        .collect();
    assert!(forgotten.is_empty(), "no test of these modules is listed in all_tests(): {forgotten:?}");
}

fn find_modules(directory: &Path, prefix: &str, modules: &mut BTreeSet<String>) {
    for entry in directory.read_dir().expect("a directory of test modules") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if prefix.is_empty() && matches!(stem.as_str(), "main" | "support") {
            continue;
        }
        if path.is_dir() {
            find_modules(&path, &format!("{prefix}{stem}::"), modules);
        } else if path.extension().is_some_and(|extension| extension == "rs") && has_tests(&path) {
            modules.insert(format!("{prefix}{stem}"));
        }
    }
}

/// A module without a list of tests is what others are made of; a test in it that nobody calls is dead code to clippy.
fn has_tests(path: &Path) -> bool {
    std::fs::read_to_string(path).expect("a module").contains("fn tests() -> Vec<TestCase>")
}

fn no_test_is_listed_twice() {
    let mut names = BTreeSet::new();
    for case in crate::all_tests() {
        assert!(names.insert(case.name()), "{} is listed twice", case.name());
    }
}

fn one_of_each() -> Vec<TestCase> {
    let case = |function, needs| TestCase::new("integration::module", function, needs, || {});
    vec![
        case("plain", Needs::Nothing),
        case("looks", Needs::Browser),
        case("asks", Needs::ApiServer),
        case("rolls_out", Needs::Controllers),
    ]
}

/// The names of the trials that would be ignored, and the notes.
fn left_out(available: Availability, with_browser: bool) -> (Vec<String>, Vec<String>) {
    let (trials, notes) = trials(one_of_each(), available, with_browser, &Progress::default());
    let ignored = trials.iter().filter(|trial| trial.has_ignored_flag());
    (ignored.map(|trial| trial.name().to_owned()).collect(), notes)
}

fn tests_that_cannot_run_are_left_out_by_name_and_number() {
    let (ignored, notes) = left_out(Availability::Skipped, true);
    assert_eq!(ignored, ["module::asks", "module::rolls_out"]);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("left out: 2 of 4 tests (PUSHBACK_TEST_CLUSTER=skip"), "{}", notes[0]);
    assert!(notes[0].ends_with(": module::asks, module::rolls_out"), "{}", notes[0]);

    let (ignored, notes) = left_out(Availability::ApiServer, true);
    assert_eq!(ignored, ["module::rolls_out"]);
    assert!(notes[0].starts_with("left out: 1 of 4 tests") && notes[0].contains("Go 1.26"), "{}", notes[0]);

    let (ignored, notes) = left_out(Availability::Whole, false);
    assert_eq!(ignored, ["module::looks"]);
    assert!(notes[0].starts_with("left out: 1 of 4 tests (no chromium in PATH"), "{}", notes[0]);
}

fn without_a_wish_no_test_is_left_out_silently() {
    for available in [Availability::Whole, Availability::Nothing] {
        assert_eq!(left_out(available, true), (Vec::new(), Vec::new()), "{available:?}");
    }
}

/// Argument by which this binary runs tests that fail, instead of its own.
pub(crate) const UNSTABLE: &str = "--unstable-tests";

/// Runs one test that passes, one that passes from its second run on, and, if `given` asks for it, one that always fails.
pub(crate) fn run_unstable(given: &[String]) -> ExitCode {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let case = |function, run| TestCase::new("integration::unstable", function, Needs::Nothing, run);
    let mut cases = vec![
        case("passes", || {}),
        case("passes_when_run_again", || assert!(RUNS.fetch_add(1, Ordering::SeqCst) > 0, "the first run")),
    ];
    if given == ["broken"] {
        cases.push(case("fails", || panic!("each run")));
    }
    run_with_retry(libtest_mimic::Arguments::default(), cases, Availability::Nothing, false)
}

/// Exit status of the unstable tests, the results of their runs, and the names reported as flaky.
fn ran_unstable(arguments: &[&str]) -> (bool, Vec<String>, Vec<String>) {
    let program = std::env::current_exe().expect("the path of this binary");
    let output =
        Command::new(program).arg(UNSTABLE).env_remove("PUSHBACK_TIMES").args(arguments).output().expect("it runs");
    let lines = |bytes: &[u8], start: &str| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        text.lines().filter_map(|line| line.strip_prefix(start)).map(ToOwned::to_owned).collect()
    };
    let results = lines(&output.stdout, "test result: ");
    let results = results.iter().map(|line| line.split("; 0 ignored").next().unwrap_or_default().to_owned());
    (output.status.success(), results.collect(), lines(&output.stderr, "flaky: "))
}

fn test_that_fails_once_is_flaky_and_the_run_passes() {
    let (passed, results, flaky) = ran_unstable(&[]);
    assert_eq!(results, ["FAILED. 1 passed; 1 failed", "ok. 1 passed; 0 failed"]);
    assert!(passed);
    assert_eq!(flaky, ["unstable::passes_when_run_again"]);
}

fn test_that_fails_twice_fails_the_run() {
    let (passed, results, flaky) = ran_unstable(&["broken"]);
    assert_eq!(results, ["FAILED. 1 passed; 2 failed", "FAILED. 1 passed; 1 failed"]);
    assert!(!passed);
    assert_eq!(flaky, ["unstable::passes_when_run_again"]);
}

fn flaky_names_are_names_of_tests() {
    let names: BTreeSet<String> = crate::all_tests().iter().map(TestCase::name).collect();
    let flaky = include_str!("../flaky.txt").lines().filter(|line| !line.starts_with('#'));
    let unknown: Vec<&str> = flaky.filter(|name| !names.contains(*name)).collect();
    assert!(unknown.is_empty(), "tests/flaky.txt names tests that do not exist: {unknown:?}");
}

fn tests_that_ask_at_the_same_time_share_one_cluster() {
    let clusters: Vec<&TestCluster> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(TestCluster::shared)).collect();
        asking.into_iter().map(|thread| thread.join().expect("a cluster")).collect()
    });
    assert!(clusters.iter().all(|cluster| std::ptr::eq(*cluster, clusters[0])));
    assert_eq!(TestCluster::shared_starts(), 1);
}

fn clusters_run_side_by_side() {
    let shared = TestCluster::shared();
    let own = TestCluster::start(&Options::default());
    assert_ne!(own.url(), shared.url());

    let namespace = own.namespace("only-here");
    let path = format!("/api/v1/namespaces/{namespace}");
    assert_eq!((own.api().get(&path).status, shared.api().get(&path).status), (200, 404));

    let directory = own.directory().to_owned();
    drop(own);
    assert!(!directory.exists(), "{} is still there", directory.display());
}

fn an_api_server_comes_back_with_its_data() {
    let cluster = TestCluster::start(&Options::default());
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": cluster.namespace("kept"), "name": "settings"}, "data": {"key": "value"},
    });
    cluster.api().apply(&object).ok();
    let path = cluster.api().path_of(&object);

    cluster.stop_api_server();
    assert!(cluster.api().request("GET", &path, None, None).is_err());
    cluster.restart_api_server();
    assert_eq!(cluster.api().get(&path).ok()["data"]["key"], "value");
}

fn a_killed_run_leaves_no_cluster_behind() {
    let mut run = Command::new(std::env::current_exe().expect("the path of this binary"))
        .args(["--serve-cluster", "api-server"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second run");
    let mut printed = String::new();
    let stdout = run.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut printed).expect("the path of a kubeconfig");
    let directory = Path::new(printed.trim_end()).parent().expect("the cluster's directory").to_owned();
    assert!(directory.join("etcd").is_dir(), "no cluster in {}", directory.display());

    let kubeconfig = std::fs::read(printed.trim_end()).expect("a kubeconfig");
    let kubeconfig: Value = serde_json::from_slice(&kubeconfig).expect("JSON");
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().expect("a server").to_owned();
    let address = server.trim_start_matches("https://");
    assert!(TcpStream::connect(address).is_ok(), "nothing listens on {address}");

    // SIGKILL: the run can do nothing any more.
    run.kill().expect("a running process");
    run.wait().expect("an ended process");
    wait_until("the cluster's directory is gone", Duration::from_secs(30), || (!directory.exists()).then_some(()));
    wait_until("the API server is gone", Duration::from_secs(30), || TcpStream::connect(address).err());
}

fn a_toolchain_is_taken_from_the_first_proxy_that_has_it_and_only_as_it_is_pinned() {
    use std::io::Write as _;
    let place = tempfile::tempdir().expect("a directory");
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, text) in [("bin/go", "#!/bin/sh\necho go1.26.8\n"), ("VERSION", "go1.26.8\n")] {
        archive.start_file(format!("golang.org/toolchain@v1/{name}"), options).expect("a file");
        archive.write_all(text.as_bytes()).expect("its content");
    }
    let archive = archive.finish().expect("an archive").into_inner();
    let served = archive.clone();
    let (_, without) = http::start(|_, stream| write!(stream, "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"));
    let (_, with) = http::start(move |head, stream| {
        assert!(head[0].starts_with("GET /go/golang.org/toolchain/@v/v1.zip "), "{head:?}");
        let length = served.len();
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n")?;
        stream.write_all(&served)
    });
    let toolchain = place.path().join("cache/v1");
    let list = format!("{without},{with}/go/|direct");

    let refused = fetch(&list, "v1", "h1:other=", &toolchain).expect_err("another checksum");
    let checksum = refused.split(' ').find(|word| word.starts_with("h1:")).unwrap_or_default().trim_end_matches(',');
    assert!(refused.contains("h1:other= is expected"), "{refused}");
    assert!(!toolchain.exists());
    fetch(&list, "v1", checksum, &toolchain).expect("it is fetched");
    let ran = Command::new(toolchain.join("bin/go")).output().expect("it can be run");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "go1.26.8\n");
    let kept: Vec<_> = toolchain.parent().expect("the cache").read_dir().expect("a directory").collect();
    assert_eq!(kept.len(), 1, "{kept:?}");

    for (list, expected) in [("off", "GOPROXY names no proxy"), ("direct", "names no proxy"), (&without, "404")] {
        let refused = fetch(list, "v1", checksum, &place.path().join("none")).expect_err("nothing there");
        assert!(refused.contains("Go is not installed") && refused.contains(expected), "{refused}");
    }
    for (version, is_enough) in
        [("go1.26.0", true), ("go1.27rc1\n", true), ("go2.0", true), ("go1.25.9", false), ("", false)]
    {
        assert_eq!(is_new_enough(version), is_enough, "{version}");
    }
}
