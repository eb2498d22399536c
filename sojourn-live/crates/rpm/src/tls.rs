//! Certificates: the server's own, made at start or read from PEM files, and whom a client trusts.

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

/// HTTP/2 in the words of ALPN.
pub const H2: &[u8] = b"h2";

/// What a server shows.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The certificate as PEM, for clients that are to trust just it; of a self-signed one only.
    pub pem: Option<String>,
}

impl Identity {
    /// Makes a key and a certificate that it signs itself, for these names and addresses.
    pub fn self_signed(names: &[String]) -> Result<Identity, Problem> {
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| {
            Problem::new(
                format!("no certificate can be made for {}: {error}", names.join(", ")),
                "name hosts and addresses only",
            )
        })?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Identity {
            chain: vec![made.cert.der().clone()],
            key: key.into(),
            pem: Some(made.cert.pem()),
        })
    }

    /// Reads a chain of certificates, the server's own first, and its key.
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
                    format!("certificate and key do not go together: {error}"),
                    "give the PEM files of one server",
                )
            })?;
        config.alpn_protocols = vec![H2.to_vec()];
        Ok(config)
    }
}

/// Whose certificates a client takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Those that this system trusts.
    System,
    /// Those signed by one of the certificates in this PEM file, or one of these itself.
    File(PathBuf),
    /// Any at all.
    Anyone,
}

impl Trust {
    /// A client of HTTP/2 that trusts just these.
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
                                "{}: holds a certificate that can't be used: {error}",
                                file.display()
                            ),
                            "give the certificate of the server, or of who signed it",
                        )
                    })?;
                }
                let named = Named { certificates, signers: verifier(roots)? };
                builder.dangerous().with_custom_certificate_verifier(Unusual::verifier(Some(named)))
            }
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![H2.to_vec()];
        // Every probe makes a whole handshake, as a new server's visitor does.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

fn verifier(roots: RootCertStore) -> Result<Arc<WebPkiServerVerifier>, Problem> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().map_err(
        |error| {
            Problem::new(format!("no certificate to trust: {error}"), "name one with --ca FILE")
        },
    )
}

fn system_roots() -> Result<RootCertStore, Problem> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(Problem::new(
            "this system has no certificates to trust",
            "install them (Debian: ca-certificates), or name the server's with --ca FILE",
        ));
    }
    Ok(roots)
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Problem::new(
            format!("{}: no certificate can be read: {error}", file.display()),
            "give a PEM file: it holds a line -----BEGIN CERTIFICATE-----",
        )
    };
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(&error))?;
    if certificates.is_empty() {
        return Err(unreadable(&"it holds none"));
    }
    Ok(certificates)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(crypto::ring::default_provider())
}

/// Trust that the usual verifier does not have. That the server has its certificate's key is
/// checked as ever.
#[derive(Debug)]
struct Unusual {
    /// `None`: any certificate is taken.
    named: Option<Named>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Takes these certificates, whatever name the server is reached by, and what they have signed. A
/// certificate that somebody made for one server is often a signer's in form, which alone would not
/// do.
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
