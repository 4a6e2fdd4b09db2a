//! The log of the server: a line for each event.

use pushback_terminal::escape::terminal_safe;

use crate::Notice;

/// A line, without its end.
#[must_use]
pub fn line(time: &str, notice: &Notice) -> String {
    let (level, text) = match notice {
        Notice::Listening { address, reviews: Some(reviews) } => {
            ("info", format!("{reviews} are answered on https://{address}"))
        }
        Notice::Listening { address, reviews: None } => {
            ("info", format!("health and metrics also on http://{address}"))
        }
        Notice::PlansLoaded { generation, definitions } => {
            ("info", format!("plans in use (generation {generation}): {}", definitions.join(", ")))
        }
        Notice::PolicyLoaded { generation, policy, ignored } => {
            let ignored: String = ignored.iter().map(|ignored| format!("; not used here: {ignored}")).collect();
            ("info", format!("policy in use (generation {generation}): {policy}{ignored}"))
        }
        Notice::FilesRefused { files, errors } => {
            let errors = errors.join("; ");
            let subject = if *files == "plans" { "plans have" } else { "the policy has" };
            ("error", format!("{subject} changed and cannot be used, those before stay: {errors}"))
        }
        Notice::CertificateLoaded { expires: Some(expires) } => {
            ("info", format!("certificate in use, valid until {expires}"))
        }
        Notice::CertificateLoaded { expires: None } => ("info", "certificate in use".to_owned()),
        Notice::CertificateRefused { reason } => {
            ("error", format!("certificate or key has changed and cannot be used, those before stay: {reason}"))
        }
        Notice::Judged { crd, operation, user, result, reason } => {
            ("info", format!("{operation} of {crd} by {user} {result}: {reason}"))
        }
        Notice::NotAnswered { peer, done, reason } => ("error", format!("request of {peer} not {done}: {reason}")),
        Notice::NoConnection { peer, reason } => ("error", format!("no TLS connection with {peer}: {reason}")),
        Notice::Draining => ("info", "ending: /readyz fails from now on".to_owned()),
        Notice::Unfinished => ("error", "requests were still under way at the end".to_owned()),
        Notice::Stopped => ("info", "ended".to_owned()),
    };
    format!("{time} {level} {}", terminal_safe(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let peer = "10.0.0.1".parse().unwrap();
        let notice = Notice::NotAnswered { peer, done: "converted", reason: "Test a\nb\u{1b}[31m".to_owned() };
        let line = line("2026-01-01T00:00:00Z", &notice);
        assert!(line.starts_with("2026-01-01T00:00:00Z error request of 10.0.0.1 not converted: Test a"), "{line}");
        assert!(!line.contains('\n') && !line.contains('\u{1b}'), "{line:?}");
    }
}
