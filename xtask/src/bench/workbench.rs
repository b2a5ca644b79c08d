//! The folder in which a bench measures: a copy of the built program, the files of its runs, and the page that the
//! figures become.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The built program; benches do not build it.
pub(super) fn built_assay(root: &Path) -> Result<PathBuf, String> {
    let assay = root.join("target/release/assay");
    match assay.is_file() {
        true => Ok(assay),
        false => Err("target/release/assay is missing; run: cargo build --release".to_owned()),
    }
}

/// `target/NAME`.
pub(super) struct Workbench {
    page: PathBuf,
    pub(super) folder: PathBuf,
    /// A copy: a build meanwhile must not change what is measured.
    pub(super) assay: PathBuf,
}

impl Workbench {
    pub(super) fn new(root: &Path, name: &str) -> Result<Self, String> {
        let built = built_assay(root)?;
        let folder = root.join("target").join(name);
        make_empty(&folder)?;
        let assay = folder.join("assay");
        std::fs::copy(&built, &assay)
            .map_err(|error| format!("copying {}: {error}", built.display()))?;
        Ok(Self { page: root.join(format!("results/{name}.md")), folder, assay })
    }

    /// Runs an experiment; gives its document, and the processor time of the whole program in µs.
    pub(super) fn run(&self, experiment: &str) -> Result<(Value, f64), String> {
        let path = self.folder.join("experiment.toml");
        std::fs::write(&path, experiment)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
        let runs = self.runs();
        let _ = std::fs::remove_dir_all(&runs);
        let (file, into) = (path.display().to_string(), runs.display().to_string());
        let words = ["run", &file, "--json", "--progress", "none", "--no-calibration", "--runs"];
        let words: Vec<String> = words.into_iter().chain([&*into]).map(str::to_owned).collect();
        let (said, cpu_us) = self.timed(&self.assay, &words)?;
        let document = serde_json::from_str(&said).map_err(|error| {
            format!("assay printed no JSON ({error}): {said}{}", self.complaint())
        })?;
        Ok((document, cpu_us))
    }

    /// The run folders of the last experiment.
    pub(super) fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// The standard error of the last program.
    pub(super) fn complaint(&self) -> String {
        std::fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }

    /// Standard output, and the processor time in µs by the shell's own account, which is in milliseconds.
    pub(super) fn timed(&self, program: &Path, words: &[String]) -> Result<(String, f64), String> {
        let times = self.folder.join("times");
        let script =
            format!("TIMEFORMAT='%3U %3S'; {{ time \"$@\" 2>stderr; }} 2>{}", times.display());
        let output = Command::new("bash")
            .args(["-c", &script, "bash"])
            .arg(program)
            .args(words)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let text = std::fs::read_to_string(&times)
            .map_err(|error| format!("reading {}: {error}", times.display()))?;
        let seconds: Vec<f64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [user, system] = seconds[..] else {
            return Err(format!("{} was not timed: {text}", program.display()));
        };
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), (user + system) * 1e6))
    }

    /// Prints the page, keeps it in results/ if not at toy size, and removes the folder.
    pub(super) fn finish(self, page: &str, toy: bool) -> Result<(), String> {
        print!("{page}");
        if !toy {
            std::fs::write(&self.page, page)
                .map_err(|error| format!("writing {}: {error}", self.page.display()))?;
        }
        std::fs::remove_dir_all(&self.folder)
            .map_err(|error| format!("removing {}: {error}", self.folder.display()))
    }
}

/// Makes a folder, without the files of an earlier turn.
pub(super) fn make_empty(folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| format!("making {}: {error}", folder.display()))
}

#[expect(clippy::cast_precision_loss, reason = "counts of millions")]
pub(super) fn to_f64(count: u64) -> f64 {
    count as f64
}
