//! The model of a release: operators, their components, and what each component owns and depends on.
//! Written by hand as YAML (with these field names in camelCase) or derived from manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_crd::words;
use pushback_objects::object::ObjectRef;
use pushback_objects::source::{Position, Positions};
use serde_json::{Map, Value};

/// One side of a comparison: all operators of a release, with its definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// The first version that an operator names, in the order of the files; empty if none does.
    pub version: String,
    /// `odh`, `rhoai`, `OpenShift`…; empty if unknown.
    pub platform: String,
    /// How the model was made.
    pub origin: Origin,
    /// Operators, sorted by name, which is unique.
    pub operators: Vec<Operator>,
    /// CustomResourceDefinitions, sorted by name.
    pub definitions: Vec<Definition>,
    /// Facts that this side cannot show: their absence proves nothing.
    pub unobserved: BTreeSet<FactClass>,
}

/// How a model was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// By a person; names and labels are meaningful.
    #[default]
    Written,
    /// From manifests; labels and kinds are generic, so similarity alone proves little.
    Derived,
}

words! {
    /// A class of facts that a side may be unable to show: a live app no removed defaults, manifests no finalizers.
    pub enum FactClass {
        /// Managed resources.
        Resources = "managed resources",
        /// Labels of resources.
        Labels = "labels",
        /// `expectedSpec` of resources.
        ExpectedSpec = "expected specs",
        /// Webhooks.
        Webhooks = "webhooks",
        /// Finalizers.
        Finalizers = "finalizers",
        /// Dependencies.
        Dependencies = "dependencies",
        /// Recovery times and steady state.
        Recovery = "recovery times and steady state",
        /// CustomResourceDefinitions.
        Definitions = "definitions",
    }
}

/// An operator. Operators are matched between releases by name alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operator {
    /// Name of the operator.
    pub name: String,
    /// Namespace that it runs in.
    pub namespace: String,
    /// Source repository; informational.
    pub repository: String,
    /// Version, in any format.
    pub version: String,
    /// Platform of the operator.
    pub platform: String,
    /// Channel of the Operator Lifecycle Manager.
    pub olm_channel: String,
    /// Components, in input order; names are unique.
    pub components: Vec<Component>,
    /// Limits for its recovery.
    pub recovery: Recovery,
    /// Position in the model.
    pub position: Position,
}

/// Limits for a recovery: `recovery`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// `reconcileTimeout`, in seconds; 0 if unknown.
    pub reconcile_timeout_seconds: u64,
    /// `maxReconcileCycles`; 0 if unknown.
    pub max_reconcile_cycles: u64,
}

/// A part of an operator: usually one workload and the objects around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Component {
    /// Name of the component.
    pub name: String,
    /// The controller: a kind or an installer's word in model files; in derived models, the sorted image repositories,
    /// joined by `,`. Compared for equality.
    pub controller: String,
    /// Managed resources, in input order.
    pub resources: Vec<Resource>,
    /// Names of components of the same operator, or of operators; `external:NAME` outside the release.
    pub dependencies: Vec<String>,
    /// Webhooks that it serves.
    pub webhooks: Vec<Webhook>,
    /// Finalizers that it handles.
    pub finalizers: Vec<String>,
    /// Conditions of the healthy state.
    pub steady_state: SteadyState,
    /// Facts that unrelated components are unlikely to share (image repositories, service accounts, ports), as
    /// `class:value`. Empty in model files.
    pub specific: BTreeSet<String>,
    /// Position in the model; for a derived one, position of the workload.
    pub position: Position,
}

/// A managed resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Reference to the object.
    pub object: ObjectRef,
    /// Labels of the object.
    pub labels: BTreeMap<String, String>,
    /// Labels that select its pods; empty if it has none. In model files, the labels themselves.
    pub selector: BTreeMap<String, String>,
    /// `ownerRef`: kind of its owner.
    pub owner_kind: String,
    /// `expectedSpec`: fields of `spec` that must hold.
    pub expected_spec: Map<String, Value>,
    /// The manifest that it was derived from, without the data of a Secret.
    pub manifest: Option<Arc<Value>>,
    /// Position of the resource.
    pub position: Position,
}

/// An entry of a webhook configuration, or the conversion webhook of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Webhook {
    /// Name of the entry.
    pub name: String,
    /// `validating`, `mutating` or, in derived models, `conversion`.
    pub kind: String,
    /// Request path.
    pub path: String,
    /// Details that only manifests contain.
    pub details: Option<WebhookDetails>,
    /// Position of the entry.
    pub position: Position,
}

/// The parts of a webhook configuration that a model file omits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookDetails {
    /// Name of the configuration object, or of the definition.
    pub configuration: String,
    /// `Fail` or `Ignore`, with the API server's default.
    pub failure_policy: String,
    /// Timeout in seconds, with the API server's default.
    pub timeout_seconds: u64,
    /// Namespace and name of the Service; `None` for a URL.
    pub service: Option<(String, String)>,
    /// `rules`, as in the configuration.
    pub rules: Value,
    /// `namespaceSelector`, as in the configuration; null if absent.
    pub namespace_selector: Value,
    /// `objectSelector`, as in the configuration; null if absent.
    pub object_selector: Value,
    /// `matchConditions`, as in the configuration; null if absent.
    pub match_conditions: Value,
    /// `sideEffects`; empty if absent.
    pub side_effects: String,
    /// `reinvocationPolicy`, with the API server's default.
    pub reinvocation_policy: String,
}

/// Conditions of the healthy state: `steadyState`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyState {
    /// Checks that must pass.
    pub checks: Vec<SteadyStateCheck>,
    /// `timeout`, in seconds; 0 if not given.
    pub timeout_seconds: u64,
}

/// A check of the steady state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyStateCheck {
    /// The condition to check.
    pub kind: CheckKind,
    /// The object to check.
    pub object: ObjectRef,
    /// Position of the check.
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
    /// In derived models: all desired pods of a StatefulSet or DaemonSet are ready. Serialised as `resourceExists`.
    AllReady,
}

/// A CustomResourceDefinition of a release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Name of the definition, `widgets.example.com`.
    pub name: String,
    /// Content of the definition.
    pub value: Arc<Value>,
    /// Position of each node; `None` for a live definition.
    pub positions: Option<Arc<Positions>>,
}
