//! A disk of the testbed's own under a node's folder: what is written there is durable when it was synced and not
//! before, so that cutting a node's power can be tried on any system, unmodified, and without pulling a plug.
//!
//! It is a file system in user space (`service.rs`, over the crate `fuser`), whose rules are in `tree.rs`,
//! `names.rs` and `content.rs`, mounted where only the trial sees it (`mounts.rs`). What it keeps it keeps in memory.
//! A cut of the power takes it from the kernel with all that the kernel had cached, drops what was not synced, and
//! mounts what is left.
//!
//! Bits of it can flip (`rot.rs`). It measures its own cost (`device.rs`). It must never show at the host, and nothing
//! of it outlives the trial: no mount, no thread, no file.

mod content;
mod device;
mod kernel;
mod mounts;
mod names;
mod pace;
mod rot;
mod service;
mod tree;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::facts::DiskFacts;
use model::plan::{DiskChange, DiskPlan, DisksPlan, PowerLoss as Loss};

use crate::TestbedError;
use crate::lateness::Lateness;
use crate::network::take_precedence;
use device::Device;
use mounts::Mounts;
use service::Service;

pub(crate) use kernel::leave_mounts;
pub use mounts::EnteredDisks;
pub use rot::Rotted;

/// How often a disk is tried before its node is started …
const TRIES: u32 = 100;
/// … with writes of this many bytes.
const TRY_BYTES: usize = 512;
/// How long the kernel is given to let go of a disk.
const UNMOUNT_WAIT_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What a cut of the power took from a node's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Bytes that had been written and were not synced, in sectors of 512, and are gone.
    pub lost_bytes: u64,
    /// The same, and they survived all the same.
    pub kept_bytes: u64,
    /// Names that had been created, renamed or removed, and are as before.
    pub lost_names: u64,
}

/// The disks of one trial.
#[derive(Debug)]
pub(crate) struct Disks {
    plan: DisksPlan,
    clock: Clock,
    seed: Seed,
    mounts: Mounts,
    disks: Mutex<Vec<Disk>>,
}

#[derive(Debug)]
struct Disk {
    node: String,
    folder: PathBuf,
    device: Arc<Device>,
    /// Answers the kernel. Absent: it is not mounted.
    thread: Option<JoinHandle<()>>,
    /// What a write and a sync take as a program sees it, before the load.
    round_trip: Lateness,
    /// Why it cannot be relied on; empty = it can.
    failed: String,
}

impl Disks {
    /// No disk yet, and all that it takes to make one.
    pub(crate) fn start(plan: &DisksPlan, clock: Clock, seed: Seed) -> Result<Self, TestbedError> {
        if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
            return Err(mounts::no_device(&error));
        }
        Ok(Self {
            plan: plan.clone(),
            clock,
            seed,
            mounts: Mounts::make()?,
            disks: Mutex::default(),
        })
    }

    /// Mounts the node's disk at its folder, if the plan gives it one and it has none yet.
    pub(crate) fn provide(&self, node: &str, folder: &Path) -> Result<(), TestbedError> {
        if self.plan.means(node) { self.make(node, folder, &self.plan.disk) } else { Ok(()) }
    }

    /// Mounts a disk at a node's folder, if it has none yet.
    pub(crate) fn make(
        &self,
        node: &str,
        folder: &Path,
        plan: &DiskPlan,
    ) -> Result<(), TestbedError> {
        let mut disks = self.disks();
        if disks.iter().any(|disk| disk.node == node) {
            return Ok(());
        }
        let device = Device::new(plan, self.clock, self.seed.split(node)).map_err(|e| host(&e))?;
        let mut disk = Disk {
            node: node.to_owned(),
            folder: folder.to_owned(),
            device: Arc::new(device),
            thread: None,
            round_trip: Lateness::new(),
            failed: String::new(),
        };
        self.mount(&mut disk)?;
        let tried = self.mounts.inside(|| round_trip(self.clock, folder));
        disk.device.begin();
        match tried {
            Ok(round_trip) => disk.round_trip = round_trip,
            Err(error) => {
                let what = format!("the disk of `{node}` was tried and does not work ({error})");
                disks.push(disk);
                return Err(TestbedError::Disk { what });
            }
        }
        disks.push(disk);
        Ok(())
    }

    /// Names of the nodes that have one, in the order made.
    pub(crate) fn nodes(&self) -> Vec<String> {
        self.disks().iter().map(|disk| disk.node.clone()).collect()
    }

    /// Whether this node has one.
    ///
    /// # Errors
    /// When it has none; the message says what to do.
    pub(crate) fn check(&self, node: &str) -> Result<(), TestbedError> {
        find(&mut self.disks(), node).map(|_| ())
    }

    /// The power of a disk goes: nothing of what it was given and has not synced will ever be durable.
    pub(crate) fn go_dark(&self, node: &str) -> Result<(), TestbedError> {
        find(&mut self.disks(), node).map(|disk| disk.device.go_dark())
    }

    /// Gives power back to a disk that lost it in vain.
    pub(crate) fn go_on(&self, node: &str) -> Result<(), TestbedError> {
        find(&mut self.disks(), node).map(|disk| disk.device.go_on())
    }

    /// Takes from a disk without power what was not durable, and gives it power again. The node's processes must have ended: whoever has files of it open loses them.
    pub(crate) fn cut(&self, node: &str, loss: Loss) -> Result<PowerCut, TestbedError> {
        let mut disks = self.disks();
        let disk = find(&mut disks, node)?;
        self.unmount(disk)?;
        let lost = disk.device.lose(loss);
        let mounted = self.mount(disk);
        if let Err(error) = &mounted {
            disk.failed = error.to_string();
        }
        mounted?;
        let (lost_bytes, kept_bytes, lost_names) = (lost.bytes, lost.kept_bytes, lost.names);
        Ok(PowerCut { lost_bytes, kept_bytes, lost_names })
    }

    /// Flips bits of what a node that is down has stored lately; which, the trial's seed and the fault say.
    pub(crate) fn rot(&self, node: &str, by: u32, bits: u64) -> Result<Rotted, TestbedError> {
        let (folder, device) = {
            let mut disks = self.disks();
            let disk = find(&mut disks, node)?;
            (disk.folder.clone(), Arc::clone(&disk.device))
        };
        let mut rng = self.seed.split(node).split_index("rot", by.into()).rng();
        // A fault of the disk is for the node, and not for what turns its bits.
        device.spare(true);
        let rotted = self.mounts.inside(|| rot::flip(&folder, bits, &mut rng));
        device.spare(false);
        rotted.map_err(|error| host(&error))
    }

    /// What is wrong with a disk from now on by this fault; `None`: nothing any more.
    pub(crate) fn change(
        &self,
        node: &str,
        by: u32,
        change: Option<DiskChange>,
    ) -> Result<(), TestbedError> {
        let mut disks = self.disks();
        find(&mut disks, node)?.device.set_change(by, change);
        Ok(())
    }

    /// Takes the calling thread to where the disks are.
    pub(crate) fn enter(&self) -> Result<EnteredDisks, TestbedError> {
        self.mounts.enter().map_err(|error| host(&error))
    }

    pub(crate) fn cpu(&self) -> Duration {
        self.disks().iter().map(|disk| disk.device.cpu()).sum()
    }

    pub(crate) fn report(&self) -> Vec<DiskFacts> {
        let facts = |disk: &Disk| {
            let has_ended = disk.thread.as_ref().is_none_or(JoinHandle::is_finished);
            let failed = match disk.failed.as_str() {
                "" if has_ended => "the thread that answers for it ended before the trial did",
                failed => failed,
            };
            DiskFacts {
                node: disk.node.clone(),
                round_trip_p50_ns: disk.round_trip.quantile(500),
                round_trip_p99_ns: disk.round_trip.quantile(990),
                failed: failed.to_owned(),
                ..disk.device.facts()
            }
        };
        self.disks().iter().map(facts).collect()
    }

    /// Takes all away. Nodes must have ended.
    pub(crate) fn close(&self) {
        for mut disk in std::mem::take(&mut *self.disks()) {
            // Nobody can take an error here; the namespace takes the mount with it in any case.
            let _ = self.unmount(&mut disk);
            disk.device.close();
        }
    }

    fn mount(&self, disk: &mut Disk) -> Result<(), TestbedError> {
        let kernel = self.mounts.mount(&disk.folder)?;
        let service = Service::new(Arc::clone(&disk.device));
        let config = fuser::Config::default();
        let session = fuser::Session::from_fd(service, kernel, fuser::SessionACL::All, config);
        let session = session.map_err(|error| host(&error))?;
        let thread = std::thread::Builder::new().name("testbed-disk".to_owned());
        let thread = thread.spawn(move || {
            // The thread that it starts to answer the kernel inherits this.
            take_precedence();
            // How it ends is seen by who unmounts it, or else reported.
            let _ = session.run();
        });
        disk.thread = Some(thread.map_err(|error| host(&error))?);
        Ok(())
    }

    fn unmount(&self, disk: &mut Disk) -> Result<(), TestbedError> {
        let Some(thread) = disk.thread.take() else { return Ok(()) };
        let unmounted = self.mounts.unmount(&disk.folder);
        let deadline = self.clock.now().plus(UNMOUNT_WAIT_MAX);
        while !thread.is_finished() && self.clock.now() < deadline {
            self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY));
        }
        if let Err(error) = unmounted.and_then(|()| is_so(thread.is_finished())) {
            disk.failed = format!("it could not be unmounted ({error})");
            let what = format!("the disk of `{}` could not be unmounted ({error})", disk.node);
            return Err(TestbedError::Disk { what });
        }
        // A panic there has been printed by the panic hook.
        let _ = thread.join();
        Ok(())
    }

    fn disks(&self) -> MutexGuard<'_, Vec<Disk>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(disks: &'a mut [Disk], node: &str) -> Result<&'a mut Disk, TestbedError> {
    disks.iter_mut().find(|disk| disk.node == node).ok_or_else(|| TestbedError::Disk {
        what: format!(
            "`{node}` has none: name it in [disk], and let its adapter keep its files in the testbed's folder for it"
        ),
    })
}

fn is_so(has_ended: bool) -> io::Result<()> {
    if has_ended { Ok(()) } else { Err(io::Error::other("the kernel does not let go of it")) }
}

/// What a small write and its sync take, as a program sees it. Leaves nothing behind.
fn round_trip(clock: Clock, folder: &Path) -> io::Result<Lateness> {
    let path = folder.join(".tried");
    let mut file = File::create_new(&path)?;
    let mut all = Lateness::new();
    for _ in 0..TRIES {
        let began = clock.now();
        file.write_all(&[1; TRY_BYTES])?;
        file.sync_data()?;
        all.add(u64::try_from(clock.now().ns_since(began)).unwrap_or(0));
    }
    let mut read = [0; TRY_BYTES];
    File::open(&path)?.read_exact_at(&mut read, 0)?;
    is_so(read == [1; TRY_BYTES])?;
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(all)
}

fn host(error: &io::Error) -> TestbedError {
    TestbedError::Disk { what: format!("the host refused it: {error}") }
}
