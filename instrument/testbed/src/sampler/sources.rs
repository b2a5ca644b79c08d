//! Where samples come from: files of /proc and /sys that stay open between rounds.
//!
//! An open /proc file keeps to its process: when the process is gone it fails, and a new process with the same
//! id is never mistaken for it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use clock::CpuTime;

use super::parse::{
    HostTicks, ProcessStat, counter, cpu_mhz, host_ticks, load_average, mean,
    memory_available_bytes, process_stat,
};

/// The most processes that are followed for one node.
const PROCESSES_MAX: usize = 256;
/// The most that is read of one file; /proc/stat of a host with hundreds of processors has some 100 KiB.
const FILE_BYTES_MAX: usize = 1 << 20;
/// /proc/cpuinfo interrupts every processor to ask for its rate, so it is read once in this many rounds.
const CPUINFO_EVERY: u32 = 10;

/// Takes a metric's name and value.
type Keep<'a> = &'a mut dyn FnMut(&'static str, f64);

/// A file that is read again and again.
#[derive(Debug)]
struct Reread {
    file: File,
    buffer: Vec<u8>,
}

impl Reread {
    fn open(path: &str) -> Option<Self> {
        Some(Self { file: File::open(path).ok()?, buffer: vec![0; 1024] })
    }

    /// The content now; `None` when it cannot be read (any more).
    fn text(&mut self) -> Option<&str> {
        let mut end = 0;
        loop {
            let count =
                self.file.read_at(&mut self.buffer[end..], u64::try_from(end).ok()?).ok()?;
            if count == 0 {
                break;
            }
            end += count;
            if end == self.buffer.len() {
                if end >= FILE_BYTES_MAX {
                    break;
                }
                self.buffer.resize(end * 2, 0);
            }
        }
        std::str::from_utf8(&self.buffer[..end]).ok().filter(|text| !text.is_empty())
    }
}

/// This process.
#[derive(Debug)]
pub(super) struct OwnSource {
    stat: Option<Reread>,
    cpu: CpuTime,
    page_bytes: f64,
}

impl OwnSource {
    pub(super) fn open() -> Self {
        let stat = Reread::open(&format!("/proc/{}/stat", std::process::id()));
        Self { stat, cpu: CpuTime::of_this_process(), page_bytes: page_bytes() }
    }

    pub(super) fn read(&mut self, seconds: f64, keep: Keep<'_>) {
        let cpu = CpuTime::of_this_process();
        keep("cpu_cores", cpu.since(self.cpu).as_secs_f64() / seconds);
        self.cpu = cpu;
        if let Some(stat) = self.stat.as_mut().and_then(Reread::text).and_then(process_stat) {
            keep("rss_bytes", float(stat.rss_pages) * self.page_bytes);
            keep("threads", float(stat.threads));
        }
    }
}

/// A node: a process and those below it.
#[derive(Debug)]
pub(super) struct TreeSource {
    pub(super) name: String,
    /// The node first.
    processes: Vec<(u32, Reread)>,
    ticks: u64,
    ticks_per_second: f64,
    page_bytes: f64,
}

impl TreeSource {
    /// `None` if there is no such process.
    pub(super) fn open(name: &str, pid: u32) -> Option<Self> {
        let mut tree = Self {
            name: name.to_owned(),
            processes: vec![(pid, open_stat(pid)?)],
            ticks: 0,
            ticks_per_second: float(rustix::param::clock_ticks_per_second()),
            page_bytes: page_bytes(),
        };
        tree.look_for_children();
        tree.ticks = tree.stats()?.iter().map(|stat| stat.ticks).sum();
        Some(tree)
    }

    /// Gives whether the node is still there.
    pub(super) fn read(&mut self, seconds: f64, keep: Keep<'_>) -> bool {
        let Some(stats) = self.stats() else { return false };
        // A child that has ended and was waited for has moved its ticks to its parent, so the sum goes on. One
        // that left for another parent takes them along; then the difference is unknown, and shown as none.
        let ticks: u64 = stats.iter().map(|stat| stat.ticks).sum();
        let used = float(ticks.saturating_sub(self.ticks)) / self.ticks_per_second;
        self.ticks = ticks;
        keep("cpu_cores", used / seconds);
        keep(
            "rss_bytes",
            stats.iter().map(|stat| float(stat.rss_pages)).sum::<f64>() * self.page_bytes,
        );
        true
    }

    /// Finds processes below those that are known.
    pub(super) fn look_for_children(&mut self) {
        let mut next = 0;
        while next < self.processes.len() && self.processes.len() < PROCESSES_MAX {
            for child in children(self.processes[next].0) {
                let is_new = self.processes.iter().all(|(pid, _)| *pid != child);
                if is_new && let Some(stat) = open_stat(child) {
                    self.processes.push((child, stat));
                }
            }
            next += 1;
        }
    }

    /// Of every process that is still there; `None` when the node itself is not.
    fn stats(&mut self) -> Option<Vec<ProcessStat>> {
        let mut stats = Vec::with_capacity(self.processes.len());
        let mut is_leader = true;
        let mut leader_ended = false;
        self.processes.retain_mut(|(_, file)| {
            let stat = file.text().and_then(process_stat);
            leader_ended |= is_leader && stat.is_none_or(|stat| stat.is_zombie);
            is_leader = false;
            stats.extend(stat);
            stat.is_some()
        });
        (!leader_ended).then_some(stats)
    }
}

fn open_stat(pid: u32) -> Option<Reread> {
    Reread::open(&format!("/proc/{pid}/stat"))
}

/// Each thread has its own children.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|w| w.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The host.
#[derive(Debug)]
pub(super) struct HostSource {
    stat: Option<Reread>,
    load: Option<Reread>,
    memory: Option<Reread>,
    snmp: Option<Reread>,
    netstat: Option<Reread>,
    rates: Vec<Reread>,
    cpuinfo: Option<Reread>,
    rounds: u32,
    ticks: Option<HostTicks>,
    retransmits: Option<u64>,
    drops: Option<u64>,
    ticks_per_second: f64,
}

impl HostSource {
    pub(super) fn open() -> Self {
        let rates = (0..1024).map_while(|cpu| {
            Reread::open(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))
        });
        let mut host = Self {
            stat: Reread::open("/proc/stat"),
            load: Reread::open("/proc/loadavg"),
            memory: Reread::open("/proc/meminfo"),
            // The thread's: in a trial with links that is the instrument's own network, not the host's.
            snmp: Reread::open("/proc/thread-self/net/snmp"),
            netstat: Reread::open("/proc/thread-self/net/netstat"),
            rates: rates.collect(),
            cpuinfo: Reread::open("/proc/cpuinfo"),
            rounds: 0,
            ticks: None,
            retransmits: None,
            drops: None,
            ticks_per_second: float(rustix::param::clock_ticks_per_second()),
        };
        // The first reading is what the first round is compared with.
        host.read_processors(1.0, &mut |_, _| {});
        host.read_network(1.0, &mut |_, _| {});
        host
    }

    pub(super) fn read(&mut self, seconds: f64, keep: Keep<'_>) {
        self.read_processors(seconds, keep);
        if let Some((load1, runnable)) =
            self.load.as_mut().and_then(Reread::text).and_then(load_average)
        {
            keep("load1", load1);
            keep("run_queue", runnable);
        }
        if let Some(bytes) =
            self.memory.as_mut().and_then(Reread::text).and_then(memory_available_bytes)
        {
            keep("memory_available_bytes", bytes);
        }
        if let Some(mhz) = self.read_rate() {
            keep("cpu_mhz", mhz);
        }
        self.read_network(seconds, keep);
        self.rounds = self.rounds.wrapping_add(1);
    }

    fn read_processors(&mut self, seconds: f64, keep: Keep<'_>) {
        let Some(now) = self.stat.as_mut().and_then(Reread::text).and_then(host_ticks) else {
            return;
        };
        let Some(before) = self.ticks.replace(now) else { return };
        let cores = |now: u64, before: u64| {
            float(now.saturating_sub(before)) / self.ticks_per_second / seconds
        };
        keep("cpu_cores", cores(now.used, before.used));
        keep("steal_cores", cores(now.stolen, before.stolen));
        let all = now.all.saturating_sub(before.all);
        if all > 0 {
            keep("steal_share", float(now.stolen.saturating_sub(before.stolen)) / float(all));
        }
    }

    fn read_rate(&mut self) -> Option<f64> {
        if self.rates.is_empty() {
            let is_turn = self.rounds.is_multiple_of(CPUINFO_EVERY);
            return is_turn
                .then(|| self.cpuinfo.as_mut().and_then(Reread::text).and_then(cpu_mhz))?;
        }
        let khz = |file: &mut Reread| file.text()?.trim().parse::<f64>().ok();
        mean(self.rates.iter_mut().filter_map(khz)).map(|khz| khz / 1000.0)
    }

    fn read_network(&mut self, seconds: f64, keep: Keep<'_>) {
        let mut rate = |name, now: Option<u64>, before: &mut Option<u64>| {
            let earlier = std::mem::replace(before, now);
            if let (Some(now), Some(earlier)) = (now, earlier) {
                keep(name, float(now.saturating_sub(earlier)) / seconds);
            }
        };
        let snmp = self.snmp.as_mut().and_then(Reread::text);
        let retransmits = snmp.and_then(|text| counter(text, "Tcp:", "RetransSegs"));
        rate("tcp_retransmits_per_second", retransmits, &mut self.retransmits);
        let netstat = self.netstat.as_mut().and_then(Reread::text);
        let drops = netstat.and_then(|text| counter(text, "TcpExt:", "ListenDrops"));
        rate("listen_drops_per_second", drops, &mut self.drops);
    }
}

fn page_bytes() -> f64 {
    float(u64::try_from(rustix::param::page_size()).expect("a page is small"))
}

#[expect(clippy::cast_precision_loss, reason = "counts for people, far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
