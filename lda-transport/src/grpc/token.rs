//! Secret that the nodes of a run share.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::error::StartError;

/// Length of the digest in bytes.
pub(super) const DIGEST_LEN: usize = 32;
/// Shortest secret in bytes.
const SHORTEST: usize = 16;
/// Prefix of the hashed bytes, so that the digest has no other use.
const DOMAIN: &[u8] = b"lda-grpc token\0";

/// Secret that all nodes of a run share: a node rejects peers without it.
///
/// Keeps out strangers who can connect to a node without TLS. Those who can read or redirect the
/// traffic can learn it, so it replaces certificates only within a trusted network. Kept and sent as
/// a SHA-256 digest. The default is the token of nodes without a secret.
///
/// ```
/// use lda_transport::grpc::Token;
///
/// let token = Token::new("pgbc5wkk2h4zwh3qd7vv")?;
/// assert_eq!(format!("{token:?}"), "Token(..)");
/// assert!(Token::new("short").is_err());
/// # Ok::<(), lda_transport::grpc::StartError>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Token([u8; DIGEST_LEN]);

impl Token {
    /// The token of a secret of at least 16 bytes, such as 20 random letters.
    ///
    /// # Errors
    /// [`StartError::Option`] for a shorter secret, which could be guessed.
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, StartError> {
        let secret = secret.as_ref();
        if secret.len() < SHORTEST {
            let reason = format!(
                "the secret has {} bytes and could be guessed: give {SHORTEST} random ones or more",
                secret.len()
            );
            return Err(StartError::Option { name: "token", reason });
        }
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        hash.update(secret);
        Ok(Self(hash.finalize().into()))
    }

    pub(super) fn from_digest(digest: [u8; DIGEST_LEN]) -> Self {
        Self(digest)
    }

    pub(super) fn digest(&self) -> &[u8; DIGEST_LEN] {
        &self.0
    }
}

impl PartialEq for Token {
    /// In constant time, so that a stranger cannot find the digest byte by byte.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}
