//! The package for Debian and its kin: the static program, its manual page, completions, licence and changes. It depends on
//! nothing.

use std::path::Path;
use std::process::Command;

use super::{Made, Release, said, succeeds};
use crate::suite::prepare::program;

/// Makes it with the distribution's own tool, and looks at what it says of itself.
pub fn pack(release: &Release<'_>) -> Result<Made, String> {
    if program("dpkg-deb").is_none() {
        return Ok(Made::Skipped("there is no dpkg-deb on this machine".to_owned()));
    }
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => return Ok(Made::Skipped(format!("Debian has another name for {other}"))),
    };
    let tree = release.folder.join("debian");
    let from = release.folder.join(format!("assay-{}-{}", release.version, release.target));
    for (file, to) in [
        ("assay", "usr/bin/assay"),
        ("assay.1", "usr/share/man/man1/assay.1"),
        ("assay.bash", "usr/share/bash-completion/completions/assay"),
        ("_assay", "usr/share/zsh/vendor-completions/_assay"),
        ("assay.fish", "usr/share/fish/vendor_completions.d/assay.fish"),
        ("LICENSE", "usr/share/doc/assay/copyright"),
        ("CHANGELOG.md", "usr/share/doc/assay/changelog"),
        ("SECURITY.md", "usr/share/doc/assay/SECURITY.md"),
    ] {
        put(&from.join(file), &tree.join(to))?;
    }
    for page in ["usr/share/man/man1/assay.1", "usr/share/doc/assay/changelog"] {
        succeeds(Command::new("gzip").args(["-9", "-n"]).arg(tree.join(page)))?;
    }
    let control = format!(
        "Package: assay\nVersion: {}\nArchitecture: {architecture}\nMaintainer: The Assay authors <maintainers@localhost>\n\
         Section: utils\nPriority: optional\nDescription: measures what a client of a transaction system really gets\n \
         It loads a system, follows every transaction from when it was due to when its client\n has verified it, audits the \
         measurement and the ledger, and writes a report.\n",
        release.version
    );
    let folder = tree.join("DEBIAN");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("control"), control))
        .map_err(|error| format!("writing {}: {error}", folder.display()))?;
    let name = format!("assay_{}_{architecture}.deb", release.version);
    let file = release.folder.join(&name);
    succeeds(
        Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&tree).arg(&file),
    )?;
    let listed = said(Command::new("dpkg-deb").arg("--contents").arg(&file))?;
    if !listed.contains("./usr/bin/assay") {
        return Err(format!("the package lacks its program:\n{listed}"));
    }
    let _ = std::fs::remove_dir_all(&tree);
    Ok(Made::File(name))
}

fn put(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("writing {}: {error}", to.display());
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::copy(from, to).map(|_| ()).map_err(failed)
}
