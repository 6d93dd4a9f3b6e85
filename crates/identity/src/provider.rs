//! The four algorithms, by ring: for `jsonwebtoken`, which leaves the mathematics to whoever is installed. It checks
//! and never signs, so what could leak a private key by its timing is not even linked.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::{hmac, signature as sig};
use signature::{Error, Verifier};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the one that checks, for the whole process. Once is enough, and more does no harm.
pub(crate) fn install() {
    let _ = RING.install_default();
}

struct Check {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let family = match algorithm {
        Algorithm::HS256 => AlgorithmFamily::Hmac,
        Algorithm::RS256 => AlgorithmFamily::Rsa,
        Algorithm::ES256 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Check { algorithm: *algorithm, key: key.clone() }))
}

impl Verifier<Vec<u8>> for Check {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let public = |algorithm: &'static dyn sig::VerificationAlgorithm, key: &[u8]| {
            sig::UnparsedPublicKey::new(algorithm, key).verify(message, signature)
        };
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                sig::RsaPublicKeyComponents { n, e }.verify(
                    &sig::RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                public(&sig::ECDSA_P256_SHA256_FIXED, key)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => public(&sig::ED25519, key),
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(key)) => {
                hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), message, signature)
            }
            _ => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Check {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
