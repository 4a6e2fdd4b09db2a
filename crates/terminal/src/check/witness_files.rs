//! Witnesses as files, `--witness-dir DIR`: each is an object for `kubectl apply`, to try a finding on a cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use pushback_manifest::yaml;
use pushback_objects::Finding;
use pushback_system::atomic_file::{probe, replace};
use pushback_system::path_safety::check_folder;
use serde_json::Value;

use crate::escape::{terminal_safe, terminal_safe_json};
use crate::finding_card::{CardStyle, FindingCard, witness_yaml};

/// Most characters of one part of a file name: four parts and their separators fit.
const PART: usize = 60;

/// Why witnesses could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write witness {path}: {reason}", path = path.display(), reason = pushback_system::environment::reason(source))]
pub struct WitnessError {
    path: PathBuf,
    source: io::Error,
}

/// Creates the folder, and checks that files can be written to it.
///
/// # Errors
/// The folder cannot be created or written.
pub fn prepare(folder: &Path) -> Result<(), WitnessError> {
    let trial = folder.join("probe.yaml");
    let probed = || {
        check_folder(folder)?;
        fs::create_dir_all(folder)?;
        probe(&trial)
    };
    probed().map_err(|source| WitnessError { path: folder.to_owned(), source })
}

/// Writes the witness of each finding that has one to its own file, replacing a file of the same name.
///
/// # Errors
/// A file could not be written.
pub fn write(folder: &Path, findings: &[Finding]) -> Result<(), WitnessError> {
    let mut used = BTreeSet::new();
    for (finding, witness) in findings.iter().filter_map(|finding| Some((finding, finding.witness.as_ref()?))) {
        let stem = stem(finding);
        let mut name = format!("{stem}.yaml");
        let mut number = 1;
        // Some file systems ignore case.
        while !used.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{stem}-{number}.yaml");
        }
        let path = folder.join(name);
        replace(&path, text(finding, witness).as_bytes()).map_err(|source| WitnessError { path, source })?;
    }
    Ok(())
}

/// File name without extension, such as `foos.ex.com-v1-enum-9c1185a5deadbeef`.
fn stem(finding: &Finding) -> String {
    let version = finding.version.as_deref().unwrap_or_default();
    let parts = [finding.object.name.as_str(), version, &finding.check, &finding.fingerprint];
    let parts: Vec<String> = parts.iter().filter(|part| !part.is_empty()).map(|part| sanitised(part)).collect();
    format!("{}{}", if parts.is_empty() { "witness" } else { "" }, parts.join("-"))
}

/// Replaces separators, leading dots, and characters that a shell or terminal acts on.
fn sanitised(part: &str) -> String {
    let plain = |(index, c): (usize, char)| {
        let kept = c.is_ascii_alphanumeric() || (index > 0 && matches!(c, '.' | '-' | '_'));
        if kept { c } else { '_' }
    };
    part.chars().take(PART).enumerate().map(plain).collect()
}

/// The object as YAML, under a comment about what it shows.
fn text(finding: &Finding, witness: &Value) -> String {
    let yaml = witness_yaml(witness);
    let read = yaml::load("witness", yaml.as_bytes(), &yaml::Limits::default());
    let same = read.is_ok_and(|read| read.documents.len() == 1 && read.documents[0].value == *witness);
    // If the YAML does not read back as the same value, write JSON, which is YAML too.
    let object = if same { yaml } else { terminal_safe_json(&format!("{witness:#}")) + "\n" };
    let card = FindingCard::new(finding, CardStyle::REPORT);
    format!("# {}: {}\n{object}", terminal_safe(&card.rule), terminal_safe(&card.title()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::fixture::{check_report, hostile_report};

    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<(String, String)> = entries
            .map(|path| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, fs::read_to_string(&path).expect("text"))
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_witness_is_a_file_that_says_what_it_shows() {
        let folder = tempfile::tempdir().expect("folder");
        let folder = folder.path().join("deep/witnesses");
        prepare(&folder).expect("prepared");
        assert_eq!(files(&folder), []);
        let findings = check_report().findings;
        for _ in 0..2 {
            write(&folder, &findings).expect("written");
        }
        let [(name, text)] = &files(&folder)[..] else { panic!("one file") };
        assert_eq!(name, "foos.ex.com-v1-enum-9c1185a5deadbeef.yaml");
        insta::assert_snapshot!(text, @r#"
        # CRDUpgradeSafety/enum: CustomResourceDefinition foos.ex.com, version v1, spec.f: value "B" is no longer allowed
        apiVersion: ex.com/v1
        kind: Foo
        metadata:
          name: witness
        spec:
          f: B
        "#);
    }

    #[test]
    fn two_witnesses_of_one_name_are_two_files() {
        let folder = tempfile::tempdir().expect("folder");
        let finding = check_report().findings[0].clone();
        let mut other = finding.clone();
        other.check = "ENUM".to_owned();
        write(folder.path(), &[finding, other]).expect("written");
        assert_eq!(files(folder.path()).len(), 2);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_before_the_run() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(prepare(&file).expect_err("a file").to_string().starts_with("cannot write witness "));
        assert!(prepare(&file.join("below")).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn hostile_names_stay_in_the_folder_and_hostile_witnesses_read_back(evil in any::<String>()) {
            let finding = hostile_report(&evil).findings.remove(0);
            let stem = stem(&finding);
            prop_assert!(stem.len() < 250 && !stem.starts_with('.') && !stem.contains(['/', '\\', ' ']), "{stem}");
            let witness = json!({"a": evil, "b": [1, 0.5, null, true], "c": {evil.clone(): "on"}});
            let text = text(&finding, &witness);
            let read = yaml::load("w", text.as_bytes(), &yaml::Limits::default());
            prop_assert_eq!(&read.expect("yaml").documents[0].value, &witness);
        }
    }
}
