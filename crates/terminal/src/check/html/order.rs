//! The order of the changes as a drawing: a band a wave, a box an object or several of a kind, an arrow where one waits
//! for another.

use pushback_deploy::plan::waves::{WaveBox, Waves};
use pushback_objects::text::counted;
use pushback_preflight::Operation;

/// Sizes in the units of the drawing.
const WIDTH: usize = 192;
const HEIGHT: usize = 44;
/// Between two boxes, across and down.
const GAP: usize = 12;
const ROW_GAP: usize = 20;
const LABEL: usize = 26;
/// Between two waves: room for arrows.
const SPACE: usize = 34;
/// Most boxes side by side.
const SIDE_BY_SIDE: usize = 5;
/// Most characters that fit into a box, and most names that are listed.
const CHARACTERS: usize = 26;
const NAMES: usize = 20;

/// The drawing.
pub(super) struct OrderView {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) description: String,
    pub(super) bands: Vec<BandView>,
    pub(super) boxes: Vec<BoxView>,
    pub(super) arrows: Vec<ArrowView>,
}

/// A wave.
pub(super) struct BandView {
    pub(super) y: usize,
    pub(super) text_y: usize,
    pub(super) height: usize,
    pub(super) name: String,
    /// What is in it, for who does not look at the drawing.
    pub(super) lines: Vec<String>,
}

/// A box.
pub(super) struct BoxView {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) operation: &'static str,
    pub(super) title: String,
    pub(super) first: String,
    pub(super) second: String,
}

/// An arrow: its curve, and its tip.
pub(super) struct ArrowView {
    pub(super) curve: String,
    pub(super) tip: String,
}

impl OrderView {
    /// Height of a line of text below a box's edge.
    pub(super) const FIRST: usize = 18;
    pub(super) const SECOND: usize = 35;
    pub(super) const BOX: (usize, usize) = (WIDTH, HEIGHT);

    /// `None` where nothing changes.
    pub(super) fn of(waves: &Waves) -> Option<Self> {
        let last = waves.boxes.iter().map(|shown| shown.wave).max()?;
        let of_wave = |wave: usize| waves.boxes.iter().enumerate().filter(move |(_, shown)| shown.wave == wave);
        let columns = (0..=last).map(|wave| of_wave(wave).count()).max().unwrap_or(1).clamp(1, SIDE_BY_SIDE);
        let mut bands = Vec::new();
        let mut boxes: Vec<BoxView> = Vec::new();
        let mut y = 0;
        for wave in 0..=last {
            let top = y + LABEL;
            for (place, (_, shown)) in of_wave(wave).enumerate() {
                let (column, row) = (place % columns, place / columns);
                boxes.push(BoxView::of(shown, GAP + column * (WIDTH + GAP), top + row * (HEIGHT + ROW_GAP)));
            }
            let rows = of_wave(wave).count().div_ceil(columns);
            let height = LABEL + rows * (HEIGHT + ROW_GAP) - ROW_GAP / 2;
            bands.push(BandView {
                y,
                text_y: y + 17,
                height,
                name: format!("wave {}", wave + 1),
                lines: of_wave(wave).map(|(index, _)| line(waves, index)).collect(),
            });
            y += height + SPACE;
        }
        // Boxes are in the order of the waves, as in the plan's waves.
        let at = |index: usize| (&boxes[index], &bands[waves.boxes[index].wave]);
        let arrow = |&(first, waiting): &(usize, usize)| ArrowView::between(at(first), at(waiting));
        let arrows = waves.arrows.iter().map(arrow).collect();
        let changes: usize = waves.boxes.iter().map(|shown| shown.objects.len()).sum();
        Some(Self {
            width: GAP + columns * (WIDTH + GAP),
            height: y - SPACE,
            description: format!("{} in {}", counted(changes, "change"), counted(last + 1, "wave")),
            bands,
            boxes,
            arrows,
        })
    }
}

impl BoxView {
    fn of(shown: &WaveBox, x: usize, y: usize) -> Self {
        let operation = word(shown.operation);
        let second = match shown.objects.as_slice() {
            [one] => one.clone(),
            several => counted(several.len(), "object"),
        };
        Self {
            x,
            y,
            operation,
            title: format!("{operation} {} {}{}", shown.kind, names(shown), groups(shown)),
            first: cut(&format!("{} {}", sign(shown.operation), shown.kind)),
            second: cut(&second),
        }
    }
}

impl ArrowView {
    /// Past the boxes of other rows it goes between the columns.
    fn between((from, out_of): (&BoxView, &BandView), (to, into): (&BoxView, &BandView)) -> Self {
        let (start, end) = (from.x + WIDTH / 2, to.x + WIDTH / 2);
        let (bottom, top) = (from.y + HEIGHT, to.y - 6);
        let mut curve = format!("M{start} {bottom}");
        let (mut x1, mut y1) = (start, bottom);
        if bottom + ROW_GAP < out_of.y + out_of.height {
            x1 = from.x + WIDTH + GAP / 2;
            y1 = out_of.y + out_of.height;
            curve += &format!("L{x1} {}V{y1}", bottom + ROW_GAP / 2);
        }
        let is_below = to.y > into.y + LABEL;
        let (x2, y2) = if is_below { (to.x - GAP / 2, into.y) } else { (end, top) };
        let bend = (y2.saturating_sub(y1) / 2).max(12);
        curve += &format!("C{x1} {} {x2} {} {x2} {y2}", y1 + bend, y2.saturating_sub(bend));
        if is_below {
            curve += &format!("V{}L{end} {top}", to.y - ROW_GAP / 2 - 2);
        }
        Self { curve, tip: format!("M{} {top}L{} {top}L{end} {}Z", end - 4, end + 4, to.y) }
    }
}

/// `update CustomResourceDefinition a, b; waits for …`.
fn line(waves: &Waves, index: usize) -> String {
    let shown = &waves.boxes[index];
    let waited_for: Vec<String> = waves
        .arrows
        .iter()
        .filter(|arrow| arrow.1 == index)
        .map(|arrow| &waves.boxes[arrow.0])
        .map(|first| match first.objects.as_slice() {
            [one] => format!("{} {one}", first.kind),
            several => format!("{} {}", several.len(), first.kind),
        })
        .collect();
    let waits = if waited_for.is_empty() { String::new() } else { format!("; waits for {}", waited_for.join(", ")) };
    format!("{} {} {}{}{waits}", word(shown.operation), shown.kind, names(shown), groups(shown))
}

fn names(shown: &WaveBox) -> String {
    let named = shown.objects.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match shown.objects.len().saturating_sub(NAMES) {
        0 => named,
        left => format!("{named} and {left} more"),
    }
}

fn groups(shown: &WaveBox) -> String {
    let groups: Vec<&str> = shown.groups.iter().map(String::as_str).collect();
    if groups.is_empty() { String::new() } else { format!(" (in group {})", groups.join(", ")) }
}

/// As much as fits into a box; the whole is in its title.
fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Replace => "replace",
        Operation::Delete => "delete",
        Operation::Noop | Operation::Exists => "keep",
    }
}

fn sign(operation: Operation) -> char {
    match operation {
        Operation::Create => '+',
        Operation::Update => '~',
        Operation::Replace => '±',
        Operation::Delete => '−',
        Operation::Noop | Operation::Exists => ' ',
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn shown(wave: usize, kind: &str, objects: usize) -> WaveBox {
        let objects = (0..objects).map(|number| format!("shop/{kind}-{number}")).collect();
        WaveBox { wave, kind: kind.to_owned(), operation: Operation::Update, objects, groups: BTreeSet::new() }
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(OrderView::of(&Waves::default()).is_none());
    }

    #[test]
    fn the_drawing_is_told_in_words_too() {
        let waves = Waves { boxes: vec![shown(0, "Namespace", 1), shown(1, "ConfigMap", 4)], arrows: vec![(0, 1)] };
        let order = OrderView::of(&waves).expect("a drawing");
        assert_eq!(order.description, "5 changes in 2 waves");
        assert_eq!(order.boxes[1].second, "4 objects");
        assert_eq!(
            order.bands[1].lines,
            ["update ConfigMap shop/ConfigMap-0, shop/ConfigMap-1, shop/ConfigMap-2, shop/ConfigMap-3; \
              waits for Namespace shop/Namespace-0"]
        );
    }

    proptest! {
        #[test]
        fn boxes_lie_beside_each_other_and_waves_below(sizes in prop::collection::vec(1_usize..12, 1..6)) {
            let boxes: Vec<WaveBox> = sizes
                .iter()
                .enumerate()
                .flat_map(|(wave, size)| (0..*size).map(move |number| shown(wave, "A", number + 1)))
                .collect();
            let order = OrderView::of(&Waves { boxes: boxes.clone(), arrows: Vec::new() }).expect("a drawing");
            for (index, one) in order.boxes.iter().enumerate() {
                prop_assert!(one.x + WIDTH <= order.width && one.y + HEIGHT <= order.height);
                let band = &order.bands[boxes[index].wave];
                prop_assert!(band.y < one.y && one.y + HEIGHT <= band.y + band.height, "a box leaves its wave");
                for other in &order.boxes[index + 1..] {
                    let apart = one.x + WIDTH <= other.x || other.x + WIDTH <= one.x || one.y + HEIGHT <= other.y || other.y + HEIGHT <= one.y;
                    prop_assert!(apart, "two boxes overlap");
                }
            }
        }
    }
}
