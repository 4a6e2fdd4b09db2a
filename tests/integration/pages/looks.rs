//! How pages look: on a phone, in the dark, on paper; and the pictures of them in the documents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::sample::{ARGO_CD, STRIMZI, Sample};
use crate::support::browser::Browser;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Browser: no_width_needs_a_horizontal_scroll_bar,
        Browser: text_has_contrast_in_the_light_and_in_the_dark,
        Browser: on_paper_nothing_is_folded,
        Browser: pictures_of_pages_are_made,
    ]
}

/// Opens everything, and has all of it laid out, in view or not.
fn unfold(page: &mut Browser) {
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true; })");
    page.evaluate("document.querySelectorAll('.cause').forEach(it => { it.style.contentVisibility = 'visible'; })");
}

fn no_width_needs_a_horizontal_scroll_bar() {
    let samples = [Sample::refusal(&ARGO_CD), Sample::refusal(&STRIMZI), Sample::upgrade_diff(&ARGO_CD)];
    for (index, sample) in samples.iter().enumerate() {
        let mut page = sample.open("");
        unfold(&mut page);
        for width in [320, 400, 1280] {
            page.size(width, 800);
            let wide = "[...document.querySelectorAll('body *')].filter(it => it.checkVisibility() \
                && !it.closest('.order, .skip, thead') && it.getBoundingClientRect().right > innerWidth + 1).length";
            let scrolls = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(
                (page.evaluate(scrolls), page.evaluate(wide)),
                (json!(false), json!(0)),
                "page {index} at {width}"
            );
        }
    }
}

/// The smallest contrast between text and what is behind it, by the formula of WCAG 2, and where it is.
const CONTRAST: &str = r"
(() => {
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map(it => it / 255).map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = channels(getComputedStyle(it).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    throw new Error('nothing behind');
  };
  let least = [99, ''];
  let looked = 0;
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(it => it.nodeType === 3 && it.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest('script')) continue;
    const style = getComputedStyle(element);
    const colour = element.closest('svg') ? style.fill : style.color;
    const [a, b] = [light(channels(colour)), light(behind(element))].sort((a, b) => b - a);
    const contrast = (a + 0.05) / (b + 0.05);
    looked += 1;
    if (contrast < least[0]) least = [contrast, `${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`];
  }
  return {least: least[0], where: least[1], looked};
})()";

fn text_has_contrast_in_the_light_and_in_the_dark() {
    let mut page = Sample::refusal(&ARGO_CD).open("");
    unfold(&mut page);
    let mut paper = Vec::new();
    for scheme in ["light", "dark"] {
        page.media("screen", scheme);
        let found = page.evaluate(CONTRAST);
        assert!(found["least"].as_f64().expect("a number") >= 4.5, "{scheme}: {found}");
        assert!(found["looked"].as_u64() > Some(100), "{found}");
        paper.push(page.text("getComputedStyle(document.documentElement).backgroundColor"));
    }
    assert_ne!(paper[0], paper[1]);
}

fn on_paper_nothing_is_folded() {
    let mut page = Sample::refusal(&ARGO_CD).open("");
    let hidden = "[...document.querySelectorAll('pre, dl, .rows td')].filter(it => !it.checkVisibility()).length";
    assert!(page.evaluate(hidden).as_u64() > Some(0), "something is folded on the screen");
    page.media("print", "light");
    assert_eq!(page.evaluate(hidden), 0);
    let buttons = "[...document.querySelectorAll('button, input')].filter(it => it.checkVisibility()).length";
    assert_eq!(page.evaluate(buttons), 0, "paper has no buttons");
    let folded = page.pdf();
    assert!(folded.starts_with(b"%PDF-"));
}

/// Where pictures are written that somebody wants to look at.
fn pictures() -> Option<PathBuf> {
    std::env::var_os("PUSHBACK_PICTURES").map(PathBuf::from)
}

fn take(page: &mut Browser, name: &str) {
    let picture = page.picture();
    assert!(picture.starts_with(b"\x89PNG"), "{name}");
    assert!((8_000..200_000).contains(&picture.len()), "{name}: {} bytes", picture.len());
    if let Some(folder) = pictures() {
        std::fs::write(folder.join(format!("{name}.png")), picture).expect("a file");
    }
}

/// The pictures that documents show are there.
fn pictures_of_pages_are_made() {
    let mut page = Sample::refusal(&STRIMZI).open("");
    page.size(1100, 900);
    take(&mut page, "refusal-page");
    page.media("screen", "dark");
    take(&mut page, "refusal-page-dark");
    for document in ["README.md", "docs/preflight.md"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).expect("a document");
        for (_, rest) in text.split("<img ").filter_map(|tag| tag.split_once("src=\"")) {
            let name = rest.split('"').next().unwrap_or_default();
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document).with_file_name(name);
            assert!(path.is_file() || pictures().is_some(), "{document} shows {name}, which is not there");
        }
    }
    let _: Value = page.evaluate("0");
}
