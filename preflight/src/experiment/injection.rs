//! The twenty types of injection and the danger levels, with their names in the format.

use pushback_crd::words;

words! {
    /// `injection.type`
    #[derive(Default)]
    #[expect(missing_docs, reason = "the names are the published ones and say all")]
    #[non_exhaustive]
    pub enum InjectionType {
        #[default]
        PodKill = "PodKill",
        NetworkPartition = "NetworkPartition",
        ConfigDrift = "ConfigDrift",
        CrdMutation = "CRDMutation",
        FinalizerBlock = "FinalizerBlock",
        OwnerRefOrphan = "OwnerRefOrphan",
        LabelStomping = "LabelStomping",
        ClientFault = "ClientFault",
        WebhookDisrupt = "WebhookDisrupt",
        RbacRevoke = "RBACRevoke",
        WebhookLatency = "WebhookLatency",
        QuotaExhaustion = "QuotaExhaustion",
        NamespaceDeletion = "NamespaceDeletion",
        SecretDeletion = "SecretDeletion",
        ResourceDeletion = "ResourceDeletion",
        LeaderElectionDisrupt = "LeaderElectionDisrupt",
        DeploymentScaleZero = "DeploymentScaleZero",
        CrashLoopInject = "CrashLoopInject",
        ImageCorrupt = "ImageCorrupt",
        PdbBlock = "PDBBlock",
    }
}

impl InjectionType {
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

words! {
    /// `injection.dangerLevel`
    #[derive(Default)]
    pub enum DangerLevel {
        /// Absent or empty.
        #[default]
        Unset = "",
        /// `low`
        Low = "low",
        /// `medium`
        Medium = "medium",
        /// `high`: only with `blastRadius.allowDangerous`.
        High = "high",
    }
}
