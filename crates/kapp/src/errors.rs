//! kapp's texts for what ended a run.

use std::collections::BTreeMap;
use std::time::Duration;

use pushback_cluster::{ALREADY_EXISTS, NOT_FOUND};
use pushback_events::exit::ExitCode;
use pushback_events::{AppRef, OwnedObject, RunFailure, UnableRule, Unfinished, UnfinishedLine};
use pushback_manifest::collect::Problem;
use pushback_objects::{Finding, ObjectRef};
use pushback_preflight::{Operation, registry};

use super::words;

/// A write that failed, or that the server would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedWrite {
    /// The object.
    pub object: ObjectRef,
    /// The operation.
    pub operation: Operation,
    /// The server's message, without the object's name before it.
    pub message: String,
    /// The server's reason, such as `Invalid`.
    pub reason: String,
}

/// A confirmed write that would make another change now, since its object has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutdatedWrite {
    /// The write that failed.
    pub write: FailedWrite,
    /// Name of the kind in paths, with its group.
    pub resource: String,
    /// Changed lines of the diff that the write would have now; `None` if the object is gone.
    pub diff: Option<String>,
}

/// What is known at the end of a run.
#[derive(Debug, Default)]
pub struct End<'e> {
    /// Exit code of pushback.
    pub code: u8,
    /// Its error.
    pub error: &'e str,
    /// Its reason.
    pub failure: Option<&'e RunFailure>,
    /// Findings for which preflight refused.
    pub refusals: &'e [Finding],
    /// Writes that the server refuses, in the order of the plan.
    pub refused_writes: &'e [FailedWrite],
    /// True for the command `rename`, whose sentence about a missing app differs.
    pub is_rename: bool,
    /// Objects that are not done.
    pub unfinished: &'e [UnfinishedLine],
    /// How they were when the wait for them ended, in kapp's words.
    pub endings: Option<&'e BTreeMap<ObjectRef, String>>,
    /// Whether everything that failed is told, not only the first.
    pub all_errors: bool,
    /// Whether the run stopped at its plan.
    pub is_diff: bool,
    /// Writes that failed: the first one, or all where all are told.
    pub failed_writes: &'e [FailedWrite],
    /// The first object that was waited for in vain, and for how many milliseconds.
    pub absent: Option<&'e (ObjectRef, u64)>,
    /// The first write that a webhook has kept from being made, and for how many milliseconds it was tried.
    pub blocked: Option<&'e (FailedWrite, u64)>,
    /// The confirmed write that failed, if the plan is outdated.
    pub outdated: Option<&'e OutdatedWrite>,
}

/// The text after `kapp: Error: `; empty where the run succeeded.
#[must_use]
pub fn text(end: &End<'_>) -> String {
    let is = |wanted: ExitCode| end.code == wanted.code();
    if is(ExitCode::Success) {
        return String::new();
    }
    if is(ExitCode::NoChanges) || is(ExitCode::Changes) {
        let (when, pending) = match (end.is_diff, is(ExitCode::Changes)) {
            (true, true) => ("diffing", "pending changes"),
            (true, false) => ("diffing", "no pending changes"),
            (false, true) => ("applying", "changes"),
            (false, false) => ("applying", "no changes"),
        };
        return format!("Exiting after {when} with {pending} (exit status {})", end.code);
    }
    if let Some((object, after)) = end.absent {
        return absent(object, *after);
    }
    if let Some((said, after)) = end.blocked {
        return format!("{}{}", last_error(*after), api_error(said).replace('\n', "\n  "));
    }
    if let (Some(RunFailure::PlanOutdated), Some(outdated)) = (end.failure, end.outdated) {
        return outdated_text(outdated);
    }
    match end.failed_writes {
        [] => {}
        [said] if !end.all_errors || failed_waits(end).is_empty() => return api_error(said),
        several => {
            let waits = failed_waits(end).into_iter().filter(|_| end.all_errors).map(on_a_line);
            return listed("", several.iter().map(api_error_on_a_line).chain(waits));
        }
    }
    let Some(failure) = end.failure else { return never_ready(end).unwrap_or_else(|| end.error.to_owned()) };
    match failure {
        RunFailure::Declined => "Stopped".to_owned(),
        RunFailure::NoAnswer => "Asking for confirmation:\n  EOF".to_owned(),
        RunFailure::Flag { flag, value } => wrong_flag(flag, value).unwrap_or_else(|| end.error.to_owned()),
        RunFailure::NoFile { file } => format!("stat {file}: no such file or directory"),
        RunFailure::NoObjects => "Trying to apply empty set of resources will result in deletion of resources on \
                                  cluster. Refusing to continue unless --dangerous-allow-empty-list-of-resources is \
                                  specified."
            .to_owned(),
        RunFailure::InvalidObjects { objects } => invalid(objects),
        RunFailure::NotAllowed { objects } => not_allowed(objects),
        RunFailure::OwnedByOthers { objects } => ownership(objects),
        RunFailure::UnknownKind { api_version, kind } => format!(
            "Expected to find kind '{api_version}/{kind}', but did not:\n- Kubernetes API server did not have matching \
             apiVersion + kind\n- No matching CRD was found in given configuration"
        ),
        RunFailure::Cycle { objects } => {
            let names: Vec<String> = objects.iter().map(|object| format!("[{}]", words::described(object))).collect();
            let repeated = objects.last().map(words::described).unwrap_or_default();
            format!("Detected cycle while ordering changes: {} (found repeated: {repeated})", names.join(" -> "))
        }
        RunFailure::UnknownRule { rule } => {
            format!("preflight configuration settings failed: unknown preflight check in configuration: \"{rule}\"")
        }
        RunFailure::NoApp { app, elsewhere } => no_app(app, elsewhere, if end.is_rename { "" } else { ": " }),
        RunFailure::RecordNotCreated { message } => format!("Creating app: {message}"),
        RunFailure::Refused { unable } => {
            let is_of_rule = |finding: &&Finding| finding.rule != registry::SERVER;
            match (end.refusals.iter().find(is_of_rule), end.refused_writes.first(), unable.first()) {
                (Some(first), ..) => refused(&first.rule, end.refusals),
                (None, Some(write), _) => api_error(write),
                (None, None, Some(UnableRule { rule, reason })) => {
                    format!("preflight checks failed: running preflight check \"{rule}\": {reason}")
                }
                (None, None, None) => end.error.to_owned(),
            }
        }
        RunFailure::WaitTimeout { limit, per_object } => timed_out(end, limit.0, *per_object),
        _ => end.error.to_owned(),
    }
}

/// Returns the text for a flag that is missing or wrong, if kapp has one.
fn wrong_flag(flag: &str, value: &str) -> Option<String> {
    Some(match flag {
        "--labels" => format!("Expected label '{value}' value to remain same"),
        "--new-name" => "Expected either --new-name or/and --new-namespace to be supplied".to_owned(),
        "--file" => "Expected at least one --file (-f) specified with a file or directory path".to_owned(),
        "--filter-age" => "Expected age filter to be either empty or parseable time.Duration (example: 5m+, 24h-; \
                           valid units: ns, us, ms, s, m, h)"
            .to_owned(),
        "--directory" => format!("Reading directory '{value}': open {value}: no such file or directory"),
        "--preflight" => {
            format!("invalid argument \"{value}\" for \"{flag}\" flag: unknown preflight check \"{value}\" specified")
        }
        _ => return None,
    })
}

/// The text for an object that nobody has created.
#[must_use]
pub fn absent(object: &ObjectRef, after: u64) -> String {
    format!("{}exists {}:\n    {}", last_error(after), words::described(object), words::ABSENT)
}

fn last_error(after: u64) -> String {
    // Limits are whole seconds, and the end of one is met within milliseconds.
    let after = words::duration(Duration::from_secs((after + 500) / 1_000));
    format!("Timed out waiting after {after}:\n  Last error: ")
}

/// The text for a command without a run.
#[must_use]
pub fn of_command(error: &str, code: u8, failure: Option<&RunFailure>, is_rename: bool) -> String {
    text(&End { code, error, failure, is_rename, ..End::default() })
}

/// `App 'shop' (namespace: x) does not exist (hint: found app 'shop' in other namespaces: a, b, c, ...)`, with what the
/// command says before the hint.
#[must_use]
pub fn no_app(app: &AppRef, elsewhere: &[String], before_hint: &str) -> String {
    const SHOWN: usize = 3;
    let AppRef { name: app, namespace } = app;
    let hint = if elsewhere.is_empty() {
        String::new()
    } else {
        let more = if elsewhere.len() > SHOWN { ", ..." } else { "" };
        let shown = elsewhere[..elsewhere.len().min(SHOWN)].join(", ");
        format!(" (hint: found app '{app}' in other namespaces: {shown}{more})")
    };
    format!("App '{app}' (namespace: {namespace}) does not exist{before_hint}{hint}")
}

fn timed_out(end: &End<'_>, after: u64, of_object: bool) -> String {
    let after = words::duration(Duration::from_millis(after));
    let waiting: Vec<&UnfinishedLine> = end
        .unfinished
        .iter()
        .filter(|line| !matches!(line.state, Unfinished::NotApplied | Unfinished::Failed))
        .collect();
    if of_object {
        let late = waiting.iter().take(if end.all_errors { waiting.len() } else { 1 });
        let late = late.map(|line| [awaited(line), format!("Errored: Resource timed out waiting after {after}")]);
        let failed = failed_waits(end).into_iter().filter(|_| end.all_errors);
        return one_or_all(late.chain(failed).collect()).replacen("  Errored: ", "  Errored:\n    ", 1);
    }
    let start = format!("Timed out waiting after {after} for resources: ");
    match waiting.as_slice() {
        [line] => format!("{start}[{}]", words::described(&line.object)),
        // kapp takes every comma for the end of an item.
        several => listed(&start, several.iter().map(|line| words::described(&line.object))),
    }
}

/// Several errors, each on a line of its own.
fn listed(start: &str, items: impl Iterator<Item = String>) -> String {
    format!("{start}\n{}\n", items.map(|item| format!("\n  - {item}\n")).collect::<String>())
}

/// A single error on two lines, several as a list.
fn one_or_all(errors: Vec<[String; 2]>) -> String {
    match errors.as_slice() {
        [[what, how]] => format!("{what}:\n  {how}"),
        _ => listed("", errors.into_iter().map(on_a_line)),
    }
}

fn on_a_line([what, how]: [String; 2]) -> String {
    format!("{what}: {how}")
}

/// `waiting on reconcile X`
fn awaited(line: &UnfinishedLine) -> String {
    let wait = if line.state == Unfinished::NotDeleted { "delete" } else { "reconcile" };
    format!("waiting on {wait} {}", words::described(&line.object))
}

/// The waits that failed: for what, and how. What could not be written was not waited for.
fn failed_waits(end: &End<'_>) -> Vec<[String; 2]> {
    let written = |line: &&UnfinishedLine| end.failed_writes.iter().all(|said| said.object != line.object);
    let failed = end.unfinished.iter().filter(|line| line.state == Unfinished::Failed).filter(written);
    failed
        .map(|line| {
            let how = end.endings.and_then(|endings| endings.get(&line.object)).unwrap_or(&line.message);
            [awaited(line), format!("Finished unsuccessfully ({how})")]
        })
        .collect()
}

fn ownership(owned: &[OwnedObject]) -> String {
    let line = |owned: &OwnedObject| {
        let whose = match &owned.app {
            Some(AppRef { name, namespace }) => {
                format!("different app '{name}' namespace: {namespace} (label '{}')", owned.label)
            }
            None => format!("different label '{}'", owned.label),
        };
        format!("\n- Resource '{}' is already associated with a {whose}", words::described(&owned.object))
    };
    format!("Ownership errors:{}", owned.iter().map(line).collect::<String>())
}

fn invalid(problems: &[Problem]) -> String {
    let missing = problems.iter().flat_map(|Problem { object, file, document, missing }| {
        let (object, origin) = (words::described(object), origin(file, *document));
        missing
            .iter()
            .map(move |field| format!("\n- Expected '{field}' on resource '{object}' to be non-empty ({origin})"))
    });
    let missing: String = missing.collect();
    if !missing.is_empty() {
        return format!("Validation errors:{missing}");
    }
    let line = |problem: &Problem| {
        format!("\n- Found resource '{}' multiple times with different content", words::described(&problem.object))
    };
    format!("Uniqueness errors:{}", problems.iter().map(line).collect::<String>())
}

fn not_allowed(objects: &[Problem]) -> String {
    let line = |outside: &Problem| {
        let object = words::described(&outside.object);
        let origin = origin(&outside.file, outside.document);
        match outside.object.namespace.is_empty() {
            true => format!("\n- Cluster level resource '{object}' is not allowed ({origin})"),
            false => format!("\n- Resource '{object}' is outside of allowed namespaces ({origin})"),
        }
    };
    format!("Validation errors:{}", objects.iter().map(line).collect::<String>())
}

fn origin(file: &str, document: usize) -> String {
    let file = if file == "-" { "stdin".to_owned() } else { format!("file '{}'", base_name(file)) };
    format!("{file} doc {document}")
}

fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The start of the server's message where the reason is [`words::INTERNAL_ERROR`].
const INTERNAL: &str = "Internal error occurred: ";

/// A write that the server refused, in kapp's words.
struct ApiError {
    /// `create`, `Creating`, and so on.
    verbs: (&'static str, &'static str),
    object: String,
    /// `Service "web" is invalid: `, where that is the reason.
    named: String,
    /// What the server lists, if it lists several things.
    items: Vec<String>,
    /// ` (reason: Invalid)`
    reason: String,
}

impl ApiError {
    fn of(said: &FailedWrite) -> Self {
        let group = if said.object.group.is_empty() { String::new() } else { format!(".{}", said.object.group) };
        let named = match said.reason.as_str() {
            "Invalid" => format!("{}{group} \"{}\" is invalid: ", said.object.kind, said.object.name),
            _ => String::new(),
        };
        // kapp takes every comma for the end of an item.
        let listed = said.message.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let items = listed.filter(|_| !named.is_empty()).into_iter().flat_map(|items| items.split(", "));
        Self {
            verbs: match said.operation {
                Operation::Create => ("create", "Creating"),
                Operation::Delete => ("delete", "Deleting"),
                _ => ("update", "Updating"),
            },
            object: words::described(&said.object),
            items: items.map(|item| format!("\n\n  - {item}")).collect(),
            reason: if said.reason.is_empty() { String::new() } else { format!(" (reason: {})", said.reason) },
            named,
        }
    }

    /// What the server says of it.
    fn words(said: &FailedWrite) -> String {
        match said.message.rsplit_once(": ") {
            Some((_, words)) if said.reason == ALREADY_EXISTS => words.to_owned(),
            _ if said.reason == words::INTERNAL_ERROR && !said.message.starts_with(INTERNAL) => {
                format!("{INTERNAL}{}", said.message)
            }
            _ => said.message.clone(),
        }
    }
}

/// `create X: Creating resource X: API server says: …`, a level of indentation for each colon.
fn api_error(said: &FailedWrite) -> String {
    let ApiError { verbs: (doing, done), object, named, items, reason } = ApiError::of(said);
    let start = format!("{doing} {object}:\n  {done} resource {object}:\n    ");
    match items.is_empty() {
        false => format!("{start}API server says:\n      {named}{}\n\n{reason}", items.concat()),
        true => {
            let says = format!("API server says: {named}{}", ApiError::words(said));
            format!("{start}{}{reason}", nested(&says, 3))
        }
    }
}

/// Returns the text for a write that the user agreed to, and that would make another change now.
fn outdated_text(outdated: &OutdatedWrite) -> String {
    let OutdatedWrite { write, resource, diff } = outdated;
    let name = &write.object.name;
    let Some(diff) = diff else {
        let message = format!("{resource} \"{name}\" not found");
        return api_error(&FailedWrite { message, reason: NOT_FOUND.to_owned(), ..write.clone() });
    };
    let object = words::described(&write.object);
    format!(
        "update {object}:\n  Failed to update due to resource conflict (approved diff no longer matches):\n    Updating \
         resource {object}:\n      API server says:\n        Operation cannot be fulfilled on {resource} \"{name}\": the \
         object has been modified; please apply your changes to the latest version and try again (reason: \
         Conflict):\n          Recalculated diff:\n{diff}"
    )
}

/// Returns `create X: Creating resource X: API server says: …`, for a list of errors.
fn api_error_on_a_line(write: &FailedWrite) -> String {
    format!("{} {}: {}", ApiError::of(write).verbs.0, words::described(&write.object), of_write(write))
}

/// Returns `Creating resource X: API server says: …`, for a line of the progress.
#[must_use]
pub fn of_write(write: &FailedWrite) -> String {
    let ApiError { verbs: (_, done), object, named, items, reason } = ApiError::of(write);
    let start = format!("{done} resource {object}: API server says: {named}");
    match items.is_empty() {
        false => format!("{start}{}\n\n{reason}", items.concat()),
        true => format!("{start}{}{reason}", ApiError::words(write)),
    }
}

/// A line break and a further level before each capital letter that follows a colon.
fn nested(text: &str, level: usize) -> String {
    let mut result = String::new();
    let (mut rest, mut level) = (text, level);
    while let Some(at) = rest
        .match_indices(": ")
        .map(|(at, _)| at)
        .find(|at| rest[at + 2..].starts_with(|c: char| c.is_ascii_uppercase()))
    {
        result += &rest[..=at];
        result += &format!("\n{}", "  ".repeat(level));
        rest = &rest[at + 2..];
        level += 1;
    }
    result + rest
}

/// What the first rule found, as kapp's check of that name tells it.
fn refused(rule: &str, findings: &[Finding]) -> String {
    let findings = findings.iter().filter(|finding| finding.rule == rule);
    let lines: Vec<String> = match rule {
        "CRDUpgradeSafety" => findings.map(definition).collect(),
        "PermissionValidation" => findings.map(permission).collect(),
        _ => findings.map(|found| format!("{} {}: {}", found.object.kind, found.object.name, found.message)).collect(),
    };
    let start = if rule == "CRDUpgradeSafety" { "validation for safe CRD upgrades failed\n" } else { "" };
    format!("preflight checks failed: running preflight check \"{rule}\": {start}{}", lines.join("\n"))
}

fn definition(finding: &Finding) -> String {
    let (name, message) = (&finding.object.name, &finding.message);
    registry::published_line(finding).unwrap_or_else(|| {
        format!(
            "CustomResourceDefinition {name} failed upgrade safety validation. \"ChangeValidator\" validation failed: {message}"
        )
    })
}

/// kapp asks for `update`, where server-side apply needs `patch`, and does not name the namespace.
fn permission(finding: &Finding) -> String {
    let text = finding.message.split(" in namespace \"").next().unwrap_or_default();
    text.replacen("not permitted to \"patch\"", "not permitted to \"update\"", 1)
}

fn never_ready(end: &End<'_>) -> Option<String> {
    let mut waits = failed_waits(end);
    waits.truncate(if end.all_errors { waits.len() } else { 1 });
    (!waits.is_empty()).then(|| one_or_all(waits))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn said(operation: Operation, kind: &str, group: &str, message: &str) -> FailedWrite {
        let object = ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: "ck".to_owned(),
            name: "d1".to_owned(),
        };
        FailedWrite { object, operation, message: message.to_owned(), reason: "Invalid".to_owned() }
    }

    #[test]
    fn what_the_server_says_is_set_in_at_every_colon() {
        let update = said(
            Operation::Update,
            "Deployment",
            "apps",
            "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable",
        );
        assert_snapshot!(api_error(&update), @r#"
        update deployment/d1 (apps/v1) namespace: ck:
          Updating resource deployment/d1 (apps/v1) namespace: ck:
            API server says:
              Deployment.apps "d1" is invalid: spec.selector:
                Invalid value: {"matchLabels":{"a":"c"}}: field is immutable (reason: Invalid)
        "#);
        let create = said(Operation::Create, "Service", "", "[spec.a: Invalid value: 1, spec.b: Required value]");
        assert_snapshot!(api_error(&create), @r#"
        create service/d1 (v1) namespace: ck:
          Creating resource service/d1 (v1) namespace: ck:
            API server says:
              Service "d1" is invalid: 

          - spec.a: Invalid value: 1

          - spec.b: Required value

         (reason: Invalid)
        "#);
        let failed_writes = &[update, create];
        let end = End { code: 20, all_errors: true, failed_writes, ..End::default() };
        assert_snapshot!(text(&end), @r#"

          - update deployment/d1 (apps/v1) namespace: ck: Updating resource deployment/d1 (apps/v1) namespace: ck: API server says: Deployment.apps "d1" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable (reason: Invalid)

          - create service/d1 (v1) namespace: ck: Creating resource service/d1 (v1) namespace: ck: API server says: Service "d1" is invalid: 

          - spec.a: Invalid value: 1

          - spec.b: Required value

         (reason: Invalid)
        "#);
    }
}
