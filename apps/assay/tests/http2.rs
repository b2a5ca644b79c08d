//! HTTP/2 with a server of another make than nginx (fortio, which stands on Go's own `net/http`), by prior knowledge and by ALPN;
//! and with servers that do what they must not, with each driver.
#![expect(clippy::unwrap_used, reason = "the list of behaviours is shared with code that unwraps")]

use std::process::{Command, Stdio};

use crate::harness::{Place, Server, beside_others, hostile_http2, peers, say, trial};

#[path = "../../../systems/http/adapter/src/tests/http2_hostile_list.rs"]
mod list;

/// The test's own authority.
const TRUSTED: &str = "ca = \"cert.pem\"\nserver_name = \"localhost\"";

/// Claim: a Go server is loaded over HTTP/2, without TLS and with it (verified against the test's own authority), with many
/// requests and bodies on few connections, and says of each request that it came as HTTP/2; a wrong authority is refused by name.
#[test]
fn a_go_server() {
    let test = "http2::a_go_server";
    let _beside = beside_others();
    for with_tls in [false, true] {
        let (place, elsewhere) = (Place::new(), Place::new());
        let Some(program) = testbed::install::find("fortio") else {
            say(&format!("SKIPPED {test}: it takes fortio; assay doctor --install fortio gets it"));
            return;
        };
        if ![&place, &elsewhere]
            .iter()
            .all(|it| crate::nginx::certificate(test, it.path(), "CA:FALSE"))
        {
            return;
        }
        place.write("other.pem", std::fs::read(elsewhere.path().join("cert.pem")).unwrap());
        let address = Server::free_address();
        let mut command = Command::new(program);
        command.current_dir(place.path()).args(["server", "-http-port", &address.to_string()]);
        command.args(["-grpc-port", "disabled", "-redirect-port", "disabled"]);
        command.args(["-tcp-port", "disabled", "-udp-port", "disabled"]);
        if with_tls {
            command.args(["-cert", "cert.pem", "-key", "key.pem"]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server::start(&mut command, address);
        let scheme = if with_tls { "https" } else { "http" };
        let experiment = |more: &str| {
            // `/debug` says the request's first line, its headers and its body.
            format!(
                "name = \"go\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"{scheme}://{}/debug\"\nhttp_version = \"2\"\n{more}\n\
                 [workload]\nmethod = \"POST\"\nbody = 'this is {{{{$tx}}}}.'\n\
                 expect = {{ status = 200, contains = [\"POST /debug HTTP/2.0\", \"this is \"] }}\n\
                 [load]\nmodel = \"closed\"\nclients = 64\nconnections = 4\nduration = \"30s\"\nwarmup = \"0s\"\ntimeout = \"10s\"\n\
                 transactions_max = 3000\n",
                server.address
            )
        };
        let (said, document) = place.experiment(&experiment(if with_tls { TRUSTED } else { "" }));
        assert_eq!(trial(&document)["counts"]["committed"], 3_000, "{}", said.stderr);
        if with_tls {
            let refused = "is signed by an authority that this host does not trust";
            let (said, _) = place.experiment(&experiment(&TRUSTED.replace("cert", "other")));
            said.expect_code(1).expect_stderr(&format!("the certificate of localhost {refused}"));
        }
    }
}

/// Claim: of each behaviour of a hostile HTTP/2 server the built binary counts nothing as committed that was not earned, with
/// each driver, and it ends by itself.
#[test]
fn hostile_servers_with_each_driver() {
    let _beside = beside_others();
    let plays = (list::SETTINGS, b"/broken".as_slice());
    hostile_http2::each_with_both_drivers(
        list::behaviours(),
        plays,
        |address, driver, is_earned| {
            let place = Place::new();
            let text = format!(
                "name = \"hostile\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{address}/broken\"\nhttp_version = \"2\"\n\
             [workload]\npreflight = false\nstreams = 1\n\
             [load]\nrate = \"50/s\"\nduration = \"1s\"\nwarmup = \"0s\"\ntimeout = \"10s\"\nconnections = 2\n"
            );
            peers::loaded_by(driver, &place, &text, is_earned)
        },
    );
}
