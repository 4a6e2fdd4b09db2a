//! The throw-away certificate authority of one test cluster: it vouches for the API server, the
//! components, and any user that a test invents.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

/// A certificate and its key, as PEM.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Signs for one cluster.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority with a new key.
    pub(crate) fn new() -> Result<Self, rcgen::Error> {
        let mut parameters = named("pushback test cluster", &[]);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self { issuer: CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)? })
    }

    /// The authority's own certificate, as PEM.
    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A serving certificate for 127.0.0.1, `localhost` and the API server's service names.
    pub(crate) fn server(&self) -> Result<Identity, rcgen::Error> {
        let mut parameters = named("127.0.0.1", &[]);
        parameters.subject_alt_names = vec![
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            // The first address of the service range is that of the service `kubernetes`.
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
            SanType::DnsName("localhost".try_into()?),
            SanType::DnsName("kubernetes.default.svc".try_into()?),
        ];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&parameters)
    }

    /// A serving certificate for 127.0.0.1, `localhost` and these names.
    pub(crate) fn server_named(&self, names: &[&str]) -> Result<Identity, rcgen::Error> {
        let mut parameters = named("127.0.0.1", &[]);
        parameters.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        for name in names.iter().chain(&["localhost"]) {
            parameters.subject_alt_names.push(SanType::DnsName((*name).try_into()?));
        }
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&parameters)
    }

    /// A serving certificate for 127.0.0.1 that holds from the start of one year to the start of another.
    pub(crate) fn server_between(&self, from: i32, to: i32) -> Result<Identity, rcgen::Error> {
        let mut parameters = named("127.0.0.1", &[]);
        parameters.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.not_before = rcgen::date_time_ymd(from, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(to, 1, 1);
        self.sign(&parameters)
    }

    /// A client certificate: the API server reads user and groups from it.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Identity, rcgen::Error> {
        let mut parameters = named(user, groups);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&parameters)
    }

    fn sign(&self, parameters: &CertificateParams) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The key pair that signs and verifies service-account tokens: (private, public), as PEM.
pub(crate) fn token_keys() -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn named(common_name: &str, groups: &[&str]) -> CertificateParams {
    // A subject holds one value per attribute type here; the second spelling of the same type makes it two.
    let organisations = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    assert!(groups.len() <= organisations.len(), "a certificate names at most two groups here: {groups:?}");
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    for (attribute, group) in organisations.into_iter().zip(groups) {
        parameters.distinguished_name.push(attribute, *group);
    }
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.use_authority_key_identifier_extension = true;
    parameters
}
