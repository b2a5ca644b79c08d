//! The protocols of clouds, spoken with servers of others: two buckets of each hold one ledger. Google's is not among them:
//! fake-gcs-server 1.56.1 refuses an object that is put as its client library does (`invalid uploadType`).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use clock::Clock;
use testbed::{NodeSpec, Testbed, free_port, install};

use crate::harness::{self, Place, beside_others};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Secrets of this test: random enough to be found wherever they stood.
const S3_SECRET: &str = "n0b0dy-shall-see-this-s3-key";
const AZURE_KEY: &str = "bm9ib2R5LXNoYWxsLXNlZS10aGlzLWF6dXJlLWtleS4uLg==";

/// Servers: what `assay doctor` calls them, and whose protocol they speak.
const SERVERS: [(&str, &str); 2] = [("minio", "aws"), ("azurite", "azure")];

struct Clouds {
    // Before the place: nothing runs in it when that is removed.
    bed: Testbed,
    place: Place,
}

impl Clouds {
    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// Starts a server and waits until it takes connections.
    fn serve(&mut self, spec: NodeSpec, at: SocketAddr) {
        let name = spec.name.clone();
        self.bed.spawn(spec).unwrap();
        let is_there = || TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok();
        self.bed.wait_ready(&name, is_there, PATIENCE).unwrap();
    }

    /// Starts a service of the ledger; gives its ready line.
    fn service(&mut self, name: &str, more: &[&str]) -> BTreeMap<String, String> {
        let words = ["serve", name, "--parent-pipe"];
        let spec = NodeSpec::new(name, program()).args(words).args(more.iter().copied());
        self.bed.spawn(spec).unwrap();
        self.bed.ready_line(name, PATIENCE).unwrap()
    }

    /// Runs a command of the client.
    fn client(&self, words: &[&str]) -> Output {
        let (command, rest) = words.split_first().unwrap();
        let mut client = Command::new(program());
        client.arg(command).args(["--ledger", &self.text("ledger.toml")]).args(rest);
        client.stdin(Stdio::null()).output().unwrap()
    }
}

fn program() -> PathBuf {
    Path::new(harness::ASSAY).with_file_name("object-ledger")
}

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port().unwrap()).into()
}

/// Starts a server with two buckets; gives where its API is.
fn server(clouds: &mut Clouds, name: &str) -> String {
    let (path, at) = (install::find(name).unwrap(), local());
    let folder = clouds.at(&format!("{name}-data"));
    let spec = NodeSpec::new(name, path);
    if name == "minio" {
        // Each folder is a bucket.
        for bucket in ["one", "two"] {
            fs::create_dir_all(folder.join(bucket)).unwrap();
        }
        let spec = spec
            .args(["server", "--address", &at.to_string(), &folder.display().to_string()])
            .env("MINIO_ROOT_USER", "assay")
            .env("MINIO_ROOT_PASSWORD", S3_SECRET)
            .env("MINIO_BROWSER", "off");
        clouds.serve(spec, at);
        return format!("http://{at}");
    }
    fs::create_dir_all(&folder).unwrap();
    let spec = spec
        .args(["--blobHost", "127.0.0.1", "--blobPort", &at.port().to_string()])
        .args(["--location", &folder.display().to_string(), "--silent", "--skipApiVersionCheck"])
        .env("AZURITE_ACCOUNTS", format!("assay:{AZURE_KEY}"));
    clouds.serve(spec, at);
    let made = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/object_ledger/container.py"))
        .args([&format!("http://{at}/assay"), "assay", "one", "two"])
        .env("ACCOUNT_KEY", AZURE_KEY)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    format!("http://{at}/assay")
}

/// The ledger's file and, apart from it, the secrets. `servers` are providers with where their API is.
fn write_files(clouds: &Clouds, servers: &[(&str, String)], services: [&str; 5]) {
    let [queue, timestamp, sequencer, timestamp_key, sequencer_key] = services;
    let mut text = format!(
        "name = \"clouds\"\nqueue = \"{queue}\"\ntimestamp = \"{timestamp}\"\nsequencer = \"{sequencer}\"\n\
         credentials = \"secrets.toml\"\n[keys]\ntimestamp = \"{timestamp_key}\"\nsequencer = \"{sequencer_key}\"\n\
         [storage]\nrequired_piece_count = 2\n"
    );
    for (provider, endpoint) in servers {
        for bucket in ["one", "two"] {
            text += &format!(
                "[[bucket]]\nprovider = \"{provider}\"\nbucket = \"{bucket}\"\nendpoint = \"{endpoint}\"\ncredentials = \"{provider}\"\n"
            );
        }
    }
    fs::write(clouds.at("ledger.toml"), text).unwrap();
    let secrets = format!(
        "[aws]\nid = \"assay\"\nsecret = \"{S3_SECRET}\"\n[azure]\nid = \"assay\"\nsecret = \"{AZURE_KEY}\"\n"
    );
    fs::write(clouds.at("secrets.toml"), secrets).unwrap();
}

/// Claim: S3 and Azure Blob, two buckets each with servers of others, hold one ledger: what is accepted is verified strongly,
/// also with the server of one gone; and no secret stands in anything that is said. What is not installed is named.
#[test]
fn buckets_of_clouds() {
    if !super::is_there() {
        return;
    }
    let (there, missing): (Vec<_>, Vec<_>) =
        SERVERS.into_iter().partition(|(name, _)| install::find(name).is_some());
    for (name, _) in missing {
        harness::say(&format!("SKIPPED buckets of {name} (assay doctor --install {name})"));
    }
    if there.is_empty() {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let bed = Testbed::new(&place.path().join("nodes"), Clock::start());
    let mut clouds = Clouds { bed, place };
    let mut servers = Vec::new();
    for (name, provider) in &there {
        servers.push((*provider, server(&mut clouds, name)));
    }
    let data = |name: &str| format!("--data={}", clouds.text(name));
    let [queue, timestamp, sequencer] = ["queue", "timestamp", "sequencer"].map(data);
    let queue = clouds.service("queue", &[&queue]);
    let timestamp = clouds.service("timestamp", &[&timestamp]);
    let sequencer = clouds.service("sequencer", &[&sequencer]);
    let [queue, issuer, numbers] = [&queue, &timestamp, &sequencer].map(|it| &it["requests"][..]);
    write_files(&clouds, &servers, [queue, issuer, numbers, &timestamp["key"], &sequencer["key"]]);
    let file = format!("--ledger={}", clouds.text("ledger.toml"));
    clouds.service("pipeline", &[&file]);
    let mut said = Vec::new();
    let mut verified = |clouds: &Clouds, transaction: &str| {
        for words in [&["submit", transaction][..], &["verify", "--within=60s", transaction]] {
            let output = clouds.client(words);
            let text = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&text));
            said.extend(text);
        }
    };
    ["a", "b", "c"].iter().for_each(|transaction| verified(&clouds, transaction));
    if there.len() > 1 {
        clouds.bed.kill("azurite").unwrap();
        verified(&clouds, "d");
    }
    clouds.bed.stop_all(Duration::from_secs(10)).unwrap();
    for entry in fs::read_dir(clouds.at("nodes")).unwrap().flatten() {
        said.extend(fs::read(entry.path()).unwrap_or_default());
    }
    let said = String::from_utf8_lossy(&said);
    for secret in [S3_SECRET, AZURE_KEY] {
        assert!(!said.contains(secret), "a secret was said");
    }
    assert!(said.contains("verified number="), "{said}");
}
