//! The program under the name `kapp`: its command line, and its commands in kapp's words and layout.

mod commands;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process;
use std::sync::Arc;

use futures::future::BoxFuture;
use pushback_cluster::Cluster;
use pushback_deploy::plan::{Plan, Planned};
use pushback_events::exit::ExitCode;
use pushback_kapp::{
    KappArguments, KappRenderer, KappWaitWords, RunFacts, ShownPlan, Style, Target, Ui, UnknownColumn,
};
use pushback_kapp::{arguments, changes, errors, parse_errors, prompt, shown_plan};
use pushback_manifest::config::Config;
use pushback_preflight::Operation;
use pushback_terminal::escape::terminal_safe_lines;
use pushback_terminal::live::renderer::Renderer;
use pushback_terminal::output::Output;
use serde_json::Value;

use crate::cli::behaviour::{Behaviour, Presenter};
use crate::cli::{self, Cli, parser_output};
use crate::run::delete::Derived;
use crate::run::error::CommandError;
use crate::run::observer::Observer;

/// Presents runs as kapp does.
#[derive(Debug)]
struct KappPresenter {
    style: Style,
    facts: RunFacts,
}

impl Presenter for KappPresenter {
    fn check(&self) -> Result<(), CommandError> {
        Ok(changes::check_columns(&self.style)?)
    }

    fn renderer(&self, output: Output) -> Box<dyn Renderer> {
        Box::new(KappRenderer::new(self.style.clone(), self.facts.clone(), output))
    }

    fn confirm(&self) -> fn(&str) -> io::Result<bool> {
        |_| {
            let input = io::stdin();
            let shows_answers = input.is_terminal();
            prompt::confirm(&mut input.lock(), &mut io::stdout(), shows_answers)
        }
    }

    fn error(&self, error: &CommandError) -> io::Result<()> {
        let mut ui = Ui::new(self.style.clone(), Output::standard());
        ui.error(&in_words(error, false));
        ui.finish()
    }
}

impl Observer for KappPresenter {
    fn connected<'a>(&'a self, cluster: &'a dyn Cluster) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(target) = Target::read(cluster).await {
                self.facts.add_target(target);
            }
        })
    }

    fn planned(&self, config: &Config, plan: &Plan, going: &[Arc<Value>]) {
        self.facts.add_plan(ShownPlan::new(config, plan, going));
    }

    fn counted_as(&self, config: &Config, planned: &Planned) -> Option<Operation> {
        let is_kept = planned.reported_operation() == Operation::Noop;
        is_kept.then(|| shown_plan::unwritten(config, planned, 0))?.map(|change| change.operation)
    }
}

impl From<UnknownColumn> for CommandError {
    fn from(unknown: UnknownColumn) -> Self {
        Self::usage(unknown.to_string())
    }
}

/// Words an error as kapp does.
fn in_words(error: &CommandError, is_rename: bool) -> String {
    errors::of_command(&error.message(), error.code.code(), error.failure.as_ref(), is_rename)
}

/// Returns whether a program of this name is kapp: `kapp`, or a release's name.
pub(crate) fn is_name(program: &str) -> bool {
    program == "kapp" || program.starts_with("kapp-")
}

/// Returns the exit code of the process. kapp knows success, failure, and the codes of its two exit-status flags; a
/// signal ends it, which shells report as here.
pub(crate) fn process_code(code: ExitCode) -> process::ExitCode {
    use ExitCode::{Changes, Interrupted, NoChanges, Success, Terminated, Usage};
    let is_known = matches!(code, Success | NoChanges | Changes | Interrupted | Terminated);
    if is_known { code } else { Usage }.into()
}

/// Parses a command line of kapp and runs it.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let (mut cli, given) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return not_parsed(error, arguments),
    };
    if !given.ignored.is_empty() {
        let text = format!("kapp: Note: without effect here: {}\n", given.ignored.join(", "));
        Output::standard().progress(&text);
    }
    if given.debug {
        cli.global.verbose = cli.global.verbose.max(2);
    }
    let style = given.style.clone();
    cli.global.behaviour = behaviour(given);
    cli.run(async |command, global| commands::run(command, global, &style, arguments).await)
}

/// The program's commands and flags under kapp's names.
fn tree() -> clap::Command {
    arguments::tree(cli::command())
}

fn parse(arguments: &[OsString]) -> Result<(Cli, KappArguments), clap::Error> {
    let matches = tree().try_get_matches_from(arguments)?;
    Ok((Cli::from_matches(&matches)?, KappArguments::from_matches(&matches)?))
}

fn behaviour(given: KappArguments) -> Behaviour {
    let presenter = Arc::new(KappPresenter { style: given.style, facts: RunFacts::default() });
    Behaviour {
        observer: Some(Arc::<KappPresenter>::clone(&presenter)),
        presenter: Some(presenter),
        recreates_contents: false,
        compares_writes: false,
        awaits_controllers: false,
        wait_words: Some(Arc::new(KappWaitWords)),
        runs_default_rules: false,
        groups_one_by_one: true,
        derived: match (given.deletes_derived, given.awaits_derived) {
            (true, _) => Derived::Deleted,
            (false, true) => Derived::WaitedFor,
            (false, false) => Derived::Ignored,
        },
        kubeconfig_yaml: given.kubeconfig_yaml,
    }
}

/// Prints the parser's output: help, or an error, before which kapp shows its help where no command is named.
fn not_parsed(error: clap::Error, arguments: &[OsString]) -> ExitCode {
    let error = match parser_output::safe_error(error, arguments, tree) {
        Ok(error) => error,
        Err(code) => return code,
    };
    let mut tree = tree();
    if parse_errors::shows_help(&error, &tree) {
        let mut output = Output::standard();
        output.data(&format!("{}\n", tree.render_help()));
        // If the help cannot be written, the error still can.
        let _ = output.finish();
    }
    let text = format!("kapp: Error: {}\n", parse_errors::message(&error, &tree));
    Output::standard().progress(&terminal_safe_lines(&text));
    ExitCode::Usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Cli, KappArguments), String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&arguments).map_err(|error| parse_errors::message(&error, &tree()))
    }

    #[test]
    fn names_of_releases_are_kapps_name() {
        assert!(["kapp", "kapp-linux-amd64", "kapp-darwin-arm64"].into_iter().all(is_name));
        assert!(!["pushback", "kappa", ""].into_iter().any(is_name));
    }

    #[test]
    fn tree_is_consistent_and_keeps_the_descriptions_of_commands() {
        tree().debug_assert();
        let (ours, tree) = (cli::command(), tree());
        assert_eq!(tree.get_about(), ours.get_about());
        for command in ours.get_subcommands() {
            let under_kapps_name = tree.find_subcommand(command.get_name()).expect("a command");
            assert_eq!(under_kapps_name.get_about(), command.get_about(), "{}", command.get_name());
        }
    }

    #[test]
    fn commands_have_the_names_that_kapp_gives_them() {
        for command in ["deploy", "d", "dep"] {
            assert!(parsed(&format!("kapp {command} -a app -f -")).is_ok(), "{command}");
        }
        for command in
            ["app-group deploy -g a -d b --delete-wait=false", "ag d -g a -d b -c", "appgroup delete -g a -c"]
        {
            assert!(parsed(&format!("kapp {command}")).is_ok(), "{command}");
        }
        for command in ["ac gc -a app --max=1", "app-changes ls -a app", "label -a app", "appchange l -a app"] {
            assert!(parsed(&format!("kapp {command}")).is_ok(), "{command}");
        }
        for command in ["delete -a app", "inspect -a app", "i -a app", "is -a app", "insp -a app", "list", "l", "ls"] {
            assert!(parsed(&format!("kapp {command}")).is_ok(), "{command}");
        }
    }

    #[test]
    fn flags_are_written_as_go_reads_them() {
        let line = "kapp deploy -a app -f - --yes=false -yc --tty=false --json --column op,name --diff-context -1";
        let (Cli { global, .. }, KappArguments { style, .. }) = parsed(line).expect("a command line");
        assert!(global.yes && style.json && !style.tty && style.diff.changes);
        assert_eq!((style.columns, style.diff.context), (vec!["op".to_owned(), "name".to_owned()], None));
        assert!(parsed("kapp deploy -a app -f a -f b --wait=true --wait=0 --diff-changes=T --color").is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_told_in_kapps_words() {
        let said = |line: &str| parsed(line).map(|_| ()).expect_err(line);
        assert_eq!(said("kapp deploy -a app -f - --nope=1"), "unknown flag: --nope");
        assert_eq!(said("kapp foo"), "Invalid command - see available commands/subcommands above");
        assert_eq!(said("kapp deploy -f -"), "Expected app name to be non-empty");
        for line in ["kapp config-map list", "kapp sa ls", "kapp deploy-config"] {
            assert!(said(line).contains(" is left out: "), "{line}");
        }
        for (line, text) in [
            ("deploy -a a -f - --labels x", "Expected label to be in 'key=val' format"),
            ("deploy -a a -f - --labels =x", "Expected label key to be non-empty"),
            ("deploy -a a -f - --map-ns a", "Expected map namespace 'a' to be in 'src-ns=dst-ns' format"),
            (
                "deploy -a a -f - --wait-timeout x",
                "invalid argument \"x\" for \"--wait-timeout\" flag: time: invalid duration \"x\"",
            ),
            (
                "deploy -a a -f - --wait=x",
                "invalid argument \"x\" for \"--wait\" flag: strconv.ParseBool: parsing \"x\": invalid syntax",
            ),
            (
                "ac gc -a a --max x",
                "invalid argument \"x\" for \"--max\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
            ),
            (
                "ac ls -a a --before 2024-13-01",
                "unrecognized time format 2024-13-01, supported formats: [2006-01-02T15:04:05Z07:00 2006-01-02]",
            ),
        ] {
            assert_eq!(said(&format!("kapp {line}")), text);
        }
        for line in ["kapp app-change", "kapp ac foo"] {
            assert_eq!(said(line), "Use one of available subcommands: garbage-collect, list");
        }
    }
}
