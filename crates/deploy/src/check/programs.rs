//! The programs of a policy's rules: where they are, whether they may run, and what they answer.

use std::path::{Path, PathBuf};

use pushback_manifest::answer;
use pushback_preflight::Answer;
use pushback_preflight::rule::ProgramCall;
use pushback_system::program::Program;

/// Most bytes of an answer.
const ANSWER: u64 = 16 << 20;

/// Runs the program that answers a need.
///
/// # Errors
/// Why there is no answer.
pub(super) async fn ask(call: Option<ProgramCall>) -> Result<Answer, String> {
    let call = call.ok_or("there is no such program")?;
    if !call.is_trusted {
        return Err("it runs only where the policy is a file given with --config".to_owned());
    }
    let (program, arguments) = call.command.split_first().ok_or("it has no name")?;
    let path = place(program, &call.named_by)?;
    let program = Program {
        path,
        arguments: arguments.to_vec(),
        environment: Vec::new(),
        time: call.time,
        answer: ANSWER,
        memory: call.memory,
    };
    let input = call.input.to_string().into_bytes();
    let run = tokio::task::spawn_blocking(move || answer::parse(&program.run(input)?));
    let output = run.await.map_err(|error| error.to_string())??;
    Ok(Answer::Program { output })
}

/// The file of a program: a name alone is searched in the usual folders, a relative path begins at the policy's file. The
/// folder that somebody happens to be in says nothing, as it may hold what is judged.
fn place(program: &str, named_by: &str) -> Result<PathBuf, String> {
    if !program.contains('/') || Path::new(program).is_absolute() {
        return Ok(PathBuf::from(program));
    }
    if named_by.is_empty() || named_by == "-" || named_by.contains("://") || named_by.starts_with("git:") {
        return Err(format!("{program} is relative, and the policy that names it is no local file"));
    }
    let folder = Path::new(named_by).parent().unwrap_or(Path::new(""));
    let folder = std::path::absolute(folder.join(".")).map_err(|error| pushback_system::environment::reason(&error))?;
    Ok(folder.join(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_program_is_found_beside_the_policy_that_names_it() {
        let folder = std::env::current_dir().expect("a folder");
        assert_eq!(place("conftest", "policy/p.yaml"), Ok(PathBuf::from("conftest")));
        assert_eq!(place("/opt/rule", "-"), Ok(PathBuf::from("/opt/rule")));
        assert_eq!(place("./rules/r", "policy/p.yaml"), Ok(folder.join("policy/rules/r")));
        assert_eq!(place("rules/r", "p.yaml"), Ok(folder.join("rules/r")));
        for named_by in ["-", "https://ex.com/p.yaml", "git:main:p.yaml", ""] {
            assert!(place("rules/r", named_by).is_err(), "{named_by}");
        }
    }
}
