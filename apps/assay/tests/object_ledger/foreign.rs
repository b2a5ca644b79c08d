//! An experiment whose buckets are those of a server of others: versitygw, which no code here was written beside.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use clock::Clock;
use testbed::{NodeSpec, Testbed, free_port, install};

use super::counts;
use crate::harness::{self, Place, beside_others, trial};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const SECRET: &str = "no-secret-of-anybody-3f1c";

const EXPERIMENT: &str = r#"
name = "foreign"
[system]
kind = "object-ledger"
[system.deploy]
ledger  = "stores.toml"
watcher = false
[load]
rate        = "50/s"
until       = "accepted"
connections = 2
warmup      = "0s"
duration    = "2s"
timeout     = "60s"
[probe]
interval    = "250ms"
until       = "verified"
connections = 8
"#;

/// Claim: an experiment names stores of its own and is audited from them: all that was acknowledged is there once, and the
/// probe verified it; with another secret the stores refuse it, nothing verifies, the run fails, and the secret is nowhere.
#[test]
fn stores_of_others() {
    let Some(program) = install::find("versitygw").filter(|_| super::is_there()) else {
        harness::say("SKIPPED an experiment on versitygw (assay doctor --install versitygw)");
        return;
    };
    let _beside = beside_others();
    let place = Place::new();
    let folder = place.path().join("s3");
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()));
    let mut stores = String::from("credentials = \"secrets.toml\"\n");
    for bucket in 0..6 {
        // Each folder is a bucket.
        std::fs::create_dir_all(folder.join(format!("bucket-{bucket}"))).unwrap();
        let _ = write!(
            stores,
            "[[bucket]]\nprovider = \"aws\"\nbucket = \"bucket-{bucket}\"\nendpoint = \"http://{at}\"\ncredentials = \"versity\"\n"
        );
    }
    let mut bed = Testbed::new(&place.path().join("servers"), Clock::start());
    let spec = NodeSpec::new("versitygw", program)
        .args(["--port", &at.to_string(), "posix", &folder.display().to_string()])
        .env("ROOT_ACCESS_KEY", "assay")
        .env("ROOT_SECRET_KEY", SECRET);
    bed.spawn(spec).unwrap();
    let is_there = || TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok();
    bed.wait_ready("versitygw", is_there, PATIENCE).unwrap();
    place.write("stores.toml", stores);
    let secret = |secret: &str| {
        place.write("secrets.toml", format!("[versity]\nid = \"assay\"\nsecret = \"{secret}\"\n"));
    };
    secret(SECRET);
    let (said, document) = place.experiment(EXPERIMENT);
    assert!([0, 97].contains(&said.code), "{}", said.stderr);
    super::expect_all_verified(&document);
    assert!(!format!("{}{}{document}", said.stdout, said.stderr).contains(SECRET));

    secret("another");
    let short =
        EXPERIMENT.replace("watcher = false", "watcher = false\nsettle = \"2s\"\ngive_up = \"3s\"");
    let (said, document) = place.experiment(&short);
    let wrong = trial(&document);
    assert_ne!(said.code, 0, "{}", said.stdout);
    assert_eq!(counts(&wrong["counts"])[1], 0, "{}", wrong["counts"]);
    bed.stop_all(Duration::from_secs(10)).unwrap();
}
