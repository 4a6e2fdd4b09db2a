//! Saved plans, as anybody may have edited them. The text is sealed anew, so that the reader behind the digest gets
//! it. No panic; what is accepted is written back and reads the same; any other byte breaks the seal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushback_deploy::plan::saved::{SavedPlan, SavedPlanError, compare};
use pushback_objects::hex;
use pushback_terminal::{RenderOptions, saved_plan_text};
use sha2::{Digest, Sha256};

/// Precedes the digest at the end of a plan.
const DIGEST: &str = ",\n\"digest\":\"sha256:";

fuzz_target!(|text: &str| {
    let _ = SavedPlan::parse(text);
    let content = text.rsplit_once(DIGEST).map_or(text, |(content, _)| content);
    let sealed = format!("{content}{DIGEST}{}\"}}\n", hex::encode(&Sha256::digest(content.as_bytes())));
    let plan = match SavedPlan::parse(&sealed) {
        Ok(plan) => plan,
        Err(SavedPlanError::Edited) => panic!("a sealed plan counts as edited"),
        Err(SavedPlanError::NotAPlan) => {
            assert!(!SavedPlan::is_one(text));
            return;
        }
        Err(SavedPlanError::Newer(_) | SavedPlanError::Unreadable(_)) => return,
    };
    let written = plan.render();
    assert_eq!(SavedPlan::parse(&written).as_ref(), Ok(&plan));
    for sealed in [&sealed, &written] {
        // The place depends on the input alone.
        let at = Sha256::digest(text)[..4].iter().fold(0, |sum, byte| (sum << 8) + usize::from(*byte)) % sealed.len();
        let mut edited = sealed.clone().into_bytes();
        edited[at] = if edited[at] == b'0' { b'1' } else { b'0' };
        if let Ok(edited) = String::from_utf8(edited) {
            assert!(SavedPlan::parse(&edited).is_err(), "byte {at}");
        }
    }
    assert_eq!(plan.digest(), SavedPlan::parse(&written).expect("a plan").digest());
    let shown = saved_plan_text::text(&plan, &RenderOptions::default());
    assert!(shown.chars().all(|character| character == '\n' || !character.is_control()));
    assert_eq!(compare::files(&plan.inputs, &plan.inputs), Vec::<String>::new());
    assert_eq!(compare::policies(&plan.policy, &plan.policy), Vec::<String>::new());
    let names = plan.inputs.iter().map(|file| (file.name.clone(), file.name.clone())).collect();
    let _ = compare::objects(&plan.objects, &plan.objects, &names);
    let _ = compare::verdicts(&plan.verdict, &plan.verdict, &[]);
});
