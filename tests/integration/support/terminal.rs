//! Runs a program at a terminal of its own, and answers with what is on the screen when it has ended.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU16;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
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
pub(crate) fn run_at_terminal(mut command: Command, columns: u16) -> Shown {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other side");
    let name = ptsname(&master, Vec::new()).expect("its name");
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other side");
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&slave, size).expect("a size");

    let slave = File::from(slave);
    command.stdin(Stdio::null()).stdout(slave.try_clone().expect("a second handle")).stderr(slave);
    let mut child = command.spawn().expect("a program that starts");
    // The reading below ends when nobody has the terminal open any more.
    drop(command);
    let mut written = Vec::new();
    let mut buffer = [0; 4096];
    let mut master = File::from(master);
    // Linux says that by an error.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        written.extend_from_slice(&buffer[..count]);
    }
    let status = child.wait().expect("an ended program");

    let cells = |count: u16| NonZeroU16::new(count).expect("a size");
    let mut terminal = vt100::Parser::new(cells(ROWS), cells(columns), 0);
    terminal.process(&written);
    let screen: Vec<String> = terminal.screen().contents().lines().map(|line| line.trim_end().to_owned()).collect();
    Shown { code: status.code().expect("an exit code"), screen: screen.join("\n").trim_end().to_owned() }
}
