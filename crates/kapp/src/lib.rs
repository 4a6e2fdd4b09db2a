//! kapp's voice: its command line, and a run and the reports of commands in kapp's words and layout, for scripts that were
//! written for it. Consumes the same events as the other renderers; the engine does not know it.

pub mod arguments;
pub mod changes;
pub mod diff;
pub mod errors;
pub mod history;
pub mod parse_errors;
pub mod prompt;
pub mod renderer;
pub mod reports;
mod run_facts;
pub mod shown_plan;
pub mod state;
pub mod style;
pub mod table;
mod target;
pub mod ui;
pub mod words;

pub use arguments::KappArguments;
pub use renderer::KappRenderer;
pub use run_facts::RunFacts;
pub use shown_plan::{ShownChange, ShownPlan};
pub use state::KappWaitWords;
pub use style::{DiffLook, Style};
pub use table::UnknownColumn;
pub use target::Target;
pub use ui::Ui;
