//! Behaviour of commands that depends on the name the program was called by: presentation, planning, rules and writes.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use pushback_deploy::apply::wait_words::WaitWords;
use pushback_terminal::live::renderer::Renderer;
use pushback_terminal::output::Output;
use secrecy::SecretString;

use crate::run::delete::Derived;
use crate::run::error::CommandError;
use crate::run::observer::Observer;

/// Presents runs, questions and errors in the words of another tool.
pub(crate) trait Presenter: Debug + Send + Sync {
    /// Checks the output flags before anything is read or written.
    ///
    /// # Errors
    /// A flag names something that the output does not have.
    fn check(&self) -> Result<(), CommandError>;

    /// Returns the renderer of a run.
    fn renderer(&self, output: Output) -> Box<dyn Renderer>;

    /// Returns the prompt. It ignores its argument, the question: the output before it contains what is asked.
    fn confirm(&self) -> fn(&str) -> io::Result<bool>;

    /// Prints an error outside a run.
    ///
    /// # Errors
    /// It could not be written.
    fn error(&self, error: &CommandError) -> io::Result<()>;
}

/// Settings that depend on the program's name; the default is pushback's own behaviour.
#[derive(Clone, Debug)]
pub(crate) struct Behaviour {
    /// Presenter of runs; `None`: the format that `--output` names.
    pub(crate) presenter: Option<Arc<dyn Presenter>>,
    /// Receiver of what the presenter shows besides events.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Whether objects that the garbage collector deletes with a replaced parent are created again.
    pub(crate) recreates_contents: bool,
    /// Whether each stored object is compared with its dry run.
    pub(crate) compares_writes: bool,
    /// Words for the states of awaited objects, in place of the engine's.
    pub(crate) wait_words: Option<Arc<dyn WaitWords>>,
    /// Whether the first object of a kind waits for its controller.
    pub(crate) awaits_controllers: bool,
    /// Whether the default rules run.
    pub(crate) runs_default_rules: bool,
    /// Whether each app of a group has a prompt of its own, right before it is written.
    pub(crate) groups_one_by_one: bool,
    /// How the deletion of an app treats objects that controllers created.
    pub(crate) derived: Derived,
    /// Content of the kubeconfig, if it is not read from a file.
    pub(crate) kubeconfig_yaml: Option<SecretString>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            presenter: None,
            observer: None,
            recreates_contents: true,
            compares_writes: true,
            wait_words: None,
            awaits_controllers: true,
            runs_default_rules: true,
            groups_one_by_one: false,
            derived: Derived::default(),
            kubeconfig_yaml: None,
        }
    }
}
