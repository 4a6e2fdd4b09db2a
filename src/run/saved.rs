//! Saved plans: `plan --out` writes one, and `apply --plan` carries it out if nothing that it rests on has moved.
//! Both take the same way to the plan as an apply without one; only its two ends are here.

mod identity;
mod make;
mod parts;

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use pushback_deploy::plan::Plan;
use pushback_deploy::plan::saved::digests::Digests;
use pushback_deploy::plan::saved::{SavedFile, SavedObject, SavedPlan, SavedPlanError, compare};
use pushback_preflight::RunReport;

pub use make::SavePlan;
use pushback_events::exit::ExitCode;
use pushback_manifest::InputError;
use pushback_system::bounded_file::{DOCUMENT, read_text};

use super::error::CommandError;
use super::input::InputSources;
use super::running::Run;
use super::setup::Setup;

/// Differences that are named one by one.
const NAMED: usize = 20;

const AGAIN: &str = "`pushback plan` makes a new one, to be looked at again";

/// Reads a plan from a file.
///
/// # Errors
/// The file cannot be read, or holds no plan; the plan was edited, or a later version has made it.
pub fn read(path: &Path) -> Result<SavedPlan, CommandError> {
    let failed = |text: String| CommandError::usage(format!("{}: {text}", path.display()));
    let text = read_text(path, DOCUMENT).map_err(failed)?;
    parse(path, &text)
}

/// Reads the text of a plan.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<SavedPlan, CommandError> {
    let named = |text: String| format!("{}: {text}", path.display());
    let failed = |text: String| CommandError::usage(named(text));
    SavedPlan::parse(text).map_err(|error| match error {
        SavedPlanError::NotAPlan => failed(error.to_string()).with_hint("`pushback plan --out FILE` makes one"),
        SavedPlanError::Newer(_) => stale(vec![named(error.to_string())], "use the version that has made it"),
        SavedPlanError::Edited | SavedPlanError::Unreadable(_) => stale(vec![named(error.to_string())], AGAIN),
    })
}

/// A plan that is being carried out.
#[derive(Debug)]
pub struct Approval<'a> {
    saved: &'a SavedPlan,
    digests: Digests,
    /// Present name of each file of the input by the one in the plan.
    files: BTreeMap<String, String>,
}

impl<'a> Approval<'a> {
    /// Checks what the plan says of itself: time and version.
    ///
    /// # Errors
    /// It has expired, or another version has made it.
    pub fn check_validity(saved: &SavedPlan, run: &Run) -> Result<(), CommandError> {
        let version = env!("CARGO_PKG_VERSION");
        if saved.tool.version != version {
            let text = format!("the plan was made by pushback {}, and this is {version}", saved.tool.version);
            return Err(stale(vec![text], "use that version, or make a new plan with this one"));
        }
        let now: Option<Timestamp> = run.environment.now().parse().ok();
        let is_over = match (now, saved.expires.parse::<Timestamp>()) {
            (Some(now), Ok(expires)) => now >= expires,
            _ => true,
        };
        if is_over {
            return Err(stale(vec![format!("the plan has expired: it was valid until {}", saved.expires)], AGAIN));
        }
        Ok(())
    }

    /// Checks what is known before the app is looked at: app, cluster, policy, input. From here on the run uses the
    /// plan's label for a new app.
    ///
    /// # Errors
    /// One of them is not the plan's.
    pub async fn open(
        run: &Run,
        setup: &Setup,
        saved: &'a SavedPlan,
        read: &InputSources,
    ) -> Result<Self, CommandError> {
        let mut moved = Vec::new();
        let (then, now) = (&saved.app, parts::app(setup, &saved.app.label));
        if (&then.name, &then.namespace) != (&now.name, &now.namespace) {
            moved.push(format!(
                "the plan is for app {} in namespace {}, and not for {} in {}",
                then.name, then.namespace, now.name, now.namespace
            ));
        } else if then.default_namespace != now.default_namespace {
            moved.push(format!(
                "the plan puts objects that name no namespace into {}, and not into {}",
                then.default_namespace, now.default_namespace
            ));
        }
        some_stale(moved, "name the plan's app, or none")?;
        let (cluster, key) = identity::of(run, setup, Some(&saved.cluster.by)).await?;
        if cluster.id != saved.cluster.id {
            let text =
                format!("the plan is for cluster {}, and this is {}", saved.cluster.description, cluster.description);
            let hint = "name the plan's cluster with --cluster, --kubeconfig or --kubeconfig-context";
            // Two addresses may lead to one cluster, and one address to another cluster than before.
            let text = match cluster.description == saved.cluster.description {
                true => {
                    format!("the plan is for another cluster at {}: its {} is another", cluster.description, cluster.by)
                }
                false => text,
            };
            return Err(stale(vec![text], hint));
        }
        if cluster.description != saved.cluster.description {
            // It is the plan's cluster; but whoever approved the plan has read another address.
            let text = format!(
                "the plan names its cluster {}, and here it is {}",
                saved.cluster.description, cluster.description
            );
            return Err(stale(vec![text], "name the plan's cluster as the plan does, or make a new plan"));
        }
        let digests = Digests::new(&setup.config, key.as_deref());
        if digests.binding() != saved.secrets {
            let text = "the plan binds the values of Secrets by a key, and this run has none or another way to it";
            return Err(stale(vec![text.to_owned()], "set PUSHBACK_PLAN_KEY as it was when the plan was made"));
        }
        let policy = parts::policy(setup, &digests, &read.policy);
        some_stale(compare::policies(&saved.policy, &policy), "use the plan's policy, or make a new plan")?;
        let inputs = digests.files(&read.files, &read.manifests);
        some_stale(compare::files(&saved.inputs, &inputs), AGAIN)?;
        let names = |files: &[SavedFile]| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
        // The digests are the same, in the same order.
        let files = names(&saved.inputs).into_iter().zip(names(&inputs)).collect();
        run.keep(&setup.app, &saved.app.label, &saved.nonce);
        Ok(Self { saved, digests, files })
    }

    /// Checks that the same would be written.
    ///
    /// # Errors
    /// It is not the same.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), CommandError> {
        let now: Vec<SavedObject> = plan.objects.iter().map(|planned| self.digests.line(planned)).collect();
        let mut moved = compare::objects(&self.saved.objects, &now, &self.files);
        if self.saved.app.label != plan.label_value {
            moved.push(format!("the app's label is {}, and the plan shows {}", plan.label_value, self.saved.app.label));
        }
        some_stale(moved, AGAIN)
    }

    /// Checks that the rules say nothing against it that they did not say before.
    ///
    /// # Errors
    /// They do.
    pub fn check_verdict(&self, report: &RunReport) -> Result<(), CommandError> {
        let (now, reasons) = parts::verdict(report);
        some_stale(compare::verdicts(&self.saved.verdict, &now, &reasons), AGAIN)
    }
}

fn some_stale(moved: Vec<String>, hint: &str) -> Result<(), CommandError> {
    if moved.is_empty() { Ok(()) } else { Err(stale(moved, hint)) }
}

/// The error of a plan that is not carried out.
pub fn stale(mut moved: Vec<String>, hint: &str) -> CommandError {
    let more = moved.len().saturating_sub(NAMED);
    moved.truncate(NAMED);
    if more > 0 {
        moved.push(format!("and {more} more"));
    }
    let error = |message| InputError { message, position: Default::default(), hints: vec![hint.to_owned()] };
    CommandError { code: ExitCode::Stale, errors: moved.into_iter().map(error).collect(), failure: None }
}
