//! The live area, the redrawn part of a terminal: a header, and a row with a spinner for each thing that takes time,
//! below the permanent lines. Indicatif draws; stream, clock, size and colours are ours.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use console::{measure_text_width, truncate_str};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::theme::{Role, Theme};

/// Width of the progress bar in columns.
const BAR_WIDTH: usize = 24;
/// Columns in front of a row's text: two blanks, the spinner, a blank.
pub(super) const ROW_INDENT: usize = 4;

/// Content of the live area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Header in front of the bar; without a bar, the only text, after a spinner.
    pub header: String,
    /// Progress as done and total; `None` if not known yet.
    pub bar: Option<(usize, usize)>,
    /// Text after the bar.
    pub tail: String,
    /// Rows below the header.
    pub rows: Vec<LiveRow>,
}

/// A row. Its text must be safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRow {
    /// Role that colours the spinner; `None` for no spinner.
    pub spinner: Option<Role>,
    /// The line after the spinner, and further lines below it.
    pub text: String,
}

/// The live area, the redrawn part of the terminal. Every function returns the text to write to the terminal.
pub struct LiveArea {
    bars: MultiProgress,
    canvas: Canvas,
    theme: Theme,
    header: Option<(ProgressBar, bool)>,
    rows: Vec<(ProgressBar, LiveRow)>,
    /// Number of lines on the screen.
    drawn: usize,
}

impl fmt::Debug for LiveArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveArea").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

impl LiveArea {
    /// An empty live area.
    #[must_use]
    pub fn new(theme: Theme) -> Self {
        let canvas = Canvas::default();
        // A custom target, because the library hides everything without a terminal and writes on its own schedule. It
        // redraws after every change of a bar; the rate limit leaves only our forced draw.
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(canvas.clone()), 1);
        let bars = MultiProgress::with_draw_target(target);
        Self { bars, canvas, theme, header: None, rows: Vec::new(), drawn: 0 }
    }

    /// Whether anything is on the screen.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.header.is_some()
    }

    /// Draws a picture over the previous one, under `above`, the new permanent lines. `size` is rows and columns.
    #[must_use]
    pub fn paint(&mut self, picture: &Picture, above: &str, size: (u16, u16)) -> String {
        self.resize(size);
        if !above.is_empty() {
            // The library's `println` pads lines with blanks, which would be copied along.
            self.bars.suspend(|| self.canvas.push(above));
        }
        let width = usize::from(size.1.max(2)) - 1;
        // The header needs a line too.
        let room = usize::from(size.0.max(3)) - 1;
        self.paint_header(picture, width);
        let mut left = room.saturating_sub(1);
        let mut rows = Vec::new();
        for row in picture.rows.iter().filter(|row| !row.text.is_empty()) {
            let lines: Vec<&str> = row.text.lines().take(left).collect();
            if lines.is_empty() {
                break;
            }
            left -= lines.len();
            rows.push(LiveRow { text: lines.join("\n"), ..*row });
        }
        self.paint_rows(&rows, width);
        // Echoed input such as `^C` should fall on a line that is redrawn, rather than push everything up.
        self.canvas.push("\r");
        self.drawn = 1 + rows.iter().map(|row| row.text.lines().count().max(1)).sum::<usize>();
        self.canvas.take()
    }

    /// Clears the live area; the cursor returns to its start.
    #[must_use]
    pub fn hide(&mut self, size: (u16, u16)) -> String {
        if !self.is_shown() {
            return String::new();
        }
        self.resize(size);
        let _ = self.bars.clear();
        for bar in self.rows.drain(..).map(|(bar, _)| bar).chain(self.header.take().map(|(bar, _)| bar)) {
            self.bars.remove(&bar);
        }
        self.drawn = 0;
        self.canvas.take()
    }

    /// Lines fill the window's width: after it shrinks, each takes several lines, of which the library knows one.
    fn resize(&mut self, size: (u16, u16)) {
        let (before, now) = (usize::from(self.canvas.size().1), usize::from(size.1.max(1)));
        if self.is_shown() && now < before {
            let wrapped = self.drawn * (before.div_ceil(now) - 1);
            self.canvas.push(&"\r\u{1b}[2K\u{1b}[1A".repeat(wrapped));
        }
        self.canvas.lock().size = size;
    }

    fn paint_header(&mut self, picture: &Picture, width: usize) {
        // In a narrow window the numbers are enough.
        let has_bar = picture.bar.is_some() && width >= 2 * BAR_WIDTH + measure_text_width(&picture.tail);
        if self.header.as_ref().is_none_or(|(_, had_bar)| *had_bar != has_bar) {
            let style =
                if has_bar { bar_style(self.theme) } else { spinner_style(self.theme, "", Some(Role::Pointer)) };
            match &mut self.header {
                Some((bar, had_bar)) => {
                    bar.set_style(style);
                    *had_bar = has_bar;
                }
                None => self.header = Some((self.bars.add(ProgressBar::no_length().with_style(style)), has_bar)),
            }
        }
        let Some((header, _)) = &self.header else { return };
        let ellipsis = self.theme.ellipsis();
        if let (true, Some((done, all))) = (has_bar, picture.bar) {
            let rest = BAR_WIDTH + 4 + format!("{done}/{all}").len() + measure_text_width(&picture.tail);
            let text = truncate_str(&picture.header, width.saturating_sub(rest), ellipsis).into_owned();
            header.update(|state| {
                state.set_len(u64::try_from(all).unwrap_or(u64::MAX));
                state.set_pos(u64::try_from(done).unwrap_or(u64::MAX));
            });
            header.set_prefix(text);
            header.set_message(picture.tail.clone());
        } else {
            let text = match picture.bar {
                Some((done, all)) => format!("{done}/{all}{}  {}", picture.tail, picture.header),
                None => format!("{}{}", picture.header, picture.tail),
            };
            header.set_message(truncate_str(&text, width.saturating_sub(2), ellipsis).into_owned());
        }
        header.tick();
    }

    fn paint_rows(&mut self, rows: &[LiveRow], width: usize) {
        while self.rows.len() > rows.len() {
            if let Some((bar, _)) = self.rows.pop() {
                self.bars.remove(&bar);
            }
        }
        let ellipsis = self.theme.ellipsis();
        for (place, row) in rows.iter().enumerate() {
            if place == self.rows.len() {
                let bar = self.bars.add(ProgressBar::new_spinner());
                bar.set_style(spinner_style(self.theme, "  ", row.spinner));
                self.rows.push((bar, LiveRow { spinner: row.spinner, text: String::new() }));
            }
            let (bar, shown) = &mut self.rows[place];
            if shown.spinner != row.spinner {
                bar.set_style(spinner_style(self.theme, "  ", row.spinner));
            }
            if shown.text != row.text {
                let cut = |(number, line): (usize, &str)| {
                    let indent = if number == 0 { ROW_INDENT } else { 0 };
                    truncate_str(line, width.saturating_sub(indent), ellipsis).into_owned()
                };
                bar.set_message(row.text.lines().enumerate().map(cut).collect::<Vec<_>>().join("\n"));
            }
            *shown = row.clone();
            bar.tick();
        }
        // The next draw removes what is gone.
        if let Some((header, _)) = &self.header {
            header.force_draw();
        }
    }
}

/// `Applying shop to prod  ████████░░░░  3/5 changes`.
fn bar_style(theme: Theme) -> ProgressStyle {
    // The library would decide about colours itself.
    let bar = move |state: &ProgressState, out: &mut dyn fmt::Write| {
        let done = usize::try_from(state.pos()).unwrap_or(usize::MAX);
        let all = state.len().map_or(usize::MAX, |all| usize::try_from(all).unwrap_or(usize::MAX));
        let filled = done.saturating_mul(BAR_WIDTH).checked_div(all).unwrap_or(0).min(BAR_WIDTH);
        let (full, empty) = (theme.glyph("█", "#"), theme.glyph("░", "."));
        // Writing to the library's buffer cannot fail.
        let _ = out.write_str(&theme.paint(Role::Good, &full.repeat(filled)));
        let _ = out.write_str(&theme.paint(Role::Quiet, &empty.repeat(BAR_WIDTH - filled)));
    };
    template("{prefix}  {gauge}  {pos}/{len}{msg}").with_key("gauge", bar)
}

fn spinner_style(theme: Theme, indent: &str, role: Option<Role>) -> ProgressStyle {
    let Some(role) = role else { return template(&format!("{indent}{{msg}}")) };
    let frames: &[&str] = if theme.unicode {
        &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
    } else {
        &["|", "/", "-", "\\"]
    };
    // The last frame means "finished", which spinners here never are.
    let frames: Vec<String> = frames.iter().chain(&frames[..1]).map(|frame| theme.paint(role, frame)).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    template(&format!("{indent}{{spinner}} {{msg}}")).tick_strings(&frames)
}

/// Parses a constant template; the fallback for an invalid one still shows the text.
fn template(text: &str) -> ProgressStyle {
    ProgressStyle::with_template(text).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A terminal for the library: it collects the text to write.
#[derive(Clone, Debug, Default)]
struct Canvas(Arc<Mutex<Painted>>);

#[derive(Debug)]
struct Painted {
    text: String,
    /// Rows and columns.
    size: (u16, u16),
}

impl Default for Painted {
    fn default() -> Self {
        Self { text: String::new(), size: (24, 80) }
    }
}

impl Canvas {
    fn lock(&self) -> MutexGuard<'_, Painted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn size(&self) -> (u16, u16) {
        self.lock().size
    }

    fn push(&self, text: &str) {
        self.lock().text.push_str(text);
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.lock().text)
    }

    fn move_cursor(&self, count: usize, direction: char) -> io::Result<()> {
        // A count of zero would be read as one.
        if count > 0 {
            self.push(&format!("\u{1b}[{count}{direction}"));
        }
        Ok(())
    }
}

impl TermLike for Canvas {
    fn width(&self) -> u16 {
        self.size().1.max(2)
    }

    fn height(&self) -> u16 {
        self.size().0.max(2)
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.move_cursor(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.push(text);
        self.push("\n");
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.push(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.push("\r\u{1b}[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
