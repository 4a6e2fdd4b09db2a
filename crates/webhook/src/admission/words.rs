//! The texts of an answer: the first cause, and the command that shows all of them.

use super::bounded::{sentence, warning};
use super::judgement::ChangeVerdict;
use super::review::{Envelope, Operation};
use super::{ACCEPT_BREAKING, ACCEPT_DELETION};

/// The texts about one change.
pub(super) struct Texts<'a> {
    pub(super) envelope: &'a Envelope,
    pub(super) judged: &'a ChangeVerdict,
    /// True if `check` needs a policy for the same verdict.
    pub(super) has_policy: bool,
}

impl Texts<'_> {
    /// The message of a refusal. `remark` is why an annotation does not accept it.
    pub(super) fn refusal(&self, remark: Option<&str>) -> String {
        let name = sentence(&self.envelope.name);
        let mut lines = vec![format!("CRD {}{}", sentence(&self.first()), self.others())];
        lines.extend(self.judged.remedy.as_deref().map(|remedy| format!("Remedy: {}.", sentence(remedy))));
        lines.push(format!("{}.", self.command()));
        lines.extend(remark.map(|remark| format!("Not accepted: {remark}.")));
        lines.push(match self.envelope.operation {
            Operation::Delete => format!("To accept it: kubectl annotate crd {name} {ACCEPT_DELETION}=REASON"),
            _ => format!("To accept it: write the annotation {ACCEPT_BREAKING}: REASON together with the change."),
        });
        lines.join("\n")
    }

    /// Warnings about a change that is allowed by its verdict.
    pub(super) fn warnings(&self) -> Vec<String> {
        let causes = &self.judged.causes;
        let mut warnings: Vec<String> = causes.iter().map(|cause| warning(cause)).collect();
        if !causes.is_empty() {
            warnings.push(warning(&self.command()));
        }
        warnings
    }

    /// Warnings about a change that is allowed although it would be refused.
    pub(super) fn allowed(&self, because: &str) -> Vec<String> {
        let cause = format!("{}{}", self.first(), self.others());
        vec![warning(because), warning(&cause), warning(&self.command())]
    }

    fn first(&self) -> String {
        self.judged.causes.first().cloned().unwrap_or_else(|| "the change is refused".to_owned())
    }

    fn others(&self) -> String {
        match self.judged.others {
            0 => String::new(),
            1 => " (and 1 more cause)".to_owned(),
            more => format!(" (and {more} more causes)"),
        }
    }

    /// The command that shows everything.
    fn command(&self) -> String {
        let name = sentence(&self.envelope.name);
        match (self.envelope.operation, &self.judged.resource) {
            (Operation::Delete, Some(resource)) => format!("All objects: kubectl get {} -A", sentence(resource)),
            _ => {
                let policy = if self.has_policy { " --config POLICY" } else { "" };
                format!(
                    "All causes: kubectl get crd {name} -o yaml >old.yaml; \
                     pushback check -f FILE --cluster file:old.yaml{policy}"
                )
            }
        }
    }
}
