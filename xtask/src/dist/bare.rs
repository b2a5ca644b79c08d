//! The package on a bare Debian: the system as debootstrap makes it, without a compiler and without anything of this project.
//! The package is installed, an ordinary user runs the demo, the page is there; the package is removed and leaves nothing.

use std::path::Path;
use std::process::Command;

use super::{Made, Release, said, succeeds};
use crate::suite::prepare::program;

/// Passed, or a machine too busy for its times.
const EXITS: &str = "0|97";

/// Makes the system once, in the target folder, and tries the package there.
pub fn run(release: &Release<'_>) -> Result<Made, String> {
    let skipped = |why: &str| Ok(Made::Skipped(why.to_owned()));
    if program("debootstrap").is_none() {
        return skipped("there is no debootstrap on this machine (apt-get install debootstrap)");
    }
    if said(Command::new("id").arg("-u"))? != "0" {
        return skipped("debootstrap takes root");
    }
    let Some(package) = the_package(release) else { return skipped("there is no package to try") };
    let system = release.root.join("target/dist/debian");
    if !system.join("usr/bin/dpkg").exists() {
        let _ = std::fs::remove_dir_all(&system);
        // The release of this host, from where its packages come.
        let made = succeeds(
            Command::new("debootstrap").arg("--variant=minbase").arg(codename()).arg(&system),
        );
        if let Err(why) = made {
            let _ = std::fs::remove_dir_all(&system);
            return skipped(&format!("debootstrap was refused: {}", last_line(&why)));
        }
    }
    tried(&system, &package)?;
    Ok(Made::Tried)
}

/// `bookworm`, or what the newest is called where this host is no Debian.
fn codename() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let is_debian = text.lines().any(|line| line == "ID=debian");
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.filter(|_| is_debian).unwrap_or("stable").to_owned()
}

fn the_package(release: &Release<'_>) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(&release.folder).ok()?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|it| it == "deb"))
}

/// In mounts and processes of its own, so that nothing of it outlives the command.
fn tried(system: &Path, package: &Path) -> Result<(), String> {
    let inside = system.join("assay.deb");
    std::fs::copy(package, &inside).map_err(|error| format!("copying the package: {error}"))?;
    let script = format!(
        "set -e; mount -t proc proc \"$1/proc\"; exec chroot \"$1\" /bin/sh -ec '\
         command -v rustc cargo cc && exit 3; dpkg -i /assay.deb >/dev/null; \
         mkdir -p /home/nobody; chown nobody /home/nobody; cd /home/nobody; \
         code=0; setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH=/usr/bin:/bin HOME=/home/nobody \
         assay run demo --progress=none >/home/nobody/said 2>&1 || code=$?; \
         case $code in {EXITS}) ;; *) cat /home/nobody/said; exit 4 ;; esac; \
         ls /home/nobody/runs/*/report.html; man=/usr/share/man/man1/assay.1.gz; dpkg -L assay | grep -q $man; \
         dpkg -P assay >/dev/null; ! command -v assay; rm -rf /home/nobody/runs /assay.deb'"
    );
    let said = said(
        Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script, "sh"])
            .arg(system),
    )?;
    println!("on a bare Debian: {}", last_line(&said));
    Ok(())
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim().to_owned()
}
