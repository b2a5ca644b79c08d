//! The guard: a shell that outlives us by a moment and kills what we could not.
//!
//! `PR_SET_PDEATHSIG` reaches a node but not what the node has started. The guard knows the process groups of
//! all nodes and reads from a pipe whose other end only we hold; when we are gone, whichever way, it reads end
//! of file, kills the groups, and ends. It must never be given a group whose id may have been reused: a group is
//! forgotten while its leader is still a zombie.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Pid;

/// Signals that a terminal sends to everybody must not end the guard before its work is done.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM
groups=
while read -r verb group; do
  case "$verb" in
  add) groups="$groups $group" ;;
  forget)
    rest=
    for known in $groups; do [ "$known" = "$group" ] || rest="$rest $known"; done
    groups=$rest ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"#;

/// The guard of one testbed.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Guard {
    pub(crate) fn start() -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "testbed-guard"])
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let orders = child.stdin.take();
        Ok(Self { child, orders })
    }

    pub(crate) fn add(&mut self, group: Pid) -> io::Result<()> {
        self.order("add", group)
    }

    pub(crate) fn forget(&mut self, group: Pid) -> io::Result<()> {
        self.order("forget", group)
    }

    fn order(&mut self, verb: &str, group: Pid) -> io::Result<()> {
        match &mut self.orders {
            Some(orders) => {
                orders.write_all(format!("{verb} {}\n", group.as_raw_nonzero()).as_bytes())
            }
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // It has read end of file and has nothing to wait for, so this takes a moment; its status tells nothing.
        let _ = self.child.wait();
    }
}
