//! The age of objects, as kapp's flag has it: `5m-` for younger ones, `500h+` for older ones.

use jiff::{SignedDuration, Timestamp};
use pushback_objects::duration;

/// When an object was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Age {
    /// At this time or later.
    pub after: Option<Timestamp>,
    /// At this time or earlier.
    pub before: Option<Timestamp>,
}

impl Age {
    /// Reads `5m-` or `500h+`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, String> {
        let wrong = || "expected a duration with - for younger or + for older objects, such as 5m- or 24h+".to_owned();
        let Some((is_older, age)) =
            text.strip_suffix('+').map(|age| (true, age)).or_else(|| text.strip_suffix('-').map(|age| (false, age)))
        else {
            return Err(wrong());
        };
        let age = duration::parse(age).and_then(|age| SignedDuration::try_from(age).ok());
        let moment = age.and_then(|age| now.checked_sub(age).ok()).ok_or_else(wrong)?;
        Ok(if is_older {
            Self { before: Some(moment), after: None }
        } else {
            Self { after: Some(moment), before: None }
        })
    }

    /// Whether it covers this moment; an object that is not there yet is younger than all others.
    #[must_use]
    pub fn covers(self, created: Option<Timestamp>) -> bool {
        match created {
            Some(created) => {
                self.after.is_none_or(|after| created >= after) && self.before.is_none_or(|before| created <= before)
            }
            None => self.before.is_none(),
        }
    }
}
