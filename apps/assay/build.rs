//! Puts the version and, where there is one, the commit into the binary.

fn main() {
    let commit = std::process::Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|text| format!(" ({})", text.trim()))
        .unwrap_or_default();
    println!("cargo::rustc-env=ASSAY_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
    // The commit moves without any source file changing.
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/refs/heads");
}
