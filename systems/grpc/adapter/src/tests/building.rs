//! Mistakes in an experiment, each with its sentence; nothing is sent for them.

use super::{SERVER, built, folder};

fn mistakes(deploy: &str, workload: &str) -> Vec<String> {
    let folder = folder();
    std::fs::write(
        folder.path().join("broken.proto"),
        "syntax = \"proto3\";\nmessage A { string id = ; }\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("ids.csv"), "id,count\na,1\nb,many\n").unwrap();
    built(deploy, workload, folder.path()).map(|_| ()).unwrap_err()
}

/// Claim: each mistake is told in one sentence, with its file and line where it stands in another file.
#[test]
fn mistakes_are_told() {
    let shop = |more: &str| format!("{{\"proto\":\"shop.proto\",{more}}}");
    let get = |more: &str| shop(&format!("\"method\":\"shop.v1.Orders/Get\"{more}"));
    for (workload, expected) in [
        (
            "{}".to_owned(),
            "`workload.method` is missing (add a line such as: method = \"pkg.Service/Method\")",
        ),
        (
            get(r#","proto2":1"#),
            "`workload.proto2` is not a key that Assay knows (did you mean `proto`?)",
        ),
        (r#"{"method":"a.B/C","proto":"none.proto"}"#.to_owned(), "none.proto"),
        (
            r#"{"method":"a.B/C","proto":"broken.proto"}"#.to_owned(),
            "broken.proto:2:25: expected an integer, but found ';'",
        ),
        (
            r#"{"method":"a.B/C","import":"x"}"#.to_owned(),
            "`workload.import` says nothing without `workload.proto` (name the files: proto = \"service.proto\")",
        ),
        (shop(r#""method":"Get""#), "expected a method such as pkg.Service/Method, got `Get`"),
        (
            shop(r#""method":"shop.v1.Order/Get""#),
            "there is no service `shop.v1.Order`; did you mean `shop.v1.Orders`?",
        ),
        (
            shop(r#""method":"shop.v1.Orders/Gett""#),
            "the service shop.v1.Orders has no method `Gett`; did you mean `Get`?",
        ),
        (
            shop(r#""method":"shop.v1.Orders.Upload""#),
            "shop.v1.Orders/Upload takes a stream of requests; unary calls and server streams can be loaded",
        ),
        (
            get(r#","message":"{\"idd\":1}""#),
            "the JSON does not fit the message shop.v1.GetRequest: unrecognized field name 'idd' at line 1 column 6",
        ),
        (
            get(r#","message":"{\"id\"""#),
            "the JSON does not fit the message shop.v1.GetRequest: EOF while parsing an object at line 1 column 5",
        ),
        (
            get(r#","message":"{\"id\":\"{{$now}}\"}""#),
            "`{{$now}}` is not a value; there are $user, $iteration, $loop, $tx, $time, $uuid, $random:LOW:HIGH",
        ),
        (
            get(r#","message":"{\"id\":\"{{$time}}\"}""#),
            "`{{$time}}` is not known when a message of gRPC is made, ahead of its time",
        ),
        (
            get(r#","message":{"id":1}"#),
            "expected JSON in quotes, such as message = '{\"id\": \"7\"}'",
        ),
        (
            get(r#","message":"{\"id\":\"${NO_SUCH_VARIABLE_OF_TESTS}\"}""#),
            "NO_SUCH_VARIABLE_OF_TESTS",
        ),
        (get(r#","data":"ids.csv","message":"{\"count\":{{count}}}""#), "line 2 of the data"),
        (
            get(r#","status":{"NOTFOUND":"committed"}"#),
            "`NOTFOUND` is not a status of gRPC; did you mean `NOT_FOUND`?",
        ),
        (
            get(r#","status":{"OK":"fine"}"#),
            "expected an outcome for `workload.status.OK`, got `fine`; it is one of committed, bad_request, conflict, expired, limited, overloaded, server",
        ),
        (get(r#","expect":{"status":"ok"}"#), "`ok` is not a status of gRPC; did you mean `OK`?"),
        (get(r#","expect":{"length":3}"#), "`workload.expect.length` is for HTTP (leave it out)"),
        (
            get(r#","metadata":{"grpc-timeout":"1S"}"#),
            "`grpc-timeout` is gRPC's own and cannot be metadata (write deadline = \"500ms\")",
        ),
        (
            shop(r#""call":[{"method":"shop.v1.Orders/Get"},{"method":"shop.v1.Orders/Get"}]"#),
            "two calls are called `shop.v1.Orders/Get` (give one of them a name = \"…\")",
        ),
        (
            get(r#","call":[{"method":"shop.v1.Orders/Get"}]"#),
            "`workload.method` says nothing beside [[workload.call]] (write it into a call)",
        ),
    ] {
        let found = mistakes(&format!("{{\"url\":\"{SERVER}\"}}"), &workload);
        assert_eq!(found.len(), 1, "{workload}: {found:?}");
        assert!(found[0].contains(expected), "{workload}: {found:?}");
    }
    for (deploy, expected) in [
        ("{}", "`system.deploy.url` is missing (add a line such as: url = \"grpc://HOST:PORT\")"),
        (r#"{"url":"http://h:1"}"#, "expected a URL of grpc:// or grpcs://, got one of `http://`"),
        (r#"{"url":"h:1"}"#, "`h:1` is not a URL; did you mean `grpc://h:1`?"),
        (
            r#"{"url":"grpc://h:1","insecure":true}"#,
            "`ca`, `server_name` and `insecure` of `system.deploy` are for grpcs://, but the server is grpc://",
        ),
    ] {
        let found = mistakes(deploy, &get(""));
        assert_eq!(found.len(), 1, "{deploy}: {found:?}");
        assert!(found[0].contains(expected), "{deploy}: {found:?}");
    }
}

/// Claim: a call may be named by the URL alone, and several have their own weights and names.
#[test]
fn calls() {
    let folder = folder();
    let deploy = format!("{{\"url\":\"{SERVER}/shop.v1.Orders/Get\"}}");
    let one = built(&deploy, "{}", folder.path()).unwrap();
    assert_eq!(sut::Kind::names(&sut::System::kinds(&one)), ["shop.v1.Orders/Get"]);
    let several = super::system(
        r#""call":[{"method":"shop.v1.Orders/Get","weight":3},{"method":"/shop.v1.Orders/Get","name":"again"},{"method":"shop.v1.Orders/Watch"}]"#,
    );
    let names = ["shop.v1.Orders/Get", "again", "shop.v1.Orders/Watch"];
    assert_eq!(sut::Kind::names(&sut::System::kinds(&several)), names);
    let mut source = sut::System::workload(&several, model::Seed(7), 0, 1);
    let mut counts = [0; 3];
    (0..5_000).for_each(|tx| {
        let made = source.next(tx, None, &mut Vec::new());
        counts[made.kind as usize] += 1;
    });
    assert!(
        (2_800..3_200).contains(&counts[0]) && counts[1] > 800 && counts[2] > 800,
        "{counts:?}"
    );
}
