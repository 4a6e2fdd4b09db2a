//! The changes of a plan as Markdown, with their fields: what a reviewer looks at beside the findings. Secrets are masked
//! in the lines that it gets.

use pushback_events::{FieldLine, PlannedLine};
use pushback_objects::text::counted;
use pushback_preflight::Operation;

use crate::markdown::{code, prose};

/// Most fields of one object.
const FIELDS: usize = 10;
/// Most characters of a path or value.
const VALUE: usize = 120;
/// Most bytes of all changes: findings are what a comment is for.
const ROOM: usize = 16_384;

/// The changes in a collapsed block of at most this size, and how many of them are left out.
pub(super) fn changes(plan: &[PlannedLine], room: usize) -> (String, usize) {
    const HEAD: &str = "\n<details><summary>Changes</summary>\n\n";
    const END: &str = "\n</details>\n";
    let room = room.min(ROOM).saturating_sub(HEAD.len() + END.len());
    let is_change = |line: &&PlannedLine| line.operation != Operation::Exists;
    let mut text = String::new();
    let mut shown = 0;
    let all = || plan.iter().filter(is_change);
    for line in all() {
        let block = block(line);
        if text.len() + block.len() > room {
            break;
        }
        text += &block;
        shown += 1;
    }
    let left_out = all().count() - shown;
    if text.is_empty() { (text, left_out) } else { (format!("{HEAD}{text}{END}"), left_out) }
}

fn block(line: &PlannedLine) -> String {
    let mut text = format!("- {} {}\n", line.operation.as_str(), code(&line.object.to_string(), 600));
    for note in &line.notes {
        text += &format!("  - {}\n", prose(note, 4 * VALUE));
    }
    for FieldLine { path, old, new } in line.fields.iter().take(FIELDS) {
        let value = |value: &Option<String>| value.as_ref().map_or("nothing".to_owned(), |value| code(value, VALUE));
        text += &format!("  - {}: {} → {}\n", code(path, 2 * VALUE), value(old), value(new));
    }
    if line.fields.len() > FIELDS {
        text += &format!("  - and {}\n", counted(line.fields.len() - FIELDS, "more field"));
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_events::Event;

    use super::*;
    use crate::fixture;

    fn plan() -> Vec<PlannedLine> {
        fixture::deploy()
            .into_iter()
            .find_map(|(_, event)| match event {
                Event::Plan { changes, .. } => Some(changes),
                _ => None,
            })
            .expect("a plan")
    }

    #[test]
    fn changes_have_their_fields() {
        let (text, left_out) = changes(&plan(), usize::MAX);
        assert_eq!(left_out, 0);
        assert_snapshot!(text, @"
        <details><summary>Changes</summary>

        - create `ConfigMap shop/web-settings`
        - update `Deployment shop/web`
          - `spec.replicas`: `3` → `4`
        - update `Secret shop/web-tls`
        - delete `Service shop/web-old`

        </details>
        ");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let many: Vec<PlannedLine> = plan().into_iter().cycle().take(2_000).collect();
        let (text, left_out) = changes(&many, usize::MAX);
        assert!(text.len() <= ROOM && left_out == many.len() - text.matches("\n- ").count(), "{left_out}");
        assert_eq!(changes(&many, 50), (String::new(), 2_000));
    }
}
