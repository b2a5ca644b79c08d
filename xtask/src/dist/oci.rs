//! The image for containers: the static program, the shell that ends its nodes when it was killed, the certificates of the web's
//! roots, an ordinary user and a volume for runs; no other program. Made with umoci, which needs no daemon and no network, and
//! started with runc, where there is one.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{EXITS, Made, Release, said, succeeds};
use crate::image::names_loader;
use crate::suite::prepare::program;

/// The certificates of this host, which the image carries on.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// A shell that needs no library.
const SHELL: &str = "/bin/busybox";
/// The user in the image.
const USER: &str = "65534:65534";

/// Makes it and looks at what it says of itself.
pub fn pack(release: &Release<'_>) -> Result<Made, String> {
    if program("umoci").is_none() {
        return Ok(Made::Skipped(
            "there is no umoci on this machine (apt-get install umoci)".to_owned(),
        ));
    }
    if !std::fs::read(SHELL).is_ok_and(|bytes| names_loader(&bytes) == Some(false)) {
        return Ok(Made::Skipped(
            "there is no static shell on this machine (apt-get install busybox-static)".to_owned(),
        ));
    }
    let tree = release.folder.join("image");
    let failed = |error: std::io::Error| format!("writing {}: {error}", tree.display());
    for folder in ["bin", "usr/bin", "etc/ssl/certs", "work/runs", "tmp"] {
        std::fs::create_dir_all(tree.join(folder)).map_err(failed)?;
    }
    std::fs::copy(&release.program, tree.join("usr/bin/assay")).map_err(failed)?;
    std::fs::copy(SHELL, tree.join("bin/sh")).map_err(failed)?;
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
    println!("the image: {}", started(release, &image)?);
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

/// Runs the demo in it as it says of itself that it is started; says what came of it.
fn started(release: &Release<'_>, image: &str) -> Result<String, String> {
    if program("runc").is_none() || said(Command::new("id").arg("-u"))? != "0" {
        return Ok("not started: that takes runc (apt-get install runc) and root".to_owned());
    }
    let bundle = release.folder.join("bundle");
    succeeds(Command::new("umoci").args(["unpack", "--image", image]).arg(&bundle))?;
    let path = bundle.join("config.json");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read(&path).map_err(|error| failed(&error))?;
    let mut config: Value = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    config["process"]["terminal"] = false.into();
    let words = config["process"]["args"].as_array_mut().ok_or_else(|| failed(&"no args"))?;
    words.extend(["run", "demo", "--progress=none"].map(Value::from));
    std::fs::write(&path, config.to_string()).map_err(|error| failed(&error))?;
    let output = Command::new("runc")
        .arg("--root")
        .arg(bundle.join("state"))
        .args(["run", &format!("assay-dist-{}", std::process::id())])
        .current_dir(&bundle)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("running runc: {error}"))?;
    let _ = std::fs::remove_dir_all(&bundle);
    let text = String::from_utf8_lossy(&output.stdout);
    let is_written =
        text.lines().any(|line| line.starts_with("report") && line.ends_with("report.html"));
    if output.status.code().is_some_and(|code| EXITS.contains(&code)) && is_written {
        return Ok(
            "started by runc as an ordinary user, it ran the demo and wrote its report".to_owned()
        );
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("the demo in it ended with {}:\n{text}\n{errors}", output.status))
}
