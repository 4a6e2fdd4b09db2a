//! What a terminal shows of a run: its lines, its window, and what it refuses to obey.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use pushback_preflight::Operation;

use super::*;
use crate::escape::is_hidden;
use crate::fixture::{
    Captured, at, at_millis, change_done, change_start, deploy, hostile, object, planning, run_start, screen,
    wait_progress,
};
use crate::theme::Theme;

fn tty(captured: &Captured, unicode: bool) -> Box<TtyRenderer> {
    let (data, progress) = captured.writers();
    let theme = Theme { color: false, unicode };
    let options = RenderOptions { theme, data_theme: theme, size: Some((24, 100)), ..RenderOptions::default() };
    Box::new(TtyRenderer::new(options, Output::new(data, progress)))
}

#[test]
fn a_deploy_leaves_a_line_for_everything_finished() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    for (second, event) in deploy() {
        renderer.event(&event, at(second));
    }
    renderer.finish().expect("written");
    assert_snapshot!(screen(&captured, (60, 100)), @"
    Applying shop to kind-prod

    warning: shop/web.yaml:17:22: 0644 is read as 420

      ✓ created     ConfigMap   shop/web-settings  0.1s
      ✓ updated     Secret      shop/web-tls       0.1s
    retry: PATCH Deployment shop/web: attempt 3 failed: 429 too many requests; again in 2.0s
      ✓ updated     Deployment  shop/web           0.1s
      ✓ ready       Deployment  shop/web           41.2s
      ✓ deleted     Service     shop/web-old       0.1s
      ✓ gone        Service     shop/web-old       2.0s

    Applied shop to kind-prod in 1m 12s: 1 created, 2 updated, 1 deleted, 18 unchanged.
      slowest   Deployment shop/web 41.2s, Service shop/web-old 2.0s
      warnings  1
    hint: do the next thing
    ");
    assert_snapshot!(captured.data(), @"
      + create
          ConfigMap   shop/web-settings  shop/web.yaml:3
      ~ update
          Deployment  shop/web           shop/web.yaml:12
            spec.replicas  3 → 4
          Secret      shop/web-tls       shop/web.yaml:40
      - delete
          Service     shop/web-old

    Plan: 1 to create, 2 to update, 1 to delete, 18 unchanged.   0.4s
    Preflight  1 rule passed   0.3s
    ");
}

#[test]
fn a_stuck_object_shows_its_cause_below_it() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    for (second, event) in deploy().iter().filter(|(second, _)| *second <= 13) {
        renderer.event(event, at(*second));
    }
    renderer.tick(at(38));
    assert_snapshot!(screen(&captured, (60, 100)), @"
    Applying shop to kind-prod

    warning: shop/web.yaml:17:22: 0644 is read as 420

      ✓ created     ConfigMap   shop/web-settings  0.1s
      ✓ updated     Secret      shop/web-tls       0.1s
    retry: PATCH Deployment shop/web: attempt 3 failed: 429 too many requests; again in 2.0s
      ✓ updated     Deployment  shop/web           0.1s
    Applying shop to kind-prod  ████████████░░░░░░░░░░░░  2/4 changes, 1 waiting  0:36
      ⠸ waiting     Deployment  shop/web           0:33   2/4 ready
          └ pod web-6c9f: CrashLoopBackOff (exit 1)
    ");
}

#[test]
fn everything_can_be_said_in_ascii() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, false);
    for (second, event) in deploy() {
        renderer.event(&event, at(second));
        renderer.tick(at_millis(second * 1_000 + 500));
    }
    assert!(captured.progress().is_ascii() && captured.data().is_ascii(), "{}", captured.progress());
}

#[test]
fn nothing_moves_before_the_first_write_or_within_a_quarter_second_of_it() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    for (second, event) in deploy().into_iter().take(5) {
        renderer.event(&event, at(second));
    }
    renderer.tick(at(100));
    assert!(!captured.progress().contains('\u{1b}'));
    renderer.event(&change_start(&object("", "Secret", "a"), Operation::Create), at(101));
    renderer.tick(at_millis(101_249));
    assert!(!renderer.live_area.is_shown());
    renderer.tick(at_millis(101_250));
    assert!(renderer.live_area.is_shown());
}

#[test]
fn planning_that_takes_long_says_what_it_is_at_and_leaves_nothing_behind() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    renderer.event(&planning("connecting to the cluster"), at(0));
    renderer.event(&run_start("apply"), at(1));
    renderer.event(&planning("comparing 250 objects with the cluster"), at(2));
    renderer.tick(at(4));
    assert_snapshot!(screen(&captured, (60, 100)), @"
    Applying shop to kind-prod

    ⠸ comparing 250 objects with the cluster  0:04
    ");
    for (_, event) in deploy().into_iter().skip(3).take(2) {
        renderer.event(&event, at(5));
    }
    renderer.tick(at(60));
    assert_snapshot!(screen(&captured, (60, 100)), @"Applying shop to kind-prod");
}

#[test]
fn quick_planning_shows_nothing_that_moves() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    renderer.event(&run_start("diff"), at(0));
    renderer.event(&planning("reading the app"), at(0));
    renderer.tick(at_millis(999));
    assert!(!captured.progress().contains('\u{1b}'));
}

#[test]
fn it_is_painted_at_most_five_times_a_second_and_lines_that_stay_wait_for_it() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    renderer.event(&run_start("apply"), at(0));
    let secret = object("", "Secret", "a");
    let mut writes = BTreeSet::new();
    for millis in 0..2_000 {
        renderer.event(&change_start(&secret, Operation::Update), at_millis(millis));
        renderer.event(&change_done(&secret, Operation::Update, ChangeOutcome::Ok, ""), at_millis(millis));
        if millis >= 250 {
            writes.insert(captured.progress().len());
        }
    }
    assert_eq!(writes.len(), 9, "one painting each 200 ms");
    renderer.finish().expect("written");
    let screen = screen(&captured, (2_100, 100));
    assert_eq!(screen.matches("updated").count(), 2_000);
    assert!(!screen.contains("changes"), "nothing that moved is left");
}

#[test]
fn too_many_rows_are_counted_and_those_with_a_cause_are_kept() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    renderer.event(&run_start("apply"), at(0));
    for index in 0..20 {
        let reasons: &[&str] = if index == 17 { &["pod x: ImagePullBackOff"] } else { &[] };
        let web = object("apps", "Deployment", &format!("web-{index:02}"));
        renderer.event(&wait_progress(&web, "0/1 ready", reasons, 0), at(0));
    }
    renderer.tick(at(5));
    assert_snapshot!(screen(&captured, (60, 100)), @"
    Applying shop to kind-prod

    ⠙ Applying shop to kind-prod, 20 waiting  0:05
      ⠙ waiting     Deployment  shop/web-00  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-01  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-02  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-03  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-04  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-05  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-06  0:05   0/1 ready
      ⠙ waiting     Deployment  shop/web-17  0:05   0/1 ready
          └ pod x: ImagePullBackOff
      … and 12 more
    ");
}

#[test]
fn a_fast_write_gets_no_row_and_a_slow_one_does() {
    let mut renderer = tty(&Captured::default(), true);
    renderer.event(&change_start(&object("", "Secret", "a"), Operation::Update), at(0));
    assert_eq!(renderer.picture(at_millis(900)).rows.len(), 0);
    assert_eq!(renderer.picture(at(3)).rows.len(), 1);
}

#[test]
fn what_moves_never_fills_more_than_the_window() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    renderer.options.size = Some((4, 30));
    renderer.event(&run_start("apply"), at(0));
    for index in 0..9 {
        let web = object("apps", "Deployment", &format!("web-{index}-with-a-long-name"));
        renderer.event(&wait_progress(&web, "0/1 ready", &["pod x: a very long reason indeed"], 0), at(0));
    }
    for second in 5..9 {
        renderer.tick(at(second));
    }
    assert_snapshot!(screen(&captured, (4, 30)), @"
    ⠼ Applying shop to kind-prod…
      ⠼ waiting     shop/w…-name…
          └ 0/1 ready
    ");
}

#[test]
fn a_window_made_narrower_leaves_nothing_behind() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    renderer.event(&run_start("apply"), at(0));
    renderer.event(&wait_progress(&object("apps", "Deployment", "web"), "0/1 ready", &[], 0), at(0));
    renderer.tick(at(1));
    let before = captured.progress().len();
    renderer.options.size = Some((24, 50));
    renderer.tick(at(2));
    let written = captured.progress().split_off(before);
    let removed = "\r\u{1b}[2K\u{1b}[1A".repeat(2);
    assert!(written.starts_with(&removed), "two lines that became four: {written:?}");
}

#[test]
fn hostile_text_is_shown_not_obeyed() {
    let captured = Captured::default();
    let mut renderer = tty(&captured, true);
    for (second, event) in (0..).zip(hostile()) {
        renderer.event(&event, at(second));
        renderer.tick(at_millis(second * 1_000 + 500));
        let Picture { header, tail, rows, .. } = renderer.picture(at(second));
        let lines = rows.iter().flat_map(|row| row.text.lines());
        for line in lines.chain([header.as_str(), tail.as_str()]) {
            assert!(!line.chars().any(is_hidden), "{line:?}");
        }
    }
    renderer.finish().expect("written");
    let left = screen(&captured, (200, 100));
    assert!(!left.chars().any(|c| c != '\n' && is_hidden(c)), "{left:?}");
    assert!(!captured.data().chars().any(|c| c != '\n' && is_hidden(c)));
}
