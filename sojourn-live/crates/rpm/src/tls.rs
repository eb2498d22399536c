//! Certificates: the server's, self-signed or read from PEM files, and those that a client trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::Problem;

/// The ALPN name of HTTP/2.
pub const H2: &[u8] = b"h2";

/// A server's certificate and key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The certificate as PEM, for clients that trust only it; `None` unless self-signed.
    pub pem: Option<String>,
}

impl Identity {
    /// Creates a key and a self-signed certificate for these names and addresses.
    pub fn self_signed(names: &[String]) -> Result<Identity, Problem> {
        let generated = rcgen::generate_simple_self_signed(names).map_err(|error| {
            Problem::new(
                format!("can't create a certificate for {}: {error}", names.join(", ")),
                "give only hosts and addresses",
            )
        })?;
        let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
        Ok(Identity {
            chain: vec![generated.cert.der().clone()],
            key: key.into(),
            pem: Some(generated.cert.pem()),
        })
    }

    /// Reads a chain of certificates, the server's first, and its key.
    pub fn read(chain: &Path, key: &Path) -> Result<Identity, Problem> {
        let certificates = read_certificates(chain)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
            Problem::new(
                format!("{}: no private key can be read: {error}", key.display()),
                "give its PEM file",
            )
        })?;
        Ok(Identity { chain: certificates, key, pem: None })
    }

    pub(crate) fn into_config(self) -> Result<ServerConfig, Problem> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(self.chain, self.key)
            })
            .map_err(|error| {
                Problem::new(
                    format!("certificate and key do not match: {error}"),
                    "give the PEM files of one server",
                )
            })?;
        config.alpn_protocols = vec![H2.to_vec()];
        Ok(config)
    }
}

/// The certificates that a client accepts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Certificates that this system trusts.
    System,
    /// The certificates in this PEM file, and those signed by one of them.
    File(PathBuf),
    /// Any certificate.
    Anyone,
}

impl Trust {
    /// Returns the configuration of an HTTP/2 client with this trust.
    pub fn client(self) -> Result<ClientConfig, Problem> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| Problem::new(format!("TLS can't be set up: {error}"), ""))?;
        let mut config = match self {
            Trust::Anyone => {
                builder.dangerous().with_custom_certificate_verifier(Unusual::verifier(None))
            }
            Trust::System => builder.with_webpki_verifier(verifier(system_roots()?)?),
            Trust::File(file) => {
                let certificates = read_certificates(&file)?;
                let mut roots = RootCertStore::empty();
                for certificate in &certificates {
                    roots.add(certificate.clone()).map_err(|error| {
                        Problem::new(
                            format!(
                                "{}: contains a certificate that can't be used: {error}",
                                file.display()
                            ),
                            "give the certificate of the server, or its issuer's",
                        )
                    })?;
                }
                let named = Named { certificates, signers: verifier(roots)? };
                builder.dangerous().with_custom_certificate_verifier(Unusual::verifier(Some(named)))
            }
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![H2.to_vec()];
        // Every probe does a full handshake, like a new visitor of the server.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

fn verifier(roots: RootCertStore) -> Result<Arc<WebPkiServerVerifier>, Problem> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().map_err(
        |error| {
            Problem::new(format!("no certificate to trust: {error}"), "give one with --ca FILE")
        },
    )
}

fn system_roots() -> Result<RootCertStore, Problem> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(loaded.certs);
    if usable == 0 {
        return Err(Problem::new(
            "this system has no certificates to trust",
            "install them (Debian: ca-certificates), or give the server's with --ca FILE",
        ));
    }
    Ok(roots)
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Problem::new(
            format!("{}: no certificate can be read: {error}", file.display()),
            "give a PEM file, with a line -----BEGIN CERTIFICATE-----",
        )
    };
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(&error))?;
    if certificates.is_empty() {
        return Err(unreadable(&"the file contains none"));
    }
    Ok(certificates)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(crypto::ring::default_provider())
}

/// Trust that rustls's own verifier does not implement. It still checks that the server has its
/// certificate's key.
#[derive(Debug)]
struct Unusual {
    /// `None`: accept any certificate.
    named: Option<Named>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Accepts these certificates, whatever the server's name, and certificates signed by them. The
/// standard check alone would fail: a certificate made for one server is often a CA certificate in
/// form.
#[derive(Debug)]
struct Named {
    certificates: Vec<CertificateDer<'static>>,
    signers: Arc<WebPkiServerVerifier>,
}

impl Unusual {
    fn verifier(named: Option<Named>) -> Arc<Unusual> {
        Arc::new(Unusual { named, algorithms: provider().signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Unusual {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.named {
            Some(named)
                if !named.certificates.iter().any(|certificate| certificate == end_entity) =>
            {
                named.signers.verify_server_cert(
                    end_entity,
                    intermediates,
                    server_name,
                    ocsp_response,
                    now,
                )
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
