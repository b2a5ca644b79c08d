//! Disks under nodes: what is left when the power is cut, what a disk that is slow, full or faulty looks like to a
//! program, and that nothing stays mounted. The programs are this very test binary and std::fs.
//!
//! It takes /dev/fuse and the right to mount: where that is missing each test says so by name.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

mod seen;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::fault::FaultPhase;
use model::plan::{DiskChange, DiskPlan, DisksPlan, FaultPlan, FaultValue, NamesRule, PowerLoss};
use testbed::{FaultRunner, FaultSetup, NodeSpec, Testbed};

use seen::{Running, Seen, short};

const PATIENCE: Duration = Duration::from_secs(20);
const MIB: u64 = 1 << 20;

fn disk() -> DiskPlan {
    DiskPlan {
        size: 64 * MIB,
        names: NamesRule::Journal,
        sync_delay: Duration::ZERO,
        read_delay: Duration::ZERO,
        write_delay: Duration::ZERO,
    }
}

struct Place {
    bed: Testbed,
    at: tempfile::TempDir,
}

/// A testbed whose nodes called `disk*` have a disk; `None`, said by name, where this process may not.
fn place(test: &str, disk: DiskPlan) -> Option<Place> {
    let at = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(at.path(), Clock::start());
    bed.set_seed(Seed(11));
    let plan = DisksPlan { nodes: vec!["disk*".to_owned()], disk };
    if let Err(error) = bed.with_disks(&plan) {
        let may = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
        assert!(!may, "root may: {error}");
        println!("SKIPPED disk tests: {test}: {error}");
        return None;
    }
    Some(Place { bed, at })
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    let deadline = clock.now().plus(PATIENCE);
    while !is_so() {
        assert!(clock.now() < deadline, "waited too long until {what}");
        clock.sleep_until(clock.now().plus(Duration::from_millis(2)));
    }
}

/// Whose list of mounts has a disk of ours below this folder, of all processes; `self` alone for this one's.
fn mounted(below: &Path, of: &str) -> bool {
    let list = fs::read_to_string(format!("/proc/{of}/mounts")).unwrap_or_default();
    let below = below.to_str().unwrap();
    list.lines().any(|line| line.starts_with("assay-disk ") && line.contains(below))
}

fn mounted_anywhere(below: &Path) -> bool {
    let names = fs::read_dir("/proc").unwrap().flatten();
    let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| name.parse::<u32>().is_ok() && mounted(below, &name))
}

/// The writer, where this binary is started as one: appends numbers to a file, and says each when it holds it for
/// done. With `sync` and `busy` it has synced it then; `busy` goes on at once.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os("DISK_TEST_FOLDER") else { return };
    let how = std::env::var("DISK_TEST_HOW").unwrap();
    let path = Path::new(&folder).join("numbers");
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let from = file.metadata().unwrap().len() / 8;
    println!("\nready found={from}");
    for number in from.. {
        file.write_all(&number.to_le_bytes()).unwrap();
        if how != "lazy" {
            file.sync_data().unwrap();
        }
        println!("done {number}");
        if how != "busy" {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn start_writer(bed: &mut Testbed, name: &str, how: &str) -> PathBuf {
    let folder = bed.node_folder(name).unwrap();
    let spec = NodeSpec::new(name, std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture"])
        .env("DISK_TEST_FOLDER", folder.to_str().unwrap())
        .env("DISK_TEST_HOW", how);
    bed.spawn(spec).unwrap();
    bed.ready_line(name, PATIENCE).unwrap();
    folder
}

fn said_done(at: &Path, name: &str) -> BTreeSet<u64> {
    let log = fs::read_to_string(at.join(format!("{name}.log"))).unwrap();
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| line.strip_prefix("done ")?.parse().ok()).collect()
}

fn held(folder: &Path) -> BTreeSet<u64> {
    let bytes = fs::read(folder.join("numbers")).unwrap_or_default();
    bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect()
}

/// Claim: of a writer that syncs nothing that it held for done is lost, whether it is killed or its power is cut; of
/// one that does not, a kill takes nothing and a cut of the power takes what it had said was done. The node that is
/// started again sees what survived and goes on from there.
#[test]
fn power_takes_what_was_not_synced() {
    for (how, loss) in [
        ("sync", None),
        ("lazy", None),
        ("sync", Some(PowerLoss::Drop)),
        ("lazy", Some(PowerLoss::Drop)),
        ("sync", Some(PowerLoss::Tear)),
    ] {
        let Some(mut place) = place("power_takes_what_was_not_synced", disk()) else { return };
        let folder = start_writer(&mut place.bed, "disk0", how);
        wait_until("it has written", || said_done(place.at.path(), "disk0").len() > 40);
        let control = place.bed.control();
        let cut = match loss {
            None => {
                control.kill("disk0").unwrap();
                None
            }
            Some(loss) => Some(control.cut_power("disk0", loss).unwrap()),
        };
        wait_until("it has ended", || control.ended("disk0").unwrap().is_some());
        let _inside = place.bed.enter_disks().unwrap();
        let done = said_done(place.at.path(), "disk0");
        let lost = done.difference(&held(&folder)).count();
        match (how, loss) {
            ("lazy", Some(_)) => {
                assert_eq!(lost, done.len(), "all of it");
                assert!(cut.unwrap().lost_bytes >= 512 && cut.unwrap().lost_names == 1, "{cut:?}");
            }
            _ => assert_eq!(lost, 0, "{how}, {loss:?}"),
        }
        // By its length: where a write that was not synced is torn, the file may have grown by nothing but zeros.
        let survived = fs::metadata(folder.join("numbers")).map_or(0, |facts| facts.len() / 8);
        control.start("disk0").unwrap();
        let said = place.bed.ready_line("disk0", PATIENCE).unwrap();
        assert_eq!(said["found"], survived.to_string());
        wait_until("it goes on", || said_done(place.at.path(), "disk0").len() > done.len());
        let facts = &place.bed.disk_report()[0];
        assert_eq!((facts.node.as_str(), facts.failed.as_str()), ("disk0", ""));
        assert_eq!(facts.power_losses, u64::from(loss.is_some()));
        assert!(facts.writes.calls > 40 && facts.bytes_written > 320, "{facts:?}");
        assert_eq!(facts.syncs.calls > 40, how == "sync", "{facts:?}");
        assert!(facts.all.own_max_ns > 0 && facts.round_trip_p50_ns > 0, "{facts:?}");
        assert!(facts.cpu_ns > 0 && place.bed.disk_cpu() > Duration::ZERO, "{facts:?}");
    }
}

/// Claim: a sync that waits when the power goes has not happened: of a writer that always has one open a cut takes what it has
/// not said yet, and nothing that it has.
#[test]
fn an_open_sync_has_not_happened() {
    let mut slow = disk();
    slow.sync_delay = Duration::from_millis(300);
    let Some(mut place) = place("an_open_sync_has_not_happened", slow) else { return };
    let folder = start_writer(&mut place.bed, "disk0", "busy");
    wait_until("it has written", || said_done(place.at.path(), "disk0").len() > 2);
    let control = place.bed.control();
    let cut = control.cut_power("disk0", PowerLoss::Drop).unwrap();
    assert!(cut.lost_bytes > 0 && control.ended("disk0").unwrap().is_some(), "{cut:?}");
    let _inside = place.bed.enter_disks().unwrap();
    assert!(said_done(place.at.path(), "disk0").is_subset(&held(&folder)));
}

/// Claim: the power can be cut while a sync waits for longer than a process is given to end: it has not happened.
#[test]
fn a_long_sync_does_not_hold_a_cut_up() {
    let Some(mut place) = place("a_long_sync_does_not_hold_a_cut_up", disk()) else { return };
    start_writer(&mut place.bed, "disk0", "busy");
    let control = place.bed.control();
    let slow = DiskChange { sync_delay: Some(Duration::from_secs(30)), ..DiskChange::default() };
    control.change_disk("disk0", 0, slow).unwrap();
    let mut said = usize::MAX;
    let clock = Clock::start();
    wait_until("it waits for a sync", || {
        let before = std::mem::replace(&mut said, said_done(place.at.path(), "disk0").len());
        clock.sleep_until(clock.now().plus(Duration::from_millis(50)));
        said == before
    });
    control.cut_power("disk0", PowerLoss::Drop).unwrap();
    control.mend_disk("disk0", 0).unwrap();
    let done = said_done(place.at.path(), "disk0").len();
    control.start("disk0").unwrap();
    wait_until("it goes on", || said_done(place.at.path(), "disk0").len() > done);
}

/// Claim: bits turn on a disk whose every read, write and sync fails the node, and the node is started again afterwards.
#[test]
fn rot_on_a_bad_disk() {
    let Some(mut place) = place("rot_on_a_bad_disk", disk()) else { return };
    let folder = place.bed.node_folder("disk0").unwrap();
    {
        let _inside = place.bed.enter_disks().unwrap();
        fs::write(folder.join("held"), vec![7; 10_000]).unwrap();
    }
    let node = place.bed.spawn(NodeSpec::new("disk0", "/bin/sleep").args(["300"])).unwrap();
    let control = place.bed.control();
    let bad = DiskChange {
        read_errors: Some(1),
        write_errors: Some(1),
        sync_errors: Some(1),
        sync_delay: Some(Duration::from_secs(3_600)),
        ..DiskChange::default()
    };
    control.change_disk("disk0", 7, bad).unwrap();
    let (clock, seen) = (place.bed.clock(), Seen::default());
    let rot = FaultPlan::new("rot", &["disk0"], Duration::ZERO, Duration::from_millis(100));
    let faults = vec![rot.with("bits", FaultValue::Count(3))];
    let (setup, start) = (FaultSetup { faults, ..FaultSetup::default() }, clock.now());
    let (of_runner, sink) = (place.bed.control(), seen.sink());
    let runner = FaultRunner::start(clock, setup, of_runner, move || Some(start), sink).unwrap();
    let running = Running { runner, seen };
    let is_over = || running.seen.events().iter().any(|event| event.phase != FaultPhase::Start);
    wait_until("the fault is over", is_over);
    assert_eq!(short(&running.finish()), ["fault_start rot disk0", "fault_end rot disk0"]);
    let again = place.bed.nodes().into_iter().find(|node| node.name == "disk0").unwrap();
    assert!(again.ended.is_empty() && again.pid != node.pid, "{again:?}");
    let _inside = place.bed.enter_disks().unwrap();
    assert!(fs::write(folder.join("other"), "x").is_err(), "for others it fails as before");
    control.mend_disk("disk0", 7).unwrap();
    let held = fs::read(folder.join("held")).unwrap();
    let turned: u32 = held.iter().map(|byte| (byte ^ 7).count_ones()).sum();
    assert!(turned > 0 && turned <= 3, "{turned}");
}

/// Claim: the disks are where the nodes and the threads that went there are, and nowhere else; they are gone with the
/// testbed; a node that the plan does not mean has a folder as any other.
#[test]
fn nobody_else_sees_them() {
    let Some(mut place) = place("nobody_else_sees_them", disk()) else { return };
    let below = place.at.path().to_owned();
    let folder = place.bed.node_folder("disk0").unwrap();
    let plain = place.bed.node_folder("other").unwrap();
    assert_eq!(place.bed.node_folder("disk0").unwrap(), folder);
    let node = place.bed.spawn(NodeSpec::new("disk0", "/bin/sleep").args(["300"])).unwrap();
    fs::write(plain.join("seen"), "").unwrap();
    let before = std::env::current_dir().unwrap();
    {
        let _inside = place.bed.enter_disks().unwrap();
        assert_eq!(std::env::current_dir().unwrap(), before);
        fs::write(folder.join("hidden"), "here").unwrap();
        let seen = std::thread::spawn({
            let folder = folder.clone();
            move || fs::read_to_string(folder.join("hidden")).unwrap()
        });
        assert_eq!(seen.join().unwrap(), "here", "a thread started inside is inside");
        assert!(plain.join("seen").exists());
    }
    assert_eq!(std::env::current_dir().unwrap(), before);
    assert!(!folder.join("hidden").exists() && !mounted(&below, "self"));
    assert!(mounted(&below, &node.pid.to_string()));
    assert!(
        Path::new(&format!("/proc/{}/root{}", node.pid, folder.display())).join("hidden").exists()
    );
    drop(place);
    assert!(!mounted_anywhere(&below));
}

/// Claim: when the process that owns the testbed is killed with SIGKILL while its nodes write, panics or exits,
/// nothing is mounted any more anywhere a moment later, and the folders can be removed.
#[test]
fn the_end_of_the_parent_leaves_nothing_mounted() {
    if let Some(folder) = std::env::var_os("DISK_TEST_PARENT") {
        be_the_parent(Path::new(&folder));
    }
    if place("the_end_of_the_parent_leaves_nothing_mounted", disk()).is_none() {
        return;
    }
    for way in ["kill", "abort", "exit"] {
        let at = tempfile::tempdir().unwrap();
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_end_of_the_parent_leaves_nothing_mounted", "--nocapture"])
            .env("DISK_TEST_PARENT", at.path())
            .env("DISK_TEST_WAY", way)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the writer is ready", || at.path().join("ready").exists());
        assert!(mounted_anywhere(at.path()) && !mounted(at.path(), "self"));
        match way {
            "kill" => parent.kill().unwrap(),
            _ => drop(parent.stdin.take()),
        }
        assert!(!parent.wait().unwrap().success());
        wait_until("nothing is mounted", || !mounted_anywhere(at.path()));
        at.close().unwrap();
    }
}

fn be_the_parent(at: &Path) -> ! {
    let mut bed = Testbed::new(at, Clock::start());
    bed.with_disks(&DisksPlan { nodes: vec!["*".to_owned()], disk: disk() }).unwrap();
    start_writer(&mut bed, "disk0", "sync");
    let _inside = bed.enter_disks().unwrap();
    fs::write(at.join("ready"), "").unwrap();
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    match std::env::var("DISK_TEST_WAY").unwrap().as_str() {
        "abort" => std::process::abort(),
        _ => std::process::exit(5),
    }
}

/// Claim: who may not mount is told what is missing and what to do.
#[test]
fn who_may_not_is_told() {
    if std::env::var_os("DISK_TEST_NOBODY").is_some() {
        let mut bed = Testbed::new(Path::new("/nonexistent"), Clock::start());
        let plan = DisksPlan { nodes: vec!["*".to_owned()], disk: disk() };
        println!("\nsaid {}", bed.with_disks(&plan).unwrap_err());
        return;
    }
    let nobody = 65_534;
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "who_may_not_is_told", "--nocapture"])
        .env("DISK_TEST_NOBODY", "1")
        .uid(nobody)
        .gid(nobody)
        .output();
    let Ok(run) = run else {
        println!("SKIPPED disk tests: who_may_not_is_told: no other user can be become here");
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(said.contains("said the disks of the plan: "), "{said}");
    let ways = ["user namespace", "modprobe fuse", "chmod 666 /dev/fuse"];
    assert!(ways.iter().any(|way| said.contains(way)), "{said}");
}

/// Claim: what programs do with files can be done: names, links, holes, open files without a name, long listings,
/// direct and synchronous writes; what the calls that sync make durable is durable, and sync(2) is not one of them.
#[test]
fn programs_find_a_file_system() {
    let Some(mut place) = place("programs_find_a_file_system", disk()) else { return };
    let at = place.bed.node_folder("disk0").unwrap();
    let _node = place.bed.spawn(NodeSpec::new("disk0", "/bin/sleep").args(["300"])).unwrap();
    let _inside = place.bed.enter_disks().unwrap();
    fs::create_dir_all(at.join("a/b/c")).unwrap();
    fs::write(at.join("a/b/c/file"), vec![7; 3_000_000]).unwrap();
    assert_eq!(fs::read(at.join("a/b/c/file")).unwrap(), vec![7; 3_000_000]);
    fs::rename(at.join("a/b"), at.join("moved")).unwrap();
    assert_eq!(fs::metadata(at.join("moved/c/file")).unwrap().len(), 3_000_000);
    fs::hard_link(at.join("moved/c/file"), at.join("second")).unwrap();
    assert_eq!(fs::metadata(at.join("second")).unwrap().nlink(), 2);
    std::os::unix::fs::symlink("moved/c/file", at.join("link")).unwrap();
    assert_eq!(fs::read_link(at.join("link")).unwrap(), Path::new("moved/c/file"));
    assert_eq!(fs::read(at.join("link")).unwrap().len(), 3_000_000);
    let mut open =
        File::options().create_new(true).read(true).write(true).open(at.join("open")).unwrap();
    open.write_all(b"before").unwrap();
    fs::remove_file(at.join("open")).unwrap();
    open.write_all_at(b"after", 100_000).unwrap();
    assert_eq!(open.metadata().unwrap().len(), 100_005);
    let mut bytes = [1; 6];
    open.read_exact_at(&mut bytes, 5_000).unwrap();
    assert_eq!(bytes, [0; 6]);
    let many = at.join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..2_000 {
        File::create(many.join(format!("a-name-of-some-length-{n}"))).unwrap();
    }
    assert_eq!(fs::read_dir(&many).unwrap().count(), 2_000);
    fs::remove_dir_all(&many).unwrap();
    assert!(!many.exists() && fs::metadata(at.join("nothing")).is_err());
    let with = |flags: i32, name: &str| {
        let file =
            OpenOptions::new().write(true).create(true).custom_flags(flags).open(at.join(name));
        file.unwrap()
    };
    const O_DSYNC: i32 = 0o10_000;
    let synchronous = with(O_DSYNC, "synchronous");
    synchronous.write_all_at(&[3; 5_000], 0).unwrap();
    fs::write(at.join("lazy"), "lost").unwrap();
    rustix::fs::sync();
    drop(open);
    place.bed.control().cut_power("disk0", PowerLoss::Drop).unwrap();
    assert_eq!(fs::read(at.join("synchronous")).unwrap(), [3; 5_000]);
    // Its name came before a sync of another file? No: after the last one.
    assert!(!at.join("lazy").exists());
    assert_eq!(
        fs::metadata(at.join("second")).unwrap().len(),
        0,
        "its name was, its bytes were not"
    );
}

/// Claim: a slow disk keeps each sync waiting and lets writes through meanwhile; a full one refuses (ENOSPC) until
/// there is room; a faulty one fails as often as it was told (EIO), and after it was mended does what it should.
#[test]
fn slow_full_and_faulty() {
    let Some(mut place) = place("slow_full_and_faulty", disk()) else { return };
    let at = place.bed.node_folder("disk0").unwrap();
    let control = place.bed.control();
    assert_eq!(control.nodes_with_disk(), ["disk0"]);
    let _inside = place.bed.enter_disks().unwrap();
    let clock = Clock::start();
    let mut file = File::create(at.join("file")).unwrap();
    let change = |change: DiskChange| control.change_disk("disk0", 0, change).unwrap();
    change(DiskChange { sync_delay: Some(Duration::from_millis(300)), ..DiskChange::default() });
    file.write_all(b"x").unwrap();
    let began = clock.now();
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| file.sync_all().unwrap());
        while !syncing.is_finished() {
            fs::write(at.join("beside"), "y").unwrap();
        }
    });
    assert!(clock.now().saturating_since(began) >= Duration::from_millis(300));
    assert!(place.bed.disk_report()[0].writes.calls > 5, "others are let through");
    change(DiskChange { full_at: Some(MIB), ..DiskChange::default() });
    let full = fs::write(at.join("big"), vec![0; 2 << 20]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    file.write_all_at(b"z", 0).unwrap();
    change(DiskChange::default());
    fs::write(at.join("big"), vec![0; 2 << 20]).unwrap();
    change(DiskChange { sync_errors: Some(1), write_errors: Some(3), ..DiskChange::default() });
    let failed = |result: io::Result<()>| u64::from(result.is_err());
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(5));
    let writes: u64 = (0..300).map(|n| failed(file.write_all_at(b"w", n))).sum();
    assert!((50..150).contains(&writes), "{writes} of 300");
    change(DiskChange::default());
    file.sync_all().unwrap();
    // Two at once, the first of which ends first: what only it said is over, what both said is the other's.
    change(DiskChange { full_at: Some(0), write_errors: Some(1), ..DiskChange::default() });
    let other = DiskChange { write_errors: Some(1_000_000_000), ..DiskChange::default() };
    control.change_disk("disk0", 1, other).unwrap();
    assert_eq!(fs::write(at.join("more"), "x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    control.mend_disk("disk0", 0).unwrap();
    fs::write(at.join("more"), "x").unwrap();
    let facts = &place.bed.disk_report()[0];
    assert_eq!((facts.syncs.errors, facts.writes.errors), (1, writes));
    assert!(facts.refused_full > 0 && facts.syncs.own_p99_ns < 300_000_000, "{facts:?}");
    let error = control.mend_disk("disk1", 0).unwrap_err().to_string();
    assert!(error.contains("`disk1` has none: name it in [disk]"), "{error}");
}

/// Claim: a read that reaches the disk fails as told, and one that the kernel's cache answers does not.
#[test]
fn faulty_reads() {
    let Some(mut place) = place("faulty_reads", disk()) else { return };
    let at = place.bed.node_folder("disk0").unwrap();
    place.bed.spawn(NodeSpec::new("disk0", "/bin/sleep").args(["300"])).unwrap();
    let control = place.bed.control();
    let _inside = place.bed.enter_disks().unwrap();
    let mut file = File::create(at.join("file")).unwrap();
    file.write_all(&[1; 4_096]).unwrap();
    file.sync_all().unwrap();
    File::open(&at).unwrap().sync_all().unwrap();
    let change = DiskChange { read_errors: Some(1), ..DiskChange::default() };
    control.change_disk("disk0", 3, change).unwrap();
    let mut bytes = Vec::new();
    File::open(at.join("file")).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, [1; 4_096], "from the cache");
    control.cut_power("disk0", PowerLoss::Drop).unwrap();
    let error = File::open(at.join("file")).unwrap().read_to_end(&mut bytes).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    control.mend_disk("disk0", 3).unwrap();
    assert_eq!(fs::read(at.join("file")).unwrap(), [1; 4_096]);
}
