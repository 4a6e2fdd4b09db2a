//! Live objects as `inspect --raw` prints them, in each voice.

use std::sync::Arc;

use pushback_deploy::plan::sides;
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use serde_json::Value;

use super::kapp::words::placeholder;

/// Objects without what deploy tools keep in them for themselves, Secrets masked.
#[must_use]
pub fn raw_objects<'o>(objects: impl Iterator<Item = &'o Arc<Value>>, with_managed_fields: bool) -> Vec<Value> {
    let masker = Masker::new(&defaults().diff_mask_rules);
    let mut numbers = MaskNumbers::shown_as(placeholder);
    let shown = |object: &Arc<Value>| {
        let mut object = sides::raw(object, with_managed_fields);
        masker.mask(&mut object, &mut numbers);
        object
    };
    objects.map(shown).collect()
}
