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
pub mod state;
pub mod style;
pub mod table;
pub mod ui;
pub mod words;

pub use arguments::KappArguments;
pub use renderer::KappRenderer;
pub use style::{DiffLook, Style};
pub use table::UnknownColumn;
pub use ui::Ui;
