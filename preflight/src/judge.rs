//! From findings to decisions: severities, the outcome of each rule, the overall outcome, the order of findings.
//! Pure: the caller passes the date for waivers.

use pushback_crd::words;
use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::object::ObjectRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::default_set::LeftOut;
use crate::loosened::{Loosened, RuleOff};
use crate::rule::{FailMode, Judgement, Mode, Settings};
use crate::waiver::{self, Accepted, BroadWaiver, Waiver};
use crate::{registry, repeated};

words! {
    /// The overall outcome of all checks.
    pub enum Outcome {
        /// No findings, or informational ones only.
        Passed = "passed",
        /// There are warnings.
        Warned = "warned",
        /// A rule could not get its facts, and none refused. Nothing may be written.
        Unable = "unable",
        /// A rule or the server refused. Nothing may be written.
        Refused = "refused",
    }
}

impl Outcome {
    /// Whether this outcome forbids writing.
    #[must_use]
    pub fn refuses(self) -> bool {
        matches!(self, Self::Refused | Self::Unable)
    }
}

words! {
    /// The outcome of one rule.
    #[derive(Default)]
    pub enum RuleOutcome {
        /// The rule does not apply to this kind of cluster.
        Skipped = "skipped",
        /// No findings, or informational ones only.
        #[default]
        Passed = "passed",
        /// There are warnings.
        Warned = "warned",
        /// The rule could not get its facts, and refuses for that reason.
        Unable = "unable",
        /// The rule refuses.
        Failed = "failed",
    }
}

/// A rule's entry in the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleResult {
    /// Name of the rule.
    pub name: String,
    /// Outcome of the rule.
    pub outcome: RuleOutcome,
    /// Number of breaking findings, without waived ones.
    pub breaking: usize,
    /// Number of unknown findings, without waived ones.
    pub unknown: usize,
    /// Number of findings that are only worth knowing, without waived ones.
    pub changes: usize,
    /// Number of waived findings.
    pub waived: usize,
    /// Facts that the rule could not get, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unable: Vec<String>,
    /// What a rule of the policy says of itself; the built-in ones are documented elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why the rule was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// The report on all rules of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// The overall outcome.
    pub outcome: Outcome,
    /// One entry per rule, in the order of the registry, followed by `policy`, `server` and `preflightWaivers`
    /// if they have findings.
    pub rules: Vec<RuleResult>,
    /// All findings, sorted: severity, file, line, rule, check, object, path, message.
    pub findings: Vec<Finding>,
    /// Rules that would run if they were not switched off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<RuleOff>,
    /// Rules of the default set that a list of rules leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Waivers that accept every finding of their rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broad_waivers: Vec<BroadWaiver>,
    /// Where the manifests are less strict than the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loosened: Vec<Loosened>,
}

impl RunReport {
    /// Number of objects affected by each waived finding, by fingerprint.
    #[must_use]
    pub fn accepted(&self) -> Accepted {
        let waived = self.findings.iter().filter(|finding| finding.waived.is_some());
        waived.map(|finding| (finding.fingerprint.clone(), finding.affected())).collect()
    }
}

/// What a repeated check refused after the first check had passed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    /// The findings that refuse the change.
    pub findings: Vec<Finding>,
    /// Facts that were not available this time: rule and reason.
    pub unable: Vec<(String, String)>,
}

impl Refused {
    /// Collects what refuses in a report.
    #[must_use]
    pub fn by(report: RunReport) -> Self {
        let refuses = |finding: &Finding| finding.severity == Severity::Error && finding.waived.is_none();
        let unable = report.rules.into_iter().flat_map(|rule| {
            let name = rule.name;
            rule.unable.into_iter().map(move |reason| (name.clone(), reason))
        });
        Self { unable: unable.collect(), findings: report.findings.into_iter().filter(refuses).collect() }
    }

    /// A refusal because the server's result differs from what was judged: a finding for each field, with its path,
    /// the judged value and the stored one, or one for the object where the fields are not known.
    #[must_use]
    pub fn by_differences(
        object: &ObjectRef,
        message: &str,
        fields: impl IntoIterator<Item = (String, Option<Value>, Option<Value>)>,
    ) -> Self {
        let finding =
            || Finding::new(registry::SERVER, "differs", Verdict::Breaking, object.clone(), message.to_owned());
        let of_field = |(path, judged, stored)| Finding { old: judged, new: stored, ..finding().path(path) };
        let mut findings: Vec<Finding> = fields.into_iter().map(of_field).collect();
        if findings.is_empty() {
            findings.push(finding());
        }
        let findings = findings.into_iter().map(|finding| weigh(finding, &Settings::default())).collect();
        Self { findings, unable: Vec::new() }
    }
}

impl RunReport {
    /// The report after changes were judged again. Earlier findings about their objects are replaced.
    #[must_use]
    pub fn revised(mut self, refused: &[Refused]) -> Self {
        for finding in refused.iter().flat_map(|refused| &refused.findings) {
            let is_outdated = |earlier: &Finding| {
                (&earlier.rule, &earlier.check) == (&finding.rule, &finding.check)
                    && earlier.object.key() == finding.object.key()
                    && (earlier.severity != Severity::Error || earlier.fingerprint == finding.fingerprint)
            };
            self.findings.retain(|earlier| !is_outdated(earlier));
            self.findings.push(finding.clone());
            self.result_of(&finding.rule).outcome = RuleOutcome::Failed;
        }
        for (rule, reason) in refused.iter().flat_map(|refused| &refused.unable) {
            let result = self.result_of(rule);
            result.unable.push(reason.clone());
            result.unable.sort();
            result.unable.dedup();
            result.outcome = result.outcome.max(RuleOutcome::Unable);
        }
        self.findings.sort_by(compare);
        for result in &mut self.rules {
            count(result, &self.findings);
        }
        self.outcome = overall(&self.rules);
        self
    }

    fn result_of(&mut self, rule: &str) -> &mut RuleResult {
        let index = self.rules.iter().position(|result| result.name == rule).unwrap_or_else(|| {
            self.rules.push(empty_result(rule));
            self.rules.len() - 1
        });
        &mut self.rules[index]
    }
}

/// How the run of one rule ended.
#[derive(Debug)]
pub enum Ending {
    /// The rule returned a judgement.
    Judged(Judgement),
    /// The rule was skipped, for this reason.
    Skipped(String),
}

/// A selected rule and how its run ended.
#[derive(Debug)]
pub struct Ended<'a> {
    /// Name of the rule.
    pub name: &'a str,
    /// Settings of the rule.
    pub settings: &'a Settings,
    /// How its run ended.
    pub ending: Ending,
}

/// Judges a run. `server` is what the API server rejected or could not check in dry runs: it refuses regardless of
/// rules and waivers. `accepted` is what waivers covered before: one without a count covers as many objects as then.
/// `today` is the date in the user's time zone, `YYYY-MM-DD`.
#[must_use]
pub fn judge(
    ended: Vec<Ended<'_>>,
    server: Judgement,
    waivers: &[Waiver],
    accepted: &Accepted,
    today: &str,
) -> RunReport {
    let strict = Settings::default();
    let mut rules = Vec::new();
    let mut findings = Vec::new();
    let mut judged = Vec::new();
    let server_is_able = server.unable.is_empty();
    let (storage, findings_of_server) =
        server.findings.into_iter().partition(|finding: &Finding| finding.rule == registry::STORAGE);
    let refusing = [
        (registry::SERVER, Judgement { findings: findings_of_server, unable: server.unable }),
        (registry::STORAGE, Judgement { findings: storage, unable: Vec::new() }),
    ];
    let refusing = refusing.into_iter().filter(|(_, it)| !it.findings.is_empty() || !it.unable.is_empty());
    let refusing = refusing.map(|(name, it)| Ended { name, settings: &strict, ending: Ending::Judged(it) });
    for Ended { name, settings, ending } in ended.into_iter().chain(refusing) {
        let (judgement, skipped) = match ending {
            Ending::Judged(judgement) => (judgement, None),
            Ending::Skipped(reason) => (Judgement::default(), Some(reason)),
        };
        if skipped.is_none() && judgement.unable.is_empty() {
            judged.push(name);
        }
        let mut unable = judgement.unable;
        unable.sort();
        unable.dedup();
        findings.extend(judgement.findings.into_iter().map(|finding| weigh(finding, settings)));
        rules.push((RuleResult { unable, skipped, ..empty_result(name) }, settings.mode));
    }
    let names: Vec<&str> = rules.iter().map(|(rule, _)| rule.name.as_str()).collect();
    let remarks = waiver::apply(waivers, accepted, today, (&names, &judged), &mut findings);
    if !remarks.is_empty() {
        rules.push((empty_result(registry::WAIVERS), Mode::Warn));
    }
    findings.extend(remarks.into_iter().map(|finding| weigh(finding, &strict)));
    let broad_waivers = waiver::broad(waivers, today, &findings);
    for finding in findings.iter_mut().filter(|finding| finding.waived.is_some()) {
        finding.severity = Severity::Info;
    }
    let mut findings = repeated::told_once(findings);
    // If no finding of the server is left, another rule has reported them all.
    let server_is_left = !server_is_able || findings.iter().any(|finding| finding.rule == registry::SERVER);
    rules.retain(|(rule, _)| rule.name != registry::SERVER || server_is_left);
    findings.sort_by(compare);
    let rules: Vec<RuleResult> =
        rules.into_iter().map(|(result, mode)| with_outcome(result, mode, &findings)).collect();
    RunReport {
        outcome: overall(&rules),
        rules,
        findings,
        off: Vec::new(),
        left_out: None,
        broad_waivers,
        loosened: Vec::new(),
    }
}

/// Sets severity and fingerprint. A [`Verdict::Change`] keeps the severity that its rule set, at most a warning:
/// it never refuses.
fn weigh(mut finding: Finding, settings: &Settings) -> Finding {
    finding.severity = match (finding.verdict, settings.mode, settings.fail_mode) {
        (Verdict::Change, _, _) => finding.severity.max(Severity::Warning),
        (Verdict::Breaking, Mode::Error, _) if finding.unusual => Severity::Warning,
        (Verdict::Breaking, Mode::Error, _) | (Verdict::Unknown, Mode::Error, FailMode::Closed) => Severity::Error,
        (Verdict::Unknown, Mode::Error, FailMode::Open) | (_, Mode::Warn, _) => Severity::Warning,
    };
    finding.fingerprint = finding.compute_fingerprint();
    finding
}

fn empty_result(name: &str) -> RuleResult {
    RuleResult { name: name.to_owned(), ..RuleResult::default() }
}

/// Counts a rule's findings and returns their worst severity: the lowest, as [`Severity`] is ordered from the worst.
fn count(result: &mut RuleResult, findings: &[Finding]) -> Severity {
    let mut worst = Severity::Info;
    (result.breaking, result.unknown, result.changes, result.waived) = (0, 0, 0, 0);
    for finding in findings.iter().filter(|finding| finding.rule == result.name) {
        worst = worst.min(finding.severity);
        match finding.verdict {
            _ if finding.waived.is_some() => result.waived += 1,
            Verdict::Breaking => result.breaking += 1,
            Verdict::Unknown => result.unknown += 1,
            Verdict::Change => result.changes += 1,
        }
    }
    worst
}

fn with_outcome(mut result: RuleResult, mode: Mode, findings: &[Finding]) -> RuleResult {
    let worst = count(&mut result, findings);
    result.outcome = match (worst, mode) {
        _ if result.skipped.is_some() => RuleOutcome::Skipped,
        (Severity::Error, _) => RuleOutcome::Failed,
        (_, Mode::Error) if !result.unable.is_empty() => RuleOutcome::Unable,
        (Severity::Warning, _) => RuleOutcome::Warned,
        (Severity::Info, _) if !result.unable.is_empty() => RuleOutcome::Warned,
        (Severity::Info, _) => RuleOutcome::Passed,
    };
    result
}

fn overall(rules: &[RuleResult]) -> Outcome {
    match rules.iter().map(|rule| rule.outcome).max() {
        Some(RuleOutcome::Failed) => Outcome::Refused,
        Some(RuleOutcome::Unable) => Outcome::Unable,
        Some(RuleOutcome::Warned) => Outcome::Warned,
        Some(RuleOutcome::Passed | RuleOutcome::Skipped) | None => Outcome::Passed,
    }
}

/// Findings without a position sort last, so that a reader starts in the input.
fn compare(left: &Finding, right: &Finding) -> std::cmp::Ordering {
    fn key(finding: &Finding) -> impl Ord + '_ {
        let place = finding.position.as_ref().map(|place| (place.file.as_str(), place.line, place.column));
        let object = &finding.object;
        (
            (finding.severity, place.is_none(), place, &finding.rule, &finding.check),
            (&object.group, &object.kind, &object.namespace, &object.name),
            (finding.version.as_deref(), finding.path.as_deref(), &finding.message, &finding.fingerprint),
        )
    }
    key(left).cmp(&key(right))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Judges where no waiver covered anything before.
    fn judge(ended: Vec<Ended<'_>>, server: Judgement, waivers: &[Waiver], today: &str) -> RunReport {
        super::judge(ended, server, waivers, &Accepted::new(), today)
    }
    use pushback_objects::source::Position;

    fn finding(verdict: Verdict, name: &str) -> Finding {
        let object = ObjectRef { kind: "Foo".into(), name: name.into(), ..ObjectRef::default() };
        Finding::new("CRDUpgradeSafety", "scope", verdict, object, "m")
    }

    fn ended<'s>(settings: &'s Settings, findings: Vec<Finding>, unable: &[&str]) -> Ended<'s> {
        let unable = unable.iter().map(ToString::to_string).collect();
        Ended { name: "CRDUpgradeSafety", settings, ending: Ending::Judged(Judgement { findings, unable }) }
    }

    fn settings(mode: Mode, fail_mode: FailMode) -> Settings {
        Settings { mode, fail_mode, ..Settings::default() }
    }

    #[test]
    fn what_a_second_look_refuses_takes_the_place_of_what_was_said_before() {
        let settings = Settings::default();
        let first = vec![finding(Verdict::Change, "a"), finding(Verdict::Change, "b")];
        let report = judge(vec![ended(&settings, first, &[])], Judgement::default(), &[], "2026-01-01");
        assert_eq!(report.outcome, Outcome::Passed);
        let again = judge(
            vec![ended(&settings, vec![finding(Verdict::Breaking, "a")], &["no list"])],
            Judgement::default(),
            &[],
            "2026-01-01",
        );
        let differs = Refused::by_differences(&finding(Verdict::Change, "c").object, "made something else of it", []);
        let revised = report.revised(&[Refused::by(again), differs]);
        assert_eq!(revised.outcome, Outcome::Refused);
        let lines: Vec<String> = revised
            .findings
            .iter()
            .map(|it| format!("{} {} {:?} {:?}", it.rule, it.object.name, it.verdict, it.severity))
            .collect();
        assert_eq!(
            lines,
            ["CRDUpgradeSafety a Breaking Error", "server c Breaking Error", "CRDUpgradeSafety b Change Info",]
        );
        let [rule, server] = &revised.rules[..] else { panic!("{:?}", revised.rules) };
        assert_eq!((rule.outcome, rule.breaking, rule.changes), (RuleOutcome::Failed, 1, 1));
        assert_eq!(rule.unable, ["no list"]);
        assert_eq!((server.name.as_str(), server.outcome, server.breaking), ("server", RuleOutcome::Failed, 1));
    }

    #[test]
    fn mode_and_fail_mode_decide_what_each_verdict_does() {
        let mut table = String::new();
        for (mode, fail_mode) in [
            (Mode::Error, FailMode::Closed),
            (Mode::Error, FailMode::Open),
            (Mode::Warn, FailMode::Closed),
            (Mode::Warn, FailMode::Open),
        ] {
            for (title, findings, unable) in [
                ("nothing", vec![], &[][..]),
                ("change", vec![finding(Verdict::Change, "a")], &[]),
                ("unknown", vec![finding(Verdict::Unknown, "a")], &[]),
                ("breaking", vec![finding(Verdict::Breaking, "a")], &[]),
                ("unable", vec![], &["no list"]),
                ("unable, unknown", vec![finding(Verdict::Unknown, "a")], &["no list"]),
                ("unable, breaking", vec![finding(Verdict::Breaking, "a")], &["no list"]),
            ] {
                let settings = settings(mode, fail_mode);
                let rule = ended(&settings, findings, unable);
                let report = judge(vec![rule], Judgement::default(), &[], "2026-01-01");
                let severity = report.findings.first().map(|finding| finding.severity);
                let result = &report.rules[0];
                let mode = format!("{mode:?} {fail_mode:?}");
                let line = format!("{severity:?} {:?} {:?}", result.outcome, report.outcome);
                table.push_str(&format!("{mode:<13}| {title:<17}| {line}\n"));
            }
        }
        insta::assert_snapshot!(table, @r#"
        Error Closed | nothing          | None Passed Passed
        Error Closed | change           | Some(Info) Passed Passed
        Error Closed | unknown          | Some(Error) Failed Refused
        Error Closed | breaking         | Some(Error) Failed Refused
        Error Closed | unable           | None Unable Unable
        Error Closed | unable, unknown  | Some(Error) Failed Refused
        Error Closed | unable, breaking | Some(Error) Failed Refused
        Error Open   | nothing          | None Passed Passed
        Error Open   | change           | Some(Info) Passed Passed
        Error Open   | unknown          | Some(Warning) Warned Warned
        Error Open   | breaking         | Some(Error) Failed Refused
        Error Open   | unable           | None Unable Unable
        Error Open   | unable, unknown  | Some(Warning) Unable Unable
        Error Open   | unable, breaking | Some(Error) Failed Refused
        Warn Closed  | nothing          | None Passed Passed
        Warn Closed  | change           | Some(Info) Passed Passed
        Warn Closed  | unknown          | Some(Warning) Warned Warned
        Warn Closed  | breaking         | Some(Warning) Warned Warned
        Warn Closed  | unable           | None Warned Warned
        Warn Closed  | unable, unknown  | Some(Warning) Warned Warned
        Warn Closed  | unable, breaking | Some(Warning) Warned Warned
        Warn Open    | nothing          | None Passed Passed
        Warn Open    | change           | Some(Info) Passed Passed
        Warn Open    | unknown          | Some(Warning) Warned Warned
        Warn Open    | breaking         | Some(Warning) Warned Warned
        Warn Open    | unable           | None Warned Warned
        Warn Open    | unable, unknown  | Some(Warning) Warned Warned
        Warn Open    | unable, breaking | Some(Warning) Warned Warned
        "#);
    }

    #[test]
    fn a_refusal_outweighs_a_rule_that_was_unable() {
        let strict = Settings::default();
        let unable = |name| Ended {
            name,
            settings: &strict,
            ending: Ending::Judged(Judgement { findings: vec![], unable: vec!["x".into(), "x".into()] }),
        };
        let broken = ended(&strict, vec![finding(Verdict::Breaking, "a")], &[]);
        let report = judge(vec![broken, unable("PermissionValidation")], Judgement::default(), &[], "2026-01-01");
        assert_eq!(report.outcome, Outcome::Refused);
        assert_eq!(report.rules[1].unable, ["x"]);
        let report = judge(vec![unable("PermissionValidation")], Judgement::default(), &[], "2026-01-01");
        assert_eq!(report.outcome, Outcome::Unable);
        assert!(report.outcome.refuses());
    }

    #[test]
    fn a_change_never_refuses_whatever_severity_its_rule_gave_it() {
        for (given, expected) in [
            (Severity::Info, Severity::Info),
            (Severity::Warning, Severity::Warning),
            (Severity::Error, Severity::Warning),
        ] {
            let mut change = finding(Verdict::Change, "a");
            change.severity = given;
            let strict = Settings::default();
            let rule = ended(&strict, vec![change], &[]);
            let report = judge(vec![rule], Judgement::default(), &[], "2026-01-01");
            assert_eq!(report.findings[0].severity, expected);
        }
    }

    #[test]
    fn the_server_refuses_under_any_mode_and_against_any_waiver() {
        let mut refusal = finding(Verdict::Breaking, "a");
        refusal.rule = registry::SERVER.into();
        let server = Judgement { findings: vec![refusal], unable: vec![] };
        let fingerprint = {
            let report = judge(vec![], Judgement { findings: server.findings.clone(), unable: vec![] }, &[], "");
            report.findings[0].fingerprint.clone()
        };
        let waiver = Waiver { fingerprint: Some(fingerprint), reason: "please".into(), ..Waiver::default() };
        let lenient = settings(Mode::Warn, FailMode::Open);
        let lenient = ended(&lenient, vec![], &[]);
        let report = judge(vec![lenient], server, &[waiver], "2026-01-01");
        assert_eq!(report.outcome, Outcome::Refused);
        assert_eq!(report.findings[0].severity, Severity::Error);
        assert!(report.findings[0].waived.is_none());
        let names: Vec<_> = report.rules.iter().map(|rule| (rule.name.as_str(), rule.outcome)).collect();
        assert_eq!(
            names,
            [
                ("CRDUpgradeSafety", RuleOutcome::Passed),
                ("server", RuleOutcome::Failed),
                ("preflightWaivers", RuleOutcome::Warned),
            ]
        );
    }

    #[test]
    fn a_waived_finding_is_shown_and_does_not_refuse() {
        let waiver = Waiver {
            rule: Some("CRDUpgradeSafety".into()),
            object: Some("Foo a".into()),
            reason: "reviewed".into(),
            owner: Some("platform".into()),
            ..Waiver::default()
        };
        let findings = vec![finding(Verdict::Breaking, "a"), finding(Verdict::Unknown, "b")];
        let open = settings(Mode::Error, FailMode::Open);
        let report = judge(vec![ended(&open, findings, &[])], Judgement::default(), &[waiver], "2026-01-01");
        assert_eq!(report.outcome, Outcome::Warned);
        let result = &report.rules[0];
        assert_eq!((result.breaking, result.unknown, result.waived), (0, 1, 1));
        let waived = &report.findings[1];
        assert_eq!((waived.object.name.as_str(), waived.severity), ("a", Severity::Info));
        assert_eq!(waived.waived.as_deref(), Some("reviewed (owner: platform)"));
    }

    #[test]
    fn findings_are_sorted_by_weight_and_place_whatever_order_they_come_in() {
        let at = |verdict, name: &str, file: &str, line| {
            finding(verdict, name).at(Some(Position { file: file.into(), line, column: 1 }))
        };
        let findings = vec![
            finding(Verdict::Breaking, "nowhere"),
            at(Verdict::Change, "info", "a.yaml", 1),
            at(Verdict::Breaking, "later", "b.yaml", 2),
            at(Verdict::Breaking, "line10", "a.yaml", 10),
            at(Verdict::Unknown, "warned", "a.yaml", 1),
            at(Verdict::Breaking, "line9-b", "a.yaml", 9),
            at(Verdict::Breaking, "line9-a", "a.yaml", 9),
        ];
        let names = |findings: Vec<Finding>| {
            let open = settings(Mode::Error, FailMode::Open);
            let rule = ended(&open, findings, &[]);
            let report = judge(vec![rule], Judgement::default(), &[], "2026-01-01");
            report.findings.into_iter().map(|finding| finding.object.name).collect::<Vec<_>>()
        };
        let sorted = names(findings.clone());
        assert_eq!(sorted, ["line9-a", "line9-b", "line10", "later", "nowhere", "warned", "info"]);
        assert_eq!(names(findings.into_iter().rev().collect()), sorted);
    }

    #[test]
    fn the_report_has_its_documented_shape() {
        let strict = Settings::default();
        let skipped = Ended {
            name: "PermissionValidation",
            settings: &strict,
            ending: Ending::Skipped("needs an API server".into()),
        };
        let rule = ended(&strict, vec![finding(Verdict::Breaking, "a")], &[]);
        let report = judge(vec![rule, skipped], Judgement::default(), &[], "2026-01-01");
        let mut value = serde_json::to_value(&report).expect("a report is plain data");
        assert_eq!(
            value["findings"][0]["fingerprint"].as_str().map(str::len),
            Some(pushback_objects::finding::FINGERPRINT_DIGITS)
        );
        value["findings"][0]["fingerprint"] = json!("…");
        assert_eq!(
            value,
            json!({
                "outcome": "refused",
                "rules": [
                    {"name": "CRDUpgradeSafety", "outcome": "failed", "breaking": 1, "unknown": 0, "changes": 0, "waived": 0},
                    {"name": "PermissionValidation", "outcome": "skipped", "breaking": 0, "unknown": 0, "changes": 0,
                     "waived": 0, "skipped": "needs an API server"},
                ],
                "findings": [{
                    "rule": "CRDUpgradeSafety", "check": "scope", "verdict": "breaking", "severity": "error",
                    "object": {"group": "", "version": "", "kind": "Foo", "namespace": "", "name": "a"},
                    "message": "m", "fingerprint": "…",
                }],
            })
        );
    }
}
