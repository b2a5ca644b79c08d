//! The image for containers: the static program, the certificates of the web's roots, an ordinary user and a volume for runs;
//! no shell and no other program. Made with umoci, which needs no daemon and no network.

use std::path::Path;
use std::process::Command;

use super::{Made, Release, said, succeeds};
use crate::suite::prepare::program;

/// The certificates of this host, which the image carries on.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The user in the image.
const USER: &str = "65534:65534";

/// Makes it and looks at what it says of itself.
pub fn pack(release: &Release<'_>) -> Result<Made, String> {
    if program("umoci").is_none() {
        return Ok(Made::Skipped(
            "there is no umoci on this machine (apt-get install umoci)".to_owned(),
        ));
    }
    let tree = release.folder.join("image");
    let failed = |error: std::io::Error| format!("writing {}: {error}", tree.display());
    for folder in ["usr/bin", "etc/ssl/certs", "work/runs", "tmp"] {
        std::fs::create_dir_all(tree.join(folder)).map_err(failed)?;
    }
    std::fs::copy(&release.program, tree.join("usr/bin/assay")).map_err(failed)?;
    if Path::new(CERTIFICATES).exists() {
        std::fs::copy(CERTIFICATES, tree.join(CERTIFICATES.trim_start_matches('/')))
            .map_err(failed)?;
    }
    std::fs::write(tree.join("etc/passwd"), "assay:x:65534:65534::/work:/nonexistent\n")
        .map_err(failed)?;
    let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    for folder in ["tmp", "work/runs"] {
        std::fs::set_permissions(tree.join(folder), open.clone()).map_err(failed)?;
    }
    let layout = release.folder.join("layout");
    let image = format!("{}:{}", layout.display(), release.version);
    let umoci = |words: &[&str]| succeeds(Command::new("umoci").args(words));
    umoci(&["init", "--layout", &layout.display().to_string()])?;
    umoci(&["new", "--image", &image])?;
    umoci(&["insert", "--rootless", "--image", &image, &tree.display().to_string(), "/"])?;
    let label = |name: &str, value: &str| format!("org.opencontainers.image.{name}={value}");
    umoci(&[
        "config",
        "--image",
        &image,
        "--config.user",
        USER,
        "--config.entrypoint",
        "/usr/bin/assay",
        "--config.workingdir",
        "/work",
        "--config.volume",
        "/work/runs",
        "--config.env",
        "HOME=/work",
        "--config.label",
        &label("version", &release.version),
        "--config.label",
        &label("revision", &release.commit),
        "--config.label",
        &label("licenses", "Apache-2.0"),
    ])?;
    let stat = said(Command::new("umoci").args(["stat", "--image", &image, "--json"]))?;
    if !stat.contains("history") {
        return Err(format!("the image says nothing of itself: {stat}"));
    }
    let name = format!("assay-{}.oci.tar", release.version);
    let tar = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-cf"];
    succeeds(
        Command::new("tar")
            .args(tar)
            .args([&name, "-C", "layout", "."])
            .current_dir(&release.folder),
    )?;
    let _ = (std::fs::remove_dir_all(&tree), std::fs::remove_dir_all(&layout));
    Ok(Made::File(name))
}
