//! Pictures of a terminal in the documents are of real runs: drawn from what the run shows (`UPDATE_DOCS=1`), and held against it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::support::terminal::AtTerminal;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_picture_of_a_refusal_is_of_a_real_run,
    ]
}

const COLUMNS: u16 = 110;
/// Of a cell, in the picture's units.
const WIDTH: f32 = 8.0;
const HEIGHT: u16 = 18;

fn the_picture_of_a_refusal_is_of_a_real_run() {
    let pushback = Pushback::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["operator", "operator-upgrade-bad"] {
        for entry in examples.join(name).read_dir().expect("an example") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().and_then(|file| file.to_str()).expect("a name");
            pushback.write(&format!("examples/{name}/{file}"), std::fs::read(&path).expect("a file"));
        }
    }
    let here = ["apply", "-a", "backup", "-f", "examples/operator", "--cluster", "dir:live", "--yes"];
    pushback.run(&here).expect(0);
    let typed = "check -a backup -f examples/operator-upgrade-bad --cluster dir:live";
    let mut command = Command::new(env!("CARGO_BIN_EXE_pushback"));
    command.args(typed.split(' ')).current_dir(pushback.directory()).env_clear();
    command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env("HOME", pushback.place());
    let screen = AtTerminal::start(command, COLUMNS).finish_with_colours();
    let picture = timeless(&svg(typed, &screen));

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/refusal-terminal.svg");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &picture).expect("the picture is written");
    }
    let drawn = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = similar::TextDiff::from_lines(&drawn, &picture).unified_diff().to_string();
    assert!(difference.is_empty(), "UPDATE_DOCS=1 draws docs/refusal-terminal.svg anew\n{difference}");
}

fn timeless(text: &str) -> String {
    Regex::new(r"\b\d+\.\d+s").expect("a pattern").replace_all(text, "0.1s").into_owned()
}

fn svg(typed: &str, screen: &vt100::Screen) -> String {
    let rows =
        (0..screen.size().0.get()).rev().find(|row| !screen.contents_between(*row, 0, *row, COLUMNS).trim().is_empty());
    let rows = rows.unwrap_or_default() + 1;
    let (width, height) = (f32::from(COLUMNS) * WIDTH + 24.0, (rows + 2) * HEIGHT + 20);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"A terminal: {typed} is refused\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e2228\"/>\n\
         <text x=\"12\" y=\"26\" fill=\"#e6e6e6\" xml:space=\"preserve\">$ pushback {typed}</text>\n"
    );
    for row in 0..rows {
        let y = (row + 2) * HEIGHT + 8;
        let mut line = String::new();
        let mut column = 0;
        while column < COLUMNS {
            let Some(cell) = screen.cell(row, column) else { break };
            let style = style(cell);
            let start = column;
            let mut text = String::new();
            while let Some(cell) = screen.cell(row, column).filter(|cell| self::style(cell) == style) {
                text += if cell.has_contents() { cell.contents() } else { " " };
                column += 1;
            }
            if !text.trim().is_empty() {
                let (x, wide) = (12.0 + f32::from(start) * WIDTH, f32::from(column - start) * WIDTH);
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let _ = write!(line, "<tspan x=\"{x}\" textLength=\"{wide}\"{style}>{text}</tspan>");
            }
        }
        if !line.is_empty() {
            let _ = writeln!(picture, "<text y=\"{y}\" fill=\"#d0d0d0\" xml:space=\"preserve\">{line}</text>");
        }
    }
    picture + "</svg>\n"
}

/// Colour and weight of a cell, as attributes.
fn style(cell: &vt100::Cell) -> String {
    let colour = match cell.fgcolor() {
        vt100::Color::Default if cell.dim() => Some("#8a919c"),
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(match index % 8 {
            0 => "#8a919c",
            1 => "#ff7b72",
            2 => "#7ee787",
            3 => "#e3b341",
            4 => "#79c0ff",
            5 => "#d2a8ff",
            6 => "#76e3ea",
            _ => "#ffffff",
        }),
        vt100::Color::Rgb(..) => Some("#ffffff"),
    };
    let colour = colour.map(|colour| format!(" fill=\"{colour}\"")).unwrap_or_default();
    let weight = if cell.bold() { " font-weight=\"bold\"" } else { "" };
    colour + weight
}
