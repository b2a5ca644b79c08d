//! What a stranger does in his first minutes and gets wrong: each mistake is answered with the sentence that helps.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::harness::{Echo, Place, Server, beside_others};

/// Claim: a server without its scheme, a body from a file that is not there, and help where there is no system are
/// answered with what to write.
#[test]
fn the_sentence_that_helps() {
    let place = Place::new();
    place.assay(&["run", "localhost:9/x"]).expect_code(2).expect_stderr("http://localhost:9/x");
    let no_file = place.assay(&["run", "http://127.0.0.1:9/", "-b", "@nofile.json"]);
    no_file.expect_code(2).expect_stderr("--body @nofile.json").expect_stderr("`@` names a file");
    let file = place.assay(&["run", "my.toml"]);
    file.expect_code(2).expect_stderr("assay init prints one");
    place.assay(&["serve", "--help"]).expect_code(0).expect_stdout("assay serve echo");
    let help = place.assay(&["run", "--help"]);
    help.expect_code(0).expect_stdout("[default: 30s").expect_stdout("[default: 50/s with a URL]");
    help.expect_stdout("98 worse than the baseline");
}

/// Claim: `check` knocks where the load would go: it says that no server answers, and that one does.
#[test]
fn check_knocks() {
    let place = Place::new();
    let free = Server::free_address();
    let dead = place.assay(&["check", &format!("http://{free}/")]);
    dead.expect_code(0).expect_stdout(&format!("no answer from {free}"));
    let echo = Echo::start(&[]);
    let alive = place.assay(&["check", &format!("http://{}/", echo.http)]);
    alive.expect_code(0).expect_stdout(&format!("a server listens at {}", echo.http));
}

/// Claim: a server that speaks another protocol is named as such, and `report` ends with 0, or with the verdict's code
/// where that is asked for.
#[test]
fn another_protocol() {
    let _beside = beside_others();
    for (first, words) in [
        (&b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"[..], "HTTP/2"),
        (&b"\x15\x03\x01\x00\x02\x02\x46"[..], "https://"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 512]);
                let _ = stream.write_all(first);
            }
        });
        let place = Place::new();
        let url = format!("http://{address}/");
        let quick = ["--rate", "20/s", "--duration", "1s", "--warmup", "0s", "--timeout", "2s"];
        let quietly = ["--no-calibration", "--progress", "none"];
        let arguments: Vec<&str> = ["run", &url].into_iter().chain(quick).chain(quietly).collect();
        let said = place.assay(&arguments);
        assert_ne!(said.code, 0, "{}", said.stdout);
        said.expect_stdout(words);
        place.assay(&["report"]).expect_code(0).expect_stdout(words);
        place.assay(&["report", "--verdict"]).expect_code(said.code);
        let listed = place.assay(&["list"]);
        let folder = place.run_folder();
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        listed.expect_stdout(&format!("runs/{name}"));
        assert!(!listed.stdout.contains("baseline"), "{}", listed.stdout);
    }
}
