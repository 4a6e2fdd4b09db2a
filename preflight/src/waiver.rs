//! Waivers: findings that someone has reviewed and accepts. A waived finding is shown, never hidden; a waiver that has
//! expired or covers nothing is a finding itself, so that the list stays current.

use std::collections::BTreeMap;

use pushback_objects::finding::{FINGERPRINT_DIGITS, Finding, Severity, Verdict};
use pushback_objects::object::ObjectRef;
use pushback_objects::source::Position;
use pushback_objects::suggest;
use serde::{Deserialize, Serialize};

use crate::cause;
use crate::glob::matches;
use crate::registry;

mod index;

use index::FindingIndex;

/// An entry of `preflightWaivers`, or a `--waive FINGERPRINT=REASON`. An omitted field matches anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Waiver {
    /// Name of the rule; `None` for a waiver from the command line.
    pub rule: Option<String>,
    /// Name of the check; `*` matches any characters.
    pub check: Option<String>,
    /// `Kind name` for cluster-scoped objects, `Kind namespace/name` for namespaced ones; the kind may include its
    /// group (`Kafka.kafka.strimzi.io`). `*` matches any characters in each part; `*` alone matches every object.
    pub object: Option<String>,
    /// Path of the field; `*` matches any characters.
    pub path: Option<String>,
    /// Fingerprint of one finding.
    pub fingerprint: Option<String>,
    /// Fingerprint of a cause, whose findings are covered as far as `members` lists them.
    pub cause: Option<String>,
    /// Fingerprints of the findings of the cause.
    pub members: Vec<String>,
    /// Why the finding is acceptable.
    pub reason: String,
    /// Who is responsible for the waiver.
    pub owner: Option<String>,
    /// The last day on which the waiver is valid, `2026-12-31`.
    pub expires: Option<String>,
    /// Maximum number of affected objects; if omitted, the number when the waiver was first used.
    pub affected: Option<u64>,
    /// Position of the entry in the input.
    pub position: Option<Position>,
    /// Whether it may cover nothing: it follows from an option, and nobody keeps a list of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_unused: bool,
}

/// A waiver that accepts every finding of its rule, in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BroadWaiver {
    /// Name of the rule.
    pub rule: String,
    /// Why its findings are acceptable, with the person responsible.
    pub reason: String,
    /// Number of findings that the waiver accepts in this run.
    pub findings: usize,
    /// Number of those that would refuse the run without it.
    pub errors: usize,
    /// Position of the entry in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// The parts of a waiver that decide which findings it covers.
type Scope = ([Option<String>; 6], Vec<String>);

/// Whether a waiver is valid on a given day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Valid,
    Expired,
    /// `expires` is not a date, so the waiver does not apply.
    NoDate,
}

/// A `--waive` that is not `FINGERPRINT=REASON` or `FINGERPRINT@COUNT=REASON`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaiveError {
    /// There is no `=`, or nothing after it.
    #[error("expected FINGERPRINT=REASON, and a reason is never empty")]
    NoReason,
    /// The text before the `=` is not a fingerprint.
    #[error(
        "expected the fingerprint of a finding, {FINGERPRINT_DIGITS} hexadecimal digits as findings show it, before the \"=\""
    )]
    NoFingerprint,
    /// The text after the `@` is not a number.
    #[error("expected a number of affected objects between \"@\" and \"=\"")]
    NoCount,
}

impl Waiver {
    /// Parses `--waive FINGERPRINT=REASON` or `FINGERPRINT@COUNT=REASON`.
    ///
    /// # Errors
    /// [`WaiveError`] if a part is missing or malformed.
    pub fn from_flag(text: &str) -> Result<Self, WaiveError> {
        let (fingerprint, reason) = text.split_once('=').ok_or(WaiveError::NoReason)?;
        let (fingerprint, affected) = match fingerprint.split_once('@') {
            Some((fingerprint, count)) => (fingerprint, Some(count.trim().parse().map_err(|_| WaiveError::NoCount)?)),
            None => (fingerprint, None),
        };
        let (fingerprint, reason) = (fingerprint.trim(), reason.trim());
        if fingerprint.len() != FINGERPRINT_DIGITS || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WaiveError::NoFingerprint);
        }
        if reason.is_empty() {
            return Err(WaiveError::NoReason);
        }
        let fingerprint = Some(fingerprint.to_ascii_lowercase());
        Ok(Self { fingerprint, reason: reason.to_owned(), affected, ..Self::default() })
    }

    /// Whether the waiver covers this finding, regardless of its date.
    #[must_use]
    pub fn matches(&self, finding: &Finding) -> bool {
        let within = |pattern: &Option<String>, text: &str| pattern.as_deref().is_none_or(|glob| matches(glob, text));
        is_waivable(finding)
            && self.rule.as_deref().is_none_or(|rule| rule == finding.rule)
            && within(&self.check, &finding.check)
            && within(&self.path, finding.path.as_deref().unwrap_or_default())
            && self.fingerprint.as_deref().is_none_or(|fingerprint| fingerprint == finding.fingerprint)
            && self.object.as_deref().is_none_or(|pattern| matches_object(pattern, &finding.object))
            && self.cause.as_deref().is_none_or(|cause| {
                self.members.contains(&finding.fingerprint) && cause == cause::fingerprint(finding)
            })
            // A waiver with neither rule nor fingerprint would waive everything.
            && (self.rule.is_some() || self.fingerprint.is_some())
    }

    /// The reason for display, with the person responsible.
    #[must_use]
    pub fn explanation(&self) -> String {
        let owner = self.owner.as_deref().map(|owner| format!(" (owner: {owner})")).unwrap_or_default();
        format!("{}{owner}", self.reason)
    }

    /// What it names, as a key; parts that it leaves out are empty. Two keys may be equal where [`Self::is_within`] is not.
    pub(crate) fn named(&self) -> Vec<&str> {
        let parts = [&self.rule, &self.check, &self.object, &self.path, &self.fingerprint, &self.cause];
        let parts = parts.map(|part| part.as_deref().unwrap_or_default());
        parts.into_iter().chain(self.members.iter().map(String::as_str)).collect()
    }

    /// Returns the parts that decide which findings it covers.
    fn scope(&self) -> Scope {
        let Self { rule, check, object, path, fingerprint, cause, members, .. } = self.clone();
        ([rule, check, object, path, fingerprint, cause], members)
    }

    /// Whether another waiver accepts everything that this one does, for at least as long.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        // Dates compare as strings.
        let ends_no_later = match (&self.expires, &other.expires) {
            (_, None) => true,
            (Some(day), Some(last)) => day <= last,
            (None, Some(_)) => false,
        };
        let as_few = match (self.affected, other.affected) {
            (Some(count), Some(most)) => count <= most,
            (given, most) => given == most,
        };
        self.scope() == other.scope() && ends_no_later && as_few
    }

    /// Whether it accepts every finding of its rule: nothing narrows it down to a check, an object or a field.
    fn is_broad(&self) -> bool {
        let is_wide = |pattern: &Option<String>| pattern.as_deref().is_none_or(|glob| glob.trim() == "*");
        self.rule.is_some()
            && self.fingerprint.is_none()
            && self.cause.is_none()
            && !self.may_be_unused
            && [&self.check, &self.object, &self.path].into_iter().all(is_wide)
    }

    fn standing(&self, today: &str) -> Standing {
        match self.expires.as_deref() {
            None => Standing::Valid,
            Some(day) if !is_date(day) => Standing::NoDate,
            Some(day) if day < today => Standing::Expired,
            Some(_) => Standing::Valid,
        }
    }

    /// Name for messages: what it waives.
    pub(crate) fn title(&self) -> String {
        let parts = [&self.rule, &self.check, &self.object, &self.path, &self.fingerprint, &self.cause];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// Marks the findings that a valid waiver covers, and returns findings about the waivers themselves.
///
/// Fingerprints must be set. `judged` names the rules that returned a judgement: a waiver for any other rule may still
/// be needed, so it is not reported as unused. `accepted` is the number of objects that each waived finding affected
/// before, by fingerprint.
pub(crate) fn apply(
    waivers: &[Waiver],
    accepted: &Accepted,
    today: &str,
    (rules, judged): (&[&str], &[&str]),
    findings: &mut [Finding],
) -> Vec<Finding> {
    let mut remarks = Vec::new();
    let mut index = FindingIndex::new(findings);
    for waiver in waivers {
        let standing = waiver.standing(today);
        let mut grown = None;
        let covered = index.covered_by(waiver, findings);
        let used = covered.any;
        if standing == Standing::Valid {
            // A finding that is accepted stays so: the next waiver of the same ones need not look at it.
            covered.open.retain(|at| {
                let finding = &mut findings[*at];
                let most = waiver.affected.or_else(|| accepted.get(&finding.fingerprint).copied());
                if finding.waived.is_none() {
                    match most.filter(|most| *most < finding.affected()) {
                        Some(most) => grown = grown.or(Some((most, finding.affected()))),
                        None => finding.waived = Some(waiver.explanation()),
                    }
                }
                finding.waived.is_none()
            });
        }
        let new = match standing {
            Standing::Valid => index.new_members(waiver, findings),
            Standing::Expired | Standing::NoDate => None,
        };
        remarks.extend(remark(waiver, standing, used || new.is_some(), (rules, judged)));
        remarks.extend(new.map(|(new, all)| {
            let are = if new == 1 { "1 is" } else { &format!("{new} are") };
            let message =
                format!("lists {} of the {all} findings of its cause: {are} new since and not covered", all - new);
            about(
                waiver,
                "newMembers",
                message,
                "review what is new, and replace the entry by the one that --verbose prints",
            )
        }));
        remarks.extend(grown.map(|(most, now)| {
            let message = format!("was given for {most} affected objects, and there are {now}: it does not cover them");
            about(waiver, "affected", message, "review the finding, and accept it with the new number")
        }));
    }
    remarks
}

/// Counts what the broad waivers among these have accepted. Findings still have the severity that their rule gave them.
pub(crate) fn broad(waivers: &[Waiver], today: &str, findings: &[Finding]) -> Vec<BroadWaiver> {
    let mut broad: Vec<BroadWaiver> = Vec::new();
    // All that a broad waiver has accepted bears its reason.
    let mut counts: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| is_waivable(finding)) {
        let Some(reason) = &finding.waived else { continue };
        let (all, errors) = counts.entry((finding.rule.clone(), reason.clone())).or_default();
        *all += 1;
        *errors += usize::from(finding.severity == Severity::Error);
    }
    for waiver in waivers.iter().filter(|waiver| waiver.is_broad() && waiver.standing(today) == Standing::Valid) {
        let (rule, reason) = (waiver.rule.clone().unwrap_or_default(), waiver.explanation());
        // Removed, so that a second waiver with the same words is not reported again.
        let key = (rule, reason);
        if let Some((findings, errors)) = counts.remove(&key) {
            let (rule, reason) = key;
            broad.push(BroadWaiver { rule, reason, findings, errors, position: waiver.position.clone() });
        }
    }
    broad
}

/// Whether waivers apply to a finding at all.
fn is_waivable(finding: &Finding) -> bool {
    ![registry::SERVER, registry::STORAGE, registry::WAIVERS].contains(&finding.rule.as_str())
}

/// Number of objects affected by each finding when it was waived, by fingerprint.
pub type Accepted = BTreeMap<String, u64>;

fn remark(waiver: &Waiver, standing: Standing, used: bool, (rules, judged): (&[&str], &[&str])) -> Option<Finding> {
    let rule = waiver.rule.as_deref();
    if waiver.may_be_unused {
        return None;
    }
    let (check, message, remedy) = match (standing, rule) {
        (_, Some(registry::SERVER)) => (
            "notWaivable",
            "what the API server refuses cannot be waived".to_owned(),
            "change the manifest; the server would refuse the write anyway",
        ),
        (_, Some(registry::STORAGE)) => (
            "notWaivable",
            "stored objects that cannot be carried over cannot be waived".to_owned(),
            "remove the waiver, and follow the remedies of the finding",
        ),
        (_, Some(name)) if name != registry::POLICY && !rules.contains(&name) && registry::find(name).is_err() => {
            let nearest = suggest::nearest(name, registry::metas().map(|meta| meta.name));
            let message = format!("waives a rule that does not exist: \"{name}\"{}", suggest::hint(nearest));
            ("unknownRule", message, "correct the name, or remove the waiver")
        }
        (Standing::NoDate, _) => {
            let given = waiver.expires.as_deref().unwrap_or_default();
            let message = format!("waives nothing: \"{given}\" is not a date");
            ("expired", message, "write the last day on which it is valid, such as 2026-12-31")
        }
        (Standing::Expired, _) => {
            let day = waiver.expires.as_deref().unwrap_or_default();
            let message = format!("expired after {day} and no longer waives anything");
            ("expired", message, "review the finding, then remove the waiver or give it a new date")
        }
        (Standing::Valid, _) if !used && rule.is_none_or(|rule| judged.contains(&rule)) => {
            ("unused", "covers no finding".to_owned(), "remove it, or correct what it matches")
        }
        (Standing::Valid, _) => return None,
    };
    Some(about(waiver, check, message, remedy))
}

fn about(waiver: &Waiver, check: &str, message: String, remedy: &str) -> Finding {
    let object = ObjectRef {
        group: "pushback.dev".to_owned(),
        version: "v1alpha1".to_owned(),
        kind: "PreflightWaiver".to_owned(),
        namespace: String::new(),
        name: waiver.title(),
    };
    let mut finding = Finding::new(registry::WAIVERS, check, Verdict::Change, object, message)
        .at(waiver.position.clone())
        .remedy(remedy);
    finding.severity = Severity::Warning;
    finding
}

fn matches_object(pattern: &str, object: &ObjectRef) -> bool {
    if pattern.trim() == "*" {
        return true;
    }
    let Some((kind, namespace, name)) = object_parts(pattern) else { return false };
    let kind_matches = matches(kind, &object.kind) || matches(kind, &format!("{}.{}", object.kind, object.group));
    kind_matches && matches(namespace, &object.namespace) && matches(name, &object.name)
}

/// Splits the pattern of an object into kind, namespace and name; `None` if it is incomplete.
fn object_parts(pattern: &str) -> Option<(&str, &str, &str)> {
    let (kind, rest) = pattern.trim().split_once(char::is_whitespace)?;
    let (namespace, name) = rest.trim().split_once('/').unwrap_or(("", rest.trim()));
    Some((kind, namespace, name))
}

/// Whether the text is `YYYY-MM-DD` with a valid month and day. Such dates compare as strings.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shape && ("01"..="12").contains(&&text[5..7]) && ("01"..="31").contains(&&text[8..10])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, group: &str, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    fn finding(check: &str) -> Finding {
        let object = object("CustomResourceDefinition", "apiextensions.k8s.io", "", "foos.ex.com");
        let mut finding = Finding::new("CRDUpgradeSafety", check, Verdict::Breaking, object, "m").path("spec.scope");
        finding.fingerprint = finding.compute_fingerprint();
        finding
    }

    fn waiver(rule: &str) -> Waiver {
        Waiver { rule: Some(rule.into()), reason: "known".into(), ..Waiver::default() }
    }

    #[test]
    fn an_object_is_matched_part_by_part() {
        let web = object("Deployment", "apps", "shop", "web");
        for pattern in
            ["Deployment shop/web", "Deployment */web", "Dep* shop/*", "*", "* */*", "Deployment.apps shop/web"]
        {
            assert!(matches_object(pattern, &web), "{pattern}");
        }
        // Without a namespace, the pattern matches only objects that have none.
        for pattern in ["Deployment web", "Deployment", "Deployment shop/we", "StatefulSet shop/web", "* *", ""] {
            assert!(!matches_object(pattern, &web), "{pattern}");
        }
        assert!(matches_object("Namespace shop", &object("Namespace", "", "", "shop")));
    }

    #[test]
    fn a_cause_is_covered_as_far_as_its_members_are_listed() {
        let of = |object: &str, index: usize| {
            let mut finding = finding("enum").path(format!("spec.s{index}.mode"));
            finding.object.name = object.into();
            finding.reason = Some([7; 32]);
            finding.fingerprint = finding.compute_fingerprint();
            finding
        };
        let mut findings = vec![of("a.ex.com", 1), of("a.ex.com", 2), of("b.ex.com", 3)];
        let cause = crate::cause::fingerprint(&findings[0]);
        let members = findings[..2].iter().map(|finding| finding.fingerprint.clone()).collect();
        let waiver = Waiver { cause: Some(cause), members, ..waiver("CRDUpgradeSafety") };
        let told = apply(
            std::slice::from_ref(&waiver),
            &Accepted::new(),
            "2026-06-01",
            (&[], &["CRDUpgradeSafety"]),
            &mut findings,
        );
        assert_eq!(findings.iter().map(|finding| finding.waived.is_some()).collect::<Vec<_>>(), [true, true, false]);
        let [told] = &told[..] else { panic!("{told:?}") };
        assert_eq!(
            (told.check.as_str(), told.message.as_str()),
            ("newMembers", "lists 2 of the 3 findings of its cause: 1 is new since and not covered",)
        );
        // A listed finding of another cause is none of it, and a waiver without any is unused.
        let mut other = vec![of("a.ex.com", 1)];
        other[0].reason = Some([8; 32]);
        let told = apply(&[waiver], &Accepted::new(), "2026-06-01", (&[], &["CRDUpgradeSafety"]), &mut other);
        assert_eq!((other[0].waived.as_ref(), told[0].check.as_str()), (None, "unused"));
    }

    #[test]
    fn every_given_part_must_match() {
        let scope = finding("scope");
        assert!(waiver("CRDUpgradeSafety").matches(&scope));
        assert!(!waiver("PermissionValidation").matches(&scope));
        assert!(Waiver { check: Some("sc*".into()), ..waiver("CRDUpgradeSafety") }.matches(&scope));
        assert!(!Waiver { check: Some("enum".into()), ..waiver("CRDUpgradeSafety") }.matches(&scope));
        assert!(!Waiver { path: Some("spec.names".into()), ..waiver("CRDUpgradeSafety") }.matches(&scope));
        let by_fingerprint = Waiver { fingerprint: Some(scope.fingerprint.clone()), ..Waiver::default() };
        assert!(by_fingerprint.matches(&scope));
        assert!(!by_fingerprint.matches(&finding("names")));
        assert!(!Waiver::default().matches(&scope), "a waiver of nothing in particular must not waive everything");
    }

    #[test]
    fn the_flag_takes_a_fingerprint_and_a_reason() {
        let scope = finding("scope");
        let waiver = Waiver::from_flag(&format!("{}=looked at, a = b", scope.fingerprint)).expect("well formed");
        assert!(waiver.matches(&scope));
        assert_eq!(waiver.explanation(), "looked at, a = b");
        assert_eq!(Waiver::from_flag("0123456789abcdef0123456789abcdef"), Err(WaiveError::NoReason));
        assert_eq!(Waiver::from_flag("0123456789abcdef0123456789abcdef= "), Err(WaiveError::NoReason));
        assert_eq!(Waiver::from_flag("scope=fine"), Err(WaiveError::NoFingerprint));
        assert_eq!(Waiver::from_flag("*=fine"), Err(WaiveError::NoFingerprint));
    }

    #[test]
    fn a_waiver_covers_as_many_objects_as_it_was_given_for() {
        let about = |affected: u64| {
            let mut finding = finding("scope");
            finding.live_objects = Some(pushback_objects::finding::LiveObjects::exactly(affected, 9, Vec::new()));
            finding
        };
        let fingerprint = about(3).fingerprint;
        assert_eq!(fingerprint, about(5).fingerprint, "the number is bound by the waiver");
        let flag = |count: &str| Waiver::from_flag(&format!("{fingerprint}{count}=known")).expect("well formed");
        let covers = |waiver: &Waiver, accepted: &[(String, u64)], affected: u64| {
            let mut findings = [about(affected)];
            let accepted = accepted.iter().cloned().collect();
            let remarks = apply(
                std::slice::from_ref(waiver),
                &accepted,
                "2026-06-30",
                (&[], &["CRDUpgradeSafety"]),
                &mut findings,
            );
            (findings[0].waived.is_some(), remarks.first().map(|remark| remark.message.clone()))
        };
        assert_eq!(covers(&flag("@3"), &[], 3), (true, None));
        assert_eq!(covers(&flag("@3"), &[], 2), (true, None));
        let grown = "was given for 3 affected objects, and there are 5: it does not cover them".to_owned();
        assert_eq!(covers(&flag("@3"), &[], 5), (false, Some(grown.clone())));
        assert_eq!(covers(&flag(""), &[], 5), (true, None));
        assert_eq!(covers(&flag(""), &[(fingerprint.clone(), 3)], 5), (false, Some(grown)));
        assert_eq!(covers(&flag("@5"), &[(fingerprint.clone(), 3)], 5), (true, None));
        assert_eq!(Waiver::from_flag(&format!("{fingerprint}@many=x")), Err(WaiveError::NoCount));
        assert_eq!(Waiver::from_flag(&format!("{}=x", &fingerprint[..16])), Err(WaiveError::NoFingerprint));
    }

    #[test]
    fn a_waiver_holds_until_the_end_of_its_last_day() {
        let dated = |expires: &str| Waiver { expires: Some(expires.into()), ..waiver("CRDUpgradeSafety") };
        let check = |expires: &str| {
            let mut findings = [finding("scope")];
            let remarks =
                apply(&[dated(expires)], &Accepted::new(), "2026-06-30", (&[], &["CRDUpgradeSafety"]), &mut findings);
            (findings[0].waived.is_some(), remarks.iter().map(|remark| remark.check.clone()).collect::<Vec<_>>())
        };
        assert_eq!(check("2026-06-30"), (true, vec![]));
        assert_eq!(check("2027-01-01"), (true, vec![]));
        assert_eq!(check("2026-06-29"), (false, vec!["expired".to_owned()]));
        for no_date in ["soon", "2026-13-01", "2026-6-1", "2026-06-00", "９９９９-01-01", ""] {
            assert_eq!(check(no_date), (false, vec!["expired".to_owned()]), "{no_date}");
        }
    }

    #[test]
    fn an_unused_waiver_is_reported_only_if_its_rule_was_judged() {
        let remarks = |waiver: Waiver, judged: &[&str]| {
            let mut findings = [finding("scope")];
            let remarks = apply(&[waiver], &Accepted::new(), "2026-06-30", (&[], judged), &mut findings);
            remarks.iter().map(|remark| remark.check.clone()).collect::<Vec<_>>()
        };
        let unused = Waiver { check: Some("enum".into()), ..waiver("CRDUpgradeSafety") };
        assert_eq!(remarks(unused.clone(), &["CRDUpgradeSafety"]), ["unused"]);
        assert!(remarks(unused, &[]).is_empty());
        assert_eq!(remarks(waiver("CRDUpgradeSafty"), &[]), ["unknownRule"]);
        assert_eq!(remarks(waiver("server"), &[]), ["notWaivable"]);
        let stranger = Waiver { fingerprint: Some("00000000000000000000000000000000".into()), ..Waiver::default() };
        assert_eq!(remarks(stranger, &[]), ["unused"]);
    }

    #[test]
    fn waiver_of_a_whole_rule_is_broad_and_counts_what_it_accepts() {
        let broad = |waivers: &[Waiver]| {
            let mut findings = [finding("scope"), finding("enum"), finding("required")];
            findings[0].severity = Severity::Error;
            findings[2].rule = "StoredVersions".to_owned();
            apply(waivers, &Accepted::new(), "2026-06-30", (&[], &[]), &mut findings);
            let broad = super::broad(waivers, "2026-06-30", &findings);
            broad.iter().map(|it| (it.rule.clone(), it.findings, it.errors)).collect::<Vec<_>>()
        };
        let of_rule = || waiver("CRDUpgradeSafety");
        let of = |findings, errors| vec![("CRDUpgradeSafety".to_owned(), findings, errors)];
        let any = || Some("*".to_owned());
        assert_eq!(broad(&[of_rule()]), of(2, 1));
        assert_eq!(broad(&[Waiver { check: any(), object: any(), path: any(), ..of_rule() }]), of(2, 1));
        assert_eq!(broad(&[of_rule(), of_rule()]), of(2, 1));
        // One that is narrower comes first, and accepts its finding.
        let narrow = Waiver { check: Some("scope".into()), reason: "reviewed".into(), ..of_rule() };
        assert_eq!(broad(&[narrow.clone(), of_rule()]), of(1, 0));
        for other in [
            narrow,
            Waiver { object: Some("CustomResourceDefinition foos.ex.com".into()), ..of_rule() },
            Waiver { path: Some("spec.*".into()), ..of_rule() },
            Waiver { expires: Some("2026-06-29".into()), ..of_rule() },
            Waiver { may_be_unused: true, ..of_rule() },
            Waiver { rule: None, fingerprint: Some(finding("scope").fingerprint), ..of_rule() },
            waiver("PermissionValidation"),
        ] {
            assert_eq!(broad(std::slice::from_ref(&other)), vec![], "{other:?}");
        }
    }
}
