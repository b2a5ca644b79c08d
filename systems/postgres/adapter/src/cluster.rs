//! A database cluster of a trial's own: made in the folder of its node by `initdb`, given its tables by the server's
//! single-user mode (so that they are durable before the server of the trial is started, whatever that is told of
//! syncing), and served on loopback. PostgreSQL refuses to run as root, so all of it runs as an unprivileged user.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sut::{SutError, Testbed};
use testbed::{Account, FOLDER_AT, NodeSpec, free_port, install};

use crate::control::{Control, Login};

/// The node's name in the testbed, for faults by name.
pub(crate) const NODE: &str = "postgres";

/// The server's program, as the list of those that can be installed calls it.
const PROGRAM: &str = "postgres";

/// The server's own port, where it has an address of its own.
const PORT: u16 = 5432;

/// Who owns a cluster that root makes, unless the experiment says it.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// How long the server may take until it serves: recovery after a crash reads the log since the last checkpoint.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// Connections beside those of the load: probes, questions, and those that the server keeps for itself.
const CONNECTIONS_BESIDE: u32 = 20;

/// The server's own default.
const CONNECTIONS_MIN: u32 = 100;

/// Lines of a program's complaint that are shown.
const COMPLAINT_LINES: usize = 6;

/// A cluster as an experiment wants it.
pub(crate) struct Cluster {
    /// Folder of the programs.
    pub(crate) bin: Option<PathBuf>,
    /// Who it belongs to.
    pub(crate) account: Option<String>,
    /// Whether pages carry checksums; `None`: what this version does unless told otherwise.
    pub(crate) checksums: Option<bool>,
    /// The server's settings, by its own names.
    pub(crate) settings: BTreeMap<String, String>,
    /// Connections of the load.
    pub(crate) connections: u32,
}

impl Cluster {
    /// Makes the cluster with these tables, and starts its server. Gives its address and its folder.
    pub(crate) fn start(
        &self,
        tables: &[String],
        login: &Login,
        bed: &mut Testbed,
    ) -> Result<(SocketAddr, PathBuf), SutError> {
        let server = self.find()?;
        let account = self.account()?;
        // On a disk of its own, where the plan gives it one.
        let folder = bed.node_folder(NODE)?;
        let (host, port) = match bed.network_address(NODE)? {
            Some(own) => (own, PORT),
            None => (Ipv4Addr::LOCALHOST, free_port()?),
        };
        let address = SocketAddr::new(IpAddr::V4(host), port);
        // The account is lent the folder at another place, because those of a run are closed to it.
        let data = if account.is_some() { Path::new(FOLDER_AT) } else { &folder }.join("data");
        {
            let _inside = bed.enter_disks()?;
            self.make(&server, account.as_ref(), (&folder, &data), tables, login)?;
        }
        let node = NodeSpec::new(NODE, &server).args(self.arguments(&data, address));
        let node = node.in_own_namespace();
        bed.spawn(match account {
            Some(account) => node.as_account(account, &folder),
            None => node,
        })?;
        let clock = bed.clock();
        bed.wait_ready(NODE, || Control::is_serving(address, login, clock), READY_WITHIN)?;
        Ok((address, folder))
    }

    fn find(&self) -> Result<PathBuf, SutError> {
        let named = self.bin.as_ref().map(|bin| bin.join(PROGRAM)).filter(|path| path.is_file());
        // The programs of a version stand beside each other, wherever a link to one of them is.
        let found = if self.bin.is_some() { named } else { install::find(PROGRAM) };
        let found = found.map(|path| path.canonicalize().unwrap_or(path));
        found.ok_or_else(|| SutError::Missing {
            program: match &self.bin {
                Some(bin) => format!("{PROGRAM} in {}", bin.display()),
                None => PROGRAM.to_owned(),
            },
            hint: "run: assay doctor --install postgres, or name the folder of its programs with system.deploy.bin"
                .to_owned(),
        })
    }

    /// Who the cluster belongs to; `None`: who runs this program, who is not root.
    fn account(&self) -> Result<Option<Account>, SutError> {
        if !Account::can_be_chosen() {
            return match &self.account {
                None => Ok(None),
                Some(name) => Err(SutError::Deploy(format!(
                    "expected to run as root, which can start a server as `{name}`; remove system.deploy.user"
                ))),
            };
        }
        let wanted: Vec<&str> = match &self.account {
            Some(name) => vec![name],
            None => ACCOUNTS.to_vec(),
        };
        let found = wanted.iter().find_map(|name| Account::named(name));
        let found = found.filter(|account| !account.is_root());
        found.map(Some).ok_or_else(|| {
            SutError::Deploy(format!(
                "expected an unprivileged user {} on this host, got none; name one with system.deploy.user",
                wanted.join(" or ")
            ))
        })
    }

    fn make(
        &self,
        server: &Path,
        account: Option<&Account>,
        (folder, data): (&Path, &Path),
        tables: &[String],
        login: &Login,
    ) -> Result<(), SutError> {
        if let Some(Account { user, group }) = account {
            let owned = chown(folder, Some(*user), Some(*group)).and_then(|()| {
                std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
            });
            owned.map_err(|error| {
                SutError::Deploy(format!("giving {} to its user: {error}", folder.display()))
            })?;
        }
        let data = data.display().to_string();
        let mut arguments = vec!["-D", &data, "-U", &login.user, "--auth=trust"];
        arguments.extend(["--locale=C", "--encoding=UTF8", "--no-instructions"]);
        match self.checksums {
            Some(true) => arguments.push("--data-checksums"),
            Some(false) if self.major(server) >= 18 => arguments.push("--no-data-checksums"),
            _ => {}
        }
        run(&server.with_file_name("initdb"), &arguments, account, folder, "")?;
        let sql: String = tables.iter().flat_map(|line| [line, "\n"]).collect();
        run(server, &["--single", "-D", &data, &login.database], account, folder, &sql)
    }

    /// The number of the version, from `postgres (PostgreSQL) 15.18 (Debian …)`; 0: it does not say it.
    fn major(&self, server: &Path) -> u32 {
        let said = Command::new(server).arg("--version").output().map(|it| it.stdout);
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
        let words = said.split(|c: char| c.is_whitespace() || c == '.');
        words.filter_map(|word| word.parse().ok()).next().unwrap_or(0)
    }

    /// Of the server. What has to be as it is for a trial comes first, so that an experiment can say otherwise.
    fn arguments(&self, data: &Path, address: SocketAddr) -> Vec<String> {
        let connections = (self.connections + CONNECTIONS_BESIDE).max(CONNECTIONS_MIN);
        let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
        let own = [
            ("listen_addresses", address.ip().to_string()),
            ("port", address.port().to_string()),
            ("unix_socket_directories", String::new()),
            ("max_connections", connections.to_string()),
            // In the cluster's folder, which is removed with the trial; nothing is left in /dev/shm by a kill.
            ("dynamic_shared_memory_type", "mmap".to_owned()),
        ];
        let own = own.iter().map(|(name, value)| (*name, value));
        let asked = self.settings.iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in own.chain(asked) {
            arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        arguments
    }
}

/// Runs one of the programs to its end, as the cluster's user.
fn run(
    program: &Path,
    arguments: &[&str],
    account: Option<&Account>,
    folder: &Path,
    input: &str,
) -> Result<(), SutError> {
    let failed = |what: &str| {
        let program = program.display();
        SutError::Deploy(format!("{program} for {}: {what}", folder.display()))
    };
    let mut command = Command::new(program);
    // Messages in another language could not be looked up.
    command.args(arguments).current_dir("/").env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(account) = account {
        account.lend(&mut command, folder);
    }
    let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that has ended early says why itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.len().saturating_sub(COMPLAINT_LINES);
    Err(failed(&format!("{}: {}", output.status, lines[last..].join(" / "))))
}
