//! The formats of /proc that the sampler reads (proc(5)), as pure functions. Bytes that are not of the format
//! give `None`.

/// What /proc/PID/stat says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessStat {
    /// User and system time of it and of the children that it has waited for, in ticks.
    pub(super) ticks: u64,
    pub(super) threads: u64,
    pub(super) rss_pages: u64,
    /// It has ended and waits to be reaped.
    pub(super) is_zombie: bool,
}

/// The name in field 2 may hold anything, parentheses included, so fields are counted from the last `)`.
pub(super) fn process_stat(text: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // proc(5) counts from 1, and the first after the name is field 3.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let waited_for =
        |field: usize| Some(fields.get(field - 3)?.parse::<i64>().ok()?.max(0).unsigned_abs());
    Some(ProcessStat {
        ticks: number(14)? + number(15)? + waited_for(16)? + waited_for(17)?,
        threads: number(20)?,
        rss_pages: number(24)?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Ticks of all processors since the start of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostTicks {
    pub(super) used: u64,
    pub(super) stolen: u64,
    pub(super) all: u64,
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guest time, which
/// follows, is part of user time.
pub(super) fn host_ticks(text: &str) -> Option<HostTicks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
    let &[user, nice, system, idle, io_wait, irq, soft_irq, stolen, ..] = ticks.as_slice() else {
        return None;
    };
    let used = user + nice + system + irq + soft_irq;
    Some(HostTicks { used, stolen, all: used + stolen + idle + io_wait })
}

/// /proc/loadavg: the one-minute average and the runnable threads.
pub(super) fn load_average(text: &str) -> Option<(f64, f64)> {
    let mut words = text.split_ascii_whitespace();
    let load1 = words.next()?.parse().ok()?;
    let (runnable, _) = words.nth(2)?.split_once('/')?;
    Some((load1, runnable.parse().ok()?))
}

/// A number of kibibytes in /proc/meminfo, in bytes.
pub(super) fn memory_available_bytes(text: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(rest.split_ascii_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

/// A counter of /proc/net/snmp or /proc/net/netstat: pairs of lines with one prefix, names above values.
pub(super) fn counter(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let place = lines.next()?.split_ascii_whitespace().position(|word| word == name)?;
    lines.next()?.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// The mean of the `cpu MHz` lines of /proc/cpuinfo.
pub(super) fn cpu_mhz(text: &str) -> Option<f64> {
    let rates = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == "cpu MHz").then(|| value.trim().parse::<f64>().ok())?
    });
    mean(rates)
}

/// `None` of nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then_some(sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: each format is read as proc(5) has it, also with a name made to mislead.
    #[test]
    fn formats_are_read() {
        let stat = "7 (a) R 1 (b) S 1 7 7 0 -1 4194304 99 0 0 0 10 20 3 4 20 0 5 0 407853 3133440 394 184467 1 1";
        let expected = ProcessStat { ticks: 37, threads: 5, rss_pages: 394, is_zombie: false };
        assert_eq!(process_stat(stat), Some(expected));
        assert!(process_stat(&stat.replace(" S 1 ", " Z 1 ")).unwrap().is_zombie);
        let host = host_ticks("cpu  100 20 30 600 40 5 6 7 50 0\ncpu0 1 2\n").unwrap();
        assert_eq!(host, HostTicks { used: 161, stolen: 7, all: 808 });
        assert_eq!(load_average("4.15 2.66 1.29 3/108 31107\n"), Some((4.15, 3.0)));
        assert_eq!(memory_available_bytes("MemTotal: 9 kB\nMemAvailable:  2 kB\n"), Some(2048.0));
        let snmp = "Udp: A RetransSegs\nUdp: 1 2\nTcp: X RetransSegs Y\nTcp: -1 42 3\n";
        assert_eq!(counter(snmp, "Tcp:", "RetransSegs"), Some(42));
        assert_eq!(cpu_mhz("cpu MHz\t\t: 1000.0\nx : 1\ncpu MHz\t\t: 3000.0\n"), Some(2000.0));
    }

    /// Claim: what is cut short or not of the format gives nothing and does not panic.
    #[test]
    fn other_bytes_give_nothing() {
        for text in ["", ")", "1 (x) R", "cpu 1 2", "Tcp: A\n", "1.0 2", "\u{fffd}"] {
            assert_eq!(process_stat(text), None);
            assert_eq!(host_ticks(text), None);
            assert_eq!(load_average(text), None);
            assert_eq!(memory_available_bytes(text), None);
            assert_eq!(counter(text, "Tcp:", "A"), None);
            assert_eq!(cpu_mhz(text), None);
        }
    }
}
