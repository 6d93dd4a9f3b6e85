//! Service tokens: how control and workers know each other. They are no keys: nobody's jobs are asked for with them.

/// A secret shorter than this could be guessed.
const MIN_BYTES: usize = 32;

/// The tokens of a file. The first one is sent, any of them is taken, so that a token can be replaced while everything
/// runs.
#[derive(Clone)]
pub struct ServiceTokens {
    sent: String,
    taken: Vec<blake3::Hash>,
}

impl std::fmt::Debug for ServiceTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServiceTokens({})", self.taken.len())
    }
}

impl ServiceTokens {
    /// Reads one token a line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_weak = |token: &&str| token.len() < MIN_BYTES || !token.bytes().all(|b| b.is_ascii_graphic());
        if tokens.iter().any(is_weak) {
            return Err(format!("a service token has at least {MIN_BYTES} visible ASCII characters"));
        }
        let sent = tokens.first().ok_or("there is no service token in it")?;
        let taken = tokens.iter().map(|token| blake3::hash(token.as_bytes())).collect();
        Ok(Self { sent: (*sent).to_owned(), taken })
    }

    /// A new one, from the kernel's randomness.
    pub fn draw() -> crate::Result<String> {
        let bytes: [u8; 32] = crate::ids::random()?;
        Ok(bytes.iter().fold("cofs_".to_owned(), |text, byte| text + &format!("{byte:02x}")))
    }

    /// What is sent along with each call.
    pub fn secret(&self) -> &str {
        &self.sent
    }

    /// Whether a caller has one of them. The time that this takes tells nothing: hashes are compared, all of them, each
    /// in constant time.
    pub fn accepts(&self, token: &str) -> bool {
        let hash = blake3::hash(token.as_bytes());
        self.taken.iter().fold(false, |found, known| found | (*known == hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_token_of_the_file_is_taken_and_the_first_is_sent() {
        let (new, old) = ("n".repeat(32), "o".repeat(32));
        let tokens = ServiceTokens::parse(&format!("{new}\n\n{old}\n")).unwrap();
        assert_eq!(tokens.secret(), new);
        assert!(tokens.accepts(&new) && tokens.accepts(&old));
        assert!(!tokens.accepts("") && !tokens.accepts(&new[..31]) && !tokens.accepts(&"x".repeat(32)));
        assert!(!format!("{tokens:?}").contains(&new));
    }

    #[test]
    fn weak_and_missing_tokens_are_refused() {
        for text in ["", "\n", "short", &format!("{}\nshort", "n".repeat(32)), &"é".repeat(40)] {
            assert!(ServiceTokens::parse(text).is_err(), "{text:?}");
        }
        assert!(ServiceTokens::parse(&ServiceTokens::draw().unwrap()).is_ok());
    }
}
