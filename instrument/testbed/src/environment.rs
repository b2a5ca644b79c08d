//! What the host is: processor, clock rate, memory, limits, ports, clock source, whether it is a real one.
//!
//! Read from /proc and /sys once before a run. What a host does not say stays empty and is never guessed.
//! Nothing here changes the host; [`raise_file_limit`] changes this process alone.

use std::path::Path;

use clock::WallTime;
use model::facts::Environment;
use model::secret::masked_command;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::TestbedError;

/// Below this part of the clock rate that it is made for, a processor that is told to run at full rate is
/// throttled. Ordinary turbo and rounding stay within a few percent.
const THROTTLED_BELOW: f64 = 0.8;

/// The host, the tool and the command (secrets taken out). `assay` is the tool's version and commit.
#[must_use]
pub fn environment(command: Vec<String>, assay: String) -> Environment {
    let mut found = environment_under(Path::new("/"), &command, assay);
    found.started = WallTime::now().rfc3339();
    found
}

/// The same, with the given folder in place of `/`, and without the time.
fn environment_under(root: &Path, command: &[String], assay: String) -> Environment {
    let host = Host { root };
    let rates = ClockRates::of(&host);
    let mut found = Environment {
        schema: "assay.environment/1".to_owned(),
        assay,
        command: without_places(&masked_command(command)),
        kernel: host.line("proc/sys/kernel/osrelease"),
        os: host.key("etc/os-release", "PRETTY_NAME=").trim_matches('"').to_owned(),
        cpu: host.cpu_field("model name"),
        cpus: host.cpus(),
        memory_bytes: host.memory_bytes(),
        governor: host.each_cpu("cpufreq/scaling_governor").join(", "),
        cpu_mhz: rates.now,
        files_max: host.files_max(),
        ports: host.ports(),
        clock_source: host.line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        load_average: host.first_number("proc/loadavg"),
        virtualisation: host.virtualisation(),
        ..Environment::default()
    };
    found.warnings.extend(rates.warning(&found.governor));
    found.warnings.extend(clock_source_warning(&found.clock_source));
    found
}

/// Lets this process open as many files as it is allowed to: the soft limit becomes the hard one. Gives the
/// limit before and after.
///
/// # Errors
/// When the kernel refuses, which it does not for a process's own limit.
pub fn raise_file_limit() -> Result<(u64, u64), TestbedError> {
    let before = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    if before.current != before.maximum {
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        setrlimit(Resource::Nofile, raised).map_err(|error| TestbedError::Host {
            what: "the limit of open files could not be raised; try `ulimit -n`".to_owned(),
            source: error.into(),
        })?;
    }
    Ok((number(before.current), number(before.maximum)))
}

/// A command line without absolute paths: a record says nothing of where things lie on the machine that made it. What is
/// under the working folder is told from there, and of anything else its name.
fn without_places(words: &[String]) -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut words: Vec<String> = words.iter().map(|word| without_place(word, &here)).collect();
    if let Some(program) = words.first_mut()
        && let Some(name) = Path::new(&*program).file_name()
    {
        *program = name.to_string_lossy().into_owned();
    }
    words
}

fn without_place(word: &str, here: &Path) -> String {
    // `--runs=/x`, `--body @/x`.
    let start = word.find(['=', '@']).map_or(0, |at| at + 1);
    let (before, rest) = if word.starts_with('/') { ("", word) } else { word.split_at(start) };
    let path = Path::new(rest);
    // A path of a URL is none of this host's.
    let is_place = path.is_absolute() && path.parent().is_some() && path.exists();
    if !is_place {
        return word.to_owned();
    }
    let shown = match path.strip_prefix(here) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => format!("…/{}", path.file_name().unwrap_or_default().to_string_lossy()),
    };
    format!("{before}{shown}")
}

/// The files of a host.
struct Host<'a> {
    root: &'a Path,
}

impl Host<'_> {
    fn text(&self, path: &str) -> String {
        std::fs::read(self.root.join(path))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn line(&self, path: &str) -> String {
        self.text(path).lines().next().unwrap_or_default().trim().to_owned()
    }

    /// What follows `key` at the start of a line.
    fn key(&self, path: &str, key: &str) -> String {
        let text = self.text(path);
        text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned()
    }

    fn first_number(&self, path: &str) -> f64 {
        self.text(path).split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
    }

    /// The first value of a field of /proc/cpuinfo.
    fn cpu_field(&self, name: &str) -> String {
        self.cpu_fields(name).into_iter().next().unwrap_or_default()
    }

    fn cpu_fields(&self, name: &str) -> Vec<String> {
        let is_it = |line: &str| {
            let (field, value) = line.split_once(':')?;
            (field.trim() == name).then(|| value.trim().to_owned())
        };
        self.text("proc/cpuinfo").lines().filter_map(is_it).collect()
    }

    /// The distinct contents of a file of each processor, in order.
    fn each_cpu(&self, file: &str) -> Vec<String> {
        let mut values: Vec<String> = self
            .cpu_folders()
            .iter()
            .map(|folder| self.line(&format!("{folder}/{file}")))
            .filter(|value| !value.is_empty())
            .collect();
        values.sort();
        values.dedup();
        values
    }

    fn each_cpu_mhz(&self, file: &str) -> Vec<f64> {
        let khz = |text: String| text.parse::<f64>().ok().map(|khz| khz / 1000.0);
        self.each_cpu(file).into_iter().filter_map(khz).collect()
    }

    fn cpu_folders(&self) -> Vec<String> {
        let base = "sys/devices/system/cpu";
        let is_cpu = |name: &str| {
            name.strip_prefix("cpu")
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        let names = std::fs::read_dir(self.root.join(base)).into_iter().flatten().flatten();
        names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_cpu(name))
            .map(|name| format!("{base}/{name}"))
            .collect()
    }

    /// Processors that this process may run on: the bits of its mask.
    fn cpus(&self) -> u32 {
        let mask = self.key("proc/self/status", "Cpus_allowed:");
        mask.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum()
    }

    fn memory_bytes(&self) -> u64 {
        let text = self.key("proc/meminfo", "MemTotal:");
        let kib = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }

    fn files_max(&self) -> u64 {
        let text = self.key("proc/self/limits", "Max open files");
        match text.split_whitespace().next() {
            Some("unlimited") => u64::MAX,
            Some(number) => number.parse().unwrap_or(0),
            None => 0,
        }
    }

    fn ports(&self) -> u32 {
        let text = self.line("proc/sys/net/ipv4/ip_local_port_range");
        let mut bounds = text.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
        match (bounds.next(), bounds.next()) {
            (Some(first), Some(last)) if last >= first => last - first + 1,
            _ => 0,
        }
    }

    /// What runs this host, if it does not run itself: a hypervisor shows itself in the processor's flags, and
    /// the firmware often says which one; a container leaves a mark in the file tree.
    fn virtualisation(&self) -> String {
        let mut signs = Vec::new();
        let is_guest = self.cpu_field("flags").split_whitespace().any(|flag| flag == "hypervisor");
        let xen = self.line("sys/hypervisor/type");
        if is_guest || !xen.is_empty() {
            let vendor = self.line("sys/class/dmi/id/sys_vendor");
            let product = self.line("sys/class/dmi/id/product_name");
            let words: Vec<&str> =
                [&*xen, &*vendor, &*product].into_iter().filter(|word| !word.is_empty()).collect();
            signs.push(match words.as_slice() {
                [] => "virtual machine".to_owned(),
                _ => format!("virtual machine ({})", words.join(" ")),
            });
        }
        let marks = [".dockerenv", "run/.containerenv"];
        if marks.iter().any(|mark| self.root.join(mark).exists()) {
            signs.push("container".to_owned());
        }
        signs.join(", ")
    }
}

/// Clock rates of the processors, MHz.
struct ClockRates {
    /// Lowest and highest now; zero = the host does not say.
    now: (f64, f64),
    /// What they are made for (base, else largest); zero = the host does not say.
    nominal: f64,
    /// The largest that is allowed now, and the largest that they can.
    allowed: f64,
    possible: f64,
}

impl ClockRates {
    fn of(host: &Host<'_>) -> Self {
        let mut now = host.each_cpu_mhz("cpufreq/scaling_cur_freq");
        if now.is_empty() {
            // In a virtual machine this is what the hypervisor says the rate is, not what it is now.
            now = host.cpu_fields("cpu MHz").iter().filter_map(|mhz| mhz.parse().ok()).collect();
        }
        let largest = |file: &str| host.each_cpu_mhz(file).into_iter().fold(0.0, f64::max);
        let possible = largest("cpufreq/cpuinfo_max_freq");
        let base = largest("cpufreq/base_frequency");
        Self {
            now: now
                .iter()
                .fold(None, |range: Option<(f64, f64)>, &mhz| {
                    Some(range.map_or((mhz, mhz), |(low, high)| (low.min(mhz), high.max(mhz))))
                })
                .unwrap_or((0.0, 0.0)),
            nominal: if base > 0.0 { base } else { possible },
            allowed: largest("cpufreq/scaling_max_freq"),
            possible,
        }
    }

    fn warning(&self, governor: &str) -> Option<String> {
        // Any other governor lowers the rate of an idle processor, which is no sign of throttling.
        let is_held_high = governor == "performance";
        if is_held_high && self.now.1 > 0.0 && self.now.1 < THROTTLED_BELOW * self.nominal {
            return Some(format!(
                "cpu {:.2} GHz now {:.2} GHz: throttled, numbers will not hold (cool the host, or look for a power limit)",
                self.nominal / 1000.0,
                self.now.1 / 1000.0
            ));
        }
        (self.allowed > 0.0 && self.allowed < THROTTLED_BELOW * self.possible).then(|| {
            format!(
                "cpu held to {:.2} of {:.2} GHz (raise scaling_max_freq)",
                self.allowed / 1000.0,
                self.possible / 1000.0
            )
        })
    }
}

/// A clock that is read through a device costs microseconds instead of some 20 ns, twice a transaction.
fn clock_source_warning(source: &str) -> Option<String> {
    matches!(source, "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit").then(|| {
        format!("clock source {source} is slow to read: stamps cost microseconds (tsc or the hypervisor's own is better)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: no word of a command line says where something lies, and what is no path stays as it is.
    #[test]
    fn no_absolute_paths() {
        let here = std::env::current_dir().unwrap();
        let inside = here.join("Cargo.toml").display().to_string();
        let words = ["/usr/bin/env", "run", &inside, "/usr/bin", "--runs=/usr/bin", "@/etc/passwd"];
        let more = ["--set", "workload.path=/no-such-file", "http://h/", "/", "--set", "a=/"];
        let words: Vec<String> = words.iter().chain(&more).map(|word| (*word).to_owned()).collect();
        let expected =
            ["env", "run", "Cargo.toml", "…/bin", "--runs=…/bin", "@…/passwd"].iter().chain(&more);
        assert_eq!(without_places(&words), expected.copied().collect::<Vec<_>>());
    }

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn read(files: &[(&str, &str)]) -> Environment {
        let tree = tree(files);
        environment_under(tree.path(), &["assay".to_owned()], "0.1.0 abc".to_owned())
    }

    /// Claim: every fact of a server is read from its file.
    #[test]
    fn a_server_is_described() {
        let found = read(&[
            ("proc/sys/kernel/osrelease", "6.18.1\n"),
            ("etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"Some Linux 12\"\n"),
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Fast CPU\ncpu MHz\t\t: 1.0\nflags\t\t: fpu\n",
            ),
            ("proc/self/status", "Name:\tx\nCpus_allowed:\tff,0000000f\nCpus_allowed_list:\t0-3\n"),
            ("proc/meminfo", "MemTotal:       24682500 kB\nMemFree: 1 kB\n"),
            (
                "proc/self/limits",
                "Limit  Soft Limit  Hard Limit Units\nMax open files            1024                 1048576              files\n",
            ),
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("proc/loadavg", "0.58 0.28 0.12 1/100 4242\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2600000\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "800000\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ]);
        assert_eq!(found.kernel, "6.18.1");
        assert_eq!(found.os, "Some Linux 12");
        assert_eq!((found.cpu.as_str(), found.cpus), ("Fast CPU", 12));
        assert_eq!(found.memory_bytes, 24_682_500 * 1024);
        assert_eq!((found.files_max, found.ports), (1024, 28_232));
        assert_eq!(found.governor, "performance, powersave");
        assert_eq!(found.cpu_mhz, (800.0, 2600.0));
        assert_eq!((found.load_average, found.clock_source.as_str()), (0.58, "tsc"));
        assert_eq!((found.virtualisation.as_str(), found.warnings.len()), ("", 0));
        assert_eq!(found.assay, "0.1.0 abc");
    }

    /// Claim: a guest in a container is told, its nominal rate is used, and a slow clock is warned of.
    #[test]
    fn a_guest_is_described() {
        let found = read(&[
            (
                "proc/cpuinfo",
                "model name : V\ncpu MHz : 2596.1\nflags : fpu hypervisor\ncpu MHz : 2596.1\n",
            ),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            (".dockerenv", ""),
            (
                "proc/self/limits",
                "Max open files            unlimited            unlimited            files\n",
            ),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ]);
        assert_eq!(found.virtualisation, "virtual machine (QEMU), container");
        assert_eq!((found.cpu_mhz, found.files_max), ((2596.1, 2596.1), u64::MAX));
        assert!(found.warnings[0].starts_with("clock source hpet is slow to read"));
    }

    /// Claim: a processor told to run at full rate that does not is called throttled; one that idles by its governor is not.
    #[test]
    fn throttling_is_told_from_idling() {
        let with = |governor: &str, now: &str, allowed: &str| {
            let folder = "sys/devices/system/cpu/cpu0/cpufreq";
            read(&[
                (&format!("{folder}/scaling_governor"), governor),
                (&format!("{folder}/scaling_cur_freq"), now),
                (&format!("{folder}/base_frequency"), "2600000"),
                (&format!("{folder}/cpuinfo_max_freq"), "3500000"),
                (&format!("{folder}/scaling_max_freq"), allowed),
            ])
            .warnings
        };
        let throttled = with("performance", "850000", "3500000");
        assert!(throttled[0].starts_with("cpu 2.60 GHz now 0.85 GHz: throttled"), "{throttled:?}");
        assert!(with("powersave", "850000", "3500000").is_empty());
        assert!(with("performance", "2590000", "3500000").is_empty());
        assert!(
            with("performance", "2590000", "1000000")[0]
                .starts_with("cpu held to 1.00 of 3.50 GHz")
        );
    }

    /// Claim: a host that says nothing gives an empty description, not a wrong one.
    #[test]
    fn an_empty_tree_gives_nothing() {
        let found = read(&[]);
        assert_eq!(
            (found.cpus, found.files_max, found.ports, found.cpu_mhz),
            (0, 0, 0, (0.0, 0.0))
        );
        assert!(found.warnings.is_empty() && found.virtualisation.is_empty());
    }

    /// Claim: this very host can be described, and the file limit raised as far as it goes.
    #[test]
    fn this_host_is_described() {
        let (_, raised) = raise_file_limit().unwrap();
        let found = environment(vec!["assay".to_owned()], String::new());
        assert!(found.cpus > 0 && found.memory_bytes > 0 && !found.kernel.is_empty());
        assert_eq!(found.files_max, raised);
        assert!(found.started.ends_with('Z'));
    }
}
