//! What the binary says of itself: version, build, tested servers; and its manual pages.

use std::path::Path;

use crate::support::{Pushback, TestCase, cases};

#[path = "../../build/commit.rs"]
mod commit;

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_version_is_the_same_by_both_ways,
        Nothing: the_version_names_the_build_and_the_tested_servers,
        Nothing: the_commit_is_read_without_git,
        Nothing: every_command_has_a_manual_page,
    ]
}

fn the_version_is_the_same_by_both_ways() {
    for arguments in [["version"], ["--version"]] {
        let printed = Pushback::new().run(&arguments).expect(0).stdout;
        let first = printed.lines().next().unwrap_or_default();
        assert!(first.starts_with("pushback ") && first.ends_with(env!("CARGO_PKG_VERSION")), "{printed}");
    }
}

fn the_version_names_the_build_and_the_tested_servers() {
    let told = Pushback::new().run(&["version", "-o", "json"]).expect(0).json();
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["schemaVersion"], 1);
    for key in ["profile", "target", "rustc"] {
        assert!(told["build"][key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {told}");
    }
    let text = Pushback::new().run(&["version"]).expect(0).stdout;
    for line in ["commit ", "build ", "tested on "] {
        assert!(text.lines().any(|it| it.starts_with(line)), "{line}: {text}");
    }
    let build = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/build"));
    let build = build.expect("the script that builds the test control plane");
    let default = build.lines().find_map(|line| line.strip_prefix("kubernetes_version=v")).expect("its version");
    let servers = told["testedServers"].as_array().expect("a list");
    assert!(servers.iter().any(|server| server == default), "{servers:?} lacks {default}");
}

fn the_commit_is_read_without_git() {
    let place = Pushback::new();
    let of = |folder: &str| commit::of_checkout(&place.directory().join(folder));
    assert_eq!(of(".").commit, None, "no checkout");
    for line in [&["init", "-q", "-b", "main", "repo"][..], &["-C", "repo", "commit", "-q", "--allow-empty", "-m", "a"]]
    {
        place.shell("git", line);
    }
    let head = place.shell("git", &["-C", "repo", "rev-parse", "HEAD"]);
    let head = Some(head.trim().to_owned());
    assert_eq!(of("repo").commit, head);
    assert!(of("repo").read.len() > 1, "a commit changes the file of the branch, and a checkout HEAD");
    place.shell("git", &["-C", "repo", "worktree", "add", "-q", "-b", "side", "../side"]);
    assert_eq!(of("side").commit, head);
    place.shell("git", &["-C", "repo", "pack-refs", "--all"]);
    assert_eq!((of("repo").commit, of("side").commit), (head.clone(), head.clone()));
    place.shell("git", &["-C", "repo", "checkout", "-q", "--detach"]);
    assert_eq!(of("repo").commit, head);
    // What cargo puts into a package.
    let id = "0123456789abcdef0123456789abcdef01234567";
    place.write(
        "package/.cargo_vcs_info.json",
        format!("{{\n  \"git\": {{\n    \"sha1\": \"{id}\"\n  }},\n  \"path_in_vcs\": \"\"\n}}"),
    );
    assert_eq!(of("package").commit.as_deref(), Some(id));
}

fn every_command_has_a_manual_page() {
    fn titles(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        found.push(words.to_owned());
        for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            titles(subcommand, &format!("{words}-{}", subcommand.get_name()), found);
        }
    }
    let mut expected = Vec::new();
    titles(&pushback::cli::command(), "pushback", &mut expected);
    let pushback = Pushback::new();
    pushback.run(&["man", "--dir", "man1"]).expect(0);
    let pages = pushback.tree("man1");
    assert_eq!(pages.len(), expected.len());
    for title in expected {
        let page = pages.get(&format!("{title}.1")).unwrap_or_else(|| panic!("{title} has no page"));
        assert!(page.contains(&format!(".TH {title} 1")) && page.contains(".SH NAME"), "{title}: {page}");
    }
    let apply = &pages["pushback-apply.1"];
    for part in [".SH EXAMPLES", ".SH \"EXIT STATUS\"", "refused before anything was written", ".SH \"SEE ALSO\""] {
        assert!(apply.contains(part), "{part}: {apply}");
    }
    assert_eq!(&pushback.run(&["man", "apply"]).expect(0).stdout, apply);
    assert_eq!(pushback.run(&["man", "deploy"]).expect(0).stdout, *apply, "another name of the same");
    let missing = pushback.run(&["man", "upgrade", "dif"]).expect(1);
    assert!(missing.stderr.contains("there is no command `pushback upgrade dif`"), "{}", missing.stderr);
}
