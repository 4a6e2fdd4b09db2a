//! Arguments that several commands on releases share, each resolved once to what the comparison needs.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pushback_releases::{Severity, compare, definitions, matching};
use pushback_terminal::check::file::is_standard_output;
use pushback_upgrade::report::formats::{self, Format};

use crate::cli::arguments::{GlobalArgs, NewBaseArgs, Output, RenderArgs};
use crate::cli::screen::data_columns;
use crate::run::app_name::app_name;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::upgrade::sides::{LiveInput, SideOptions, Sides};

/// The two releases.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Releases")]
pub struct SidesArgs {
    /// Old release: a folder (read recursively; rendered if it has a kustomization or chart), a file, git:REF:PATH,
    /// kustomize:DIR, helm:CHART or helm:CHART@VERSION, oci://REGISTRY/REPOSITORY:TAG or @DIGEST, an https URL, - for standard input, or app:NAME for a live app; can be given more than once [aliases: --old, --source, --source-crds]
    #[arg(long, aliases = ["old", "source", "source-crds"], value_name = "PATH", required = true)]
    pub from: Vec<String>,
    /// New release, as --from [aliases: --new, --target, --target-crds]
    #[arg(long, aliases = ["new", "target", "target-crds"], value_name = "PATH", required = true)]
    pub to: Vec<String>,
    /// Allow http URLs
    #[arg(long, hide_short_help = true)]
    pub allow_http: bool,
    /// Follow symbolic links that lead out of a directory that is read
    #[arg(long, hide_short_help = true)]
    pub follow_links: bool,
    #[command(flatten)]
    pub base: NewBaseArgs,
    #[command(flatten)]
    pub rendering: RenderArgs,
}

impl SidesArgs {
    /// Resolves to the two sides.
    ///
    /// # Errors
    /// A live app or the cluster is named incorrectly.
    pub fn resolve(self, global: &GlobalArgs) -> Result<Sides, CommandError> {
        let Self { from, to, allow_http, follow_links, rendering, base: NewBaseArgs { new_base } } = self;
        let render = rendering.resolve();
        Ok(Sides { old: side(global, from)?, new: side(global, to)?, allow_http, follow_links, render, new_base })
    }
}

/// Prefix of a live app among a side's inputs: `app:NAME`, `app:NAMESPACE/NAME`.
const LIVE: &str = "app:";

fn side(global: &GlobalArgs, inputs: Vec<String>) -> Result<SideOptions, CommandError> {
    let (apps, files) = inputs.into_iter().partition::<Vec<_>, _>(|input| input.starts_with(LIVE));
    let apps = apps.into_iter().map(|input| live_input(global, input)).collect::<Result<_, _>>()?;
    Ok(SideOptions { files, apps })
}

fn live_input(global: &GlobalArgs, input: String) -> Result<LiveInput, CommandError> {
    let named = input.strip_prefix(LIVE).unwrap_or(&input);
    let (namespace, name) = match named.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, named),
    };
    if namespace.as_ref().is_some_and(String::is_empty) || name.is_empty() {
        let message = format!("{input}: expected app:NAME or app:NAMESPACE/NAME");
        return Err(CommandError::usage_with_hint(message, "`pushback list -A` shows all apps"));
    }
    let app = app_name(name).map_err(|reason| CommandError::usage(format!("{input}: {reason}")))?;
    let namespace = NamespaceOptions { namespace, app_namespace: None };
    Ok(LiveInput { cluster: global.cluster()?, app, namespace, input })
}

/// How components are recognised.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct MatchingArgs {
    /// How components that have another name are recognised: by the published formula alone, or only where a fact in
    /// common guards against chance [default: published for models, guarded where one is derived from manifests]
    #[arg(long, value_name = "HOW")]
    pub matching: Option<Matching>,
}

/// Ways of pairing by similarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Matching {
    /// The formula alone.
    Published,
    /// The formula, and a fact in common.
    Guarded,
}

/// How definitions are compared.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct DefinitionsArgs {
    /// How bad a field is that becomes required and has a default, which the server fills in
    #[arg(long, value_name = "SEVERITY", default_value = "breaking")]
    pub required_with_default: RequiredWithDefault,
}

/// What a required field with a default may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RequiredWithDefault {
    /// As any required field.
    Breaking,
    /// A warning.
    Warning,
}

impl DefinitionsArgs {
    /// Resolves to options.
    #[must_use]
    pub fn options(&self) -> definitions::Options {
        definitions::Options { required_with_default_warns: self.required_with_default == RequiredWithDefault::Warning }
    }
}

impl MatchingArgs {
    /// Resolves to options.
    #[must_use]
    pub fn options(&self, definitions: &DefinitionsArgs) -> compare::Options {
        let matching = self.matching.map(|matching| match matching {
            Matching::Published => matching::Matching::Published,
            Matching::Guarded => matching::Matching::Guarded,
        });
        compare::Options { matching, definitions: definitions.options() }
    }
}

/// How it is shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct ShownArgs {
    /// Format of what is printed [default: what the ending of --output says (.json, .yaml, .md, .html), else table]
    #[arg(long, short = 'o', value_name = "FORMAT", value_parser = report_format())]
    pub format: Option<&'static Format>,
    /// Write it to this file instead of standard output
    #[arg(long, value_name = "PATH", value_parser = PathBufValueParser::new().map(Output::Path))]
    pub output: Option<Output>,
}

/// Parser for a format of reports on releases.
pub fn report_format() -> impl TypedValueParser<Value = &'static Format> {
    PossibleValuesParser::new(formats::FORMATS.map(|format| PossibleValue::new(format.word).help(format.about)))
        .map(|word| formats::find(&word).unwrap_or(&formats::TABLE))
}

/// Target of a report, by default standard output, and its format.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path.
    pub path: Option<PathBuf>,
    /// The format.
    pub format: &'static Format,
}

impl Place {
    /// Columns that tables are wrapped into: those of the terminal that the report is printed on.
    #[must_use]
    pub fn columns(&self) -> Option<usize> {
        let is_printed = self.path.as_deref().is_none_or(is_standard_output);
        data_columns().filter(|_| is_printed).map(usize::from)
    }
}

impl ShownArgs {
    /// Resolves to the report's target.
    ///
    /// # Errors
    /// A format was given instead of a path.
    pub fn place(&self) -> Result<Place, CommandError> {
        let path = output_path(self.output.as_ref())?;
        let format = self.format.or_else(|| formats::of_file(path.as_deref()?)).unwrap_or(&formats::TABLE);
        Ok(Place { path, format })
    }
}

/// The path in `--output`, for commands on releases.
///
/// # Errors
/// A format was given instead of a path.
pub fn output_path(output: Option<&Output>) -> Result<Option<PathBuf>, CommandError> {
    let misplaced = |word: &str| {
        Err(CommandError::usage_with_hint(
            format!("--output is a path in this command, and {word:?} is a format"),
            format!("say --format {word}; for a file of that name: --output ./{word}"),
        ))
    };
    match output {
        None => Ok(None),
        Some(Output::Format(format)) => {
            misplaced(format.to_possible_value().as_ref().map_or("json", |value| value.get_name()))
        }
        Some(Output::Path(path)) => match path.to_str() {
            Some(word @ ("tty" | "plain" | "json" | "yaml" | "table" | "markdown" | "html")) => misplaced(word),
            _ => Ok(Some(path.clone())),
        },
    }
}

/// What makes the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A breaking change.
    Breaking,
    /// A warning, or worse.
    Warning,
    /// Any change.
    Info,
    /// Nothing.
    Never,
}

impl FailOn {
    /// Lowest severity that makes the command fail.
    #[must_use]
    pub fn least(self) -> Option<Severity> {
        match self {
            Self::Breaking => Some(Severity::Breaking),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }
}
