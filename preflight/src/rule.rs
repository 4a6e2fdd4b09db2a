//! The interface of every preflight rule: its metadata, its settings, the facts that it needs from the cluster, and
//! its judgement.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use pushback_objects::finding::Finding;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::experiment::suite::Suite;
use crate::facts::{ChangeSet, Facts, Need, Needs};

/// Static metadata of a rule; help, docs and `pushback rules` are generated from it.
#[derive(Debug)]
pub struct RuleMeta {
    /// Name, as spelled in a Config and in `--preflight`.
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// Explanation in Markdown, with its sources.
    pub docs: &'static str,
    /// The rule's checks: name and one-line summary.
    pub checks: &'static [(&'static str, &'static str)],
    /// Settings beyond `mode` and `failMode`.
    pub settings: &'static [Setting],
    /// Settings with another default for a rule of the default set that neither `preflightRules` nor `--preflight`
    /// names.
    pub unasked: &'static [(&'static str, &'static str)],
    /// What the rule needs from the cluster, for `pushback rules NAME`.
    pub needs: &'static str,
    /// Whether the rule runs if no Config lists rules.
    pub default: bool,
    /// Whether the rule applies to a directory or git ref.
    pub on_directory: bool,
    /// True if a policy defines the rule.
    pub is_custom: bool,
    /// True if the judgement of one change depends on all the others.
    pub compares_the_whole: bool,
    /// True if the judgement depends on the manifests alone, and not on the server's version of an object: it is not
    /// repeated right before the write.
    pub judges_manifests_only: bool,
    /// True if the rule judges CRDs that controllers make from other objects, too.
    pub judges_derived_crds: bool,
}

impl RuleMeta {
    /// The values of most rules. A rule adds its names and texts, and what is different.
    pub const COMMON: Self = Self {
        name: "",
        summary: "",
        docs: "",
        checks: &[],
        settings: &[],
        unasked: &[],
        needs: "",
        default: true,
        on_directory: true,
        is_custom: false,
        compares_the_whole: false,
        judges_manifests_only: false,
        judges_derived_crds: false,
    };
}

/// How the values of a setting compare in strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// These words, strictest first. Any other word is comparable only to itself.
    Words(&'static [&'static str]),
    /// The smaller number is stricter.
    Smaller,
    /// Each setting of the map has its own order.
    Each,
    /// The first matching entry of the list decides: an entry at the front is stricter if its `key` is `strictest`.
    FirstMatch {
        /// Key of an entry's effect.
        key: &'static str,
        /// The strictest effect.
        strictest: &'static str,
    },
    /// The setting names a file, a URL, standard input or a program: judged manifests may never set it.
    Outside,
    /// Values cannot be compared.
    Unordered,
}

impl Order {
    /// The order of a check's effect.
    pub const ERROR: Self = Self::Words(&["error", "warn", "off"]);
}

/// One setting of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Key in `config`.
    pub name: &'static str,
    /// One-line description.
    pub doc: &'static str,
    /// The values that it accepts.
    pub kind: SettingKind,
    /// Which of two values is stricter. Mandatory: there is no default.
    pub order: Order,
}

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug)]
pub enum SettingKind {
    /// One of these words; the first is the default.
    Choice(&'static [&'static str]),
    /// One of these words; mandatory.
    Required(&'static [&'static str]),
    /// A whole number within inclusive bounds.
    Number {
        /// The default.
        default: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A file, folder, URL or git ref with documents for the rule; empty if omitted. The caller reads them with the
    /// input and answers the rule's need for them.
    InputPath(DocumentKind),
    /// An output folder for what the rule generates in addition to findings; empty if omitted. The caller writes it.
    OutputFolder,
    /// A list of strings, restricted to these words unless there are none; empty if omitted.
    Texts(&'static [&'static str]),
    /// A map of settings.
    Map(&'static [Setting]),
    /// A list of maps of settings; empty if omitted.
    List(&'static [Setting]),
}

/// The kind of documents that a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// Operator models: [`Need::Models`].
    Models,
}

/// Validated settings: every key is known, every value is allowed, defaults are filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `mode`.
    pub mode: Mode,
    /// `failMode`.
    pub fail_mode: FailMode,
    /// The rule's own settings, by name.
    pub(crate) values: Map<String, Value>,
}

impl Settings {
    /// The rule's own settings as its struct, which has neither defaults nor optional fields: the values are validated
    /// and complete.
    ///
    /// # Panics
    /// Panics if the struct does not match the declared settings: a defect, which a test over the registry finds.
    #[must_use]
    pub fn own<T: DeserializeOwned>(&self) -> T {
        match T::deserialize(Value::Object(self.values.clone())) {
            Ok(own) => own,
            Err(error) => unreachable!("{} is not what the rule declares: {error}", std::any::type_name::<T>()),
        }
    }
}

/// The effect of a rule's errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Breaking findings refuse the run.
    #[default]
    Error,
    /// No finding refuses.
    Warn,
}

/// The effect of verdict `unknown` in [`Mode::Error`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// Unknown findings refuse.
    #[default]
    Closed,
    /// Unknown findings warn.
    Open,
}

/// The result of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The findings, in any order.
    pub findings: Vec<Finding>,
    /// Facts that the rule could not get: purpose and reason. If not empty, the rule's outcome is `unable`.
    pub unable: Vec<String>,
}

/// A program of a rule, and what it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCall {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The file that names it, as the user named that.
    pub named_by: String,
    /// Whether the user has named that file as a policy; a program of any other is not run.
    pub is_trusted: bool,
    /// What it gets on standard input.
    pub input: Value,
    /// How long it may take.
    pub time: Duration,
    /// Most bytes of memory that it may fill.
    pub memory: u64,
}

/// Output of a rule in addition to its findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Artefact {
    /// The output folder, from a setting.
    pub folder: String,
    /// The experiments to write into it.
    pub suite: Suite,
}

/// A judgement, or the facts that are still missing.
#[derive(Debug)]
pub enum Checked {
    /// The final judgement.
    Done(Judgement),
    /// The rule cannot be judged here, for this reason, and refuses nothing for it.
    Skipped(String),
    /// These facts are needed as well. A rule may ask in at most three rounds.
    More(Needs),
}

/// A cache for intermediate results of a rule, reused in later rounds and for every page. They depend only on change
/// set, cluster and settings, so the cache affects time and nothing else.
#[derive(Debug, Default)]
pub struct Memory(Option<Box<dyn Any + Send + Sync>>);

impl Memory {
    /// Returns the cached value; computes it first if there is none.
    pub fn keep<T: Send + Sync + 'static>(&mut self, work_out: impl FnOnce() -> T) -> &T {
        if self.get::<T>().is_none() {
            self.0 = Some(Box::new(work_out()));
        }
        match self.get() {
            Some(kept) => kept,
            None => unreachable!("it has just been put there"),
        }
    }

    /// Takes the cached value out, for the last reader.
    pub fn take<T: 'static>(&mut self) -> Option<T> {
        self.0.take_if(|kept| kept.is::<T>())?.downcast().ok().map(|kept| *kept)
    }

    /// Returns the cached value, if any.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

/// A preflight rule. Pure: the same facts and settings give the same judgement.
pub trait Rule: Any + Debug + Sync {
    /// Static metadata of the rule.
    fn meta(&self) -> &'static RuleMeta;

    /// The facts that the rule needs for these changes.
    fn plan(&self, changes: &ChangeSet, settings: &Settings) -> Needs;

    /// Judges the changes, or asks for more facts.
    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked;

    /// Folds one page of a stream requested with [`Need::Objects`] or [`Need::NamespaceContents`] into the rule's
    /// state, which starts as `Null`. `_facts` are those of the earlier rounds.
    fn fold(&self, _facts: &Facts, _need: &Need, _memory: &Memory, _state: &mut Value, _page: &[&Value]) {}

    /// The ways out of one of the rule's findings, as data; what is best for who deploys first.
    fn remedies(&self, _facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        finding.remedy.iter().map(|step| Remedy::deployer(RemedyKind::Change, step)).collect()
    }
}
