//! YAML events to trees, document by document.

use std::collections::HashMap;
use std::sync::Arc;

use serde_yaml::granit_parser::{self, Event, Parser, ScalarStyle, Span};

use super::construct::construct;
use super::document::Loaded;
use super::fault::{Fault, Place};
use super::scalar::Tag;
use super::syntax;
use super::tree::{Kind, TreeBuilder};
use crate::input::InputWarning;
use crate::limits::{Limits, Usage};

const YAML_TAGS: &str = "tag:yaml.org,2002:";

/// Reads all documents of a YAML text.
pub(super) fn load(file: &Arc<str>, text: &str, limits: &Limits, usage: &mut Usage) -> Result<Loaded, Fault> {
    let mut options = granit_parser::options! {
        // One more than allowed, so that our own error appears and names the limit.
        flow_nesting_limit: limits.depth + 1,
        block_nesting_limit: limits.depth + 1,
        // Emit an event at the alias instead of an error after it.
        emit_unresolved_aliases: true,
    };
    options.set_emit_comments(false);
    let mut loaded = Loaded::default();
    let mut document = TreeBuilder::new(limits, usage.nodes);
    let mut anchors: HashMap<usize, usize> = HashMap::new();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax::explain(&error, text, limits))?;
        let place = place(&span);
        let (anchor, node) = match event {
            Event::DocumentStart(explicit, _) => {
                if !explicit && !loaded.documents.is_empty() {
                    loaded.warnings.push(InputWarning {
                        code: "yaml-document-end",
                        message: "this document follows `...` without `---`; kubectl drops it silently, here it counts"
                            .to_owned(),
                        position: place.in_file(file),
                    });
                }
                continue;
            }
            Event::DocumentEnd => {
                let tree = document.finish();
                usage.nodes += tree.nodes.len();
                document = TreeBuilder::new(limits, usage.nodes);
                anchors.clear();
                construct(file, &tree, limits, usage, &mut loaded)?;
                continue;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag_of(tag.as_deref());
                let kind = Kind::Scalar { text, plain: style == ScalarStyle::Plain, tag };
                (anchor, document.leaf(kind, place)?)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, document.open(Kind::Sequence, place)?),
            Event::MappingStart(_, anchor, _) => (anchor, document.open(Kind::Mapping, place)?),
            Event::SequenceEnd | Event::MappingEnd => {
                document.close();
                continue;
            }
            Event::Alias(anchor) => {
                let target = anchors.get(&anchor).copied().unwrap_or_default();
                if !document.is_complete(target) {
                    return Err(Fault::new(place, "the alias is inside the node that it refers to")
                        .hint("A value cannot contain itself; write the part out, or move the anchor."));
                }
                (0, document.leaf(Kind::Alias(target), place)?)
            }
            // The name is not shown: it may be an unquoted password that starts with `*`.
            Event::UnresolvedAlias(_) => {
                return Err(Fault::new(place, "the alias refers to an anchor that is not defined before it")
                    .hint("If the text should start with `*`, put it in quotes.")
                    .hint("Otherwise define the anchor, as in `&name`, earlier in the same document."));
            }
            _ => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, node);
        }
    }
    Ok(loaded)
}

fn place(span: &Span) -> Place {
    Place {
        line: u32::try_from(span.start.line()).unwrap_or(u32::MAX),
        column: u32::try_from(span.start.col() + 1).unwrap_or(u32::MAX),
    }
}

fn tag_of(tag: Option<&granit_parser::Tag>) -> Tag {
    tag.map_or(Tag::None, |tag| Tag::from_suffix(tag.suffix_in_namespace(YAML_TAGS).as_deref()))
}
