//! A testbed with a network, for its tests: nodes that only sleep, and a way for a thread of the test to be where
//! they are.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Clock;
use model::plan::{LinkPlan, LinksPlan, Through};
use rustix::net::sockopt;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use testbed::{NodeSpec, Testbed};

/// A link that does nothing to packets.
pub fn link() -> LinkPlan {
    LinkPlan::default()
}

/// This between nodes, and nothing on the instrument's own links.
pub fn plan(between: LinkPlan) -> LinksPlan {
    LinksPlan { through: Through::Switch, between, client: link(), pairs: Vec::new() }
}

/// The testbed, with what is known of its nodes.
pub struct Place {
    pub bed: Testbed,
    addresses: BTreeMap<String, Ipv4Addr>,
    pids: BTreeMap<String, u32>,
    _folder: tempfile::TempDir,
}

impl Place {
    /// Starts the network and the nodes; `None`, said by name, where this process may not.
    pub fn make(test: &str, plan: &LinksPlan, nodes: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut bed = Testbed::new(folder.path(), Clock::start());
        if let Err(error) = bed.with_network(plan) {
            assert!(!rustix::process::geteuid().is_root(), "root may: {error}");
            println!("SKIPPED network tests: {test}: {error}");
            return None;
        }
        let (mut addresses, mut pids) = (BTreeMap::new(), BTreeMap::new());
        for name in nodes {
            let address = bed.network_address(name).unwrap().unwrap();
            assert_eq!(bed.network_address(name).unwrap(), Some(address), "asked again");
            let node = bed.spawn(NodeSpec::new(*name, "/bin/sleep").args(["300"])).unwrap();
            addresses.insert((*name).to_owned(), address);
            pids.insert((*name).to_owned(), node.pid);
        }
        Some(Self { bed, addresses, pids, _folder: folder })
    }

    pub fn address(&self, name: &str) -> Ipv4Addr {
        self.addresses[name]
    }

    /// What the kernel calls a node's namespace.
    pub fn namespace(&self, name: &str) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/ns/net", self.pids[name])).unwrap()
    }

    /// Does `work` on a thread that is where the node is, or where the instrument is.
    pub fn inside<T: Send>(&self, name: &str, work: impl FnOnce() -> T + Send) -> T {
        if name == "client" {
            let _inside = self.bed.enter_network().unwrap();
            return work();
        }
        let namespace = File::open(format!("/proc/{}/ns/net", self.pids[name])).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), network).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// A socket for datagrams there, with room for all that a test sends: what a busy machine leaves unread must not
    /// look lost. Waiting on it ends after five seconds.
    pub fn socket(&self, name: &str, port: u16) -> UdpSocket {
        let socket = self.inside(name, || UdpSocket::bind(("0.0.0.0", port)).unwrap());
        sockopt::set_socket_recv_buffer_size_force(&socket, 8 << 20).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }
}

/// Whether some process or thread of this machine is in a namespace.
pub fn owns_namespace(namespace: &Path) -> bool {
    let tasks = |process: &std::fs::DirEntry| std::fs::read_dir(process.path().join("task"));
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut tasks = processes.filter_map(|process| tasks(&process).ok()).flatten().flatten();
    tasks.any(|task| {
        std::fs::read_link(task.path().join("ns/net")).is_ok_and(|link| link == namespace)
    })
}

/// What this process's descriptors are called.
pub fn own_descriptors() -> Vec<PathBuf> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
}
