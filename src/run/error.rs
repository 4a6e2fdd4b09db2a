//! Why a command failed before doing its work: exit code, messages, and hints what to do.

use std::io;

use pushback_app::record::AppError;
use pushback_cluster::{ClusterError, ErrorKind, ErrorNote};
use pushback_deploy::plan::PlanError;
use pushback_events::exit::ExitCode;
use pushback_events::{AppRef, RunFailure};
use pushback_manifest::collect::LoadError;
use pushback_manifest::{InputError, absent_file};
use pushback_system::environment::reason;
#[cfg(feature = "webhook")]
use pushback_webhook::StartError;

/// An error that ends a command.
#[derive(Clone, Debug)]
pub struct CommandError {
    /// Exit code.
    pub code: ExitCode,
    /// The errors; an input may have several.
    pub errors: Vec<InputError>,
    /// The reason, if it is one that programs can use.
    pub failure: Option<RunFailure>,
}

impl CommandError {
    fn one(code: ExitCode, message: impl Into<String>, hints: Vec<String>) -> Self {
        let error = InputError { message: message.into(), position: Default::default(), hints };
        Self { code, errors: vec![error], failure: None }
    }

    /// An error in arguments, Config or input.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::one(ExitCode::Usage, message, Vec::new())
    }

    /// The same with a hint.
    pub fn usage_with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::one(ExitCode::Usage, message, vec![hint.into()])
    }

    /// Output cannot be written, such as to a full disk.
    pub fn unwritable(message: impl Into<String>) -> Self {
        Self::one(ExitCode::Partial, message, Vec::new())
    }

    /// Standard output cannot be written.
    pub fn standard_output(error: &io::Error) -> Self {
        Self::unwritable(format!("standard output could not be written: {}", reason(error)))
    }

    /// The command needs a part that this build does not have.
    #[cfg(not(feature = "upgrade"))]
    pub(super) fn built_without(feature: &str, message: &str) -> Self {
        let hint = format!("use a build of pushback with the feature `{feature}`; releases have every feature");
        Self::usage_with_hint(message, hint)
    }

    /// The user sent a signal before anything was written.
    pub fn stopped(code: ExitCode) -> Self {
        if code == ExitCode::TimedOut {
            let message = "the run's time limit has passed before anything was written";
            return Self::one(code, message, vec!["allow more time with --timeout".to_owned()]);
        }
        Self::one(code, "interrupted before anything was written", Vec::new())
    }

    /// Adds the reason for programs.
    #[must_use]
    pub fn because(self, failure: RunFailure) -> Self {
        Self { failure: Some(failure), ..self }
    }

    /// The same with another message.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        let hints = self.errors.into_iter().flat_map(|error| error.hints).collect();
        Self::one(self.code, message, hints)
    }

    /// The cluster refused to read or write an app's record.
    fn of_record(error: ClusterError, message: String) -> Self {
        let missing_namespace = error.kind == ErrorKind::NotFound;
        let converted = Self::from(error).saying(message);
        match missing_namespace {
            true => converted
                .with_hint("create the namespace first, or keep the app's record in another one (--app-namespace)"),
            false => converted,
        }
    }

    /// The same with one more hint.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        let with = |mut error: InputError| {
            error.hints.push(hint.to_owned());
            error
        };
        Self { errors: self.errors.into_iter().map(with).collect(), ..self }
    }

    /// The same with each message prefixed by the action that failed.
    #[must_use]
    pub fn with_prefix(self, prefix: &str) -> Self {
        let with = |error: InputError| InputError { message: format!("{prefix}: {}", error.message), ..error };
        Self { errors: self.errors.into_iter().map(with).collect(), ..self }
    }

    /// All messages, joined.
    pub fn message(&self) -> String {
        let lines: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    /// All hints, without duplicates.
    pub fn hints(&self) -> Vec<String> {
        let mut hints: Vec<String> = Vec::new();
        for hint in self.errors.iter().flat_map(|error| &error.hints) {
            if !hints.contains(hint) {
                hints.push(hint.clone());
            }
        }
        hints
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for CommandError {}

impl From<Vec<InputError>> for CommandError {
    fn from(errors: Vec<InputError>) -> Self {
        let failure = absent_file(&errors).map(|file| RunFailure::NoFile { file: file.to_owned() });
        Self { code: ExitCode::Usage, errors, failure }
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        let LoadError { errors, is_empty, no_inputs, problems, .. } = error;
        let error = Self::from(errors);
        match (is_empty, problems.is_empty()) {
            (true, _) if no_inputs => error.because(RunFailure::Flag { flag: "--file", value: String::new() }),
            (true, _) => error.because(RunFailure::NoObjects),
            (false, true) => error,
            (false, false) => error.because(RunFailure::InvalidObjects { objects: problems }),
        }
    }
}

#[cfg(feature = "webhook")]
impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Files(errors) => errors.into(),
            StartError::Other(message) => Self::usage(message),
        }
    }
}

impl From<ClusterError> for CommandError {
    fn from(error: ClusterError) -> Self {
        let own = match error.note.as_deref() {
            Some(ErrorNote::Hint(hint)) => Some(hint.to_string()),
            _ => None,
        };
        let (code, hint) = match error.kind {
            // A namespace or context that does not exist is a usage error; the cluster did answer.
            ErrorKind::Configuration | ErrorKind::Unsupported | ErrorKind::NotFound => (ExitCode::Usage, None),
            ErrorKind::Unauthorized => (ExitCode::Unreachable, Some("log in again, or check the kubeconfig's user")),
            ErrorKind::Forbidden => (ExitCode::Unreachable, Some("ask for the permission, or use a user that has it")),
            ErrorKind::Locked => (ExitCode::Locked, Some("wait for it with --lock-wait")),
            _ => (ExitCode::Unreachable, None),
        };
        Self::one(code, error.message, hint.map(str::to_owned).into_iter().chain(own).collect())
    }
}

impl From<AppError> for CommandError {
    fn from(error: AppError) -> Self {
        let message = error.to_string();
        match error {
            AppError::Cluster { error, .. } => Self::of_record(error, message),
            AppError::NoNewRecord(error) => {
                let failure = RunFailure::RecordNotCreated { message: error.to_string() };
                Self::of_record(error, message).because(failure)
            }
            AppError::Locked { .. } => Self::one(
                ExitCode::Locked,
                message,
                vec!["wait for it with --lock-wait; a lock that is not renewed expires by itself".to_owned()],
            ),
            AppError::Changed { .. } => {
                Self::one(ExitCode::Locked, message, vec!["run again when the other run is done".to_owned()])
            }
            AppError::NotARecord { .. } => Self::usage_with_hint(
                message,
                "choose another app name, or another namespace for the record (--app-namespace)",
            ),
            AppError::TwoRecords { .. } => Self::usage_with_hint(
                message,
                "delete the one that is forged or left over; `kubectl get configmap -o yaml` shows what each says",
            ),
            AppError::Moving(moving) => Self::usage_with_hint(message, format!("`{}` finishes that", moving.command())),
            AppError::Missing { app: name, namespace } => Self::usage(message)
                .because(RunFailure::NoApp { app: AppRef { name, namespace }, elsewhere: Vec::new() }),
            AppError::NoLabels { .. } => Self::usage_with_hint(message, "name an API server: --cluster kube"),
            AppError::Exists { .. } | AppError::Damaged { .. } | AppError::Newer { .. } => Self::usage(message),
        }
    }
}

impl From<PlanError> for CommandError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Input(errors) => Self::from(errors),
            PlanError::NothingSelected => {
                let hint = "name other objects with --filter, or with --dangerous-allow-empty-list-of-resources delete \
                            what the app has of these";
                Self::usage_with_hint(error.to_string(), hint).because(RunFailure::NoObjects)
            }
            PlanError::Ownership(errors, objects) if objects.is_empty() => Self::from(errors),
            PlanError::Ownership(errors, objects) => Self::from(errors).because(RunFailure::OwnedByOthers { objects }),
            PlanError::Cycle(error, objects) => Self::from(vec![error]).because(RunFailure::Cycle { objects }),
            PlanError::Cluster(error) => Self::from(error),
        }
    }
}
