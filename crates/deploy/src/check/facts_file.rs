//! A facts file: what the rules judged, and what they judged it by, so that the verdict can be had again without a cluster.
//! JSON, Secrets masked; each of its parts has a digest, so that an edit is found, and told with its line.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::{Invocation, hex};
use pushback_preflight::RunReport;
use pushback_preflight::facts::{Answer, ChangeSet, ClusterFacts, Facts, Need, answers_as_list};
use pushback_preflight::replay::JudgedBy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::report::{CheckReport, ReportParts};
use crate::plan::saved::SavedTool;

/// Version of the format.
pub const SCHEMA_VERSION: u32 = 1;

/// The kind that a facts file says it is.
pub const KIND: &str = "Facts";

const DIGESTS: &str = "digests";

/// A facts file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactsFile {
    kind: String,
    schema_version: u32,
    /// The program that wrote it.
    pub tool: SavedTool,
    /// What the rules judged by.
    pub judged_by: JudgedBy,
    /// The verdict.
    pub verdict: RunReport,
    /// What the report says besides the verdict.
    pub report: ReportParts,
    /// What other files of the run name.
    pub named: Digests,
    changes: ChangeSet,
    cluster: ClusterFacts,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    rules: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Invocation::is_empty")]
    invocation: Invocation,
    #[serde(with = "answers_as_list")]
    answers: BTreeMap<Need, Answer>,
    #[serde(default, skip_serializing)]
    digests: BTreeMap<String, String>,
}

/// Digests that tie a facts file to other files of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Digests {
    /// Of the report.
    pub report: String,
    /// Of the answers, as a saved plan has it.
    pub answers: String,
}

/// Why a file holds no facts that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// It is something else.
    #[error("not a file of --facts-out")]
    NotFacts,
    /// It is not JSON, or has values that facts do not have.
    #[error("{message}")]
    Malformed {
        /// What is wrong.
        message: String,
        /// Where, from 1.
        line: usize,
        /// Where in the line, from 1.
        column: usize,
    },
    /// A part is not as it was written.
    #[error("`{part}` was edited: it does not have the digest that the file names")]
    Edited {
        /// The key of the part.
        part: String,
        /// The line of the key, from 1; 0 if it is not there.
        line: usize,
    },
    /// A later version has written it.
    #[error("the facts have format {0}, and this version reads up to {SCHEMA_VERSION}")]
    Newer(u64),
}

impl FactsFile {
    /// The facts of a run, Secrets masked by the caller.
    #[must_use]
    pub fn new(facts: Facts, judged_by: JudgedBy, verdict: RunReport, report: ReportParts, named: Digests) -> Self {
        let Facts { changes, cluster, rules, invocation, answers } = facts;
        Self {
            kind: KIND.to_owned(),
            schema_version: SCHEMA_VERSION,
            tool: SavedTool::this(),
            judged_by,
            verdict,
            report,
            named,
            changes,
            cluster,
            rules,
            invocation,
            answers,
            digests: BTreeMap::new(),
        }
    }

    /// The text of the file.
    #[must_use]
    pub fn render(&self) -> String {
        let mut parts = serde_json::to_value(self).unwrap_or_default();
        if let Some(parts) = parts.as_object_mut() {
            let digests: BTreeMap<String, String> = digests_of(parts).collect();
            parts.insert(DIGESTS.to_owned(), serde_json::to_value(digests).unwrap_or_default());
        }
        serde_json::to_string_pretty(&parts).unwrap_or_default() + "\n"
    }

    /// Reads a file of this format, or of an earlier one.
    ///
    /// # Errors
    /// It is something else, was edited, or is of a later format.
    pub fn parse(text: &str) -> Result<Self, FactsError> {
        let parts: Map<String, Value> = serde_json::from_str(text).map_err(|error| malformed(&error))?;
        if parts.get("kind").and_then(Value::as_str) != Some(KIND) {
            return Err(FactsError::NotFacts);
        }
        let version = parts.get("schemaVersion").and_then(Value::as_u64).unwrap_or_default();
        if version > u64::from(SCHEMA_VERSION) {
            return Err(FactsError::Newer(version));
        }
        let mut written = parts.get(DIGESTS).and_then(Value::as_object).cloned().unwrap_or_default();
        let edited = |part: String| {
            let key = format!("  {}:", Value::from(part.as_str()));
            let line = text.lines().position(|line| line.starts_with(&key)).map_or(0, |index| index + 1);
            FactsError::Edited { part, line }
        };
        for (part, digest) in digests_of(&parts) {
            if written.remove(&part) != Some(Value::from(digest)) {
                return Err(edited(part));
            }
        }
        match written.into_iter().next() {
            Some((missing, _)) => Err(edited(missing)),
            None => serde_json::from_str(text).map_err(|error| malformed(&error)),
        }
    }

    /// The facts.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            changes: self.changes.clone(),
            cluster: self.cluster.clone(),
            rules: self.rules.clone(),
            invocation: self.invocation.clone(),
            answers: self.answers.clone(),
        }
    }
}

/// The digest by which a facts file names its report.
#[must_use]
pub fn digest_of(report: &CheckReport) -> String {
    sha256(&serde_json::to_string(report).unwrap_or_default())
}

/// The digest of each part of a file.
fn digests_of(parts: &Map<String, Value>) -> impl Iterator<Item = (String, String)> {
    let own = parts.iter().filter(|(key, _)| *key != DIGESTS);
    own.map(|(key, value)| (key.clone(), sha256(&value.to_string())))
}

/// A digest as files name it.
#[must_use]
pub fn sha256(text: &str) -> String {
    format!("sha256:{}", hex::encode(&Sha256::digest(text)))
}

fn malformed(error: &serde_json::Error) -> FactsError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    FactsError::Malformed { message: text.strip_suffix(&place).unwrap_or(&text).to_owned(), line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> FactsFile {
        let verdict = JudgedBy::default().replay(Facts::default(), &[]).expect("a verdict");
        let (judged_by, report, named) = (JudgedBy::default(), ReportParts::default(), Digests::default());
        FactsFile::new(Facts::default(), judged_by, verdict, report, named)
    }

    #[test]
    fn facts_come_back_as_they_were_and_are_written_the_same() {
        let text = file().render();
        let read = FactsFile::parse(&text).expect("facts");
        assert_eq!((read.render(), read.facts()), (text, Facts::default()));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_place() {
        let text = file().render();
        let error = |text: &str| FactsFile::parse(text).expect_err("an error");
        assert_eq!(error("{\"kind\": \"SavedPlan\"}"), FactsError::NotFacts);
        assert!(matches!(error("kind: Facts"), FactsError::Malformed { line: 1, column: 1, .. }));
        assert!(matches!(error(&text[..text.len() / 2]), FactsError::Malformed { .. }));
        let edited = text.replacen("\"today\": \"\"", "\"today\": \"2020-01-01\"", 1);
        let line = text.lines().position(|line| line.starts_with("  \"judgedBy\"")).map_or(0, |index| index + 1);
        assert_eq!(error(&edited), FactsError::Edited { part: "judgedBy".to_owned(), line });
        let without = text.replacen("  \"answers\": [],\n", "", 1);
        assert_eq!(error(&without), FactsError::Edited { part: "answers".to_owned(), line: 0 });
        assert_eq!(error(&text.replacen("\"schemaVersion\": 1", "\"schemaVersion\": 2", 1)), FactsError::Newer(2));
        // Spaces are not content.
        assert!(FactsFile::parse(&text.replace("  ", " ")).is_ok());
    }

    /// Whoever edits a file can renew its digests, too.
    #[test]
    fn a_value_that_facts_do_not_have_is_told_with_its_place() {
        let resealed = |change: &dyn Fn(&mut Map<String, Value>)| {
            let mut parts: Map<String, Value> = serde_json::from_str(&file().render()).expect("JSON");
            change(&mut parts);
            let digests: BTreeMap<String, String> = digests_of(&parts).collect();
            parts.insert(DIGESTS.to_owned(), serde_json::to_value(digests).expect("JSON"));
            FactsFile::parse(&serde_json::to_string_pretty(&parts).expect("JSON")).expect_err("an error")
        };
        let unknown = resealed(&|parts| drop(parts.insert("more".to_owned(), 1.into())));
        assert!(matches!(&unknown, FactsError::Malformed { message, .. } if message.contains("`more`")), "{unknown:?}");
        let change = serde_json::json!({
            "object": {"version": "v1", "kind": "ConfigMap", "namespace": "", "name": "a", "group": ""},
            "resource": "configmaps", "namespaced": true, "operation": "create", "verification": {"state": "server"},
            "positions": {"file": "a.yaml", "nodes": [{"step": 0, "line": 1, "column": 1, "size": 0}]},
        });
        let endless = resealed(&|parts| parts["changes"]["changes"] = vec![change.clone()].into());
        assert!(
            matches!(&endless, FactsError::Malformed { message, line: 2.., .. } if message.contains("do not fit")),
            "{endless:?}"
        );
    }
}
