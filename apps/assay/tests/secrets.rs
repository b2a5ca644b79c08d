//! Secrets, end to end: of ten kinds, given to a server that says each of them back in ten ways. No byte of the run folder,
//! of the terminal or of the list of processes has one.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::harness::{self, Place, Running, beside_others, locked, processes_of, until};

/// What each request carries: a header from the environment in both spellings, literal ones of three sorts, a parameter of
/// the URL from the environment and a literal one, members of a JSON body the same, a form, and one from a variable of
/// Assay's own.
const SECRETS: [&str; 10] = [
    "env-bearer/Z+1\"q\"",
    "env-api-key&<9f3a>",
    "basic-pass:word-7c1e",
    "literal-cookie-5d2b",
    "literal-header-88aa",
    "env-in-url-1b7e~x",
    "literal-in-url-4e4e",
    "env-in-body-0c\\\\d",
    "literal-in-body-aa19",
    "by-assay-variable-3f",
];

/// Base64 as RFC 4648 has it: the test has its own, so that it finds what the program's would miss.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = chunk.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(char::from(alphabet[(all >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a text");
    quoted[1..quoted.len() - 1].to_owned()
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything that must be found nowhere.
fn forms(secret: &str) -> Vec<String> {
    vec![
        secret.to_owned(),
        percent(secret),
        json(secret),
        json(&json(secret)),
        html(secret),
        hexadecimal(secret),
        base64(secret.as_bytes(), STANDARD),
        base64(secret.as_bytes(), URL_SAFE),
        // Within other text: what is certain of it.
        base64(format!("wxyz{}", &secret[..12]).as_bytes(), STANDARD)[6..20].to_owned(),
        // Cut in its middle.
        secret[..10].to_owned(),
    ]
}

/// The server's answer, by the way it behaves.
fn answer(way: usize, secret: &str) -> Vec<u8> {
    let said = |status: &str, message: &str| {
        let body = format!("{{\"error\":{{\"message\":\"no: {message}\"}}}}");
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    match way {
        0 => said(&format!("403 not {secret}"), ""),
        1 => said("200 OK", &json(secret)),
        2 => said("200 OK", &percent(secret)),
        3 => said("200 OK", &base64(format!("wxyz{secret}").as_bytes(), STANDARD)),
        4 => said("200 OK", &json(&html(secret))),
        5 => said(&format!("500 {}", base64(secret.as_bytes(), URL_SAFE)), ""),
        6 => said("200 OK", &hexadecimal(secret)),
        7 => format!("{secret} is no answer\r\n\r\n").into_bytes(),
        // Longer than a text that is kept: it is cut within the secret.
        8 => said("200 OK", &format!("{}{}", "x".repeat(130), json(secret))),
        _ => said(&format!("302 at {secret}\r\nLocation: /?token={secret}"), ""),
    }
}

/// A server that finds each secret in each request, and says back one of them in one way, each in each in turn.
fn serve(seen: &Arc<Mutex<BTreeSet<usize>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let seen = Arc::clone(seen);
    std::thread::spawn(move || {
        let turn = Arc::new(Mutex::new(0_usize));
        for stream in listener.incoming().flatten() {
            let (seen, turn) = (Arc::clone(&seen), Arc::clone(&turn));
            std::thread::spawn(move || converse(stream, &seen, &turn));
        }
    });
    address
}

fn converse(mut stream: TcpStream, seen: &Mutex<BTreeSet<usize>>, turn: &Mutex<usize>) {
    let mut bytes = Vec::new();
    while let Some(request) = request(&mut stream, &mut bytes) {
        let basic = base64(format!("me:{}", SECRETS[2]).as_bytes(), STANDARD);
        for (index, secret) in SECRETS.iter().enumerate() {
            if request.contains(secret) || (index == 2 && request.contains(&basic)) {
                locked(seen).insert(index);
            }
        }
        let way = {
            let mut turn = locked(turn);
            *turn += 1;
            *turn - 1
        };
        if stream.write_all(&answer(way % 10, SECRETS[way / 10 % 10])).is_err() || way % 10 == 7 {
            return;
        }
    }
}

/// The next request on a connection, its body included.
fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<String> {
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
            if body.len() >= length {
                bytes.drain(..head.len() + 4 + length);
                return Some(format!("{head}\r\n\r\n{}", &body[..length]));
            }
        }
        let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
    }
}

fn experiment(address: SocketAddr) -> String {
    let basic = base64(format!("me:{}", SECRETS[2]).as_bytes(), STANDARD);
    format!(
        r#"
        name = "secrets"
        # The old cookie was literal-cookie-5d2b.
        [system]
        kind = "http"
        [system.deploy]
        url = "http://{address}/"
        [workload]
        targets = "targets.txt"
        error_pointer = "/error"
        [workload.headers]
        Authorization = "Bearer ${{TEST_BEARER}}"
        X-Api-Key = "env:TEST_API_KEY"
        Proxy-Authorization = "Basic {basic}="
        Cookie = "theme=dark; id={}"
        X-Own-Token = "{}"
        [load]
        rate = "100/s"
        connections = 4
        warmup = "0s"
        duration = "2s"
        timeout = "5s"
        "#,
        SECRETS[3], SECRETS[4]
    )
}

/// Fails with each form of each secret that stands in some bytes.
#[track_caller]
fn expect_none(bytes: &[u8], whence: &str) {
    for secret in SECRETS {
        for form in forms(secret) {
            let found = bytes.windows(form.len()).position(|window| window == form.as_bytes());
            let around = found.map(|at| {
                let (from, to) = (at.saturating_sub(60), (at + 90).min(bytes.len()));
                String::from_utf8_lossy(&bytes[from..to]).into_owned()
            });
            assert_eq!(around, None, "{whence} holds {secret} as {form}");
        }
    }
}

fn each_entry(folder: &Path, f: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        f(&entry.path());
        if entry.path().is_dir() {
            each_entry(&entry.path(), f);
        }
    }
}

/// Claim: ten kinds of secret reach the server, which says each back in ten ways; neither run folder, nor terminal, nor list
/// of processes has one in any form; the folder is its owner's alone; the stored file says what to set; and a secret that
/// is put there afterwards is found.
#[test]
fn ten_kinds_said_back_in_ten_ways() {
    let _beside = beside_others();
    let place = Place::new();
    let seen = Arc::default();
    let address = serve(&seen);
    place.write("secrets.toml", experiment(address));
    let body = format!("{{\"password\":\"{}\",\"otp\":\"${{TEST_IN_BODY}}\"}}", SECRETS[8]);
    place.write("body.json", body);
    let target = format!(
        "POST http://{address}/a?access_token={}&k=${{TEST_IN_URL}}\n@body.json\n",
        SECRETS[6]
    );
    place.write("targets.txt", target);
    let with_variables = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command
            .env("TEST_BEARER", SECRETS[0])
            .env("TEST_API_KEY", SECRETS[1])
            .env("TEST_IN_URL", SECRETS[5])
            .env("TEST_IN_BODY", SECRETS[7])
            .env("ASSAY_WORKLOAD__HEADERS__X-Session", SECRETS[9]);
        command
    };
    let running =
        Running::start(&mut with_variables(&["run", "secrets.toml", "--progress", "line", "-v"]));
    // The list of processes, while the load runs.
    let is_loaded = || (locked(&seen).len() == SECRETS.len()).then_some(());
    assert!(until(std::time::Duration::from_secs(30), is_loaded).is_some(), "{:?}", locked(&seen));
    for process in processes_of(place.path()) {
        let line = std::fs::read(format!("/proc/{}/cmdline", process.id)).unwrap_or_default();
        expect_none(&line, "the list of processes");
    }
    let said = running.finish();
    assert!([0, 97, 99].contains(&said.code), "{}\n{}", said.stdout, said.stderr);
    expect_none(said.stdout.as_bytes(), "standard output");
    expect_none(said.stderr.as_bytes(), "standard error");
    assert!(
        said.stdout.contains("<redacted>"),
        "what was said back is shown without it\n{}",
        said.stdout
    );

    let run = place.run_folder();
    let mut files = 0;
    assert_eq!(std::fs::metadata(&run).unwrap().permissions().mode() & 0o777, 0o700);
    each_entry(&run, &mut |path| {
        let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            return;
        }
        assert_eq!(mode, 0o600, "{}", path.display());
        files += 1;
        expect_none(&std::fs::read(path).unwrap(), &path.display().to_string());
    });
    assert!(files > 8, "{files} files");
    let stored = std::fs::read_to_string(run.join("experiment.toml")).unwrap();
    let first = stored.lines().next().unwrap_or_default();
    for variable in ["COOKIE", "PROXY_AUTHORIZATION", "TEST_API_KEY", "TEST_BEARER", "X_OWN_TOKEN"]
    {
        assert!(first.contains(variable), "{variable} in {first}");
    }

    let folder = run.display().to_string();
    let check = || harness::finish(&mut with_variables(&["report", "--check-secrets", &folder]));
    check().expect_code(0).expect_stdout("✓ no secret").expect_stdout("TEST_BEARER");
    std::fs::write(run.join("notes.txt"), format!("see {}", percent(SECRETS[0]))).unwrap();
    let found = check();
    found.expect_code(1).expect_stdout("notes.txt: the value of TEST_BEARER");
    expect_none(found.stdout.as_bytes(), "the finding itself");
}

/// Claim: a secret in what cannot be run is not told either, and a password in a URL is masked wherever it is shown.
#[test]
fn mistakes_do_not_tell() {
    let place = Place::new();
    let secret = "hunter2-hunter2";
    place.write(
        "broken.toml",
        format!("[workload.headers]\nAuthorization = \"Bearer {secret}\" x\n"),
    );
    place.write(
        "mistaken.toml",
        format!("[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://me:{secret}@127.0.0.1:9/\"\nraet = 1\n"),
    );
    let url = format!("http://me:{secret}@127.0.0.1:9/");
    let header = format!("X-Api-Key: {secret}");
    for arguments in [
        vec!["run", "broken.toml"],
        vec!["run", "mistaken.toml"],
        vec!["check", "mistaken.toml", "--explain"],
        vec!["run", &url],
        vec!["run", "http://127.0.0.1:9/", "-H", &header, "--rate", "x"],
        vec!["check", "http://127.0.0.1:9/", "-H", &header],
    ] {
        let said = place.assay(&arguments);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(!all.contains(secret) && all.len() > 20, "{arguments:?}\n{all}");
    }
    let said = place.assay(&["run", &url]);
    assert_eq!(said.stderr.matches("<redacted>").count(), 1, "{}", said.stderr);
    let unset =
        place.assay(&["run", "http://127.0.0.1:9/", "-H", "Authorization: Bearer ${NOT_SET_HERE}"]);
    unset.expect_code(2).expect_stderr("the environment variable `NOT_SET_HERE` is not set");
}
