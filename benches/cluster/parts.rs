//! The parts of the benchmark: what each measures, how often, and against which target.

mod custom;
mod storage;

use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::app::{App, Run, middle};
use super::chart::{self, Curve};
use super::raw::Raw;
use super::support::{Options, TestCluster};
use super::table::{self, Row, Target, seconds};
use super::{delay, measure, objects, peers, progress, round_trips, work};

/// Compares the long texts once and ends: its memory is that of the comparison.
pub(crate) const DIFF_FLAG: &str = "--diff-once";

const LINES: usize = 16_000;

/// How much is measured.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) rounds: usize,
    /// A tenth of the objects: to see that it works.
    pub(crate) quick: bool,
    runtime: tokio::runtime::Runtime,
}

/// What each round measures of an app of ConfigMaps.
#[derive(Debug, Default)]
struct Rounds {
    create: (Vec<Run>, Vec<Duration>),
    unchanged: (Vec<Run>, Vec<Duration>),
    one: Vec<Run>,
    delete: (Vec<Run>, Vec<Duration>),
}

impl Bench {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        Self { rounds: 3, quick: false, runtime }
    }

    fn size(&self, size: usize) -> usize {
        if self.quick { size / 10 } else { size }
    }

    /// Graph, diff, start, binary.
    pub(crate) fn processor(&self) -> String {
        let config = work::config();
        let mut rows = Vec::new();
        for (count, most) in [(4_000, 50), (16_000, 250)] {
            let planned = work::creates(count);
            let time = self.median(|| {
                let began = Instant::now();
                let graph = work::draw(&planned, &config);
                (began.elapsed(), graph)
            });
            let most = Duration::from_millis(most);
            rows.push((format!("change graph of {count} mixed objects"), time, most));
        }
        let (old, new) = work::long_texts(LINES);
        let time = self.median(|| {
            let began = Instant::now();
            let text = work::diff(&old, &new);
            (began.elapsed(), text)
        });
        rows.push((format!("diff of {LINES} lines, every second one changed"), time, Duration::from_millis(100)));
        rows.push(("process start to first request".to_owned(), self.start(), Duration::from_millis(30)));
        let mut rows: Vec<(String, String, bool, String)> = rows
            .into_iter()
            .map(|(what, time, most)| (what, seconds(time), time < most, format!("< {} ms", most.as_millis())))
            .collect();
        let itself = std::env::current_exe().expect("this program's path");
        let peak = measure::run(&itself, &[DIFF_FLAG], Path::new("/dev/null")).peak;
        rows.insert(
            3,
            (
                "memory of that diff, process included".to_owned(),
                mebibytes(peak),
                peak < 50 << 20,
                "< 50 MiB".to_owned(),
            ),
        );
        let binary = std::fs::metadata(measure::binary()).expect("the binary").len();
        rows.push(("binary, stripped".to_owned(), mebibytes(binary), binary < 15 << 20, "< 15 MiB".to_owned()));
        table::figures(&rows)
    }

    /// First deploy, no-op, one change, delete of ConfigMaps.
    pub(crate) fn apps(&self) -> String {
        let cluster = TestCluster::start(&Options::default());
        let start = self.start();
        let mut rows = Vec::new();
        for milliseconds in [0, 5] {
            let round_trip = Duration::from_millis(milliseconds);
            let kubeconfig = delay::kubeconfig(&self.runtime, cluster.kubeconfig_path(), round_trip);
            for count in [1_000, 5_000] {
                progress(&format!("  {count} ConfigMaps, {milliseconds} ms"));
                let rounds = if self.quick { 1 } else { self.rounds };
                let rounds = self.config_maps(&cluster, &kubeconfig, self.size(count), rounds);
                rows.extend(rows_of(&rounds, self.size(count), milliseconds, start));
            }
        }
        table::runs(&rows)
    }

    fn config_maps(&self, cluster: &TestCluster, kubeconfig: &Path, count: usize, rounds: usize) -> Rounds {
        let objects = objects::config_maps(count);
        let mut changed = objects.clone();
        changed[count / 2]["data"]["level"] = json!("debug");
        let mut all = Rounds::default();
        for _ in 0..rounds {
            let (ours, plain) = (cluster.namespace("bench"), cluster.namespace("raw"));
            let raw = Raw { runtime: &self.runtime, kubeconfig, namespace: &plain };
            let app = App { kubeconfig, namespace: &ours };
            all.create.1.push(raw.create(&objects));
            all.create.0.push(app.apply(&objects));
            all.unchanged.1.push(raw.list());
            let unchanged = app.apply(&objects);
            assert_eq!(unchanged.writes, 0, "nothing is to be written");
            all.unchanged.0.push(unchanged);
            let one = app.apply(&changed);
            assert_eq!(one.writes, 1, "one object is to be written");
            all.one.push(one);
            all.delete.1.push(raw.delete());
            all.delete.0.push(app.delete());
        }
        all
    }

    /// A quarter each of ConfigMaps, ServiceAccounts, Services and Deployments, until all are ready.
    pub(crate) fn mix(&self) -> String {
        let cluster = TestCluster::start(&Options::whole());
        let mut rows = Vec::new();
        for milliseconds in [0, 5] {
            let round_trip = Duration::from_millis(milliseconds);
            let kubeconfig = delay::kubeconfig(&self.runtime, cluster.kubeconfig_path(), round_trip);
            let count = self.size(1_000);
            let objects = objects::mixed(count);
            let (mut runs, mut again) = (Vec::new(), Vec::new());
            for _ in 0..if self.quick { 1 } else { self.rounds } {
                let namespace = cluster.namespace("mix");
                let app = App { kubeconfig: &kubeconfig, namespace: &namespace };
                runs.push(app.apply(&objects));
                again.push(app.apply(&objects));
                app.delete();
            }
            let time = (milliseconds == 0).then(|| Duration::from_secs(6));
            let target = Target { requests: Some(3 * count as u64), time, ..Target::default() };
            let what = format!("mix of {count}, a quarter of it Deployments, until ready{}", far(milliseconds));
            rows.push(Row { what, target, run: Run::median(&runs), raw: None });
            let what = format!("the same, unchanged{}", far(milliseconds));
            rows.push(Row { what, target: Target::default(), run: Run::median(&again), raw: None });
        }
        table::runs(&rows)
    }

    /// The same by kapp and by plain workers.
    pub(crate) fn peers(&self) -> String {
        peers::tables(&self.runtime, self.size(1_000), if self.quick { 1 } else { self.rounds })
    }

    /// The phases of runs at 100 ms.
    pub(crate) fn round_trips(&self) -> String {
        let cluster = TestCluster::start(&Options::default());
        let round_trip = Duration::from_millis(100);
        let kubeconfig = delay::kubeconfig(&self.runtime, cluster.kubeconfig_path(), round_trip);
        let objects = objects::config_maps(self.size(1_000));
        let namespace = cluster.namespace("far");
        let app = App { kubeconfig: &kubeconfig, namespace: &namespace };
        let mut text = String::from("| run at 100 ms | phase | round trips | time |\n|---|---|---:|---:|\n");
        for name in ["new", "unchanged"] {
            text += &round_trips::table(name, &app.apply(&objects), round_trip);
        }
        let mut changed = objects.clone();
        changed[0]["data"]["level"] = json!("debug");
        text += &round_trips::table("one changed", &app.apply(&changed), round_trip);
        text + &round_trips::table("delete", &app.delete(), round_trip)
    }

    /// Cost against size.
    pub(crate) fn curve(&self) -> String {
        let cluster = TestCluster::start(&Options::default());
        let mut curves = [("new", "#c0392b"), ("unchanged", "#2471a3"), ("delete", "#239b56")]
            .map(|(name, colour)| Curve { name, colour, points: Vec::new() });
        let mut text = String::from(
            "| ConfigMaps | new | unchanged | delete | requests | peak memory |\n|---:|---:|---:|---:|---:|---:|\n",
        );
        for size in [100, 300, 1_000, 3_000, 10_000] {
            let size = self.size(size);
            progress(&format!("  {size} ConfigMaps"));
            let objects = objects::config_maps(size);
            let namespace = cluster.namespace("curve");
            let app = App { kubeconfig: cluster.kubeconfig_path(), namespace: &namespace };
            let runs = [app.apply(&objects), app.apply(&objects), app.delete()];
            for (curve, run) in curves.iter_mut().zip(&runs) {
                curve.points.push((size, run.wall()));
            }
            let of =
                |show: &dyn Fn(&Run) -> String, between: &str| runs.iter().map(show).collect::<Vec<_>>().join(between);
            text += &format!(
                "| {size} | {} | {} | {} |\n",
                of(&|run| seconds(run.wall()), " | "),
                of(&|run| run.requests.to_string(), " / "),
                of(&|run| mebibytes(run.usage.peak), " / "),
            );
        }
        if std::env::var_os("UPDATE_DOCS").is_some() && !self.quick {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/contributing/cost-against-size.svg");
            std::fs::write(path, chart::svg(&curves)).expect("the drawing is written");
        }
        text
    }

    /// From the start of the process to the first byte of its first request.
    fn start(&self) -> Duration {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = format!("http://{}", listener.local_addr().expect("an address"));
        let place = tempfile::tempdir().expect("a temporary directory");
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {}}],
        });
        let (config, manifest) = (place.path().join("config"), place.path().join("app.yaml"));
        std::fs::write(&config, kubeconfig.to_string()).expect("a kubeconfig");
        std::fs::write(&manifest, objects::yaml(&[objects::config_map(1)])).expect("a manifest");
        self.median(|| {
            let mut command = Command::new(measure::binary());
            command.args(["apply", "-a", "start", "--yes", "-f"]).arg(&manifest).env("KUBECONFIG", &config);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let began = Instant::now();
            let mut child = command.spawn().expect("the binary starts");
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            let took = began.elapsed();
            child.kill().expect("it is ended");
            child.wait().expect("it has ended");
            // Further connections of the same process.
            listener.set_nonblocking(true).expect("a listener");
            while listener.accept().is_ok() {}
            listener.set_nonblocking(false).expect("a listener");
            (took, ())
        })
    }

    fn median<T>(&self, mut once: impl FnMut() -> (Duration, T)) -> Duration {
        let rounds = 2 * self.rounds + 1;
        let times: Vec<Duration> = (0..rounds).map(|_| once().0).collect();
        *middle(&times, |time| *time)
    }
}

/// What [`DIFF_FLAG`] asks for.
pub(crate) fn diff_once() -> ExitCode {
    let (old, new) = work::long_texts(LINES);
    let shown = work::diff(&old, &new);
    if shown.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn rows_of(rounds: &Rounds, count: usize, milliseconds: u64, start: Duration) -> Vec<Row> {
    let pages = count.div_ceil(500) as u64;
    let objects = count as u64;
    let far = far(milliseconds);
    let raw = |times: &[Duration]| Some(*middle(times, |time| *time));
    let thousand = count <= 1_000;
    vec![
        Row {
            what: format!("{count} new ConfigMaps{far}"),
            target: Target { requests: Some(2 * objects + 100), times_raw: Some(1.3), ..Target::default() },
            run: Run::median(&rounds.create.0),
            raw: raw(&rounds.create.1),
        },
        Row {
            what: format!("{count} unchanged{far}"),
            target: Target {
                requests: Some(pages + 12),
                times_raw: Some(2.5),
                plus: start,
                mebibytes: Some(120),
                ..Target::default()
            },
            run: Run::median(&rounds.unchanged.0),
            raw: raw(&rounds.unchanged.1),
        },
        Row {
            what: format!("one of {count} changed{far}"),
            target: Target { requests: thousand.then_some(30), ..Target::default() },
            run: Run::median(&rounds.one),
            raw: None,
        },
        Row {
            what: format!("delete of {count}{far}"),
            target: Target { requests: Some(objects + 50), times_raw: Some(1.4), ..Target::default() },
            run: Run::median(&rounds.delete.0),
            raw: raw(&rounds.delete.1),
        },
    ]
}

fn far(milliseconds: u64) -> String {
    if milliseconds == 0 { String::new() } else { format!(", server {milliseconds} ms away") }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
