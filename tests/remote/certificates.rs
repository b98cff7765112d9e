//! Certificates for servers and clients of tests, each of an authority of the test's own.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub(crate) struct Certified {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// An authority.
pub(crate) struct Authority {
    /// Its certificate, as PEM.
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = named("authority of a test", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages.extend([KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature]);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// For a server on this machine: `localhost` and 127.0.0.1.
    pub(crate) fn server(&self) -> Certified {
        self.certified(named("server of a test", &["localhost", "127.0.0.1"]), ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub(crate) fn client(&self) -> Certified {
        self.certified(named("client of a test", &[]), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn certified(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Certified {
        let key = KeyPair::generate().unwrap();
        params.extended_key_usages.push(usage);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Certified { certificate, key: key.serialize_pem() }
    }
}

fn named(name: &str, hosts: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(hosts.iter().map(|host| host.to_string()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
