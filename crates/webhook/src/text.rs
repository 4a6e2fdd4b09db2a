//! The log of the conversion server: a line for each event.

use pushback_terminal::escape::terminal_safe;

use crate::Notice;

/// A line, without its end.
#[must_use]
pub fn line(time: &str, notice: &Notice) -> String {
    let (level, text) = match notice {
        Notice::Listening { address, converts: true } => {
            ("info", format!("conversions are answered on https://{address}"))
        }
        Notice::Listening { address, converts: false } => {
            ("info", format!("health and metrics also on http://{address}"))
        }
        Notice::PlansLoaded { generation, definitions } => {
            ("info", format!("plans in use (generation {generation}): {}", definitions.join(", ")))
        }
        Notice::PlansRefused { errors } => {
            ("error", format!("plans have changed and cannot be used, those before stay: {}", errors.join("; ")))
        }
        Notice::CertificateLoaded { expires: Some(expires) } => {
            ("info", format!("certificate in use, valid until {expires}"))
        }
        Notice::CertificateLoaded { expires: None } => ("info", "certificate in use".to_owned()),
        Notice::CertificateRefused { reason } => {
            ("error", format!("certificate or key has changed and cannot be used, those before stay: {reason}"))
        }
        Notice::NotConverted { peer, reason } => ("error", format!("request of {peer} not converted: {reason}")),
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
        let notice = Notice::NotConverted { peer, reason: "Test a\nb\u{1b}[31m".to_owned() };
        let line = line("2026-01-01T00:00:00Z", &notice);
        assert!(line.starts_with("2026-01-01T00:00:00Z error request of 10.0.0.1 not converted: Test a"), "{line}");
        assert!(!line.contains('\n') && !line.contains('\u{1b}'), "{line:?}");
    }
}
