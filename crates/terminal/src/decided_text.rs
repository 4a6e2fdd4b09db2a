//! What the objects that are there have decided, as one line a definition: dozens of changes that affect nobody would
//! bury the one that does.

use std::collections::BTreeMap;

use pushback_objects::Finding;
use pushback_objects::text::counted;

use crate::escape::terminal_safe;
use crate::theme::{Role, Theme};

/// Decided findings that have not been shown yet.
#[derive(Debug, Default)]
pub struct DecidedFindings {
    /// Number of findings, and of objects, by rule and definition.
    held: BTreeMap<(String, String), (usize, u64)>,
}

impl DecidedFindings {
    /// Keeps a finding that was decided by live objects, to be shown with its like; `false` for any other.
    pub fn hold(&mut self, finding: &Finding) -> bool {
        let holds = finding.decided.is_some() && finding.waived.is_none();
        if holds {
            let held = self.held.entry((finding.rule.clone(), finding.object.name.clone())).or_default();
            held.0 += 1;
            held.1 = held.1.max(finding.live_objects.as_ref().map_or(0, |live| live.examined));
        }
        holds
    }

    /// One line a definition, and what decided. Nothing is held afterwards.
    pub fn show(&mut self, theme: Theme) -> String {
        let mut text = String::new();
        for ((rule, definition), (count, examined)) in std::mem::take(&mut self.held) {
            let name = theme.paint(Role::Caution, &format!("warning[{}]", terminal_safe(&rule)));
            let line = terminal_safe(&sentence(&definition, count, examined)).into_owned();
            text += &format!("{name}: {}\n", theme.paint(Role::Strong, &line));
        }
        if !text.is_empty() {
            text += " = decided by the objects that are there; --verbose shows each, `liveObjects: report` refuses them\n\n";
        }
        text
    }
}

/// `55 tightenings affect none of 37 applications.argoproj.io`.
fn sentence(definition: &str, count: usize, examined: u64) -> String {
    let tightenings = counted(count, "tightening");
    let (affects, does) = if count == 1 { ("affects", "does") } else { ("affect", "do") };
    match examined {
        0 => format!("{tightenings} {affects} no {definition}: there are none"),
        1 => format!("{tightenings} {does} not affect the only object of {definition}"),
        _ => format!("{tightenings} {affects} none of {examined} {definition}"),
    }
}

#[cfg(test)]
mod tests {
    use pushback_objects::finding::{Decided, Decider, LiveObjects};
    use pushback_objects::{ObjectRef, Verdict};

    use super::*;

    fn finding(definition: &str, examined: u64) -> Finding {
        let object = ObjectRef { name: definition.to_owned(), ..ObjectRef::default() };
        let mut finding = Finding::new("CRDUpgradeSafety", "minLength", Verdict::Change, object, "m");
        finding.live_objects = Some(LiveObjects::exactly(0, examined, Vec::new()));
        finding.decided = Some(Decided { by: Decider::LiveObjects, was: Verdict::Breaking });
        finding
    }

    #[test]
    fn what_is_decided_takes_one_line_a_definition() {
        let mut decided = DecidedFindings::default();
        for (definition, examined, count) in [("b.ex.com", 37, 55), ("a.ex.com", 0, 2), ("c.ex.com", 1, 1)] {
            (0..count).for_each(|_| assert!(decided.hold(&finding(definition, examined))));
        }
        let mut waived = finding("d.ex.com", 3);
        waived.waived = Some("it is known".to_owned());
        let mut undecided = finding("d.ex.com", 3);
        undecided.decided = None;
        assert!(!decided.hold(&waived) && !decided.hold(&undecided));
        insta::assert_snapshot!(decided.show(Theme::plain()), @"
        warning[CRDUpgradeSafety]: 2 tightenings affect no a.ex.com: there are none
        warning[CRDUpgradeSafety]: 55 tightenings affect none of 37 b.ex.com
        warning[CRDUpgradeSafety]: 1 tightening does not affect the only object of c.ex.com
         = decided by the objects that are there; --verbose shows each, `liveObjects: report` refuses them
        ");
        assert_eq!(decided.show(Theme::plain()), "");
    }
}
