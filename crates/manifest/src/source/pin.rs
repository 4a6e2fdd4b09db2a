//! The digest behind the # of a URL, `#sha256=…`: what is fetched has it, or nothing of it is read.
//! A fragment that is no digest is an error: with a typing error in it, nothing would be pinned.

use std::str::FromStr;

use pushback_objects::hex;
use pushback_system::redact;
use sha2::{Digest, Sha256};

/// The digest that the content of a URL has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin(String);

impl Pin {
    /// Checks what was fetched.
    ///
    /// # Errors
    /// The message, if it has another digest.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let found = hex::encode(&Sha256::digest(bytes));
        if found == self.0 {
            return Ok(());
        }
        Err(format!("its SHA-256 is {found}, and it is pinned to {}", self.0))
    }
}

impl FromStr for Pin {
    type Err = &'static str;

    fn from_str(fragment: &str) -> Result<Self, Self::Err> {
        let digest = redact::digest_in(fragment).map(|digest| Self(digest.to_ascii_lowercase()));
        digest.ok_or("Expected URL#sha256=DIGEST, with the 64 hexadecimal digits that `sha256sum` prints, or no #.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of no bytes.
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_pin_is_a_whole_digest_and_nothing_else() {
        let pin = |text: &str| text.parse::<Pin>();
        assert_eq!(pin(&format!("sha256={EMPTY}")), Ok(Pin(EMPTY.to_owned())));
        assert_eq!(pin(&format!("sha256={}", EMPTY.to_uppercase())), Ok(Pin(EMPTY.to_owned())));
        let wrong = ["", "sha256=", "L10", "sha256", EMPTY, "sha512=00"];
        let longer = [format!("sha256={EMPTY}0"), format!("sha256={}g", &EMPTY[1..]), format!("SHA256={EMPTY}")];
        for text in wrong.iter().copied().chain(longer.iter().map(String::as_str)) {
            assert!(pin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn another_content_is_told_with_both_digests() {
        let pin: Pin = format!("sha256={EMPTY}").parse().expect("a pin");
        assert_eq!(pin.check(b""), Ok(()));
        let message = pin.check(b"x").expect_err("another content");
        assert!(message.contains(EMPTY) && message.contains("2d711642b726b044"), "{message}");
    }
}
