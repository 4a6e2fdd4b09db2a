//! The message for a defect in pushback: where it happened, and nothing about the data.

use std::panic::{Location, PanicHookInfo};

use crate::error_text::error_text;
use crate::output::Output;
use crate::theme::Theme;

/// Installs a panic hook that prints only the place. Panic messages may quote any value, including Secrets.
pub fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        Output::standard().progress(&text(panic.location()));
    }));
}

fn text(location: Option<&Location<'_>>) -> String {
    let place = location.map_or_else(String::new, |location| format!(" at {location}"));
    let message = format!("a defect in pushback {}{place}", env!("CARGO_PKG_VERSION"));
    let hint = "please report this line and the command; what was written is recorded, so running again is safe";
    error_text(&message, &[hint.to_owned()], Theme::plain())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process that panics: the hook is process-wide.
    const CHILD: &str = "PUSHBACK_TEST_PANICS";

    fn panic_over_a_secret() {
        tell_of_panics();
        let secret = std::hint::black_box("hunter2");
        let number: Result<u32, _> = secret.parse::<u32>().map_err(|_| secret);
        std::panic::resume_unwind(match std::panic::catch_unwind(|| number.expect("a number")) {
            Ok(_) => Box::new("no panic"),
            Err(_) => Box::new("as it should be"),
        });
    }

    #[test]
    fn a_panic_tells_where_and_nothing_of_the_values() {
        if std::env::var_os(CHILD).is_some() {
            panic_over_a_secret();
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "defect::tests::a_panic_tells_where_and_nothing_of_the_values"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(
            said.contains("error: a defect in pushback ") && said.contains(" at crates/terminal/src/defect.rs:"),
            "{said}"
        );
        assert!(said.contains("please report this line"), "{said}");
        let out = String::from_utf8_lossy(&child.stdout);
        assert!(!said.contains("hunter2") && !out.contains("hunter2"), "{said}{out}");
    }
}
