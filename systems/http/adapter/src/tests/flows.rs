//! Flows against a peer that is a function from requests to answers: what is asked in which order, what an answer puts into
//! the next request, and every way in which a flow can be written wrongly.

use std::fs;

use model::Seed;
use sut::conformance::{Subject, session_conformance, system_conformance};
use sut::{Link, Mark, Marks, Role, Session, System as _, Transaction, Workload};

use super::conforming::peer;
use super::{built, system};
use crate::server::HttpSystem;
use crate::session::HttpSession;

const SERVER: &str = "http://127.0.0.1:8080/";

/// Lets one user go through his flow; `answer` gives the bytes for each request. Gives the requests and how it ended.
fn walked(system: &HttpSystem, answer: &mut dyn FnMut(&str) -> String) -> (Vec<String>, String) {
    let mut session = session(system);
    let mut source = system.workload(Seed(1), 0, 1);
    walked_by(&mut session, &mut *source, None, answer)
}

fn session(system: &HttpSystem) -> HttpSession {
    HttpSession::new(system.requests.clone(), system.rules.clone(), 1).walking(system.flows.clone())
}

fn walked_by(
    session: &mut HttpSession,
    source: &mut dyn Workload,
    client: Option<u32>,
    answer: &mut dyn FnMut(&str) -> String,
) -> (Vec<String>, String) {
    let (mut payload, mut marks, mut asked) = (Vec::new(), Marks::default(), Vec::new());
    let mut kind = source.next(0, client, &mut payload).kind;
    for id in 0..100 {
        let mut out = Vec::new();
        session.submit(&Transaction::new(id, kind, &payload), &mut out);
        let request = String::from_utf8(out).unwrap();
        let bytes = answer(&request);
        asked.push(request);
        marks.clear();
        session.receive(bytes.as_bytes(), &mut Vec::new(), &mut marks).unwrap();
        let [mark] = marks.list() else { panic!("one mark for {bytes}, not {:?}", marks.list()) };
        let said = match mark {
            Mark::Reached { code, .. } => code.to_string(),
            Mark::Ended { answer, .. } => format!("{} {}", answer.outcome, marks.text(answer)),
        };
        let Some((next, state)) = marks.follow_up(id) else { return (asked, said) };
        kind = next.kind;
        payload = state.to_vec();
    }
    panic!("a flow without end: {asked:?}");
}

fn line(request: &str) -> &str {
    request.lines().next().unwrap_or_default()
}

fn ok(body: &str) -> String {
    with_head("", body)
}

fn with_head(head: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

const LOGIN: &str = r#"{"headers":{"X-App":"a"},"values":{"key":"k-{{$user}}"},"step":[
    {"name":"log in","path":"/login","body":"{\"name\":\"{{key|json}}\"}","headers":{"Content-Type":"application/json"},
     "take":{"token":"json:/token","csrf":"header:x-csrf"}},
    {"name":"list","path":"/items?page={{$loop}}","headers":{"Authorization":"Bearer {{token}}"},"repeat":2,
     "take":{"id":"json:/items/0/id","more":{"from":"json:/more","else":"no"}}},
    {"name":"more","path":"/more","when":"{{more}} == yes"},
    {"name":"buy","method":"PUT","path":"/items/{{id}}","headers":{"X-CSRF":"{{csrf}}"},"expect":{"status":200}}]}"#;

/// Claim: what answers say stands in later requests, a step without its condition is left out, a loop is made as often as
/// written, cookies go where they belong, and each transaction has the kind of its step.
#[test]
fn a_user_goes_through() {
    let system = system(SERVER, LOGIN);
    let names = sut::Kind::names(&system.kinds());
    assert_eq!(names, ["log in", "list", "more", "buy"]);
    let (asked, said) = walked(&system, &mut |request| match line(request) {
        "POST /login HTTP/1.1" => {
            with_head("X-CSRF: c1\r\nSet-Cookie: sid=9\r\n", "{\"token\":\"t 1\"}")
        }
        list if list.starts_with("GET /items") => ok("{\"items\":[{\"id\":7}]}"),
        _ => ok(""),
    });
    let lines: Vec<&str> = asked.iter().map(|request| line(request)).collect();
    let expected = [
        "POST /login HTTP/1.1",
        "GET /items?page=1 HTTP/1.1",
        "GET /items?page=2 HTTP/1.1",
        "PUT /items/7 HTTP/1.1",
    ];
    assert_eq!((lines, said.as_str()), (expected.to_vec(), "200"));
    let agent = crate::requests::USER_AGENT;
    let own = format!("Host: 127.0.0.1:8080\r\nUser-Agent: {agent}\r\nAccept: */*\r\n");
    assert_eq!(
        asked[0],
        format!(
            "POST /login HTTP/1.1\r\n{own}X-App: a\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{{\"name\":\"k-0\"}}"
        )
    );
    assert_eq!(
        asked[1],
        format!(
            "GET /items?page=1 HTTP/1.1\r\n{own}Authorization: Bearer t 1\r\nX-App: a\r\nCookie: sid=9\r\n\r\n"
        )
    );
    assert!(asked[3].contains("X-CSRF: c1\r\n") && asked[3].ends_with("Content-Length: 0\r\n\r\n"));
    let (asked, _) = walked(&system, &mut |request| match line(request) {
        "POST /login HTTP/1.1" => with_head("X-CSRF: c1\r\n", "{\"token\":1}"),
        list if list.starts_with("GET /items") => ok("{\"items\":[{\"id\":7}],\"more\":\"yes\"}"),
        _ => ok(""),
    });
    assert_eq!((line(&asked[3]), asked.len()), ("GET /more HTTP/1.1", 5));
}

/// Claim: a step that fails ends its flow, and says why: by its status, by what is expected of it, by a value that is not there.
#[test]
fn failed_steps() {
    let system = system(SERVER, LOGIN);
    for (answer, expected) in [
        (
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            "rejected(bad_request) 401 Unauthorized",
        ),
        (
            "HTTP/1.1 200 OK\r\nX-CSRF: 1\r\nContent-Length: 2\r\n\r\n{}",
            "rejected(server) 200 OK: no value for `token` at json:/token: the answer has no value there",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"token\":1}",
            "rejected(server) 200 OK: no value for `csrf` at header:x-csrf: the answer has no value there",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
            "rejected(server) 200 OK: no value for `csrf` at header:x-csrf: the answer has no value there",
        ),
        (
            "HTTP/1.1 200 OK\r\nX-CSRF: 1\r\nContent-Length: 6\r\n\r\n<html>",
            "rejected(server) 200 OK: no value for `token` at json:/token: the body is not JSON",
        ),
    ] {
        let (asked, said) = walked(&system, &mut |_| answer.to_owned());
        assert_eq!((asked.len(), said.as_str()), (1, expected));
    }
}

/// Claim: redirects are followed as often as asked, by GET where the status says so, with their own kind; one that leads to
/// another server fails.
#[test]
fn redirects() {
    let workload = r#"{"redirects":2,"step":[{"name":"save","path":"/save","body":"x=1","take":{"s":"status"}},{"path":"/{{s}}"}]}"#;
    let system = system(SERVER, workload);
    let names = sut::Kind::names(&system.kinds());
    assert_eq!(names, ["save", "save (redirected)", "GET /{{s}}", "GET /{{s}} (redirected)"]);
    let moved = |to: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nSet-Cookie: a=1\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
        )
    };
    let (asked, said) = walked(&system, &mut |request| match line(request) {
        "POST /save HTTP/1.1" => moved("done/../ok"),
        "GET /ok HTTP/1.1" => moved("http://127.0.0.1:8080/end"),
        _ => ok(""),
    });
    let lines: Vec<&str> = asked.iter().map(|request| line(request)).collect();
    let expected =
        ["POST /save HTTP/1.1", "GET /ok HTTP/1.1", "GET /end HTTP/1.1", "GET /200 HTTP/1.1"];
    assert_eq!((lines, said.as_str()), (expected.to_vec(), "200"));
    assert!(asked[1].contains("Cookie: a=1\r\n") && asked[1].ends_with("\r\n\r\n"));
    let (asked, said) = walked(&system, &mut |_| moved("/again"));
    assert_eq!(
        (asked.len(), said.as_str()),
        (3, "rejected(server) 302 Found: redirected more than 2 times")
    );
    let (_, said) = walked(&system, &mut |_| moved("http://elsewhere/"));
    let expected = "rejected(server) 302 Found: redirected to another server, which is no target of this trial";
    assert_eq!(said, expected);
}

/// `{"t":7,"x":"xx…"}` with so many `x`, packed by gzip; by Node.js's brotli and by zstd 1.5, as their bytes were.
fn packed(coding: &str, length: usize) -> Vec<u8> {
    use std::io::Write as _;
    let hex = match (coding, length) {
        ("br", 10) => "8b0b807b2274223a372c2278223a2278787878787878787878227d03",
        ("br", _) => "5b7d1181df9160c74eb8710ceed4222c377b8b0eaf74fa52125c2eab031ce861e994840013",
        ("zstd", 10) => "28b52ffd0458ad0000787b2274223a372c2278223a2278227d010005f802878bb76f",
        ("zstd", _) => "28b52ffd0458bd0000787b2274223a372c2278223a2278227d01006c1139f8027dea1000",
        _ => {
            let json = format!("{{\"t\":7,\"x\":\"{}\"}}", "x".repeat(length));
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(json.as_bytes()).unwrap();
            return gzip.finish().unwrap();
        }
    };
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The end of a step whose answer has this body in this coding.
fn answered_with(system: &HttpSystem, coding: &str, body: &[u8]) -> String {
    let mut session = session(system);
    let (mut payload, mut out, mut marks) = (Vec::new(), Vec::new(), Marks::default());
    let kind = system.workload(Seed(1), 0, 1).next(0, None, &mut payload).kind;
    session.submit(&Transaction::new(0, kind, &payload), &mut out);
    assert!(String::from_utf8_lossy(&out).contains("Accept-Encoding: gzip, br, zstd\r\n"));
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = [head.as_bytes(), body].concat();
    session.receive(&answer, &mut Vec::new(), &mut marks).unwrap();
    match marks.list() {
        [Mark::Reached { code, .. }] => code.to_string(),
        [Mark::Ended { answer, .. }] => format!("{} {}", answer.outcome, marks.text(answer)),
        other => panic!("{other:?}"),
    }
}

const COMPRESSED: &str =
    r#"{"compression":true,"step":[{"path":"/","take":{"t":"json:/t"}},{"path":"/{{t}}"}]}"#;

/// Claim: a compressed answer is read as what it was before, up to what is kept of a body; a few bytes that would become many
/// are not unpacked beyond that.
#[test]
fn compressed_answers() {
    let system = system(SERVER, COMPRESSED);
    let too_long = "rejected(client) 200 OK: no value for `t` at json:/t: the body is longer than workload.body_kept_max";
    for coding in ["gzip", "br", "zstd", "GZIP"] {
        for (length, expected) in [(10, "200"), (70_000, too_long)] {
            let said = answered_with(&system, coding, &packed(coding, length));
            assert_eq!(said, expected, "{coding} {length}");
        }
    }
}

/// Claim: whatever bytes a server calls compressed, nothing panics and nothing hangs: the step has no value, or the right one.
#[test]
fn bytes_that_are_not_compressed() {
    let system = system(SERVER, COMPRESSED);
    let mut random = crate::flow::user::Random(1);
    for coding in ["gzip", "br", "zstd"] {
        let good = packed(coding, 70_000);
        for nth in 0..2_000 {
            let mut body = good.clone();
            if nth % 4 == 0 {
                body.truncate(usize::try_from(random.between(0, good.len() as u64)).unwrap());
            }
            for _ in 0..random.between(0, 4) {
                if let Some(last) = (body.len() as u64).checked_sub(1) {
                    let at = usize::try_from(random.between(0, last)).unwrap();
                    body[at] = u8::try_from(random.between(0, 255)).unwrap();
                }
            }
            let said = answered_with(&system, coding, &body);
            assert!(said == "200" || said.starts_with("rejected("), "{coding} {nth}: {said}");
        }
    }
}

/// Claim: each user has a line of the data, in turn or the same for a client, whatever worker he is of; with a seed the
/// same values are drawn again.
#[test]
fn users_have_lines() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("u.csv"), "name\nann\nbob\ncy\n").unwrap();
    let workload =
        r#"{"data":"u.csv","step":[{"path":"/{{name}}/{{$user}}/{{$iteration}}/{{$uuid}}"}]}"#;
    let deploy = format!("{{\"url\":\"{SERVER}\"}}");
    let system = built(&deploy, workload, folder.path()).unwrap();
    let targets = |worker, workers, clients: &[Option<u32>]| -> Vec<String> {
        let mut session = session(&system);
        let mut source = system.workload(Seed(7), worker, workers);
        let mut one = |client: &Option<u32>| {
            let (asked, _) = walked_by(&mut session, &mut *source, *client, &mut |_| ok(""));
            line(&asked[0])[4..].trim_end_matches(" HTTP/1.1").to_owned()
        };
        clients.iter().map(&mut one).collect()
    };
    let open = targets(1, 2, &[None; 3]);
    assert_eq!(
        open.iter().map(|it| &it[..8]).collect::<Vec<_>>(),
        ["/bob/1/1", "/ann/3/1", "/cy/5/1/"]
    );
    let closed = targets(0, 1, &[Some(4), Some(1), Some(4)]);
    assert_eq!(
        closed.iter().map(|it| &it[..8]).collect::<Vec<_>>(),
        ["/bob/4/1", "/bob/1/1", "/bob/4/2"]
    );
    assert_eq!(targets(1, 2, &[None; 3]), open);
    for of in [open, closed] {
        let ids = of.iter().filter_map(|it| it.rsplit('/').next());
        assert_eq!(
            ids.collect::<std::collections::BTreeSet<_>>().len(),
            3,
            "{of:?}: a new one each"
        );
    }
}

/// Claim: flows are begun by their weights, one that another runs is not begun by itself, and targets weigh beside them.
#[test]
fn weights() {
    let workload = r#"{"weights":{"buy":1,"look":3,"targets":4},"targets_text":"/t\n","step":[
        {"flow":"login","name":"in","path":"/in","take":{"t":"status"}},
        {"flow":"buy","run":"login"},{"flow":"buy","name":"pay","path":"/pay/{{t}}"},
        {"flow":"look","path":"/look"}]}"#;
    let system = system(SERVER, workload);
    assert_eq!(
        sut::Kind::names(&system.kinds()),
        ["GET /t", "buy: in", "buy: pay", "look: GET /look"]
    );
    let mut source = system.workload(Seed(3), 0, 1);
    let mut counts = [0; 4];
    for id in 0..8_000 {
        let mut payload = Vec::new();
        counts[source.next(id, None, &mut payload).kind as usize] += 1;
    }
    assert!((3_800..4_200).contains(&counts[0]) && (850..1_150).contains(&counts[1]), "{counts:?}");
    assert_eq!(counts[2], 0, "a later step is never begun");
    assert!((2_800..3_200).contains(&counts[3]), "{counts:?}");
}

/// Claim: sessions and systems with flows keep the contract.
#[test]
fn flows_conform() {
    let workload = r#"{"step":[{"path":"/a","take":{"s":"status"}},{"path":"/missing"},{"path":"/b/{{s}}","think":"1ms..3ms"}]}"#;
    let system = system(SERVER, workload);
    let to = sut::Deployment {
        endpoints: vec![("http".into(), "127.0.0.1:8080".parse().unwrap())],
        ..sut::Deployment::new(clock::Clock::start())
    };
    let made = || -> Box<dyn Session> {
        match system.connect(&to, Role::Submit, 0).unwrap() {
            Link::Wire(_, session) => session,
            _ => panic!("an HTTP server is reached over a wire"),
        }
    };
    let source = || -> Box<dyn Workload> { system.workload(Seed(1), 0, 1) };
    session_conformance(&Subject::new(&made, &peer, &source)).unwrap();
    system_conformance(&system).unwrap();
}

/// Claim: every mistake in a flow is said before anything is sent, in a sentence that says what to write.
#[test]
fn mistakes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("u.csv"), "name\nann,bob\n").unwrap();
    let deploy = format!("{{\"url\":\"{SERVER}\"}}");
    for (workload, expected) in [
        (
            r#"{"step":[{"path":"/{{token}}"},{"path":"/x","take":{"token":"body"}}]}"#,
            "`{{token}}` is missing: no earlier step takes it, and it is no column of workload.data; write take = { token = \"json:/token\" } in an earlier step, or give it in [workload.values]",
        ),
        (
            r#"{"step":[{"flow":"a","run":"b"},{"flow":"b","run":"a"}]}"#,
            "a recursive flow: a → b → a would never end",
        ),
        (r#"{"step":[{"run":"b"}]}"#, "`b` is not a flow of this workload"),
        (r#"{"data":"u.csv","step":[{"path":"/"}]}"#, "u.csv:2: expected 1 values, got 2"),
        (r#"{"data":"none.csv","step":[{"path":"/"}]}"#, "none.csv: there is no such file"),
        (r#"{"step":[{"path":"/","take":{"t":"jsn:/a"}}]}"#, "`jsn:/a` is no place of an answer; "),
        (
            r#"{"step":[{"path":"/","back_to":"x","times":2}]}"#,
            "`x` is no earlier step of this flow",
        ),
        (
            r#"{"step":[{"path":"/","back_to":"GET /"}]}"#,
            "a loop without an end: `times` is missing (add a line such as: times = 5)",
        ),
        (r#"{"step":[{"path":"/"},{"path":"/","when":"{{x}}"}]}"#, "`{{x}}` has no comparison; "),
        (r#"{"step":[{"path":"/","when":"1 == 1"}]}"#, "the first step of a flow is always made; "),
        (
            r#"{"step":[{"path":"items"}]}"#,
            "a step's path must begin with `/`, but is `items` (did you mean `/items`?)",
        ),
        (r#"{"step":[{"path":"http://other/x"}]}"#, "a step's path begins with `/`: "),
        (
            r#"{"step":[{"name":"x"}]}"#,
            "`workload.step.path` is missing (add a line such as: path = \"/login\")",
        ),
        (
            r#"{"step":[{"path":"/","think":"2s..1s"}]}"#,
            "`2s..1s` ends before it begins (write the shorter time first: \"200ms..800ms\")",
        ),
        (
            r#"{"step":[{"path":"/","bdoy":"x"}]}"#,
            "`workload.step.bdoy` is not a key that Assay knows (did you mean `body`?)",
        ),
        (
            r#"{"path":"/x","step":[{"path":"/"}]}"#,
            "`workload.path` says nothing beside [[workload.step]] (",
        ),
        (
            r#"{"pipeline":4,"step":[{"path":"/"}]}"#,
            "`workload.pipeline` and [[workload.step]] do not go together (leave `workload.pipeline` out)",
        ),
        (
            r#"{"weights":{"byu":1},"step":[{"flow":"buy","path":"/"}]}"#,
            "`byu` is not a flow of this workload (did you mean `buy`?)",
        ),
        (
            r#"{"redirects":3}"#,
            "`workload.redirects` is for flows, and there is no [[workload.step]] (",
        ),
    ] {
        let wrong = built(&deploy, workload, folder.path()).map(drop).unwrap_err();
        assert!(wrong.iter().any(|it| it.starts_with(expected)), "{workload}: {wrong:?}");
    }
}
