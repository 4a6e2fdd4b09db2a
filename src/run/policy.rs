//! Source of a run's policy: `--config`, a Config on the old side of a comparison, or the judged manifests. Everything
//! else in a Config (order, waits, labels, rebase rules) counts from manifests and `--config` alike.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_conversion::{ConversionPlans, GivenPlan, PlanSource};
use pushback_events::RunFailure;
use pushback_manifest::config::custom::RuleScope;
use pushback_manifest::config::mask::Masker;
use pushback_manifest::config::{self, AdmissionExemption, Config, Matcher, PreflightRule, PreflightWaiver};
use pushback_manifest::files::{SourceFile, shown};
use pushback_manifest::{FileDigest, InputError, InputWarning, Manifest, collect, shown_input, yaml};
use pushback_objects::Position;
use pushback_objects::source::Document;
use pushback_preflight::custom::{self, Definition};
use pushback_preflight::default_set::DefaultSet;
use pushback_preflight::loosened::{Loosened, LoosenedKind};
use pushback_preflight::policy::{self, Policy, PolicyError, Side};
use pushback_preflight::registry;
use pushback_preflight::rule::Rule;
use pushback_preflight::selection::{ConfigRule, NONE, SelectionError};
use pushback_preflight::waiver::Waiver;

use super::error::CommandError;
use super::options::PreflightOptions;

/// The Config of a run, and the source of its settings.
#[derive(Debug)]
pub struct Configured {
    /// The whole Config, defaults included.
    pub config: Config,
    /// The Config among the manifests.
    among: Config,
    source: Option<Source>,
    /// `ConversionPlan` documents, of manifests and `--config`.
    plans: Vec<GivenPlan>,
    /// Digests of the files of `--config`.
    files: Vec<FileDigest>,
}

/// A policy source.
#[derive(Debug)]
struct Source {
    name: String,
    config: Config,
    /// Whether its documents may belong to several apps.
    is_old_side: bool,
}

impl Configured {
    /// Reads the Config documents among the manifests, and the files of `--config`. With `allow_unknown_keys`, unknown keys of the
    /// former are warnings; those of a policy are errors either way.
    ///
    /// # Errors
    /// All errors in them at once.
    pub fn read(
        documents: &[Manifest],
        files: &[String],
        allow_unknown_keys: bool,
        warnings: &mut Vec<InputWarning>,
    ) -> Result<Self, CommandError> {
        let among = parse(documents, allow_unknown_keys.then_some(&mut *warnings));
        let mut digests = Vec::new();
        let of_files = match files {
            [] => Ok(None),
            files => collect::load_config_files(files).and_then(|of_files| {
                warnings.extend(of_files.warnings);
                digests = of_files.digests;
                Ok(Some((parse(&of_files.configs, None)?, plans_of(of_files.plans, PlanSource::Policy)?)))
            }),
        };
        let (among, of_files) = match (among, of_files) {
            (Ok(among), Ok(of_files)) => (among, of_files),
            (among, of_files) => {
                let errors: Vec<InputError> = among.err().into_iter().chain(of_files.err()).flatten().collect();
                return Err(errors.into());
            }
        };
        let mut config = Config::merge(config::defaults::defaults(), among.clone());
        config.release_mask_rules.clone_from(&among.diff_mask_rules);
        let mut plans = Vec::new();
        let source = of_files.map(|(of_files, given)| {
            plans = given;
            config = Config::merge(std::mem::take(&mut config), of_files.clone());
            config.policy_mask_rules.extend(of_files.diff_mask_rules.iter().cloned());
            let shown: Vec<String> = files.iter().map(|file| shown_input(file)).collect();
            Source { name: shown.join(", "), config: of_files, is_old_side: false }
        });
        Ok(Self { config, among, source, plans, files: digests })
    }

    /// Adds the `ConversionPlan` documents among the manifests.
    ///
    /// # Errors
    /// All errors in them at once.
    pub fn add_plans(&mut self, documents: Vec<Document>) -> Result<(), CommandError> {
        self.plans.extend(plans_of(documents, PlanSource::Manifests)?);
        Ok(())
    }

    /// The conversion plans of the run.
    ///
    /// # Errors
    /// Two different plans for one definition.
    pub fn conversion_plans(&self) -> Result<ConversionPlans, CommandError> {
        let of_source = self.source.iter().flat_map(|source| &source.config.conversion_plans);
        let of_source = of_source.map(|plan| GivenPlan { source: PlanSource::Policy, ..plan.clone() });
        let given = of_source.chain(self.among.conversion_plans.iter().chain(&self.plans).cloned());
        Ok(ConversionPlans::of(given)?)
    }

    /// Digests of the files of `--config`.
    pub fn file_digests(&self) -> &[FileDigest] {
        &self.files
    }

    /// Whether `--config` was given, which takes precedence over the old side.
    pub fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Takes the policy from Config documents of the old side. They may belong to several apps: each document is read
    /// by itself, and the strictest settings win.
    ///
    /// # Errors
    /// All errors in them.
    pub fn judge_by(&mut self, old_side: &str, documents: &[Manifest]) -> Result<(), CommandError> {
        let mut source = Source { name: old_side.to_owned(), config: Config::default(), is_old_side: true };
        for document in documents {
            let config = parse(std::slice::from_ref(document), None).map_err(|errors| of_old_side(errors, old_side))?;
            // Masked values stay masked; order and similar settings are up to the new side.
            self.config.diff_mask_rules.extend(config.diff_mask_rules.iter().cloned());
            self.config.policy_mask_rules.extend(config.diff_mask_rules.iter().cloned());
            source.config = Config::merge(std::mem::take(&mut source.config), config);
        }
        self.source = Some(source);
        Ok(())
    }

    /// Name of the policy's source; `None` if the manifests decide.
    pub fn source_name(&self, options: &PreflightOptions) -> Option<String> {
        match &self.source {
            Some(source) => Some(source.name.clone()),
            None if !options.manifests_may_loosen => Some("the defaults".to_owned()),
            None => None,
        }
    }

    /// The policy in effect.
    ///
    /// # Errors
    /// Unknown or repeated rules and invalid settings, with their position if they are in a Config.
    pub fn resolve(&self, options: &PreflightOptions) -> Result<Policy, CommandError> {
        // What the release masks stays visible to the rules: it could hide from them what they refuse.
        let masker = Masker::new(&self.config.policy_mask_rules);
        let among = ConfigRequests::of(&self.among, &masker);
        let source = self.source.as_ref().map(|source| {
            let mut requests = ConfigRequests::of(&source.config, &masker);
            if source.is_old_side {
                // Whoever compares two states of files has not agreed to run what they name.
                requests.custom = requests.custom.into_iter().map(Definition::untrusted).collect();
            }
            requests
        });
        let nothing = Side::default();
        let side = match (&source, options.manifests_may_loosen) {
            (Some(given), _) => {
                let may_repeat = self.source.as_ref().is_some_and(|source| source.is_old_side);
                Some(Side { may_repeat, ..given.side() })
            }
            (None, false) => Some(nothing),
            (None, true) => None,
        };
        let sides = || [Some(&among), source.as_ref()].into_iter().flatten();
        let only = (options.only_listed && !sides().any(ConfigRequests::lists_rules)).then(|| {
            let custom = source.iter().flat_map(|source| &source.custom).map(|definition| definition.name.clone());
            let names: BTreeSet<String> = custom.collect();
            if names.is_empty() { vec![NONE.to_owned()] } else { names.into_iter().collect() }
        });
        let rules = options.rules.as_deref().or(only.as_deref());
        let default_set = if options.only_listed { DefaultSet::Absent } else { DefaultSet::Exists };
        let sides = (side, among.side());
        let resolved = policy::resolve_from(registry::RULES, default_set, rules, sides, &options.waive);
        let mut policy = resolved.map_err(|errors| {
            let unknown = errors.iter().find_map(|(_, error)| match error {
                SelectionError::UnknownInFlag(unknown) => {
                    Some(RunFailure::Flag { flag: "--preflight", value: unknown.name.clone() })
                }
                SelectionError::UnknownInConfig { error, .. } => {
                    Some(RunFailure::UnknownRule { rule: error.name.clone() })
                }
                _ => None,
            });
            let errors: Vec<InputError> = errors.iter().map(|error| self.placed(error)).collect();
            CommandError { failure: unknown, ..CommandError::from(errors) }
        })?;
        for loosened in &mut policy.selection.loosened {
            loosened.position = loosened.position.take().or_else(|| self.place_of(loosened));
        }
        Ok(policy)
    }

    /// Position of the loosening in the manifests.
    fn place_of(&self, loosened: &Loosened) -> Option<Position> {
        match (&loosened.place, loosened.kind) {
            (Some((index, path)), _) => {
                let entry = self.among.preflight_rules.as_deref()?.get(*index)?;
                Some(entry.config.positions.locate(path))
            }
            (None, LoosenedKind::RuleOff) => self.among.preflight_rules_at.clone(),
            (None, _) => self.among.policy_loosening.as_ref().map(|(_, position)| position.clone()),
        }
    }

    fn placed(&self, (is_source, error): &PolicyError) -> InputError {
        let config = match &self.source {
            Some(source) if *is_source => &source.config,
            _ => &self.among,
        };
        let entry = error.config_index().and_then(|index| config.preflight_rules.as_deref()?.get(index));
        let (position, mut hints) = match (entry, error) {
            (_, SelectionError::Setting { error, .. }) => (error.position.clone(), error.hints.clone()),
            (entry, _) => (entry.map(|entry| entry.position.clone()).unwrap_or_default(), Vec::new()),
        };
        hints.push("`pushback rules` lists the rules, `pushback rules NAME` explains one".to_owned());
        InputError { message: error.to_string(), position, hints }
    }
}

/// The policy of files alone, without manifests.
#[derive(Debug)]
pub struct PolicyFiles {
    /// The policy.
    pub policy: Policy,
    /// Names of the rules that the files list or define.
    pub listed_rules: Vec<String>,
    /// `admissionExemptions`.
    pub exemptions: Vec<AdmissionExemption>,
}

/// Reads the policy of files, as `--config` gives it to a run; the defaults without a file.
///
/// # Errors
/// All errors in them.
pub fn read_policy(files: &[SourceFile]) -> Result<PolicyFiles, CommandError> {
    let texts = files.iter().map(|file| (shown(&file.path), file.bytes.clone())).collect();
    let configs = collect::load_config_texts(texts)?.configs;
    let config = parse(&configs, None)?;
    let listed = config.preflight_rules.iter().flatten();
    let listed_rules = listed.map(|rule| rule.name.clone()).filter(|name| name != registry::DEFAULT).collect();
    let exemptions = config.admission_exemptions.clone();
    let name = files.iter().map(|file| shown(&file.path)).collect::<Vec<_>>().join(", ");
    let source = Source { name, config, is_old_side: false };
    let (among, merged) = (Config::default(), Config::merge(config::defaults::defaults(), source.config.clone()));
    let configured = Configured { config: merged, among, source: Some(source), plans: Vec::new(), files: Vec::new() };
    let options = PreflightOptions { manifests_may_loosen: false, ..PreflightOptions::default() };
    Ok(PolicyFiles { policy: configured.resolve(&options)?, listed_rules, exemptions })
}

/// The requests of a Config, in the rules' terms.
struct ConfigRequests<'a> {
    rules: Option<Vec<ConfigRule<'a>>>,
    /// The rules that entries define.
    custom: Vec<Definition>,
    waivers: Vec<Waiver>,
    config: &'a Config,
}

impl<'a> ConfigRequests<'a> {
    fn of(config: &'a Config, masker: &Masker) -> Self {
        let rule = |rule: &'a PreflightRule| ConfigRule {
            name: &rule.name,
            config: &rule.config.value,
            positions: Some(&rule.config.positions),
        };
        Self {
            rules: config.preflight_rules.as_ref().map(|rules| rules.iter().map(rule).collect()),
            custom: definitions(config, masker),
            waivers: config.preflight_waivers.iter().map(waiver).collect(),
            config,
        }
    }

    fn side(&self) -> Side<'_> {
        let loosening = self.config.policy_loosening.as_ref().map(|(word, _)| *word);
        let (rules, custom) = (self.rules.as_deref(), &self.custom);
        Side { rules, custom, waivers: &self.waivers, loosening, ..Side::default() }
    }

    /// Whether it lists rules besides those that it defines.
    fn lists_rules(&self) -> bool {
        let rules = self.config.preflight_rules.as_deref();
        rules.is_some_and(|rules| rules.is_empty() || rules.iter().any(|rule| rule.custom.is_none()))
    }
}

/// The rules that a Config defines, each for the objects that it names.
fn definitions(config: &Config, masker: &Masker) -> Vec<Definition> {
    let custom = config.preflight_rules.iter().flatten().filter_map(|rule| rule.custom.as_ref());
    let within = |(definition, matchers): &(Definition, Vec<Matcher>)| {
        let scope = RuleScope { matchers: matchers.clone(), masker: masker.clone() };
        definition.clone().within(Arc::new(scope))
    };
    custom.map(within).collect()
}

/// The rules that these files define.
///
/// # Errors
/// All errors in them.
pub fn custom_rules(files: &[String]) -> Result<Vec<&'static dyn Rule>, CommandError> {
    let configured = Configured::read(&[], files, false, &mut Vec::new())?;
    let masker = Masker::new(&configured.config.diff_mask_rules);
    let source = configured.source.iter().flat_map(|source| definitions(&source.config, &masker));
    Ok(custom::rules(&source.collect::<Vec<_>>()))
}

fn waiver(waiver: &PreflightWaiver) -> Waiver {
    Waiver {
        rule: Some(waiver.rule.clone()),
        check: waiver.check.clone(),
        object: waiver.object.clone(),
        path: waiver.path.clone(),
        fingerprint: waiver.fingerprint.clone(),
        cause: waiver.cause.clone(),
        members: waiver.members.clone(),
        reason: waiver.reason.clone(),
        owner: waiver.owner.clone(),
        expires: waiver.expires.clone(),
        affected: waiver.affected,
        position: Some(waiver.position.clone()),
        may_be_unused: false,
    }
}

fn plans_of(documents: Vec<Document>, source: PlanSource) -> Result<Vec<GivenPlan>, Vec<InputError>> {
    let (mut plans, mut errors) = (Vec::new(), Vec::new());
    for document in documents {
        match GivenPlan::of_document(document, source) {
            Ok(plan) => plans.push(plan),
            Err(wrong) => errors.extend(wrong),
        }
    }
    if errors.is_empty() { Ok(plans) } else { Err(errors) }
}

fn parse(documents: &[Manifest], ignored: Option<&mut Vec<InputWarning>>) -> Result<Config, Vec<InputError>> {
    let parse_text = |file: &str, text: &str| {
        let loaded = yaml::load(file, text.as_bytes(), &yaml::Limits::default())?;
        Ok(loaded.documents.into_iter().map(|document| (document.value, document.positions)).collect())
    };
    config::parse::parse(documents, env!("CARGO_PKG_VERSION"), &parse_text, ignored)
}

fn of_old_side(mut errors: Vec<InputError>, old_side: &str) -> CommandError {
    for error in &mut errors {
        error.hints.push(format!("it is the policy of {old_side}; to judge by another one, give it with --config"));
    }
    errors.into()
}

#[cfg(test)]
mod tests;
