//! The pipelines of the book's page on continuous integration: their lines, run by the shells that the platforms use, with a
//! program in place of assay that ends with a code.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::harness::Place;

const PAGE: &str = include_str!("../../../docs/continuous-integration.md");

/// The lines of a pipeline that run the load: those after the last of `starts`, as far as they are indented as the first.
fn lines(starts: &[&str]) -> String {
    let mut rest = PAGE;
    for start in starts {
        rest = rest.split_once(start).unwrap_or_else(|| panic!("the page has `{start}`")).1;
    }
    let rest = rest.trim_start_matches('\n');
    let indent = rest.len() - rest.trim_start_matches(' ').len();
    let all: Vec<&str> = rest
        .lines()
        .map_while(|line| line.get(..indent).filter(|it| it.trim().is_empty()).map(|_| line.trim()))
        .map(|line| line.strip_prefix("- ").unwrap_or(line))
        .collect();
    assert!(all.iter().any(|line| line.contains("assay run")), "{all:?}");
    all.join("\n")
}

/// Claim: a pipeline fails with every code but 0, and with that code; GitHub's says which of three things happened.
#[test]
fn every_code_but_0_fails_the_job() {
    let place = Place::new();
    let make_program = |name: &str, text: &str| {
        place.write(name, text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path().join(name), mode).expect("it is ours");
    };
    make_program("start-my-service", "#!/bin/sh\n");
    make_program("bin/assay", "#!/bin/sh\nexit \"$CODE\"\n");
    let github = lines(&["## GitHub Actions", "- name: load\n", "run: |\n"]);
    let gitlab = lines(&["## GitLab", "script:\n"]);
    for (code, word) in [
        (0, ""),
        (1, "could not be run"),
        (2, "could not be run"),
        (97, "cannot tell"),
        (99, "threshold"),
    ] {
        // As each platform starts it.
        for (shell, script, word) in
            [(["bash", "-e", "-c"], &github, word), (["sh", "-e", "-c"], &gitlab, "")]
        {
            let output = Command::new(shell[0])
                .args(&shell[1..])
                .arg(script)
                .current_dir(place.path())
                .env("PATH", format!("{}:/usr/bin:/bin", place.path().join("bin").display()))
                .env("CODE", code.to_string())
                .stdin(Stdio::null())
                .output()
                .expect("a shell starts");
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(code), "{script}\n{said}");
            assert!(said.contains(word), "{code}: {said}");
            assert_eq!(said.contains("::error::"), !word.is_empty(), "{code}: {said}");
        }
    }
}
