//! Arguments that several commands share, with kapp's flag names if kapp has the flag.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};

use pushback_cluster::ConnectOptions;
use pushback_crd::definition::StoragePolicy;
use pushback_deploy::plan::desired::Placement;
use pushback_deploy::plan::{self, NamedDrift, UpdateStrategy};
use pushback_manifest::{HelmOptions, LoadOptions, RenderOptions};
use pushback_objects::duration;
use pushback_preflight::Waiver;
use pushback_preflight::api_lifecycle::{self, Release};
use pushback_storage::carry_over::StorageOptions;
use pushback_terminal::DiffStyle;
use pushback_terminal::check::file::ReportSpec;
use pushback_terminal::check::formats;
use pushback_terminal::theme::ColorChoice;
use secrecy::ExposeSecret as _;

use super::behaviour::Behaviour;
use super::filters::{AllowArgs, SelectionArgs};
use super::reports::{HeldDocument, Reports, StandardOutput};
use crate::run::app_name::{app_or_label, namespace};
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::{
    AppOptions, InputOptions, NamespaceOptions, PlanOptions, PreflightOptions, RecordOptions, WriteOptions,
};

/// Arguments of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// The cluster: `kube`, `dir:PATH` (a folder of YAML), or, to read from, `file:PATH`, `git:REF[:PATH]`,
    /// `kustomize:DIR`, `helm:CHART` or `oci://…`
    #[arg(long, global = true, default_value = "kube", env = "PUSHBACK_CLUSTER", hide_env_values = true)]
    pub cluster: String,
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the service account of a Pod]
    #[arg(long, global = true, env = "PUSHBACK_KUBECONFIG", hide_env = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Kubeconfig context
    #[arg(long, global = true, env = "PUSHBACK_KUBECONFIG_CONTEXT", hide_env = true, value_name = "NAME")]
    pub kubeconfig_context: Option<String>,
    /// Act as this user
    #[arg(long = "as", global = true, value_name = "USER", hide_short_help = true)]
    pub as_user: Option<String>,
    /// Act as a member of this group; can be given more than once
    #[arg(long, global = true, value_name = "GROUP", requires = "as_user", hide_short_help = true)]
    pub as_group: Vec<String>,
    /// Run only these credential plugins of a kubeconfig, by name or path, or none; each is named before it runs
    /// [default: any]
    #[arg(
        long,
        global = true,
        env = "PUSHBACK_CREDENTIAL_PLUGINS",
        hide_env = true,
        value_name = "NAMES",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub credential_plugins: Option<Vec<String>>,
    /// Time that one request gets
    #[arg(long, global = true, value_parser = duration, default_value = "30s", value_name = "DURATION", hide_short_help = true)]
    pub request_timeout: Duration,
    /// Output: rows that move (tty), lines (plain), JSON (json): events from apply, delete and diff, the report from
    /// check, one value from the others [default: tty on a terminal, else plain; plain with -v]
    #[arg(long, short = 'o', global = true, value_name = "FORMAT",
          value_parser = EnumValueParser::<OutputFormat>::new().map(Output::Format))]
    pub output: Option<Output>,
    /// Colours: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = color)]
    pub color: ColorChoice,
    /// Answer questions with yes
    #[arg(long, short = 'y', global = true)]
    pub yes: bool,
    /// Cut nothing, and log each write (-vv: each request, -vvv: connections, too; never a body)
    #[arg(long, short = 'v', global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Behaviour that depends on the name the program was called by.
    #[arg(skip)]
    pub(crate) behaviour: Behaviour,
}

impl GlobalArgs {
    /// Adds the settings of planning that depend on the program's name.
    #[must_use]
    pub fn planning(&self, mut plan: PlanOptions) -> PlanOptions {
        plan.options.recreates_contents = self.behaviour.recreates_contents;
        plan
    }

    /// Adds the settings of writing that depend on the program's name.
    #[must_use]
    pub fn writing(&self, mut options: WriteOptions) -> WriteOptions {
        options.engine.compares_writes = self.behaviour.compares_writes;
        options.engine.wait_words.clone_from(&self.behaviour.wait_words);
        options.engine.awaits_controllers = self.behaviour.awaits_controllers;
        options
    }

    /// Converts the arguments about rules to options.
    ///
    /// # Errors
    /// The arguments contradict each other.
    pub fn preflight(
        &self,
        arguments: PreflightArgs,
        document: &HeldDocument,
    ) -> Result<PreflightOptions, CommandError> {
        let options = arguments.resolve(self.standard_output(), document)?;
        Ok(PreflightOptions { only_listed: !self.behaviour.runs_default_rules, ..options })
    }

    /// The requested output format.
    #[must_use]
    pub fn output_format(&self) -> Option<OutputFormat> {
        match self.output {
            Some(Output::Format(format)) => Some(format),
            _ => None,
        }
    }

    /// Whether JSON was requested.
    #[must_use]
    pub fn wants_json(&self) -> bool {
        self.output_format() == Some(OutputFormat::Json)
    }

    /// What a run with events writes to standard output.
    #[must_use]
    pub fn standard_output(&self) -> StandardOutput {
        if self.wants_json() { StandardOutput::Events } else { StandardOutput::Text }
    }

    /// The cluster to use.
    ///
    /// # Errors
    /// `--cluster` names no cluster.
    pub fn cluster(&self) -> Result<ClusterOptions, CommandError> {
        let server = ConnectOptions {
            kubeconfig: self.kubeconfig.clone(),
            kubeconfig_yaml: self.behaviour.kubeconfig_yaml.as_ref().map(|yaml| yaml.expose_secret().to_owned()),
            context: self.kubeconfig_context.clone(),
            impersonate: self.as_user.clone(),
            impersonate_groups: self.as_group.clone(),
            credential_plugins: self.credential_plugins.clone(),
            request_timeout: self.request_timeout,
            ..ConnectOptions::default()
        };
        ClusterOptions::of(&self.cluster, server)
    }
}

/// Value of `--output`: a format, or a path in the commands that compare releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A format for what happens.
    Format(OutputFormat),
    /// A path to write to.
    Path(PathBuf),
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Rows that move.
    Tty,
    /// A line for each change of state.
    Plain,
    /// JSON.
    Json,
}

/// Which app.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "App")]
pub struct AppArgs {
    /// App name, or label:KEY=VALUE for everything with a label
    #[arg(long, short = 'a', value_name = "NAME", value_parser = app_or_label)]
    pub app: String,
    #[command(flatten)]
    pub namespace: NamespaceOptions,
}

/// App selection for commands where the app is optional: the base of a comparison with files is the app.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "App")]
pub struct OptionalAppArgs {
    /// App name. With --cluster dir:, file: or git: it can be left out: then everything there is the app, and an object
    /// that the manifests lack is a deletion
    #[arg(long, short = 'a', value_name = "NAME", value_parser = app_or_label)]
    pub app: Option<String>,
    #[command(flatten)]
    pub namespace: NamespaceOptions,
}

impl AppArgs {
    /// Resolves to options.
    #[must_use]
    pub fn resolve(self) -> AppOptions {
        AppOptions { name: self.app, namespace: self.namespace, is_named: true, record: RecordOptions::default() }
    }
}

impl OptionalAppArgs {
    /// Resolves to options.
    ///
    /// # Errors
    /// No app is named, and the cluster is an API server, where the objects belong to many apps.
    pub fn resolve(self, global: &GlobalArgs) -> Result<AppOptions, CommandError> {
        let namespace = self.namespace;
        match self.app {
            Some(name) => Ok(AppOptions { name, namespace, is_named: true, record: RecordOptions::default() }),
            None if global.cluster != "kube" => Ok(AppOptions {
                name: "check".to_owned(),
                namespace,
                is_named: false,
                record: RecordOptions::default(),
            }),
            None => Err(CommandError::usage_with_hint(
                "no app is named",
                "name it with -a NAME; it can be left out where --cluster is a folder, a file or a git ref",
            )),
        }
    }
}

impl From<AppArgs> for OptionalAppArgs {
    fn from(named: AppArgs) -> Self {
        Self { app: Some(named.app), namespace: named.namespace }
    }
}

/// Arguments of a comparison without a base.
#[derive(Clone, Copy, Debug, Args)]
pub struct NewBaseArgs {
    /// Declare that a first release has no base. Objects of the input that are under another path of the same git ref
    /// are compared as moved; where the base exists, this is a warning
    // After --file and what belongs to it, wherever the two groups of arguments stand.
    #[arg(long, display_order = 900)]
    pub new_base: bool,
}

/// What is applied.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// File, directory (read recursively; rendered if it has a kustomization or chart), git:REF:PATH, kustomize:DIR,
    /// helm:CHART or helm:CHART@VERSION, oci://REGISTRY/REPOSITORY:TAG or @DIGEST, https URL (pinned with
    /// URL#sha256=DIGEST), or - for standard input; can be given more than once
    #[arg(long = "file", short = 'f', value_name = "PATH")]
    pub files: Vec<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Arguments for folders and charts that are rendered, the same for both sides of a comparison.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rendering")]
pub struct RenderArgs {
    /// File with values of a Helm chart, of the same ref as the chart; can be given more than once
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub values: Vec<String>,
    /// Value of a Helm chart, as with helm; can be given more than once
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true)]
    pub set: Vec<String>,
    /// Release name of a Helm chart [default: the chart's folder or name]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub release: Option<String>,
    /// API versions that a Helm chart can rely on, such as monitoring.coreos.com/v1
    #[arg(long, value_name = "VERSION", value_delimiter = ',', hide_short_help = true)]
    pub api_versions: Vec<String>,
    /// Let a kustomization fetch bases and charts from other machines
    #[arg(long, hide_short_help = true)]
    pub allow_remote_bases: bool,
}

impl RenderArgs {
    /// Resolves to options; the run adds namespace and Kubernetes version.
    #[must_use]
    pub fn resolve(self) -> RenderOptions {
        let Self { values, set, release, api_versions, allow_remote_bases } = self;
        let helm = HelmOptions { values, set, release, api_versions, ..HelmOptions::default() };
        RenderOptions { allow_remote_bases, helm }
    }
}

/// How what is applied is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct ReadingArgs {
    /// File with Config documents, the policy that the input is judged by: what a Config among the manifests says of
    /// rules, settings and waivers can then be stricter only; can be given more than once
    #[arg(long, env = "PUSHBACK_CONFIG", hide_env = true, value_name = "FILE")]
    pub config: Vec<String>,
    /// Put all namespaced objects into this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub into_ns: Option<String>,
    /// Map namespaces, A=B; where given, every namespaced object must be mapped
    #[arg(long, value_name = "A=B", value_parser = mapping, value_delimiter = ',')]
    pub map_ns: Vec<(String, String)>,
    /// Allow http URLs
    #[arg(long, hide_short_help = true)]
    pub allow_http: bool,
    /// Follow symbolic links that lead out of a directory of -f
    #[arg(long, hide_short_help = true)]
    pub follow_links: bool,
    /// Allow an input without any object: everything that the app owns is deleted
    #[arg(long, hide_short_help = true)]
    pub dangerous_allow_empty_list_of_resources: bool,
    // Last, since the heading of its group holds for every argument after it.
    #[command(flatten)]
    pub rendering: RenderArgs,
}

impl InputArgs {
    /// Resolves to input and planning options.
    ///
    /// # Errors
    /// A filter cannot be read.
    pub fn resolve(self, plan: PlanArgs) -> Result<(InputOptions, PlanOptions), CommandError> {
        self.reading.resolve(self.files, plan)
    }
}

impl ReadingArgs {
    /// Resolves to options for the input in these files.
    ///
    /// # Errors
    /// A filter cannot be read.
    pub fn resolve(self, files: Vec<String>, plan: PlanArgs) -> Result<(InputOptions, PlanOptions), CommandError> {
        let load = LoadOptions {
            allow_empty: self.dangerous_allow_empty_list_of_resources,
            allow_http: self.allow_http,
            follow_links: self.follow_links,
            render: Some(self.rendering.resolve()),
            ..LoadOptions::default()
        };
        let input = InputOptions { files, config: self.config, allow_unknown_config_keys: !plan.strict, load };
        let plan = PlanOptions {
            placement: Placement { into_namespace: self.into_ns, map_namespaces: self.map_ns, ..Placement::default() },
            allowed: plan.allow.resolve(),
            update_strategy: UpdateStrategy::of(&plan.apply_default_update_strategy),
            ignore_api_services: plan.dangerous_ignore_failing_api_services,
            options: plan::Options {
                no_prune: plan.patch,
                selection: plan.selection.resolve()?,
                allow_empty: self.dangerous_allow_empty_list_of_resources,
                recheck: plan.recheck,
                default_label_scoping: plan.default_label_scoping_rules,
                override_ownership: plan.dangerous_override_ownership_of_existing_resources
                    || !plan.ownership_override_allowed_apps.is_empty(),
                override_allowed_apps: plan.ownership_override_allowed_apps,
                kapp_annotations: plan.kapp_annotations,
                named_drift: plan.diff_against.into(),
                strict: plan.strict,
                storage: StorageOptions {
                    policy: StoragePolicy::named(&plan.storage).unwrap_or_default(),
                    backup: plan.storage_backup,
                    ..StorageOptions::default()
                },
                ..plan::Options::default()
            },
        };
        Ok((input, plan))
    }
}

/// What the app's objects are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffAgainst {
    /// What the app sets.
    Manifest,
    /// What others have set, too.
    Live,
}

impl From<DiffAgainst> for NamedDrift {
    fn from(side: DiffAgainst) -> Self {
        match side {
            DiffAgainst::Manifest => Self::ByHand,
            DiffAgainst::Live => Self::All,
        }
    }
}

/// How it is planned.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
pub struct PlanArgs {
    /// Delete nothing that is gone from the input
    #[arg(long, short = 'p')]
    pub patch: bool,
    /// Refuse objects with fields that their kind lacks, with list items of the same key, or larger than etcd takes by
    /// default. Where false, a warning names them: the fields are left out, and the items are all written; of the size
    /// the server decides. Then unknown keys of a Config among the manifests are warnings, too
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide_short_help = true)]
    pub strict: bool,
    /// What the app's objects are compared with. manifest: what the app sets; what others have set stays, and is no
    /// difference. live: the same, with a warning for each field in `spec` that others have set
    #[arg(long, value_name = "WHAT", default_value = "manifest")]
    pub diff_against: DiffAgainst,
    /// Send unchanged objects to the server too
    #[arg(long, hide_short_help = true)]
    pub recheck: bool,
    /// How objects without an update-strategy annotation are updated: empty, fallback-on-replace, always-replace, skip;
    /// namespaces, volumes, claims and definitions are replaced by an annotation of their own only
    #[arg(long, default_value = "", value_name = "STRATEGY", hide_short_help = true,
          value_parser = ["", "fallback-on-replace", "always-replace", "skip"])]
    pub apply_default_update_strategy: String,
    /// Add the app's label to selectors of new objects, as kapp does
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide_short_help = true)]
    pub default_label_scoping_rules: bool,
    /// Keep kapp's copy of the manifest on every object, so that kapp can go on with the app; where kapp has left one,
    /// it is kept up to date without this
    #[arg(long, hide_short_help = true)]
    pub kapp_annotations: bool,
    /// Do not wait for APIServices; API groups that do not answer and that no object needs are left out without this
    #[arg(long, hide_short_help = true)]
    pub dangerous_ignore_failing_api_services: bool,
    /// Take over objects that belong to other apps
    #[arg(long, hide_short_help = true)]
    pub dangerous_override_ownership_of_existing_resources: bool,
    /// Take over objects of these apps only
    #[arg(long, value_name = "APPS", value_delimiter = ',', hide_short_help = true)]
    pub ownership_override_allowed_apps: Vec<String>,
    /// What to do about custom resources that are stored in a version which a new definition drops, or which is no
    /// longer its storage version. refuse: nothing, and the change is refused if it would strand them. defer: the
    /// same, and what is left is for `pushback storage`. migrate: move them to the storage version. bridge: carry
    /// them over as well where the storage version itself goes
    #[arg(long, default_value = "refuse", value_name = "POLICY", value_parser = StoragePolicy::NAMES)]
    pub storage: String,
    /// Folder for custom resources as they were before a conversion plan converts them: one file for each
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    pub storage_backup: Option<PathBuf>,
    #[command(flatten)]
    pub allow: AllowArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// How changes are shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Diff")]
pub struct DiffArgs {
    /// Show changes as text, with the lines around them
    #[arg(long, short = 'c')]
    pub diff_changes: bool,
    /// Exit with 3 where there are changes and with 2 where there are none
    #[arg(long)]
    pub diff_exit_status: bool,
}

impl DiffArgs {
    /// How changes within objects are shown.
    #[must_use]
    pub fn style(&self) -> DiffStyle {
        if self.diff_changes { DiffStyle::Text } else { DiffStyle::Fields }
    }
}

/// Which preflight rules run, and what is reported.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Preflight")]
pub struct PreflightArgs {
    #[command(flatten)]
    pub rules: RuleArgs,
    #[arg(long, value_name = "FORMAT=PATH", help = formats::help())]
    pub report: Vec<String>,
    /// Write the witness of each finding to a file in this folder, an object for `kubectl apply`
    #[arg(long, value_name = "DIR")]
    pub witness_dir: Option<PathBuf>,
    /// Write the facts that the rules judged, Secrets masked
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub facts_out: Option<PathBuf>,
}

/// Which preflight rules run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Preflight")]
pub struct RuleArgs {
    /// Run exactly these rules, or none; `default` stands for the default set: default,NAME adds a rule to it; alone:
    /// what the Config lists [default: the Config's preflightRules, or the default set]
    #[arg(long, value_name = "RULES", num_args = 0..=1, default_missing_value = "", action = ArgAction::Append)]
    pub preflight: Option<Vec<String>>,
    /// Accept one finding for this run, FINGERPRINT=REASON, or FINGERPRINT@COUNT=REASON for so many affected objects at
    /// most; recorded in the app's history
    #[arg(long, value_name = "FINGERPRINT[@COUNT]=REASON", value_parser = waiver)]
    pub waive: Vec<Waiver>,
    /// Who may loosen the checks where no policy is given with --config: the Config among the manifests, or nobody
    /// (outside: the defaults count)
    #[arg(long, env = "PUSHBACK_POLICY_FROM", hide_env = true, value_name = "WHERE", default_value = "manifests")]
    pub policy_from: PolicyFrom,
    /// Kubernetes version that RemovedAPIs, CRDUpgradeSafety and ExistingObjects judge by, such as 1.36 [default: the
    /// cluster's; without an API server the newest that they know]
    #[arg(long, value_name = "VERSION", value_parser = kubernetes_version)]
    pub kubernetes_version: Option<Release>,
}

impl From<RuleArgs> for PreflightArgs {
    fn from(rules: RuleArgs) -> Self {
        Self { rules, report: Vec::new(), witness_dir: None, facts_out: None }
    }
}

impl PreflightArgs {
    /// Whether standard output is to hold only a report.
    #[must_use]
    pub fn reports_to_standard_output(&self) -> bool {
        let specs = self.report.iter().filter_map(|flag| flag.parse::<ReportSpec>().ok());
        specs.into_iter().any(|spec| spec.is_standard_output())
    }

    /// Resolves to options; a report for standard output is left in `document`.
    ///
    /// # Errors
    /// A report has an unknown format, or two have the same target.
    pub fn resolve(
        self,
        standard_output: StandardOutput,
        document: &HeldDocument,
    ) -> Result<PreflightOptions, CommandError> {
        Ok(PreflightOptions {
            only_listed: false,
            rules: self.rules.preflight,
            waive: self.rules.waive,
            manifests_may_loosen: self.rules.policy_from == PolicyFrom::Manifests,
            kubernetes_version: self.rules.kubernetes_version,
            facts_out: self.facts_out,
            reports: Reports::of(&self.report, self.witness_dir, standard_output, document)?,
        })
    }
}

/// Who may loosen the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyFrom {
    /// The Config among the manifests, where there is no policy source.
    Manifests,
    /// Nobody but a policy source.
    Outside,
}

/// Parses a duration such as `1h30m`, `90s`, `1.5s`, `500ms`; a number without a unit is an error.
pub fn duration(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
    match duration::parse(text) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err("expected at most a year, 8760h".to_owned()),
        None => Err(format!("expected {}", duration::EXPECTED)),
    }
}

fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), namespace(to)?)),
        _ => Err("expected A=B, for example staging=prod".to_owned()),
    }
}

pub(crate) fn waiver(text: &str) -> Result<Waiver, String> {
    Waiver::from_flag(text).map_err(|error| error.to_string())
}

pub(crate) fn kubernetes_version(text: &str) -> Result<Release, String> {
    api_lifecycle::parse(text).ok_or_else(|| "expected a version such as 1.36".to_owned())
}

fn color(text: &str) -> Result<ColorChoice, String> {
    match text {
        "auto" => Ok(ColorChoice::Auto),
        "always" | "true" => Ok(ColorChoice::Always),
        "never" | "false" => Ok(ColorChoice::Never),
        _ => Err("expected auto, always or never".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::writing::{PodLogArgs, WriteArgs};
    use crate::run::options::WriteOptions;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("1h2m3s4ms5us6ns"), Ok(Duration::new(3723, 4_005_006)));
        assert_eq!(duration("8760h"), Ok(Duration::from_secs(31_536_000)));
        assert_eq!(duration("8761h"), Err("expected at most a year, 8760h".to_owned()));
        for wrong in ["", "30", "s", "-1s", "1d", "1s2", "9999999h", "..s"] {
            assert!(duration(wrong).is_err(), "{wrong} is no duration");
        }
    }

    #[test]
    fn a_run_without_flags_is_written_and_planned_as_by_default() {
        #[derive(Debug, clap::Parser)]
        struct Alone {
            #[command(flatten)]
            input: InputArgs,
            #[command(flatten)]
            plan: PlanArgs,
            #[command(flatten)]
            write: WriteArgs,
            #[command(flatten)]
            logs: PodLogArgs,
        }
        let Alone { input, plan, write, logs } = clap::Parser::try_parse_from(["apply"]).expect("no flag is needed");
        let (_, plan) = input.resolve(plan).expect("no filter");
        assert_eq!(format!("{plan:?}"), format!("{:?}", PlanOptions::default()));
        assert_eq!(format!("{:?}", logs.resolve(write.resolve())), format!("{:?}", WriteOptions::default()));
    }

    #[test]
    fn the_command_line_is_consistent() {
        crate::cli::command().debug_assert();
    }
}
