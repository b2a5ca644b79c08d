//! `[disk]`: what is read, what holds by default, and what is refused where it stands.

use std::time::Duration;

use model::plan::{DiskPlan, DisksPlan, NamesRule, Plan};
use plan::{Input, Outside, Source, resolve};

fn read(disk: &str) -> Result<Plan, String> {
    let text = format!("[system]\nkind = 'echo'\n[load]\nrate = '10/s'\nduration = '1s'\n{disk}\n");
    let file = Source { name: "x.toml".into(), text };
    let outside = Outside { faults: testbed::fault_kinds(), ..Outside::default() };
    let resolved = resolve(&Input { file, outside, ..Input::default() });
    resolved.map(|resolved| resolved.plan).map_err(|rejected| rejected.to_string())
}

fn disks(text: &str) -> Option<DisksPlan> {
    read(text).unwrap_or_else(|why| panic!("{why}")).settings[0].disks.clone()
}

/// Claim: without [disk] no node has one; nodes alone is enough, and everything can be said; it survives plan.toml.
#[test]
fn what_is_read() {
    assert_eq!(disks(""), None);
    let plain = DiskPlan {
        size: 1 << 30,
        names: NamesRule::Journal,
        sync_delay: Duration::ZERO,
        read_delay: Duration::ZERO,
        write_delay: Duration::ZERO,
    };
    let nodes = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let right = DisksPlan { nodes: nodes(&["echo*"]), disk: plain };
    assert_eq!(disks("[disk]\nnodes = ['echo*']"), Some(right));
    let all = "[disk]\nnodes = ['a', 'b*']\nsize = '64MiB'\nnames = 'strict'\nsync_delay = '2ms'\n\
               read_delay = '1ms'\nwrite_delay = '10us'";
    let right = DisksPlan {
        nodes: nodes(&["a", "b*"]),
        disk: DiskPlan {
            size: 64 << 20,
            names: NamesRule::Strict,
            sync_delay: Duration::from_millis(2),
            read_delay: Duration::from_millis(1),
            write_delay: Duration::from_micros(10),
        },
    };
    let read = disks(all).unwrap();
    assert_eq!(read, right);
    assert!(read.means("a") && read.means("b7") && !read.means("a7"));
    let kept = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<DisksPlan>(&kept).unwrap(), right);
}

/// Claim: what cannot be meant is refused, with what to do.
#[test]
fn what_is_refused() {
    for (text, words) in [
        ("[disk]\nsize = '1MiB'", "`disk.nodes` is missing"),
        ("[disk]\nnodes = []", "gives a disk to no node"),
        ("[disk]\nnodes = ['a b']", "`a b` cannot be the name of a node"),
        ("[disk]\nnodes = ['a']\nsize = '1kB'", "64KiB to 64GiB"),
        ("[disk]\nnodes = ['a']\nsize = 'big'", "is not a size"),
        ("[disk]\nnodes = ['a']\nnames = 'loose'", "journal"),
        ("[disk]\nnodes = ['a']\nsync_delay = '2m'", "expected at most a minute"),
        ("[disk]\nnodes = ['a']\nsped = '1'", "`disk.sped`"),
    ] {
        let said = read(text).expect_err(text);
        assert!(said.contains(words), "{text}: {said}");
    }
}

/// Claim: a cut of the power says what it takes, all that was not synced unless it says otherwise; a bad disk says what is
/// bad; both need [disk].
#[test]
fn faults_of_disks() {
    let with_disk = "[disk]\nnodes = ['echo']\n[[fault]]\nat = '0s'\nfor = '1s'\n";
    let fault = |text: &str| {
        let plan = read(&format!("{with_disk}{text}")).unwrap_or_else(|why| panic!("{why}"));
        plan.settings[0].faults[0].clone()
    };
    let power = fault("power = 'echo'");
    assert_eq!((power.kind.as_str(), power.node(), power.word("loss")), ("power", "echo", None));
    assert_eq!(fault("power = 'echo'\nloss = 'tear'").word("loss"), Some("tear"));
    let bad = fault("disk = 'echo'\nsync_delay = '5ms'\nfull_at = '1MiB'\nwrite_errors = 10");
    assert_eq!(bad.duration("sync_delay"), Some(Duration::from_millis(5)));
    assert_eq!((bad.number("full_at"), bad.number("write_errors")), (Some(1 << 20), Some(10)));
    for (text, words) in [
        ("power = 'echo'\nloss = 'some'", "drop"),
        ("disk = 'echo'", "changes nothing on its disk"),
        ("disk = 'echo'\nsync_errors = 0", "must lie between 1"),
        ("power = 'echo'\nfull_at = '1MiB'", "belongs to disk, but this is power"),
    ] {
        let said = read(&format!("{with_disk}{text}")).expect_err(text);
        assert!(said.contains(words), "{text}: {said}");
    }
    let said = read("[[fault]]\nat = '0s'\nfor = '1s'\npower = 'echo'").unwrap_err();
    assert!(said.contains("a cut of the power needs [disk]"), "{said}");
    assert!(said.contains("add [disk] with nodes"), "{said}");
}
