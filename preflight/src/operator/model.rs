//! The model of a release: its operators, their components, and what each component owns and depends on.
//! Written by hand as YAML (field names there: camelCase of these) or derived from manifests; both meet here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::object::ObjectRef;
use crate::source::{Position, Positions};

/// One side of a comparison: all operators of a release, and the definitions that come with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// Version; the first that an operator names, in the order of their files. Empty where none does.
    pub version: String,
    /// `odh`, `rhoai`, `OpenShift`…; empty if unknown.
    pub platform: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Operators, sorted by name; each name once.
    pub operators: Vec<Operator>,
    /// CustomResourceDefinitions, sorted by name.
    pub definitions: Vec<Definition>,
    /// What this side cannot show at all: its absence here proves nothing.
    pub unobserved: BTreeSet<FactClass>,
}

/// Who wrote a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A person; names and labels mean what they say.
    #[default]
    Written,
    /// Manifests; labels and kinds are generic, so that likeness alone proves little.
    Derived,
}

/// A class of facts that one side may be blind to: a live app shows no removed default, manifests no finalizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FactClass {
    /// Managed resources.
    Resources,
    /// Labels of resources.
    Labels,
    /// `expectedSpec` of resources.
    ExpectedSpec,
    /// Webhooks.
    Webhooks,
    /// Finalizers.
    Finalizers,
    /// Dependencies.
    Dependencies,
    /// Recovery times and steady state.
    Recovery,
    /// CustomResourceDefinitions.
    Definitions,
}

/// One operator; the unit that is paired between releases, by name alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operator {
    /// Name.
    pub name: String,
    /// Namespace that it runs in.
    pub namespace: String,
    /// Source repository; for information.
    pub repository: String,
    /// Version; any text.
    pub version: String,
    /// Platform.
    pub platform: String,
    /// Channel of the Operator Lifecycle Manager.
    pub olm_channel: String,
    /// Components, in the order of the input; each name once.
    pub components: Vec<Component>,
    /// How fast it must have recovered.
    pub recovery: Recovery,
    /// Where the model says so.
    pub position: Position,
}

/// `recovery`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// `reconcileTimeout`, in seconds; 0 if it is not known.
    pub reconcile_timeout_seconds: u64,
    /// `maxReconcileCycles`; 0 if it is not known.
    pub max_reconcile_cycles: u64,
}

/// A part of an operator: mostly one workload and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Component {
    /// Name.
    pub name: String,
    /// What reconciles it: a kind or an installer's word in written models, the sorted image repositories, joined by
    /// `,`, in derived ones. Compared by equality.
    pub controller: String,
    /// What it manages, in the order of the input.
    pub resources: Vec<Resource>,
    /// Names of components of the same operator, or of operators; `external:NAME` for what nobody here owns.
    pub dependencies: Vec<String>,
    /// Webhooks.
    pub webhooks: Vec<Webhook>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// What holds while all is well.
    pub steady_state: SteadyState,
    /// Facts that hardly two unrelated components share (image repositories, service accounts, ports), as
    /// `class:value`. Empty in written models.
    pub specific: BTreeSet<String>,
    /// Where the model says so; for a derived one, its workload.
    pub position: Position,
}

/// One managed resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// What it is.
    pub object: ObjectRef,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The labels that select its pods; empty if it has none. The labels themselves in written models.
    pub selector: BTreeMap<String, String>,
    /// `ownerRef`: the kind of its owner.
    pub owner_kind: String,
    /// `expectedSpec`: fields of `spec` that must hold.
    pub expected_spec: Map<String, Value>,
    /// The manifest that it was derived from, without the data of a Secret.
    pub manifest: Option<Arc<Value>>,
    /// Where it stands.
    pub position: Position,
}

/// One webhook: an entry of a webhook configuration, or the conversion webhook of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Webhook {
    /// Name of the entry.
    pub name: String,
    /// `validating`, `mutating` or, derived only, `conversion`.
    pub kind: String,
    /// Path that is called.
    pub path: String,
    /// What only manifests say.
    pub details: Option<WebhookDetails>,
    /// Where it stands.
    pub position: Position,
}

/// What a webhook configuration says beyond a written model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookDetails {
    /// Name of the configuration object, or of the definition.
    pub configuration: String,
    /// `Fail` or `Ignore`, as the API server defaults it.
    pub failure_policy: String,
    /// Seconds, as the API server defaults it.
    pub timeout_seconds: u64,
    /// Namespace and name of the Service behind it; `None` for a URL.
    pub service: Option<(String, String)>,
    /// `rules`, as written.
    pub rules: Value,
    /// `namespaceSelector`, as written; null where there is none.
    pub namespace_selector: Value,
    /// `objectSelector`, as written; null where there is none.
    pub object_selector: Value,
}

/// `steadyState`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyState {
    /// The checks.
    pub checks: Vec<SteadyStateCheck>,
    /// `timeout`, in seconds; 0 if not given.
    pub timeout_seconds: u64,
}

/// One check of the steady state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyStateCheck {
    /// What it asks.
    pub kind: CheckKind,
    /// Of which object.
    pub object: ObjectRef,
    /// Where it stands.
    pub position: Position,
}

/// `type` of a steady-state check, with its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CheckKind {
    /// `resourceExists`
    #[default]
    ResourceExists,
    /// `conditionTrue`
    ConditionTrue {
        /// `conditionType`
        condition: String,
    },
    /// `fieldEquals`
    FieldEquals {
        /// `fieldPath`
        path: String,
        /// `expectedValue`
        value: String,
    },
    /// Derived only: all desired pods of a StatefulSet or DaemonSet are ready. Written as `resourceExists`.
    AllReady,
}

/// A CustomResourceDefinition of a release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Its name, `widgets.example.com`.
    pub name: String,
    /// The definition.
    pub value: Arc<Value>,
    /// Where every node of it stands; `None` for a live one.
    pub positions: Option<Arc<Positions>>,
}
