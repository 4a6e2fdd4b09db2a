//! Runs programs that others provide: input on standard input, an answer from standard output, with a clean environment and
//! little time and room.

mod processes;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use self::processes::Processes;
pub use self::processes::end_all;
use crate::environment::reason;

/// Most bytes of what a program says about its failure.
const COMPLAINT: u64 = 4 << 10;

/// How long the streams of a program that has ended may stay open.
const STREAMS: Duration = Duration::from_secs(5);

/// Interval between looks whether a program has ended.
const POLL: Duration = Duration::from_millis(2);

/// Interval between measurements of a program. Most programs have ended before the first one.
const MEASURE: Duration = Duration::from_millis(100);

/// Maximum number of processes of a program, its own included.
const PROCESSES: usize = 64;

/// Where programs are searched, also those that a program starts itself.
const PATH: &str = if cfg!(windows) { r"C:\Windows\System32" } else { "/usr/local/bin:/usr/bin:/bin" };

/// A program and what it may use.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, or a name that is searched in the usual folders.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment, besides a PATH of the usual folders, which they can replace.
    pub environment: Vec<(String, OsString)>,
    /// How long it may take.
    pub time: Duration,
    /// Most bytes of its answer.
    pub answer: u64,
    /// Most bytes of memory that its processes may fill together. Only Linux can limit it from outside.
    pub memory: u64,
}

impl Program {
    /// What the program answers.
    ///
    /// # Errors
    /// It cannot be started, fails, or exceeds a limit; with the reason, which may quote the program.
    pub fn run(&self, input: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env_clear().env("PATH", PATH).envs(self.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Processes::start(&mut command);
        let (mut child, processes) = started.map_err(|error| format!("it cannot be started: {}", reason(&error)))?;
        processes.limit_memory(self.memory);
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("it has no standard streams".to_owned());
        };
        // A program need not read all of its input.
        thread::spawn(move || stdin.write_all(&input));
        let output = reading(stdout, self.answer, Rest::Refused);
        let complaint = reading(stderr, COMPLAINT, Rest::Dropped);
        let status = self.wait(&mut child, &processes);
        // Also what still runs because it was too slow or took too much, and what it has left behind.
        processes.end();
        let _ = child.kill();
        let _ = child.wait();
        drop(processes);
        let status = status?;
        // Whoever has left the group may hold the streams open.
        let read = |stream: Receiver<Vec<u8>>| stream.recv_timeout(STREAMS).unwrap_or_default();
        let output = read(output);
        if output.len() as u64 > self.answer {
            return Err(format!("its answer is longer than {} MiB", self.answer >> 20));
        }
        if !status.success() {
            let said = read(complaint);
            let said = String::from_utf8_lossy(&said);
            let line = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
            return Err(format!("it failed with {status}{line}"));
        }
        Ok(output)
    }

    /// Waits for the end of the program, but not for long, and measures it meanwhile.
    fn wait(&self, child: &mut Child, processes: &Processes) -> Result<ExitStatus, String> {
        let begin = Instant::now();
        let mut measured = begin;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| reason(&error))? {
                return Ok(status);
            }
            let now = Instant::now();
            if now - begin >= self.time {
                return Err(format!("it has not answered within {} s", self.time.as_secs()));
            }
            if now - measured >= MEASURE {
                measured = now;
                let usage = processes.usage();
                if usage.processes > PROCESSES {
                    return Err(format!("it started more than {PROCESSES} processes"));
                }
                if usage.bytes > self.memory {
                    return Err(format!("its processes filled more than {} MiB of memory", self.memory >> 20));
                }
            }
            thread::sleep(POLL);
        }
    }
}

/// Returns the path of a program: through PATH if it is a bare name, `None` if none of its folders has it. Entries
/// relative to the working directory are skipped; that may be an untrusted checkout.
#[must_use]
pub fn find_program(command: &str, path: Option<OsString>) -> Option<PathBuf> {
    if !cfg!(unix) || command.contains(MAIN_SEPARATOR) {
        return Some(command.into());
    }
    let path = path.unwrap_or_default();
    let places = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(command));
    places.into_iter().find(|place| is_executable(place))
}

#[cfg(unix)]
fn is_executable(place: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(place).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(place: &Path) -> bool {
    place.is_file()
}

/// Treatment of the rest of a stream behind its limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The stream is closed, which ends a program that writes on.
    Refused,
    /// It is read and dropped.
    Dropped,
}

/// Reads a stream up to a limit, and one byte more, so that a longer text is seen.
fn reading(mut stream: impl Read + Send + 'static, limit: u64, rest: Rest) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.by_ref().take(limit + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
        if rest == Rest::Dropped {
            let _ = io::copy(&mut stream, &mut io::sink());
        }
    });
    receiver
}
