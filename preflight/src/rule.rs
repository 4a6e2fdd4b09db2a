//! The seam that every preflight rule fits: what it is called and does, its settings, what it needs
//! from the cluster, and its judgement.

use std::any::Any;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::experiment::suite::Suite;
use crate::facts::{ChangeSet, Facts, Need, Needs};
use crate::finding::{Finding, FindingRef};
use crate::object::ObjectRef;

/// What is known of a rule without running it; help, docs and `pushback rules` are made from it.
#[derive(Debug)]
pub struct RuleMeta {
    /// Name, as Config and `--preflight` spell it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Explanation in Markdown, with the source of each rule.
    pub docs: &'static str,
    /// The checks inside it: name and one line.
    pub checks: &'static [(&'static str, &'static str)],
    /// Settings beyond `mode` and `failMode`.
    pub settings: &'static [Setting],
    /// What it needs from the cluster, for `pushback rules NAME`.
    pub needs: &'static str,
    /// Whether it runs when no Config lists rules.
    pub default: bool,
    /// Whether it means anything on a directory or git ref.
    pub on_directory: bool,
}

/// The order of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// These words, the strictest first. A word that is not among them is only as strict as itself.
    Words(&'static [&'static str]),
    /// The smaller number.
    Smaller,
    /// Each setting of the map by its own.
    Each,
    /// Of a list in which the first entry that matches decides: entries in front whose `key` says `strictest`.
    FirstMatch {
        /// What an entry does.
        key: &'static str,
        /// Where it can do no more.
        strictest: &'static str,
    },
    /// It names a file, a URL, standard input or a program: nothing that judged manifests may choose.
    Outside,
    /// Nobody can compare them.
    Unordered,
}

impl Order {
    /// What a check does.
    pub const ERROR: Self = Self::Words(&["error", "warn", "off"]);
}

/// One setting of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Key in `config`.
    pub name: &'static str,
    /// One line.
    pub doc: &'static str,
    /// What it takes.
    pub kind: SettingKind,
    /// Which of two values is the stricter one. There is no default: a setting that does not say it does not compile.
    pub order: Order,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum SettingKind {
    /// One of these words; the first is the default.
    Choice(&'static [&'static str]),
    /// One of these words; it must be given.
    Required(&'static [&'static str]),
    /// A whole number between two others, both included.
    Number {
        /// Where it is not given.
        default: u64,
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A file, folder, URL or git ref with documents that the rule reads; empty where it is left out. Whoever runs the
    /// rules reads them with the input, and answers the rule's need for them.
    InputPath(DocumentKind),
    /// A folder for what the rule makes besides findings; empty where it is left out. Whoever runs the rules writes it.
    OutputFolder,
    /// A list of texts, any text where no words are given; empty where it is left out.
    Texts(&'static [&'static str]),
    /// A map of settings.
    Map(&'static [Setting]),
    /// A list of maps of settings; empty where it is left out.
    List(&'static [Setting]),
}

/// What the documents are that a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// Operator models: [`Need::Models`].
    Models,
}

/// Settings after validation: every key is known, every value allowed, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `mode`.
    pub mode: Mode,
    /// `failMode`.
    pub fail_mode: FailMode,
    /// The rule's own settings.
    pub(crate) values: Map<String, Value>,
}

impl Settings {
    /// The rule's own settings as its struct, which has neither defaults nor optional fields: each setting has been read
    /// by what the rule declares, and its default is there.
    ///
    /// # Panics
    /// The struct is not what the rule declares: a defect, which a test over the registry finds.
    #[must_use]
    pub fn own<T: DeserializeOwned>(&self) -> T {
        match T::deserialize(Value::Object(self.values.clone())) {
            Ok(own) => own,
            Err(error) => unreachable!("{} is not what the rule declares: {error}", std::any::type_name::<T>()),
        }
    }
}

/// What a rule's errors do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Breaking findings refuse.
    #[default]
    Error,
    /// Nothing refuses.
    Warn,
}

/// What `unknown` does under [`Mode::Error`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// It refuses.
    #[default]
    Closed,
    /// It warns.
    Open,
}

/// What a rule came to.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What it found; any order.
    pub findings: Vec<Finding>,
    /// Facts that it could not get: what for, and why. Not empty means that the rule's outcome is `unable`.
    pub unable: Vec<String>,
}

/// What a rule makes besides findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Artefact {
    /// The folder that a setting names.
    pub folder: String,
    /// The experiments that go into it.
    pub suite: Suite,
}

/// A judgement, or the facts that it still takes.
#[derive(Debug)]
pub enum Checked {
    /// Done.
    Done(Judgement),
    /// These facts are needed too. At most three rounds are gone.
    More(Needs),
}

/// What a rule has worked out and is asked for again in the same run: in the next round, and for every page. It follows
/// from change set, cluster and settings, so that nothing but time depends on it.
#[derive(Debug, Default)]
pub struct Memory(Option<Box<dyn Any + Send + Sync>>);

impl Memory {
    /// What is remembered; worked out now where that is nothing.
    pub fn keep<T: Send + Sync + 'static>(&mut self, work_out: impl FnOnce() -> T) -> &T {
        if self.get::<T>().is_none() {
            self.0 = Some(Box::new(work_out()));
        }
        match self.get() {
            Some(kept) => kept,
            None => unreachable!("it has just been put there"),
        }
    }

    /// What is remembered, for whoever asks for it last: it need not be there twice.
    pub fn take<T: 'static>(&mut self) -> Option<T> {
        self.0.take_if(|kept| kept.is::<T>())?.downcast().ok().map(|kept| *kept)
    }

    /// What is remembered.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

/// A preflight rule. Pure: the same facts and settings give the same judgement.
pub trait Rule: Debug + Sync {
    /// What it is.
    fn meta(&self) -> &'static RuleMeta;

    /// The facts that it wants for these changes.
    fn plan(&self, changes: &ChangeSet, settings: &Settings) -> Needs;

    /// Whether what it says of one change rests on all the others, and not on what that change means by itself.
    fn compares_the_whole(&self) -> bool {
        false
    }

    /// Judges.
    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked;

    /// Folds one page of a stream that it asked for with [`Need::Objects`] or
    /// [`Need::NamespaceContents`] into its state (`Null` at first). The facts are those of the rounds before.
    fn fold(&self, _facts: &Facts, _need: &Need, _memory: &Memory, _state: &mut Value, _page: &[Value]) {}

    /// What it makes besides findings for the folders that its settings name, once it has judged. It is asked once a run,
    /// and not when single changes are judged again.
    fn artefacts(&self, _settings: &Settings, _memory: &Memory) -> Vec<Artefact> {
        Vec::new()
    }

    /// The line that checks published by others print for one of its findings.
    fn published_line(&self, _finding: &Finding) -> Option<String> {
        None
    }

    /// Its finding that tells what the API server refuses of an object: the field that the server names, and the value
    /// that it quotes. Where both are told, the rule's says what to do.
    fn finding_for_refusal(&self, _object: &ObjectRef, _field: &str, _value: Option<&str>) -> Option<FindingRef> {
        None
    }
}
