//! Programs that convert objects where a plan names them: only those that the command line says. Each gets one object on
//! standard input, a clean environment, and little time and room for its answer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use pushback_preflight::conversion::{Converter, ProgramRequest, Programs};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::environment::reason;
use crate::run::error::CommandError;

/// How long a program may take for an object.
const TIME: Duration = Duration::from_secs(10);

/// Most bytes of an answer; the API server takes objects of 3 MiB.
const ANSWER: u64 = 4 << 20;

/// Most bytes of what a program says about its failure.
const COMPLAINT: u64 = 4 << 10;

/// How long the streams of a program that has ended may stay open.
const STREAMS: Duration = Duration::from_secs(5);

/// Interval between looks whether a program has ended.
const POLL: Duration = Duration::from_millis(2);

/// Where programs are searched that a program starts itself.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Programs by the names that plans use.
#[derive(Clone, Debug, Default)]
pub struct NamedPrograms {
    paths: BTreeMap<String, PathBuf>,
}

impl NamedPrograms {
    /// The programs that the command line names.
    #[must_use]
    pub fn of(named: &[(String, PathBuf)]) -> Self {
        Self { paths: named.iter().cloned().collect() }
    }

    /// Refuses a plan that names a program which nobody has.
    ///
    /// # Errors
    /// With the names that are missing.
    pub fn check(&self, converter: &Converter) -> Result<(), CommandError> {
        let mut missing: Vec<&str> = converter.programs().filter(|name| !self.paths.contains_key(*name)).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("the plan names programs that are not given: {}", missing.join(", "));
        Err(CommandError::usage_with_hint(message, format!("add --program {}=PATH", missing[0])))
    }
}

impl Programs for NamedPrograms {
    fn run(&self, program: &str, request: &ProgramRequest<'_>) -> Result<Value, String> {
        let path = self.paths.get(program).ok_or("it is not given with --program")?;
        let ProgramRequest { from, to, before, after } = request;
        let input = json!({"from": from, "to": to, "before": before, "after": after}).to_string();
        let mut child = Command::new(path)
            .env_clear()
            .env("PATH", PATH)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("it cannot be started: {}", reason(&error)))?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("it has no standard streams".to_owned());
        };
        // A program need not read all of its input.
        thread::spawn(move || stdin.write_all(input.as_bytes()));
        let (output, complaint) = (reading(stdout, ANSWER), reading(stderr, COMPLAINT));
        let status = ended(&mut child);
        // Also what it has started itself, and what still runs because it was too slow.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
        let status = status?;
        // Whoever has left the group may hold the streams open.
        let read = |stream: Receiver<Vec<u8>>| stream.recv_timeout(STREAMS).unwrap_or_default();
        let output = read(output);
        if output.len() as u64 > ANSWER {
            return Err(format!("its answer is longer than {} MiB", ANSWER >> 20));
        }
        if !status.success() {
            let said = read(complaint);
            let said = String::from_utf8_lossy(&said);
            let line = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
            return Err(format!("it failed with {status}{line}"));
        }
        serde_json::from_slice(&output).map_err(|error| format!("its answer is no JSON: {error}"))
    }
}

/// Waits for the end of a program, but not for long.
fn ended(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + TIME;
    loop {
        match child.try_wait().map_err(|error| reason(&error))? {
            Some(status) => return Ok(status),
            None if Instant::now() >= deadline => {
                return Err(format!("it has not answered within {} s", TIME.as_secs()));
            }
            None => thread::sleep(POLL),
        }
    }
}

/// What a stream holds up to a limit, and one byte more, so that a longer text is seen.
fn reading(stream: impl Read + Send + 'static, limit: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.take(limit + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn asked(script: &str) -> Result<Value, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        let programs = NamedPrograms::of(&[("it".to_owned(), path)]);
        let (before, after) = (json!({"spec": 1}), json!({"spec": 2}));
        programs.run("it", &ProgramRequest { from: "v1", to: "v2", before: &before, after: &after })
    }

    #[test]
    fn a_program_gets_the_object_and_gives_one_back() {
        let given = asked("cat").expect("an answer");
        assert_eq!(given, json!({"from": "v1", "to": "v2", "before": {"spec": 1}, "after": {"spec": 2}}));
        assert_eq!(asked("cat > /dev/null; echo '{\"kind\": \"Cog\"}'"), Ok(json!({"kind": "Cog"})));
    }

    #[test]
    fn a_program_that_misbehaves_is_an_error_that_says_how() {
        let failed = |script: &str| asked(script).expect_err("an error");
        assert!(failed("echo broken >&2; exit 3").contains("exit status: 3: broken"));
        assert!(failed("echo hello").contains("no JSON"));
        assert!(failed("exec yes | head -c 9000000").contains("longer than 4 MiB"));
        let unknown = NamedPrograms::default();
        let request = ProgramRequest { from: "v1", to: "v2", before: &Value::Null, after: &Value::Null };
        assert_eq!(unknown.run("it", &request), Err("it is not given with --program".to_owned()));
    }

    #[test]
    fn a_program_sees_nothing_of_the_environment() {
        let seen = asked("printf '\"%s\"' \"$(env | cut -d= -f1 | sort | tr '\\n' ' ')\"").expect("an answer");
        let seen = seen.as_str().unwrap_or_default();
        assert!(!seen.contains("HOME") && !seen.contains("CARGO"), "{seen}");
    }
}
