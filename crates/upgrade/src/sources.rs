//! One side of a comparison: operator models, definitions and manifests from files, folders, standard input, URLs and
//! git refs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pushback_manifest::git::GitError;
use pushback_manifest::{ComparedSide, LoadOptions, collect, moved, variants};
use pushback_manifest::{Input, InputError, InputWarning, Manifest, ResolvedSource};
use pushback_objects::Position;
use pushback_objects::source::Document;
use pushback_releases::derive::{self, Given, Ownership, Settings};
use pushback_releases::model_file;
use pushback_releases::versioned::Folder;
use pushback_releases::{Definition, DefinitionChange, Release, definitions, mixed, overlay};

/// Contents of the sources of one side.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Hand-written models.
    pub models: Vec<Document>,
    /// Kubernetes objects, definitions among them.
    pub manifests: Vec<Manifest>,
    /// Further CRDs of the same names, from other files; once paired, as many as the other side has.
    pub variants: Vec<Manifest>,
    /// Sources that do not exist, and need not.
    pub missing: Vec<String>,
    /// Warnings.
    pub warnings: Vec<InputWarning>,
    /// Sources that were rendered or resolved.
    pub rendered: Vec<ResolvedSource>,
    /// The sources as the user named them, joined.
    pub named: String,
    /// The sources one by one.
    inputs: Vec<String>,
    /// What is known about the live app behind this side.
    naming: Naming,
}

/// Reads the sources of one side: models, and manifests of any kind.
///
/// # Errors
/// All errors in them, sorted by file and line.
pub fn read(inputs: &[String], allow_http: bool, follow_links: bool) -> Result<Side, Vec<InputError>> {
    read_with(inputs, &LoadOptions { models: true, allow_http, follow_links, ..LoadOptions::default() })
}

/// Reads the sources of one side.
///
/// # Errors
/// All errors in them, sorted by file and line.
pub fn read_with(inputs: &[String], options: &LoadOptions) -> Result<Side, Vec<InputError>> {
    let Input { manifests, models, warnings, variants, missing, rendered, .. } = collect::load(inputs, options)?;
    let naming = Naming::default();
    Ok(Side {
        models,
        manifests,
        variants,
        missing,
        warnings,
        rendered,
        named: inputs.join(", "),
        inputs: inputs.to_vec(),
        naming,
    })
}

/// Pairs the CRDs that are in several files: afterwards the variants of both sides belong together one by one.
pub fn pair_variants(old: &mut Side, new: &mut Side) {
    let variants = (std::mem::take(&mut old.variants), std::mem::take(&mut new.variants));
    let further = variants::pair_variants((&mut old.manifests, variants.0), (&mut new.manifests, variants.1));
    (old.variants, new.variants) = further.into_iter().unzip();
}

/// Changes of further variants of CRDs, besides those that are `known`.
#[must_use]
pub fn changes_of_variants(
    old: &Side,
    new: &Side,
    options: definitions::Options,
    known: &[DefinitionChange],
) -> Vec<DefinitionChange> {
    let mut ids: BTreeSet<String> = known.iter().map(|change| change.id.clone()).collect();
    let pairs = old.variants.iter().zip(&new.variants);
    let changes =
        pairs.flat_map(|(one, other)| definitions::compare(&[definition_of(one)], &[definition_of(other)], options));
    changes.filter(|change| ids.insert(change.id.clone())).collect()
}

fn definition_of(manifest: &Manifest) -> Definition {
    Definition {
        name: manifest.object.name.clone(),
        value: Arc::new(manifest.value.clone()),
        positions: Some(Arc::clone(&manifest.positions)),
    }
}

impl Side {
    /// Adds objects of the other side that a missing git path does not have, but another path of its ref.
    ///
    /// # Errors
    /// Git cannot be read.
    pub fn add_moved(&mut self, other: &Self, side: ComparedSide) -> Result<(), GitError> {
        for input in &self.missing {
            let Some(of_ref) = input.strip_prefix("git:").and_then(|of_ref| of_ref.split_once(':')) else { continue };
            let wanted: Vec<&Manifest> = other.manifests.iter().chain(&other.variants).collect();
            let found = moved::find(of_ref, &wanted, side)?;
            if !found.manifests.is_empty() {
                self.warnings.retain(|warning| warning.position.file != *input);
                self.warnings.extend(found.warnings);
                self.manifests.extend(found.manifests);
                self.variants.extend(found.variants);
            }
        }
        Ok(())
    }

    /// Sets the live app that its manifests belong to.
    pub fn name_as(&mut self, input: &str, naming: Naming) {
        if !self.named.is_empty() {
            self.named.push_str(", ");
        }
        self.named.push_str(input);
        self.naming = naming;
    }

    /// Its CustomResourceDefinitions.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        self.manifests.iter().filter(|manifest| manifest.object.is_definition()).map(definition_of).collect()
    }

    /// The release from which to derive a model, definitions included. What is known about the app takes precedence
    /// over what its manifests say.
    ///
    /// # Errors
    /// All errors in the models.
    pub fn derived(&self, naming: &Naming) -> Result<Release, Vec<InputError>> {
        let written = self.written()?;
        let mut naming = naming.clone();
        if let ([operator], true) = (written.operators.as_slice(), naming.app.is_empty()) {
            naming.app.clone_from(&operator.name);
        }
        let derived = self.of_manifests(&naming);
        Ok(if written.operators.is_empty() { derived } else { overlay::merge(derived, written) })
    }

    /// Checks that its models can be read.
    ///
    /// # Errors
    /// All errors in them.
    pub fn check_models(&self) -> Result<(), Vec<InputError>> {
        self.written().map(drop)
    }

    /// Whether it contains only hand-written models. Definitions, alone or next to a model, do not count as a
    /// component.
    fn is_written(&self) -> bool {
        self.manifests.iter().all(|manifest| manifest.object.is_definition())
    }

    /// Returns whether a side counts as hand-written beside another: a side without models and components does if the
    /// other one does. Otherwise all that a release removes besides its CRDs would be left out.
    fn is_written_beside(&self, other: &Self) -> bool {
        if self.models.is_empty() && self.is_written() { other.is_written() } else { self.is_written() }
    }

    fn written(&self) -> Result<Release, Vec<InputError>> {
        model_file::release(&self.models, self.definitions())
    }

    /// The model derived from its manifests.
    fn of_manifests(&self, naming: &Naming) -> Release {
        let given: Vec<Given> = self
            .manifests
            .iter()
            .map(|it| Given { value: Arc::new(it.value.clone()), positions: Some(Arc::clone(&it.positions)) })
            .collect();
        let version = self.inputs.iter().find_map(|input| version_in(input)).unwrap_or_default();
        derive::derive(&given, &naming.settings(version))
    }
}

/// Comparable releases of both sides: a derived model uses the names of the other side, and what only a written or only
/// a derived model can express is left out.
///
/// # Errors
/// All errors in the models of either side.
pub fn releases(old: &Side, new: &Side) -> Result<(Release, Release), Vec<InputError>> {
    let live = if old.naming.app.is_empty() { &new.naming } else { &old.naming };
    let named_like = |other: &Result<Release, Vec<InputError>>| {
        let operators = other.as_ref().map(|release| release.operators.as_slice()).unwrap_or_default();
        let app = if let [operator] = operators { operator.name.clone() } else { live.app.clone() };
        Naming { app, ..live.clone() }
    };
    let are_written = (old.is_written_beside(new), new.is_written_beside(old));
    let (mut before, mut after) = match are_written {
        (true, true) => (old.written(), new.written()),
        (true, false) => {
            let before = old.written();
            let after = new.derived(&named_like(&before));
            (before, after)
        }
        (false, true) => {
            let after = new.written();
            (old.derived(&named_like(&after)), after)
        }
        (false, false) => {
            let owned = |side: &Result<Release, _>| side.as_ref().map(Ownership::of).unwrap_or_default();
            let named = named_like(&old.derived(&named_like(&new.written())));
            let counterpart = owned(&new.derived(&named));
            let before = old.derived(&Naming { counterpart, ..named.clone() });
            let after = new.derived(&Naming { counterpart: owned(&before), ..named });
            (before, after)
        }
    };
    if let (Ok(before), Ok(after)) = (&mut before, &mut after) {
        match are_written {
            (true, false) => mixed::make_comparable(before, after),
            (false, true) => mixed::make_comparable(after, before),
            _ => {}
        }
    }
    match (before, after) {
        (Ok(before), Ok(after)) => Ok((before, after)),
        (before, after) => Err(before.err().into_iter().chain(after.err()).flatten().collect()),
    }
}

/// What is known about an app besides its manifests.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// App name; empty: taken from its labels.
    pub app: String,
    /// Namespace of objects that name none; empty: inferred from the others.
    pub namespace: String,
    /// Ownership in the release that it is compared with.
    pub counterpart: Ownership,
}

impl Naming {
    fn settings(&self, version: String) -> Settings {
        let Self { app, namespace, counterpart } = self.clone();
        Settings { app, namespace, version, counterpart }
    }
}

/// The version in a source's name, as in `releases/v1.2.3/install.yaml`, `git:v1.2.3:deploy` or `controller-v1.2.3`:
/// the last part of the path that contains one.
fn version_in(input: &str) -> Option<String> {
    input.rsplit(['/', '\\', ':']).find_map(|part| {
        let part = [".yaml", ".yml", ".json"].iter().find_map(|ending| part.strip_suffix(ending)).unwrap_or(part);
        let starts = part.char_indices().filter(|(at, c)| {
            let before = part[..*at].chars().next_back();
            c.is_ascii_digit() && before.is_none_or(|before| matches!(before, 'v' | 'V' | '-' | '_'))
        });
        let versions = starts.map(|(at, _)| &part[at..]).filter(|rest| {
            let (major, minor) = rest.split_once('.').unwrap_or_default();
            major.bytes().all(|byte| byte.is_ascii_digit()) && minor.starts_with(|c: char| c.is_ascii_digit())
        });
        versions.map(ToOwned::to_owned).next()
    })
}

/// Reads a folder with the models of one version, and its definitions in `crds/`.
///
/// # Errors
/// It is not a folder, or something in it cannot be read.
pub fn versioned(directory: &str) -> Result<(Folder, Vec<InputWarning>), Vec<InputError>> {
    let position = Position { file: directory.to_owned(), line: 0, column: 0 };
    let is_local = !directory.starts_with("git:");
    if !is_local || Path::new(directory).is_dir() {
        let Side { models, manifests, warnings, .. } = read(&[directory.to_owned()], false, false)?;
        let name = directory.trim_end_matches(['/', '\\']).rsplit(['/', '\\', ':']).next().unwrap_or_default();
        let name = if matches!(name, "" | "." | "..") { real_name(directory) } else { name.to_owned() };
        let in_crds = |manifest: &&Manifest| {
            let file = manifest.positions.file();
            let below = file.strip_prefix(directory).unwrap_or(file);
            manifest.object.is_definition() && below.split(['/', '\\']).any(|folder| folder == "crds")
        };
        let definitions = manifests.iter().filter(in_crds).count();
        return Ok((Folder { name, position, models, definitions }, warnings));
    }
    let (message, hint) = if Path::new(directory).exists() {
        ("a file; expected the directory with the models of one version", "Name its directory.")
    } else {
        ("no such directory", "Check the path; it is relative to the working directory.")
    };
    Err(vec![InputError { message: message.to_owned(), position, hints: vec![hint.to_owned()] }])
}

/// Real name of a directory given by dots.
fn real_name(directory: &str) -> String {
    let real = std::fs::canonicalize(directory).unwrap_or_default();
    real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn a_source_is_named_after_a_version_where_a_part_of_it_is_one() {
        for (input, version) in [
            ("releases/v1.2.3/install.yaml", Some("1.2.3")),
            ("apps/controller-v1.11.3/deploy.yaml", Some("1.11.3")),
            ("git:v2.0.0-rc.1:deploy/app", Some("2.0.0-rc.1")),
            ("deploy/app-0.4.yaml", Some("0.4")),
            ("v1.0/v2.0", Some("2.0")),
            ("deploy/v2/app", None),
            ("https://example.com/ipv4.local/a", None),
            ("-", None),
        ] {
            assert_eq!(version_in(input).as_deref(), version, "{input}");
        }
    }
}
