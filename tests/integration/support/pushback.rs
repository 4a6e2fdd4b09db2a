//! The product as its users run it: the real binary in a directory of its own, with nothing of this machine's
//! environment, and what it said and wrote.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::TestCluster;
use super::binaries::renderers;
use super::poll::poll;

/// No run of these tests takes longer; one that does hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// A working directory, a home, an environment.
#[derive(Debug)]
pub(crate) struct Pushback {
    place: tempfile::TempDir,
    environment: BTreeMap<String, OsString>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Pushback {
    pub(crate) fn new() -> Self {
        let place = tempfile::Builder::new().prefix("pushback-test-").tempdir().expect("a temporary directory");
        let pushback = Self { place, environment: BTreeMap::new() };
        fs::create_dir(pushback.home()).expect("a home");
        fs::create_dir(pushback.directory()).expect("a working directory");
        pushback
    }

    /// As the admin of a cluster.
    pub(crate) fn on(cluster: &TestCluster) -> Self {
        Self::with_kubeconfig(cluster.kubeconfig_path())
    }

    /// As the user of a kubeconfig.
    pub(crate) fn with_kubeconfig(kubeconfig: &Path) -> Self {
        Self::new().with("KUBECONFIG", kubeconfig)
    }

    /// With a variable set.
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// With Helm and kustomize on the PATH.
    pub(crate) fn with_renderers(self) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(renderers()).chain(std::env::split_paths(&path));
        self.with("PATH", std::env::join_paths(folders).expect("a PATH"))
    }

    /// With git and a shell on the PATH, and no program that renders.
    pub(crate) fn without_renderers(self) -> Self {
        let programs = self.place.path().join("programs");
        fs::create_dir_all(&programs).expect("a folder");
        for program in ["git", "sh"] {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let places = std::env::split_paths(&path).map(|folder| folder.join(program));
            let place = places.into_iter().find(|place| place.is_file()).expect("git and a shell");
            std::os::unix::fs::symlink(place, programs.join(program)).expect("a link");
        }
        self.with("PATH", programs)
    }

    /// The working directory.
    pub(crate) fn directory(&self) -> PathBuf {
        self.place.path().join("work")
    }

    /// What holds the working directory, the home, and whatever else a run is given.
    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    fn home(&self) -> PathBuf {
        self.place.path().join("home")
    }

    /// Writes a file of the working directory, its folders too.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.directory().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("a file");
        self
    }

    /// Reads a file of the working directory.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.directory().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every file below a folder of the working directory, with its content.
    pub(crate) fn tree(&self, folder: &str) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut open = vec![self.directory().join(folder)];
        while let Some(directory) = open.pop() {
            let Ok(entries) = directory.read_dir() else { continue };
            for path in entries.map(|entry| entry.expect("an entry").path()) {
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(self.directory().join(folder)).expect("below the folder");
                    let content = fs::read(&path).expect("a file");
                    files.insert(name.display().to_string(), String::from_utf8_lossy(&content).into_owned());
                }
            }
        }
        files
    }

    /// Names and sizes of everything in the working directory, git's own files left out; nothing is opened.
    pub(crate) fn listing(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.directory()];
        while let Some(directory) = open.pop() {
            for entry in directory.read_dir().expect("a folder").map(|entry| entry.expect("an entry")) {
                let metadata = entry.metadata().expect("metadata");
                if metadata.is_dir() && entry.file_name() != ".git" {
                    open.push(entry.path());
                }
                found.insert(entry.path(), if metadata.is_file() { metadata.len() } else { 0 });
            }
        }
        found
    }

    /// Reads a JSON file of the working directory.
    #[track_caller]
    pub(crate) fn read_json(&self, path: &str) -> Value {
        let path = self.directory().join(path);
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The binary, not started yet. SIGHUP ends it, even if the tests run under `nohup`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_pushback");
        match ignores_hang_up() {
            // By its path, since a test may empty PATH.
            true => self.hermetic("/usr/bin/env", &[&["--default-signal=HUP", program], arguments].concat()),
            false => self.hermetic(program, arguments),
        }
    }

    /// Another program in the same surroundings, such as git; its standard output.
    pub(crate) fn shell(&self, program: &str, arguments: &[&str]) -> String {
        let ran = finish(self.hermetic(program, arguments), b"");
        assert_eq!(ran.code, 0, "{program} {arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    /// Commits all files to the branch `main` of a repository in the working directory.
    pub(crate) fn commit(&self) {
        self.shell("git", &["init", "--quiet", "--initial-branch=main"]);
        self.shell("git", &["add", "--all"]);
        self.shell("git", &["commit", "--quiet", "--message=state"]);
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with_input(arguments, b"")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        finish(self.command(arguments), input)
    }

    /// The binary, started by another program that takes it as its last arguments.
    pub(crate) fn run_behind(&self, starter: &[&str], arguments: &[&str]) -> Ran {
        let all = [&starter[1..], &[env!("CARGO_BIN_EXE_pushback")], arguments].concat();
        finish(self.hermetic(starter[0], &all), b"")
    }

    /// A line of the shell, in which `$0` is the binary.
    pub(crate) fn run_in_shell(&self, line: &str) -> Ran {
        self.run_behind(&["sh", "-c", line], &[])
    }

    fn hermetic(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("USER", "tester");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CEILING_DIRECTORIES", self.place.path());
        for person in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{person}_NAME"), "tester");
            command.env(format!("GIT_{person}_EMAIL"), "tester@example.com");
        }
        command.envs(&self.environment);
        command
    }
}

/// Returns whether this process ignores SIGHUP, as under `nohup`. A program that it starts then does so too.
fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & 1 == 1)
}

impl Ran {
    /// The lines of `--output json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        self.stdout.lines().map(read).collect()
    }

    /// stdout as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}", self.stdout))
    }

    /// The events of a type.
    pub(crate) fn events_of(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == name).collect()
    }

    /// Standard error without the lines that begin with a time.
    pub(crate) fn complaints(&self) -> String {
        let timed = |line: &str| {
            let start = line.as_bytes().get(..8).unwrap_or_default();
            start.iter().enumerate().all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() })
                && !start.is_empty()
        };
        self.stderr.split_inclusive('\n').filter(|line| !timed(line)).collect()
    }

    /// Standard output without durations, which end some of its lines.
    pub(crate) fn data(&self) -> String {
        let untimed = |line: &str| match line.rsplit_once("   ") {
            Some((text, time)) if time.ends_with('s') && time.starts_with(|c: char| c.is_ascii_digit()) => {
                text.to_owned()
            }
            _ => line.to_owned(),
        };
        self.stdout.lines().map(|line| untimed(line) + "\n").collect()
    }

    /// The last event.
    #[track_caller]
    pub(crate) fn end(&self) -> Value {
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["type"], "run.end", "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        last
    }

    /// Fails the test unless the run ended with `code`.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs to the end, and kills what does not come to one.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ran {
    let shown = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let mut standard_input = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // On threads: a full pipe would stop the process. Whoever reads no input has none to miss.
    std::thread::spawn(move || drop(standard_input.write_all(&input)));
    let stdout = gather(child.stdout.take().expect("a pipe"));
    let stderr = gather(child.stderr.take().expect("a pipe"));
    let code = wait(&mut child).unwrap_or_else(|| panic!("has not ended within {DEADLINE:?}: {shown}"));
    let text = |thread: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8(thread.join().expect("a reader")).expect("output is UTF-8")
    };
    Ran { code, stdout: text(stdout), stderr: text(stderr) }
}

fn gather(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("output can be read");
        bytes
    })
}

/// The exit code; -1 for a process that a signal ended. `None` where it had to be killed.
fn wait(child: &mut Child) -> Option<i32> {
    let ended = poll(DEADLINE, || child.try_wait().expect("a child"));
    if ended.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended.map(|status| status.code().unwrap_or(-1))
}

/// The examples of the repository.
pub(crate) fn example(name: &str) -> String {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).join(name).display().to_string()
}
