//! The upgrade between experiments: arguments of `pushback apply` for a run of experiments.

use std::time::Duration;

use clap::{Args, Parser};
use pushback_app::record::AppName;
use pushback_deploy::apply::engine;
use pushback_preflight::Waiver;

use crate::cli::arguments::{GlobalArgs, PolicyFrom, duration, waiver};
use crate::run::app_name::app_name;
use crate::run::apply::Apply;
use crate::run::error::CommandError;
use crate::run::options::{
    AppOptions, Command, InputOptions, NamespaceOptions, PlanOptions, PreflightOptions, RecordOptions, RunOptions,
    WriteOptions,
};
use crate::run::upgrade::step::Upgrade;

/// The upgrade between experiments.
#[derive(Clone, Debug, Args)]
pub struct UpgradeStepArgs {
    /// Apply the new release after the injections that belong before it, and judge what it did
    #[arg(long, requires_all = ["app", "file"])]
    pub upgrade: bool,
    /// With --upgrade: the app
    #[arg(long, short = 'a', value_name = "NAME", requires = "upgrade", value_parser = app_name)]
    pub app: Option<String>,
    /// With --upgrade: namespace of the app's record [default: the first --allow-namespace]
    #[arg(long, short = 'n', value_name = "NAME", requires = "upgrade")]
    pub namespace: Option<String>,
    /// With --upgrade: the new release, as for `pushback apply`; can be given more than once
    #[arg(long, short = 'f', value_name = "PATH", requires = "upgrade")]
    pub file: Vec<String>,
    /// With --upgrade: file with Config documents, as for `pushback apply`; can be given more than once
    #[arg(long, value_name = "FILE", requires = "upgrade")]
    pub config: Vec<String>,
    /// With --upgrade: run exactly these preflight rules, as for `pushback apply`
    #[arg(long, value_name = "RULES", num_args = 0..=1, default_missing_value = "", require_equals = true,
          requires = "upgrade")]
    pub preflight: Option<Vec<String>>,
    /// With --upgrade: accept one finding of preflight, `FINGERPRINT[@COUNT]=REASON`, as for `pushback apply`; can be given more
    /// than once
    #[arg(long, value_name = "FINGERPRINT[@COUNT]=REASON", requires = "upgrade", value_parser = waiver)]
    pub waive: Vec<Waiver>,
    /// With --upgrade: how long the apply may take
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration, hide_short_help = true)]
    pub wait_timeout: Duration,
}

/// Environment variables of `pushback apply` for which a run of experiments has no flag.
#[derive(Debug, Parser)]
struct Environment {
    #[arg(long, env = "PUSHBACK_CONFIG")]
    config: Vec<String>,
    #[arg(long, env = "PUSHBACK_POLICY_FROM", default_value = "manifests")]
    policy_from: PolicyFrom,
}

impl UpgradeStepArgs {
    /// Resolves to an upgrade, if one is requested.
    ///
    /// # Errors
    /// The environment or `--cluster` holds an invalid value.
    pub fn resolve(self, global: &GlobalArgs, allowed: &[String]) -> Result<Option<Upgrade>, CommandError> {
        if !self.upgrade {
            return Ok(None);
        }
        let environment = Environment::try_parse_from([Command::Upgrade.as_str()])
            .map_err(|error| CommandError::usage(error.to_string()))?;
        let namespace = self.namespace.or_else(|| allowed.first().cloned()).unwrap_or_default();
        let app = AppName { name: self.app.unwrap_or_default(), namespace };
        let named = NamespaceOptions { namespace: Some(app.namespace.clone()), app_namespace: None };
        let write = WriteOptions::default();
        let apply = Apply {
            options: RunOptions {
                command: Command::Upgrade,
                cluster: global.cluster()?,
                app: AppOptions {
                    name: app.name.clone(),
                    namespace: named,
                    is_named: true,
                    record: RecordOptions::default(),
                },
                preflight: PreflightOptions {
                    rules: self.preflight,
                    waive: self.waive,
                    manifests_may_loosen: environment.policy_from == PolicyFrom::Manifests,
                    ..PreflightOptions::default()
                },
                observer: None,
            },
            input: InputOptions {
                files: self.file,
                config: if self.config.is_empty() { environment.config } else { self.config },
                ..InputOptions::default()
            },
            plan: PlanOptions::default(),
            as_text: false,
            write: WriteOptions {
                engine: engine::Options { wait_timeout: self.wait_timeout, ..write.engine },
                ..write
            },
            is_confirmed: true,
            saved: None,
        };
        Ok(Some(Upgrade { apply, app, namespaces: allowed.iter().cloned().collect() }))
    }
}
