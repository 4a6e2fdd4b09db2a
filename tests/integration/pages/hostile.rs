//! Names that want to be more than text stay text in a page, and nothing in it runs but its own script.

use serde_json::{Value, json};

use super::sample::Sample;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Browser: hostile_names_are_shown_and_do_nothing,
        Browser: no_script_and_no_address_but_its_own_is_used,
    ]
}

/// Each would set `window.hit`, fetch something or change how the page looks, if it was taken for more than text.
const HOSTILE: [&str; 16] = [
    "<script>window.hit=1</script>",
    "</script><script>window.hit=2</script>",
    "</style><style>body{display:none}</style>",
    "<img src=x onerror=window.hit=3>",
    "\" onmouseover=\"window.hit=4\" autofocus onfocus=\"window.hit=4\" x=\"",
    "' onclick='window.hit=5' x='",
    "javascript:window.hit=6",
    "<svg><animate onbegin=window.hit=7 attributeName=x dur=1s></svg>",
    "<svg><title></title><foreignObject><iframe srcdoc='<script>top.hit=8</script>'></foreignObject></svg>",
    "<a href=\"https://evil.example/\">trust me</a>",
    "--><script>window.hit=9</script><!--",
    "{{ 7*7 }}{% include \"/etc/passwd\" %}${window.hit=10}",
    "<meta http-equiv=refresh content=\"0;url=https://evil.example/\">",
    "<base href=\"https://evil.example/\">",
    "user\u{202e}txt.exe\u{2066}x\u{200b}",
    "</details></section></main><h1>Passed</h1>",
];

fn hostile_names_are_shown_and_do_nothing() {
    let sample = Sample::removed_fields(HOSTILE.map(str::to_owned));
    let mut page = sample.open("");
    assert_eq!(page.complaints(), Vec::<String>::new());
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true; })");
    page.evaluate("document.querySelectorAll('summary, td, h4').forEach(it => it.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})))");
    assert_eq!(page.evaluate("window.hit"), Value::Null);
    let odd = "document.querySelectorAll('img, iframe, foreignObject, animate, base, object, embed, form[action], a:not([href^=\"#\"]):not([id])').length";
    assert_eq!(page.evaluate(odd), 0);
    let own = page.evaluate(
        "[document.scripts.length, document.querySelectorAll('style').length, document.querySelectorAll('h1').length]",
    );
    assert_eq!(own, json!([1, 1, 1]));
    let handlers = "[...document.querySelectorAll('*')].flatMap(it => it.getAttributeNames()).filter(name => name.startsWith('on') || name === 'style').length";
    assert_eq!(page.evaluate(handlers), 0);
    // Each stands in the page as the text that it is.
    let text = page.text("document.body.textContent");
    for name in HOSTILE.iter().filter(|name| name.is_ascii() && !name.contains(['"', '\''])) {
        assert!(text.contains(name), "{name}");
    }
    assert!(text.contains(r"user\u{202e}txt.exe\u{2066}x\u{200b}"));
    assert!(!text.contains(['\u{202e}', '\u{2066}', '\u{200b}']));
}

fn no_script_and_no_address_but_its_own_is_used() {
    let sample = Sample::removed_fields(["gone".to_owned()]);
    let mut page = sample.open("");
    let violated = page.evaluate(
        "new Promise(done => {
           const violated = [];
           document.addEventListener('securitypolicyviolation', event => {
             violated.push(event.effectiveDirective);
             if (violated.length === 5) done(violated.sort());
           });
           const add = (name, fields) => document.body.append(Object.assign(document.createElement(name), fields));
           add('script', {textContent: 'window.ran = 1'});
           add('style', {textContent: 'body { display: none }'});
           add('img', {src: 'https://evil.example/x.png'});
           add('iframe', {src: 'https://evil.example/'});
           fetch('https://evil.example/').catch(() => 0);
         })",
    );
    assert_eq!(violated, json!(["connect-src", "frame-src", "img-src", "script-src-elem", "style-src-elem"]));
    assert_eq!(page.evaluate("window.ran"), Value::Null);
    assert_eq!(page.text("getComputedStyle(document.body).display"), "block");
}
