//! A secret that server and clients share, and how a client proves that it has it without saying
//! it.
//!
//! The server sends a nonce; the client answers with HMAC-SHA-256 (RFC 2104) of it under the
//! secret. A proof is good for one connection. Nothing else of a session is secret: who reads along
//! on the way sees all that is measured.

use std::{fmt, io};

use ring::hmac;
use serde::Deserialize;

use crate::random;

/// What a proof is of, before the nonce: no other use of the secret gives the same.
const PURPOSE: &[u8] = b"sojourn measure, protocol 1\n";

/// A nonce, in hexadecimal digits.
pub fn nonce() -> io::Result<String> {
    Ok(hexadecimal(&random::<16>()?))
}

/// The secret; empty: there is none. It never shows in what is printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", if self.is_none() { "none" } else { "…" })
    }
}

impl Secret {
    /// From a word.
    pub fn new(word: &str) -> Secret {
        Secret(word.into())
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// What shows that one has it.
    pub fn prove(&self, nonce: &str) -> String {
        hexadecimal(hmac::sign(&self.key(), &said(nonce)).as_ref())
    }

    /// Whether this shows it; takes as long whatever was said.
    pub fn is_proof(&self, nonce: &str, proof: &str) -> bool {
        bytes_of(proof).is_some_and(|proof| hmac::verify(&self.key(), &said(nonce), &proof).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }
}

fn said(nonce: &str) -> Vec<u8> {
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
    fn only_the_secret_proves_itself_and_only_for_its_nonce() {
        let (one, other) = (nonce().unwrap(), nonce().unwrap());
        assert_ne!(one, other);
        let secret = Secret::new("correct horse");
        let proof = secret.prove(&one);
        assert_eq!(proof.len(), 64);
        assert!(secret.is_proof(&one, &proof));
        assert!(!secret.is_proof(&other, &proof));
        assert!(!Secret::new("battery staple").is_proof(&one, &proof));
        for wrong in ["", "0", &proof[1..], &proof[2..], "not hexadecimal"] {
            assert!(!secret.is_proof(&one, wrong), "{wrong}");
        }
    }

    #[test]
    fn it_is_never_printed() {
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
