//! A secret that server and clients share. A client proves that it knows the secret without sending
//! it.
//!
//! The server sends a nonce; the client answers with its HMAC-SHA-256 (RFC 2104) under the secret.
//! A proof is valid for one connection. Nothing else of a session is secret: an observer on the
//! path sees everything that is measured.

use std::{fmt, io};

use ring::hmac;
use serde::Deserialize;

use crate::random;

/// Prefix of the nonce in a proof: no other use of the secret gives the same proof.
const PURPOSE: &[u8] = b"sojourn measure, protocol 1\n";

/// Returns a nonce, in hexadecimal digits.
pub fn nonce() -> io::Result<String> {
    Ok(hexadecimal(&random::<16>()?))
}

/// The secret; empty: none. Debug output never contains it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", if self.is_none() { "none" } else { "…" })
    }
}

impl Secret {
    /// Creates a secret from a word.
    pub fn new(word: &str) -> Secret {
        Secret(word.into())
    }

    /// Whether there is no secret.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the proof for a nonce.
    pub fn prove(&self, nonce: &str) -> String {
        hexadecimal(hmac::sign(&self.key(), &signed_text(nonce)).as_ref())
    }

    /// Whether a proof is correct; takes the same time for every proof.
    pub fn is_proof(&self, nonce: &str, proof: &str) -> bool {
        bytes_of(proof)
            .is_some_and(|proof| hmac::verify(&self.key(), &signed_text(nonce), &proof).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }
}

fn signed_text(nonce: &str) -> Vec<u8> {
    [PURPOSE, nonce.as_bytes()].concat()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        digits.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    digits.map(|digits| {
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_valid_only_for_its_secret_and_nonce() {
        let (first, second) = (nonce().unwrap(), nonce().unwrap());
        assert_ne!(first, second);
        let secret = Secret::new("correct horse");
        let proof = secret.prove(&first);
        assert_eq!(proof.len(), 64);
        assert!(secret.is_proof(&first, &proof));
        assert!(!secret.is_proof(&second, &proof));
        assert!(!Secret::new("battery staple").is_proof(&first, &proof));
        for wrong in ["", "0", &proof[1..], &proof[2..], "not hexadecimal"] {
            assert!(!secret.is_proof(&first, wrong), "{wrong}");
        }
    }

    #[test]
    fn the_secret_is_never_printed() {
        let both = (Secret::new("correct horse"), Secret::default());
        assert_eq!(format!("{both:?}"), "(Secret(…), Secret(none))");
    }

    #[test]
    fn the_proof_is_hmac_sha_256() {
        // python3 -c "import hmac; print(hmac.new(b'key', b'sojourn measure, protocol 1\n' + b'00',
        // 'sha256').hexdigest())"
        assert_eq!(
            Secret::new("key").prove("00"),
            "300d282f1fc1bd29e73d72140c1ecfa694fe65b9938dadb420e84fcd938b4d0e"
        );
    }
}
