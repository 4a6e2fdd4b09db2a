//! Rule PodAdmission: the API server accepts the Pods that controllers make from the templates of the run.

mod names;
mod pod;
mod refusal;
mod template;
mod unsettled;
mod ways_out;
mod words;

use std::collections::BTreeMap;

use pushback_objects::finding::{Finding, FindingRef, Verdict};
use pushback_objects::object::{ObjectExt, ObjectKey, ObjectRef};
use pushback_objects::remedy::Remedy;
use pushback_objects::source::{PathSegment, display_path};

pub use self::pod::WorkloadPod;
use self::template::{WorkloadTemplate, new_templates};
use self::unsettled::AdmissionChanges;
use super::permission_validation::{self, CreatePermission};
use super::references::generated;
use crate::facts::{Answer, ChangeSet, Facts, Need, Needs, PodAdmission as Admission, PodRefusal};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};
use crate::session::needs_a_server;

const NAME: &str = "PodAdmission";
/// The check for templates that were not judged.
const NOT_CHECKED: &str = "notChecked";

/// Most workloads that a note names.
const NAMED: usize = 5;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodAdmission;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "the API server accepts the Pods that controllers make from the templates",
    docs: include_str!("pod_admission/docs.md"),
    checks: &[
        ("podSecurity", "the Pod Security Standard that the namespace enforces forbids the Pods"),
        ("limitRange", "a LimitRange refuses the requests or limits of the Pods"),
        ("quotaRequests", "a ResourceQuota demands requests or limits that a container does not set"),
        ("quota", "a ResourceQuota has no room for a Pod"),
        ("serviceAccount", "the ServiceAccount of the Pods does not exist"),
        ("priorityClass", "the PriorityClass of the Pods does not exist"),
        ("runtimeClass", "the RuntimeClass of the Pods does not exist"),
        ("webhook", "an admission webhook refuses the Pods"),
        ("policy", "a ValidatingAdmissionPolicy refuses the Pods"),
        ("invalid", "a Pod made from the template is not valid"),
        ("denied", "another admission plugin refuses the Pods"),
        (names::CHECK, "the name of a workload is too long for the Pods that a controller makes"),
        (NOT_CHECKED, "the Pods of a template were not checked, for the reason given"),
    ],
    needs: "a dry run of one Pod for each new or changed Pod template, and the reviews of the user's rights that \
            PermissionValidation needs too",
    unasked: &[("failMode", "open")],
    // What the server says of a Pod does not depend on its version of the workload; the wait sees later refusals.
    judges_manifests_only: true,
    ..RuleMeta::COMMON
};

impl Rule for PodAdmission {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        // A folder is asked nothing, and only `check` knows of it.
        Needs::new()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, _memory: &mut Memory) -> Checked {
        let changed = AdmissionChanges::new(&facts.changes);
        let mut open = Needs::new();
        let mut verdicts = Verdicts::default();
        for template in new_templates(&facts.changes) {
            let problem = names::problem(&template);
            let is_certain = problem.as_ref().is_some_and(|problem| problem.is_certain);
            verdicts.findings.extend(problem.map(|problem| problem.finding));
            if is_certain || !facts.are_of_a_server() {
                continue;
            }
            match ask(facts, &changed, &template) {
                Ok(admission) => verdicts.add(facts, &changed, &template, admission),
                Err(Open::Needs(needs)) => open.extend(needs),
                Err(Open::Never(reason)) => verdicts.unchecked(&template, Verdict::Change, reason),
                Err(Open::Unknown(reason)) => verdicts.unchecked(&template, Verdict::Unknown, reason),
            }
        }
        if !open.is_empty() {
            return Checked::More(open);
        }
        if !facts.are_of_a_server() && verdicts.findings.is_empty() {
            return Checked::Skipped(needs_a_server(&facts.cluster));
        }
        verdicts.close()
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        ways_out::ways_out(facts, finding)
    }
}

/// Makes the Pod of a workload for its dry run; `None` if the run has no Pod template of it.
#[must_use]
pub(crate) fn workload_pod(changes: &ChangeSet, workload: &ObjectRef) -> Option<WorkloadPod> {
    let change = changes.find(&workload.key())?;
    WorkloadTemplate::find(change).map(|template| pod::make(&template))
}

/// The reason why a template has no answer.
enum Open {
    /// These facts are still needed.
    Needs(Needs),
    /// It cannot be asked about.
    Never(String),
    /// The server gave no answer.
    Unknown(String),
}

/// The server's answer about the Pods of a template.
fn ask<'f>(
    facts: &'f Facts,
    changed: &AdmissionChanges<'_>,
    template: &WorkloadTemplate<'_>,
) -> Result<&'f Admission, Open> {
    if let Some(reason) = changed.reason(template) {
        return Err(Open::Never(reason));
    }
    let namespace = template.change.object.namespace.as_str();
    match permission_validation::may_create(facts, "pods", namespace) {
        CreatePermission::Granted => {}
        CreatePermission::Open(needs) => return Err(Open::Needs(needs)),
        CreatePermission::Denied => return Err(Open::Never(not_permitted(namespace))),
    }
    let need = Need::PodAdmission { workload: template.change.object.clone() };
    match facts.answers.get(&need) {
        None => Err(Open::Needs(Needs::from([need]))),
        Some(Answer::PodAdmission { admission: Admission::Forbidden { .. } }) => {
            Err(Open::Never(not_permitted(namespace)))
        }
        Some(Answer::PodAdmission { admission: Admission::NoDryRun { message } }) => Err(Open::Never(message.clone())),
        Some(Answer::PodAdmission { admission }) => Ok(admission),
        Some(Answer::Unable { reason }) => Err(Open::Unknown(reason.clone())),
        Some(_) => Err(Open::Unknown("the answer does not fit the question".to_owned())),
    }
}

fn not_permitted(namespace: &str) -> String {
    format!("this user may not create Pods in namespace {namespace}")
}

/// The results for all templates.
#[derive(Default)]
struct Verdicts {
    judged: usize,
    findings: Vec<Finding>,
    /// Templates without a verdict, by what is known and the reason.
    unchecked: BTreeMap<(Verdict, String), Vec<(ObjectRef, Finding)>>,
}

impl Verdicts {
    fn add(
        &mut self,
        facts: &Facts,
        changed: &AdmissionChanges<'_>,
        template: &WorkloadTemplate<'_>,
        admission: &Admission,
    ) {
        let Admission::Refused { by, message, fields } = admission else {
            self.judged += 1;
            return;
        };
        let is_policy = [PodRefusal::Webhook, PodRefusal::Policy].contains(by);
        let may_pass = if is_policy { changed.named_in(message) } else { made_at_run_time(facts, template, *by) };
        if let Some(reason) = may_pass {
            self.unchecked(template, Verdict::Change, reason);
            return;
        }
        self.judged += 1;
        self.findings.push(refusal::finding(template, *by, message, fields));
    }

    fn unchecked(&mut self, template: &WorkloadTemplate<'_>, verdict: Verdict, reason: String) {
        let object = template.change.object.clone();
        let finding = Finding::new(NAME, NOT_CHECKED, verdict, object.clone(), "")
            .at(template.locate(&[]))
            .path(template.display(&[]));
        self.unchecked.entry((verdict, reason)).or_default().push((object, finding));
    }

    fn close(mut self) -> Checked {
        let is_unknown = |((verdict, _), _): (&(Verdict, String), &Vec<_>)| *verdict == Verdict::Unknown;
        if self.findings.is_empty()
            && self.judged == 0
            && !self.unchecked.is_empty()
            && !self.unchecked.iter().any(is_unknown)
        {
            let reasons = self.unchecked.iter().map(|((_, reason), of)| format!("{}: {reason}", names(of)));
            return Checked::Skipped(reasons.collect::<Vec<_>>().join("; "));
        }
        for ((_, reason), of) in self.unchecked {
            let others = names(of.get(1..).unwrap_or_default());
            let others = if others.is_empty() { String::new() } else { format!("; nor those of {others}") };
            if let Some((_, finding)) = of.into_iter().next() {
                let message = format!("its Pods were not checked{others}: {reason}");
                self.findings.push(Finding { message, ..finding });
            }
        }
        Checked::Done(Judgement { findings: self.findings, unable: Vec::new() })
    }
}

/// The object that is missing for the Pods now, if it may be made at run time.
fn made_at_run_time(facts: &Facts, template: &WorkloadTemplate<'_>, by: PodRefusal) -> Option<String> {
    let (group, kind, namespace, name) = match by {
        PodRefusal::ServiceAccount => {
            ("", "ServiceAccount", template.change.object.namespace.as_str(), template.service_account())
        }
        PodRefusal::PriorityClass => {
            ("scheduling.k8s.io", "PriorityClass", "", template.template.text("/spec/priorityClassName"))
        }
        PodRefusal::RuntimeClass => {
            ("node.k8s.io", "RuntimeClass", "", template.template.text("/spec/runtimeClassName"))
        }
        _ => return None,
    };
    let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
    let key = ObjectKey { group, kind, namespace, name };
    generated::is_made_at_run_time(facts, &key).then(|| format!("{key} is made at run time, and is not there yet"))
}

/// The finding of this rule that reports a missing object as well, by the path of the reference to it.
pub(crate) fn finding_for_missing(target: &ObjectKey, path: &[PathSegment]) -> Option<FindingRef> {
    let by = match target.kind.as_str() {
        "ServiceAccount" => PodRefusal::ServiceAccount,
        "PriorityClass" => PodRefusal::PriorityClass,
        "RuntimeClass" => PodRefusal::RuntimeClass,
        _ => return None,
    };
    let (_, spec) = path.split_last()?;
    let path = Some(display_path(spec));
    Some(FindingRef { rule: NAME.to_owned(), check: by.as_str().to_owned(), version: None, path })
}

fn names(of: &[(ObjectRef, Finding)]) -> String {
    let mut names: Vec<String> = of.iter().take(NAMED).map(|(object, _)| object.to_string()).collect();
    if of.len() > names.len() {
        names.push(format!("{} more", of.len() - names.len()));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests;
