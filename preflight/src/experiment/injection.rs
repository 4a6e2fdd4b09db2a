//! The twenty types of injection and the danger levels, with their names in the format.

/// `injection.type`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the published ones and say all")]
pub enum InjectionType {
    #[default]
    PodKill,
    NetworkPartition,
    ConfigDrift,
    CrdMutation,
    FinalizerBlock,
    OwnerRefOrphan,
    LabelStomping,
    ClientFault,
    WebhookDisrupt,
    RbacRevoke,
    WebhookLatency,
    QuotaExhaustion,
    NamespaceDeletion,
    SecretDeletion,
    ResourceDeletion,
    LeaderElectionDisrupt,
    DeploymentScaleZero,
    CrashLoopInject,
    ImageCorrupt,
    PdbBlock,
}

impl InjectionType {
    /// All types, those of the shipped definition first.
    pub const ALL: [Self; 20] = [
        Self::PodKill,
        Self::NetworkPartition,
        Self::ConfigDrift,
        Self::CrdMutation,
        Self::FinalizerBlock,
        Self::OwnerRefOrphan,
        Self::LabelStomping,
        Self::ClientFault,
        Self::WebhookDisrupt,
        Self::RbacRevoke,
        Self::WebhookLatency,
        Self::QuotaExhaustion,
        Self::NamespaceDeletion,
        Self::SecretDeletion,
        Self::ResourceDeletion,
        Self::LeaderElectionDisrupt,
        Self::DeploymentScaleZero,
        Self::CrashLoopInject,
        Self::ImageCorrupt,
        Self::PdbBlock,
    ];

    /// Name as serialised.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PodKill => "PodKill",
            Self::NetworkPartition => "NetworkPartition",
            Self::ConfigDrift => "ConfigDrift",
            Self::CrdMutation => "CRDMutation",
            Self::FinalizerBlock => "FinalizerBlock",
            Self::OwnerRefOrphan => "OwnerRefOrphan",
            Self::LabelStomping => "LabelStomping",
            Self::ClientFault => "ClientFault",
            Self::WebhookDisrupt => "WebhookDisrupt",
            Self::RbacRevoke => "RBACRevoke",
            Self::WebhookLatency => "WebhookLatency",
            Self::QuotaExhaustion => "QuotaExhaustion",
            Self::NamespaceDeletion => "NamespaceDeletion",
            Self::SecretDeletion => "SecretDeletion",
            Self::ResourceDeletion => "ResourceDeletion",
            Self::LeaderElectionDisrupt => "LeaderElectionDisrupt",
            Self::DeploymentScaleZero => "DeploymentScaleZero",
            Self::CrashLoopInject => "CrashLoopInject",
            Self::ImageCorrupt => "ImageCorrupt",
            Self::PdbBlock => "PDBBlock",
        }
    }

    /// The type with this exact name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the CustomResourceDefinition shipped by the original lists it: an API server with that definition
    /// rejects the other seven.
    #[must_use]
    pub fn is_in_shipped_definition(self) -> bool {
        Self::ALL.iter().position(|kind| *kind == self) < Some(13)
    }

    /// The tier in the format.
    #[must_use]
    pub fn tier(self) -> u8 {
        match self {
            Self::PodKill => 1,
            Self::NetworkPartition | Self::ConfigDrift => 2,
            Self::CrdMutation
            | Self::FinalizerBlock
            | Self::OwnerRefOrphan
            | Self::LabelStomping
            | Self::ClientFault => 3,
            Self::WebhookDisrupt | Self::RbacRevoke | Self::WebhookLatency => 4,
            _ => 5,
        }
    }

    /// Whether it requires danger level `high`, regardless of its parameters.
    #[must_use]
    pub fn is_always_dangerous(self) -> bool {
        !self.is_in_shipped_definition() || matches!(self, Self::WebhookLatency | Self::NamespaceDeletion)
    }
}

/// `injection.dangerLevel`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DangerLevel {
    /// Absent or empty.
    #[default]
    Unset,
    /// `low`
    Low,
    /// `medium`
    Medium,
    /// `high`: only with `blastRadius.allowDangerous`.
    High,
}

impl DangerLevel {
    /// All levels, the least dangerous first.
    pub const ALL: [Self; 4] = [Self::Unset, Self::Low, Self::Medium, Self::High];

    /// Name as serialised.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The level with this exact name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}
