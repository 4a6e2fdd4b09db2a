//! Causes: findings with one reason, told together. One keyword added to a schema that a definition repeats in thirty
//! places is thirty findings and one cause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::order::in_order;
use pushback_objects::finding::{FINGERPRINT_DIGITS, Finding, Severity, Verdict};
use pushback_objects::hex;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Most names of affected objects that are kept.
const NAMES: usize = 5;

/// Findings with one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// Stable identifier: rule, check, values, and the field with its schema. It does not depend on the members, so it
    /// stays the same when the field appears in one place more.
    pub fingerprint: String,
    /// Name of the rule.
    pub rule: String,
    /// Check within the rule.
    pub check: String,
    /// The worst verdict of the members.
    pub verdict: Verdict,
    /// The worst severity of the members.
    pub severity: Severity,
    /// What happened, as one sentence that names the field.
    pub headline: String,
    /// Number of places: fields of versions of objects.
    pub places: usize,
    /// Number of objects in the input, such as definitions.
    pub objects: usize,
    /// Number of API versions, by name.
    pub versions: usize,
    /// Number of members that a waiver covers.
    pub waived: usize,
    /// The members' fingerprints, sorted.
    pub members: Vec<String>,
    /// The smallest witness of the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Smallest>,
    /// Number of stored objects that the members affect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_objects: Option<LiveTotal>,
    /// For an unknown: what blocked the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// What the user can do about the first member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The ways out of the first member, and how to accept all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// Positions of the members in the list of findings; the worst first.
    #[serde(skip)]
    pub at: Vec<usize>,
}

/// The smallest witness of a cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Smallest {
    /// Fingerprint of the finding that has it.
    pub finding: String,
    /// The offending value, or the innermost one around it, as a JSON pointer into the witness.
    pub pointer: String,
    /// That value.
    pub value: Value,
    /// What the new definition says of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Position of the finding in the list of findings.
    #[serde(skip)]
    pub at: usize,
}

/// Number of stored objects that several findings affect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveTotal {
    /// Number of affected objects.
    pub affected: u64,
    /// Number of examined objects.
    pub examined: u64,
    /// True if `affected` is the highest possible number: one object may count more than once, and a read shows defaults
    /// as if they were stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub up_to: bool,
    /// Some of the affected objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// The causes of findings: what affects live objects first, then what is proved, then the unknown; warnings, waived
/// findings and information after that.
#[must_use]
pub fn causes(findings: &[Finding]) -> Vec<Cause> {
    let mut members: BTreeMap<[u8; 32], Vec<usize>> = BTreeMap::new();
    for (index, finding) in findings.iter().enumerate() {
        members.entry(key(finding)).or_default().push(index);
    }
    let mut causes: Vec<Cause> = members.into_iter().map(|(key, at)| cause(findings, key, at)).collect();
    causes.sort_by_cached_key(|cause| {
        let first = cause.at.first().copied().unwrap_or_default();
        let live = cause.live_objects.as_ref().map_or(0, |live| live.affected);
        (cause.severity, cause.is_waived(), live == 0, cause.verdict, Reverse(cause.places), first)
    });
    causes
}

/// Fingerprint of the cause that a finding belongs to.
#[must_use]
pub fn fingerprint(finding: &Finding) -> String {
    encode(&key(finding))
}

fn encode(key: &[u8; 32]) -> String {
    hex::encode(&key[..FINGERPRINT_DIGITS / 2])
}

impl Cause {
    /// Whether waivers cover all of it.
    #[must_use]
    pub fn is_waived(&self) -> bool {
        self.waived == self.members.len() && self.waived > 0
    }
}

/// What findings with one reason share. Where a rule does not say what that is, it is the message without the object's
/// name; content that a finding is bound to is its own.
fn key(finding: &Finding) -> [u8; 32] {
    let leaf = finding.path.as_deref().map(leaf).unwrap_or_default();
    let value = |value: &Option<Value>| value.as_ref().map_or_else(String::new, in_order);
    let reason = match (&finding.reason, &finding.content) {
        (Some(digest), _) | (None, Some(digest)) => hex::encode(digest),
        (None, None) => without_names(finding),
    };
    let parts = [&finding.rule, &finding.check, leaf, &value(&finding.old), &value(&finding.new), &reason];
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

fn without_names(finding: &Finding) -> String {
    let full = finding.object.to_string();
    let mut message = finding.message.replace(&full, "*");
    for name in [finding.path.as_deref(), Some(finding.object.name.as_str())].into_iter().flatten() {
        if name.len() > 2 {
            message = message.replace(name, "*");
        }
    }
    message
}

/// The last field of a path, with what follows it: `targets[*]` of `spec.targets[*]`.
fn leaf(path: &str) -> &str {
    let mut quoted = false;
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => {
                // `data["tls.key"]`: the key is a field of its own.
                if !quoted && path[..at].ends_with('[') {
                    start = at - 1;
                }
                quoted = !quoted;
            }
            '.' if !quoted => start = at + 1,
            _ => {}
        }
    }
    &path[start..]
}

fn cause(findings: &[Finding], key: [u8; 32], mut at: Vec<usize>) -> Cause {
    at.sort_by_cached_key(|index| {
        let finding = &findings[*index];
        (finding.severity, finding.waived.is_some(), Reverse(finding.affected()), finding.verdict, *index)
    });
    let members = || at.iter().map(|index| &findings[*index]);
    let first = &findings[at[0]];
    let distinct = |count: BTreeSet<_>| count.len();
    let place = |finding: &Finding| {
        (
            finding.object.to_string(),
            finding.version.clone().unwrap_or_default(),
            finding.path.clone().unwrap_or_default(),
        )
    };
    let mut fingerprints: Vec<String> = members().map(|finding| finding.fingerprint.clone()).collect();
    fingerprints.sort();
    let accept = |severity: Severity| {
        (first.is_waivable() && severity != Severity::Info).then(|| accept(first, &encode(&key), &fingerprints))
    };
    let severity = members().map(|finding| finding.severity).min().unwrap_or_default();
    Cause {
        remedies: first.remedies.iter().cloned().chain(accept(severity)).collect(),
        fingerprint: encode(&key),
        rule: first.rule.clone(),
        check: first.check.clone(),
        verdict: members().map(|finding| finding.verdict).min().unwrap_or_default(),
        severity,
        headline: headline(first),
        places: members().map(place).collect::<BTreeSet<_>>().len(),
        objects: distinct(members().map(|finding| finding.object.to_string()).collect()),
        versions: distinct(members().filter_map(|finding| finding.version.clone()).collect()),
        waived: members().filter(|finding| finding.waived.is_some()).count(),
        members: fingerprints,
        witness: smallest(findings, &at),
        live_objects: live_total(members()),
        undecided: members().find_map(|finding| finding.undecided.clone()),
        remedy: first.remedy.clone(),
        at,
    }
}

/// The waiver of a cause, whose members it lists: a new one is not covered.
fn accept(first: &Finding, cause: &str, members: &[String]) -> Remedy {
    let step = "accept it in the policy's Config: with a reason, and with the last day in `expires`";
    let waiver = json!({"rule": first.rule, "cause": cause, "members": members, "reason": ""});
    Remedy::deployer(RemedyKind::Accept, step).config(json!({"preflightWaivers": [waiver]}))
}

/// One sentence that names the field, in the words of the finding where it has no field.
#[must_use]
pub fn headline(finding: &Finding) -> String {
    let (Some(path), Some(version)) = (&finding.path, &finding.version) else { return finding.message.clone() };
    let field = format!("field \"{}\"", leaf(path));
    let rooted = if path.starts_with('[') { format!("^{path}") } else { format!("^.{path}") };
    let check = &finding.check;
    if check == "existingFieldRemoval" {
        return format!("{field} is removed");
    }
    if finding.verdict == Verdict::Unknown && finding.undecided.is_some() {
        let way = if finding.old.is_some() { "changed" } else { "added" };
        return format!("{field}: {check} {way}, and nobody can tell whether it breaks objects");
    }
    let Some(said) = finding.message.strip_prefix(&format!("version \"{version}\", field \"{rooted}\": ")) else {
        return finding.message.clone();
    };
    let rules = finding.new.as_ref().and_then(Value::as_array);
    let said = match &finding.new {
        Some(_)
            if check == "x-kubernetes-validations"
                && finding.old != finding.new
                && rules.is_some_and(|rules| rules.len() > 1) =>
        {
            format!("{} CEL rules added or changed", rules.map_or(0, Vec::len))
        }
        _ => said.replacen(" constraint added when one did not exist previously: ", " added: ", 1).replacen(
            "enums added when there were no enum restrictions previously: ",
            "enum added: ",
            1,
        ),
    };
    format!("{field}: {said}")
}

/// The witness of the fewest bytes, and the value in it that offends.
fn smallest(findings: &[Finding], at: &[usize]) -> Option<Smallest> {
    let sized = at.iter().filter_map(|index| {
        let finding = &findings[*index];
        Some((finding.witness.as_ref()?.to_string().len(), &finding.fingerprint, *index))
    });
    let (_, _, index) = sized.min()?;
    let finding = &findings[index];
    let witness = finding.witness.as_deref()?;
    let pointer = match &finding.offence {
        Some(offence) => offence.pointer.clone(),
        None => pointer_of(finding.path.as_deref().unwrap_or_default()),
    };
    // Of two items that are alike, neither says it alone.
    let pointer = match finding.check.starts_with("x-kubernetes-list") {
        true => pointer.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('/'),
        false => &pointer,
    };
    let (pointer, value) = innermost(witness, pointer);
    let message = finding.offence.as_ref().map(|offence| offence.message.clone()).unwrap_or_default();
    Some(Smallest { finding: finding.fingerprint.clone(), pointer, value: value.clone(), message, at: index })
}

/// A field's path as a pointer to its first value: `spec.items[*].name` as `/spec/items/0/name`.
fn pointer_of(path: &str) -> String {
    let mut pointer = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end > 0 {
            pointer += &format!("/{}", &rest[..end]);
            rest = &rest[end..];
        } else if let Some(items) = rest.strip_prefix("[*]") {
            pointer += "/0";
            rest = items;
        } else {
            break;
        }
    }
    pointer
}

/// The value at a pointer, or the innermost one on the way there, with its pointer.
fn innermost<'v>(witness: &'v Value, pointer: &str) -> (String, &'v Value) {
    let mut pointer = pointer;
    loop {
        match witness.pointer(pointer) {
            Some(value) => return (pointer.to_owned(), value),
            None => pointer = &pointer[..pointer.rfind('/').unwrap_or_default()],
        }
        if pointer.is_empty() {
            return (String::new(), witness);
        }
    }
}

/// Sums what findings affect. One object counts once as far as the names tell: findings on one definition examine the
/// same objects, those on different definitions do not.
#[must_use]
pub fn live_total<'f>(findings: impl Iterator<Item = &'f Finding>) -> Option<LiveTotal> {
    #[derive(Default)]
    struct OfObject<'f> {
        examined: u64,
        most: u64,
        sum: u64,
        names: BTreeSet<&'f str>,
        named: bool,
    }
    let mut total = LiveTotal::default();
    let mut counted: BTreeMap<String, OfObject<'f>> = BTreeMap::new();
    for finding in findings {
        let Some(live) = &finding.live_objects else { continue };
        let of = counted
            .entry(finding.object.to_string())
            .or_insert_with(|| OfObject { named: true, ..OfObject::default() });
        of.examined = of.examined.max(live.examined);
        of.most = of.most.max(live.affected);
        of.sum = of.sum.saturating_add(live.affected);
        of.named &= live.names.len() as u64 == live.affected;
        total.up_to |= live.up_to;
        of.names.extend(live.names.iter().map(String::as_str));
    }
    let is_counted = !counted.is_empty();
    for of in counted.into_values() {
        total.examined += of.examined;
        let named = of.names.len() as u64;
        let (affected, up_to) = match () {
            () if of.named => (named, false),
            () if of.most == of.sum => (of.most, false),
            () => {
                let most = of.sum.min(of.examined.max(of.most));
                (most, most > of.most.max(named))
            }
        };
        total.affected += affected;
        total.up_to |= up_to;
        total.names.extend(of.names.into_iter().map(ToOwned::to_owned));
    }
    total.names.truncate(NAMES);
    is_counted.then_some(total)
}

#[cfg(test)]
mod tests;
