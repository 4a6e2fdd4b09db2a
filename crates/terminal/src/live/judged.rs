//! Findings held back until all of them are known, so that what has one reason is told once.

use pushback_events::Event;

use super::options::RenderOptions;
use crate::cause_text::{Judged, judged_text};
use crate::finding_card::{CardStyle, FindingCard};
use crate::finding_text::finding_text;

/// The findings of preflight as they come.
#[derive(Debug, Default)]
pub struct Held {
    findings: Vec<Judged>,
    /// Whether preflight is over: what is found after that is told at once.
    is_over: bool,
}

impl Held {
    /// Takes note of an event, and returns what can be told now.
    pub fn note(&mut self, event: &Event, options: &RenderOptions) -> String {
        match event {
            Event::Finding { finding, excerpt } if self.is_over => {
                let style = CardStyle { ellipsis: options.data_theme.ellipsis(), ..CardStyle::REPORT };
                let card = FindingCard::new(finding, style);
                finding_text(&card, excerpt.as_deref(), options.data_theme, options.data_width())
            }
            Event::Finding { finding, excerpt } => {
                self.findings.push(((**finding).clone(), excerpt.clone()));
                String::new()
            }
            Event::Plan { .. } => {
                self.is_over = false;
                self.told(options)
            }
            Event::Preflight { .. } => {
                self.is_over = true;
                self.told(options)
            }
            Event::RunEnd { .. } => self.told(options),
            _ => String::new(),
        }
    }

    fn told(&mut self, options: &RenderOptions) -> String {
        judged_text(std::mem::take(&mut self.findings), options.look())
    }
}
