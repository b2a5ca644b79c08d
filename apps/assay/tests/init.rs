//! `assay init`: what it prints or writes passes `assay check` as it stands; it overwrites nothing and copies no
//! secret.

use std::fs;

use crate::harness::{self, Place, Said, beside_others};

/// The output of a command that must have ended with `code`.
#[track_caller]
fn coded(said: Said, code: i32) -> Said {
    said.expect_code(code);
    said
}

const HAR: &str = include_str!("../../../systems/http/adapter/src/import/tests/browser.har");
const SHOP: &str = include_str!("../../../systems/http/adapter/src/import/tests/shop.yaml");
/// The secrets of the recording.
const SECRETS: [&str; 6] = ["hunter2", "s3cr3t", "tok-123", "sess-456", "key-789", "multi-000"];

/// Claim: every template that the help names resolves as it stands, printed or written.
#[test]
fn every_template_resolves() {
    let _machine = beside_others();
    let place = Place::new();
    let refused = coded(place.assay(&["init", "--template", "?"]), 2).stderr;
    let named = refused.split_once("[possible values: ").and_then(|(_, rest)| rest.split_once(']'));
    let (templates, _) = named.expect("the templates are named");
    assert!(templates.split(", ").count() >= 4, "{templates}");
    for template in templates.split(", ") {
        let printed = coded(place.assay(&["init", "--template", template]), 0).stdout;
        place.write("printed.toml", &printed);
        coded(place.assay(&["check", "printed.toml"]), 0);
        coded(place.assay(&["init", "--template", template, "-o", template]), 0);
        let written = format!("{template}/experiment.toml");
        coded(place.assay(&["check", &written]), 0);
        let text = fs::read_to_string(place.path().join(written)).expect("it was written");
        assert_eq!(text, printed);
    }
}

/// Claim: a recording becomes an experiment and a target file that pass `assay check`, hold no secret, and say
/// what was left out.
#[test]
fn a_recording() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("x.har", HAR);
    let said = coded(place.assay(&["init", "--from", "x.har", "-o", "my"]), 0);
    assert!(
        said.stdout.is_empty() && said.stderr.contains("left out: 1 request"),
        "{}",
        said.stderr
    );
    coded(place.assay(&["check", "my/experiment.toml"]), 0);
    let read = |name: &str| fs::read_to_string(place.path().join(name)).expect("it was written");
    let both = read("my/experiment.toml") + &read("my/targets.json") + &said.stderr;
    for secret in SECRETS {
        assert!(HAR.contains(secret) && !both.contains(secret), "{secret}\n{both}");
    }
    let printed = coded(place.assay(&["init", "--from", "x.har"]), 0).stdout;
    place.write("printed.toml", &printed);
    coded(place.assay(&["check", "printed.toml"]), 0);
    let cdn = coded(place.assay(&["init", "--from", "x.har", "--host", "cdn.example.org"]), 0);
    assert!(cdn.stdout.contains("/logo.png") && !cdn.stdout.contains("/items"), "{}", cdn.stdout);
}

/// Claim: nothing is overwritten, and what stands there stays as it is.
#[test]
fn nothing_is_overwritten() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("x.har", HAR);
    for name in ["experiment.toml", "targets.json"] {
        let folder = format!("has-{name}");
        place.write(&format!("{folder}/{name}"), "mine");
        let said = coded(place.assay(&["init", "--from", "x.har", "-o", &folder]), 1);
        assert!(said.stderr.contains("is there already and is not overwritten"), "{}", said.stderr);
        let left = fs::read_dir(place.path().join(&folder)).expect("it is there").count();
        assert_eq!(left, 1, "half of it was written");
        let text = fs::read_to_string(place.path().join(&folder).join(name)).expect("it is there");
        assert_eq!(text, "mine");
    }
}

/// Claim: where there is no room for both files, neither is left behind, so that the next attempt is not refused.
#[test]
fn no_room() {
    let _machine = beside_others();
    let place = Place::new();
    let entry = r#"{"request":{"method":"GET","url":"http://127.0.0.1:9/a","headers":[]}}"#;
    let entries = vec![entry; 2000].join(",");
    place.write("x.har", format!("{{\"log\":{{\"entries\":[{entries}]}}}}"));
    // Files of at most some kilobytes; without the signal that ends a process which writes on.
    let small = ["sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"];
    let mut command = place.started_by(&small, &["init", "--from", "x.har", "-o", "my"]);
    let said = coded(harness::finish(&mut command), 1);
    assert!(said.stderr.contains("my/targets.json") && said.stderr.contains("is there space"));
    let left = fs::read_dir(place.path().join("my")).expect("it is there").count();
    assert_eq!(left, 0, "half of it is left");
    coded(place.assay(&["init", "--from", "x.har", "-o", "my"]), 0);
}

/// Claim: a description becomes one target an operation, from YAML and from standard input, and passes.
#[test]
fn a_description() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("shop.yaml", SHOP);
    for more in [&[][..], &["--all-methods"]] {
        let arguments: Vec<&str> =
            ["init", "--from", "shop.yaml"].iter().chain(more).copied().collect();
        let printed = coded(place.assay(&arguments), 0);
        assert!(
            printed.stdout.contains("made up for GET /odd/{undescribed}"),
            "{}",
            printed.stdout
        );
        let file = place.write("shop.toml", &printed.stdout);
        coded(place.assay(&["check", &file.display().to_string()]), 0);
        assert_eq!(printed.stdout.contains("\"POST\""), !more.is_empty());
        let mut piped = vec!["init", "--from", "-"];
        piped.extend(more);
        let piped = coded(place.assay_with_input(&piped, SHOP), 0);
        let targets = |text: &str| text.lines().filter(|line| line.starts_with('{')).count();
        assert_eq!(targets(&piped.stdout), targets(&printed.stdout));
    }
}

/// Claim: a target file and the bodies beside it are read in place, wherever the experiment is.
#[test]
fn a_target_file() {
    let _machine = beside_others();
    let place = Place::new();
    place.write(
        "targets/t.txt",
        "POST http://127.0.0.1:9/a\nAuthorization: env:NOT_COPIED\n@body.json\n",
    );
    place.write("targets/body.json", "{}");
    for (folder, expected) in [("one", "../targets/t.txt"), ("one/two", "../../targets/t.txt")] {
        coded(place.assay(&["init", "--from", "targets/t.txt", "-o", folder]), 0);
        let path = place.path().join(folder).join("experiment.toml");
        let text = fs::read_to_string(&path).expect("it was written");
        assert!(text.contains(&format!("targets = \"{expected}\"")), "{text}");
        let mut check = place.command(&["check", &path.display().to_string()]);
        coded(harness::finish(check.env("NOT_COPIED", "x")), 0);
    }
    place.write("list.txt", "http://127.0.0.1:9/a\nhttp://127.0.0.1:9/b\n");
    let printed = coded(place.assay(&["init", "--from", "list.txt"]), 0).stdout;
    place.write("list.toml", printed);
    coded(place.assay(&["check", "list.toml"]), 0);
}

/// Claim: what cannot be imported is said with what to do, and leaves nothing behind.
#[test]
fn refusals() {
    let _machine = beside_others();
    let place = Place::new();
    for (text, expected) in [
        ("swagger: '2.0'\n", "convert it to OpenAPI 3"),
        ("GET http://a/\nGET http://b/\n", "targets of two servers"),
        ("{\"log\":{\"entries\":[]}}", "there is no http or https request in it"),
        ("nonsense", "it is no HAR, no OpenAPI description"),
    ] {
        place.write("x", text);
        let said = coded(place.assay(&["init", "--from", "x", "-o", "my"]), 1);
        assert!(
            said.stderr.contains(expected) && said.stdout.is_empty(),
            "{text}\n{}",
            said.stderr
        );
        assert!(!place.path().join("my").exists());
    }
    let said = coded(place.assay_with_input(&["init", "--from", "-"], "GET http://a/\n"), 1);
    assert!(said.stderr.contains("secrets and all"), "{}", said.stderr);
    coded(place.assay(&["init", "--from", "missing"]), 1);
    coded(place.assay(&["init", "--from", "x", "--template", "echo"]), 2);
    coded(place.assay(&["init", "--host", "a"]), 2);
}

/// Claim: what a server describes of itself becomes an experiment on that server.
#[test]
fn a_description_at_a_url() {
    use std::io::{Read as _, Write as _};
    let _machine = beside_others();
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let _ = stream.read(&mut [0; 4096]).expect("a request");
        let body = r#"{"openapi":"3.1.0","servers":[{"url":"/"}],"paths":{"/height":{"get":{}}}}"#;
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .expect("sent");
    });
    let from = format!("http://{address}/openapi.json");
    let said = coded(place.assay(&["init", "--from", &from]), 0);
    server.join().expect("it answered");
    assert!(said.stdout.contains(&format!("http://{address}")), "{}", said.stdout);
    assert!(said.stdout.contains("/height"), "{}", said.stdout);
    place.write("described.toml", &said.stdout);
    coded(place.assay(&["check", "described.toml"]), 0);
}
