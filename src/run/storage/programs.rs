//! Programs that convert objects where a plan names them: only those that the command line says. Each gets one object on
//! standard input, a clean environment, and little time and room for its answer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pushback_conversion::{Converter, ProgramRequest, Programs};
use pushback_manifest::answer;
use pushback_system::program::Program;
use serde_json::{Value, json};

use crate::run::error::CommandError;

/// How long a program may take for an object.
const TIME: Duration = Duration::from_secs(10);

/// Most bytes of an answer; the API server takes objects of 3 MiB.
const ANSWER: u64 = 4 << 20;

/// Most bytes of memory that a program may fill.
const MEMORY: u64 = 1 << 30;

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
        let program = Program {
            path: path.clone(),
            arguments: Vec::new(),
            environment: Vec::new(),
            time: TIME,
            answer: ANSWER,
            memory: MEMORY,
        };
        answer::parse(&program.run(input.into_bytes())?)
    }
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
        assert!(failed("echo hello").contains("not JSON"));
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
