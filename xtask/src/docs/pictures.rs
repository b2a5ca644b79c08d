//! `cargo xtask pictures`: the two pictures at the top of README.md, made from a real run of the demo: the first screen of
//! its page in headless Chromium, and the first screen of its terminal output as SVG. Nothing in them is drawn by hand.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the pictures, which README.md shows.
const FOLDER: &str = "docs/pictures";
/// A repository keeps every version of a picture, so each has to be small.
const BYTES_MAX: u64 = 150_000;
/// Terminal: columns, and the lines that one screen shows.
const COLUMNS: usize = 100;
const LINES_MAX: usize = 34;
/// A cell of the terminal picture, in pixels: the advance and line height of 14 px monospace.
const CELL: (usize, usize) = (8, 18);
/// Around the text, in pixels.
const MARGIN: usize = 16;
/// The window of the page's picture: everything above the results table.
const WINDOW: &str = "1280,650";
/// Names that distributions give to Chromium.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs the demo and makes both pictures.
pub fn run(root: &Path) -> Result<(), String> {
    let browser = browser().ok_or("looking for chromium: expected one on the PATH or in CHROMIUM, got none; install the distribution's package")?;
    let build = ["build", "--release", "--package", "assay"];
    ended(Command::new("cargo").args(build).current_dir(root), "building assay")?;
    let runs = root.join("target/pictures");
    let _ = fs::remove_dir_all(&runs);
    let text = demo(root, &runs)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| at("making", &folder, &error))?;
    let svg = folder.join("terminal.svg");
    fs::write(&svg, terminal(&text)).map_err(|error| at("writing", &svg, &error))?;
    let png = folder.join("report.png");
    screenshot(&browser, &page(&runs)?, &png)?;
    for picture in [svg, png] {
        let bytes = fs::metadata(&picture).map_err(|error| at("reading", &picture, &error))?.len();
        if bytes > BYTES_MAX {
            return Err(format!(
                "{}: expected at most {BYTES_MAX} bytes, got {bytes}; show less",
                picture.display()
            ));
        }
        println!("{} ({bytes} bytes)", picture.display());
    }
    Ok(())
}

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| BROWSERS.iter().find_map(|name| crate::suite::program(name)))
}

/// The demo's output in colour; only a run that ended as declared is shown to newcomers.
fn demo(root: &Path, runs: &Path) -> Result<String, String> {
    println!("=== assay run demo, about a minute");
    let output = Command::new(root.join("target/release/assay"))
        .args(["run", "demo", "--color", "always", "--progress", "none", "--runs"])
        .arg(runs)
        .env("COLUMNS", COLUMNS.to_string())
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("starting assay: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!(
        "the demo: expected exit code 0, got {}; repeat it on an idle machine\n{text}",
        output.status
    ))
}

fn page(runs: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(runs).map_err(|error| at("reading", runs, &error))?;
    let mut pages = entries.flatten().map(|entry| entry.path().join("report.html"));
    pages.find(|page| page.is_file()).ok_or_else(|| format!("no report.html in {}", runs.display()))
}

fn screenshot(browser: &Path, page: &Path, picture: &Path) -> Result<(), String> {
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--force-color-profile=srgb", "--font-render-hinting=none"])
        // The script draws before virtual time is up.
        .arg("--virtual-time-budget=5000")
        .arg(format!("--window-size={WINDOW}"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    ended(&mut command, "taking the page's picture")
}

/// The first screen of a terminal's output as SVG: one text element a line, one span a colour.
fn terminal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let (width, height) = (COLUMNS * CELL.0 + 2 * MARGIN, (lines.len() + 2) * CELL.1 + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d8dbe0\">\n"
    );
    let command = ["$ cargo run --release -- run demo", ""];
    for (index, line) in command.iter().chain(&lines).enumerate() {
        let y = MARGIN + (index + 1) * CELL.1 - 5;
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\">{}</text>", spans(line));
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// A line with the escapes of its colours as spans; each span has its width, so that columns stay in place in any font.
fn spans(line: &str) -> String {
    let mut made = String::new();
    let (mut column, mut code) = (0, "0");
    for (index, part) in line.split("\u{1b}[").enumerate() {
        let words = if index == 0 {
            part
        } else {
            let (found, words) = part.split_once('m').unwrap_or(("0", part));
            code = found;
            words
        };
        let count = words.chars().count();
        if count > 0 {
            let x = MARGIN + column * CELL.0;
            let length = count * CELL.0;
            let _ = write!(
                made,
                "<tspan x=\"{x}\" textLength=\"{length}\"{}>{}</tspan>",
                look(code),
                escaped(words)
            );
        }
        column += count;
    }
    made
}

/// The attributes of one SGR code; others leave the text as it is.
fn look(code: &str) -> &'static str {
    match code {
        "1" => " font-weight=\"bold\" fill=\"#ffffff\"",
        "2" => " fill=\"#8b919c\"",
        "31" | "1;31" => " fill=\"#ff7b72\"",
        "32" | "1;32" => " fill=\"#7ee787\"",
        "33" | "1;33" => " fill=\"#e3b341\"",
        "36" => " fill=\"#79c0ff\"",
        _ => "",
    }
}

/// Markup escaped, and blanks that do not collapse: renderers disagree about `xml:space`.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace(' ', "\u{a0}")
}

fn ended(command: &mut Command, what: &str) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: it ended with {status}")),
        Err(error) => Err(format!("{what}: could not start: {error}")),
    }
}

fn at(doing: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{doing} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: colours become spans that start in their own columns, markup in the text is escaped, and a picture shows no
    /// more than one screen.
    #[test]
    fn colours_become_spans() {
        let line = spans("ab \u{1b}[32m✓\u{1b}[0m p99 < 1s");
        assert_eq!(
            line,
            "<tspan x=\"16\" textLength=\"24\">ab\u{a0}</tspan>\
             <tspan x=\"40\" textLength=\"8\" fill=\"#7ee787\">✓</tspan>\
             <tspan x=\"48\" textLength=\"72\">\u{a0}p99\u{a0}&lt;\u{a0}1s</tspan>"
        );
        let picture = terminal(&"x\n".repeat(LINES_MAX + 10));
        assert_eq!(picture.matches("<text ").count(), LINES_MAX + 2);
    }
}
