//! Runs a program at a terminal of its own, and answers with what is on the screen when it has ended.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Rows of the terminal: enough that nothing scrolls away.
const ROWS: u16 = 400;

/// What became of a program.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Its exit code.
    pub(crate) code: i32,
    /// The screen, without blanks at the ends of lines; lines that were too long are whole.
    pub(crate) screen: String,
}

/// Runs a program whose output goes to a terminal of so many columns; there is nobody to answer it.
pub(crate) fn run_at_terminal(command: Command, columns: u16) -> Shown {
    AtTerminal::launch(command, columns, false).finish()
}

/// A program under way at a terminal of its own, at which somebody sits.
#[derive(Debug)]
pub(crate) struct AtTerminal {
    child: Child,
    master: File,
    columns: u16,
    written: Vec<u8>,
}

impl AtTerminal {
    /// Starts a program that may ask.
    pub(crate) fn start(command: Command, columns: u16) -> Self {
        Self::launch(command, columns, true)
    }

    fn launch(mut command: Command, columns: u16, answered: bool) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).expect("a pseudo-terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other side");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other side");
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("a size");

        let slave = File::from(slave);
        let second = || slave.try_clone().expect("a second handle");
        let stdin = if answered { Stdio::from(second()) } else { Stdio::null() };
        command.stdin(stdin).stdout(second()).stderr(second());
        let child = command.spawn().expect("a program that starts");
        // Reading ends when nobody has the terminal open any more; `command` and `slave` end here.
        Self { child, master: File::from(master), columns, written: Vec::new() }
    }

    /// Reads until a text is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.screen().contains(text) {
            assert!(self.read(), "the program ended without this: {text}\n{}", self.screen());
        }
    }

    /// Presses keys.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("a terminal that is open");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("a running process");
    }

    /// Reads to the end.
    pub(crate) fn finish(mut self) -> Shown {
        while self.read() {}
        let status = self.child.wait().expect("an ended program");
        Shown { code: status.code().expect("an exit code"), screen: self.screen() }
    }

    /// Reads to the end; the screen with its colours.
    pub(crate) fn finish_with_colours(mut self) -> vt100::Screen {
        while self.read() {}
        self.child.wait().expect("an ended program");
        self.emulated().screen().clone()
    }

    /// Reads what is there, or waits for more; false at the end, which Linux says by an error.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let count = self.master.read(&mut buffer).unwrap_or_default();
        self.written.extend_from_slice(&buffer[..count]);
        count > 0
    }

    fn emulated(&self) -> vt100::Parser {
        let cells = |count: u16| NonZeroU16::new(count).expect("a size");
        let mut terminal = vt100::Parser::new(cells(ROWS), cells(self.columns), 0);
        terminal.process(&self.written);
        terminal
    }

    fn screen(&self) -> String {
        let terminal = self.emulated();
        let screen: Vec<String> = terminal.screen().contents().lines().map(|line| line.trim_end().to_owned()).collect();
        screen.join("\n").trim_end().to_owned()
    }
}
