//! Every link of ours leads somewhere: paths and headings in Markdown files, files and anchors in the built
//! book. It never asks the network: a link with a scheme is not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Pages that mdbook adds: all pages in one, whose links are those of the others, and the page for wrong
/// addresses, whose links are meant for the root of a server.
const ADDED: [&str; 2] = ["print.html", "404.html"];

/// Links in the Markdown files that git knows of.
pub fn sources(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for name in markdown_files(root)? {
        let text = read(&root.join(&name))?;
        for (line, target) in markdown_links(&text) {
            if let Some(problem) = source_problem(root, Path::new(&name), &target) {
                findings.push(format!("{name}:{line}: link `{target}`: {problem}"));
            }
        }
    }
    Ok(findings)
}

/// Pages under docs/ that SUMMARY.md does not name: nobody would find them, and mdbook leaves them out.
pub fn unlisted(root: &Path) -> Result<Vec<String>, String> {
    let summary = read(&root.join("docs/SUMMARY.md"))?;
    let listed: BTreeSet<PathBuf> = markdown_links(&summary)
        .into_iter()
        .map(|(_, target)| beside(Path::new("docs/SUMMARY.md"), &target))
        .collect();
    let pages = markdown_files(root)?.into_iter().filter(|name| name.starts_with("docs/"));
    Ok(pages
        .filter(|name| name != "docs/SUMMARY.md" && !listed.contains(Path::new(name)))
        .map(|name| format!("{name} has no line in docs/SUMMARY.md, so the book lacks it"))
        .collect())
}

/// Links in the pages of a built book.
pub fn book(folder: &Path) -> Result<Vec<String>, String> {
    let mut pages = BTreeMap::new();
    html_files(folder, folder, &mut pages)?;
    if pages.is_empty() {
        return Err(format!("{} holds no page", folder.display()));
    }
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path, values(text, &["id", "name"]))).collect();
    let mut findings = Vec::new();
    for (path, text) in &pages {
        if ADDED.iter().any(|added| path == Path::new(added)) {
            continue;
        }
        for target in values(text, &["href", "src"]) {
            let Some((file, anchor)) = local(&target) else { continue };
            let file = if file.is_empty() { path.clone() } else { beside(path, file) };
            let problem = match anchors.get(&file) {
                Some(known) if !anchor.is_empty() && !known.contains(anchor) => "no such anchor",
                None if !folder.join(&file).exists() => "no such file",
                _ => continue,
            };
            findings.push(format!("{}: link `{target}`: {problem}", path.display()));
        }
    }
    Ok(findings)
}

fn markdown_files(root: &Path) -> Result<Vec<String>, String> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("running git: {error}"))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let there = |name: &&str| !name.is_empty() && root.join(name).is_file();
    Ok(text.split('\0').filter(there).map(str::to_owned).collect())
}

/// What is wrong with a link of a Markdown file, if anything is.
fn source_problem(root: &Path, from: &Path, target: &str) -> Option<&'static str> {
    let (file, anchor) = local(target)?;
    let path = if file.is_empty() { from.to_owned() } else { beside(from, file) };
    if !root.join(&path).exists() {
        return Some("no such file");
    }
    let is_markdown = path.extension().is_some_and(|extension| extension == "md");
    // mdbook's own anchors are looked at in the built pages.
    if anchor.is_empty() || !is_markdown || from.starts_with("docs") {
        return None;
    }
    let text = std::fs::read_to_string(root.join(&path)).ok()?;
    (!headings(&text).contains(anchor)).then_some("no such heading")
}

/// Path and anchor of a link without a scheme.
fn local(target: &str) -> Option<(&str, &str)> {
    let has_scheme = target.split(['/', '#', '?']).next().is_some_and(|head| head.contains(':'));
    if has_scheme || target.starts_with("//") || target.is_empty() {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    Some((file.split('?').next().unwrap_or(file), anchor))
}

/// `file`, seen from the page `from`, without `.` and `..`.
fn beside(from: &Path, file: &str) -> PathBuf {
    let mut path = from.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

/// Links `[words](target)` with their lines; what stands in code is none.
fn markdown_links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        for rest in prose.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            found.push((index + 1, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    found
}

/// The anchors that forges give to headings: lower case, spaces to hyphens, punctuation left out.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            words
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// Values of attributes in HTML as mdbook writes it: quoted, with ampersands escaped.
fn values(html: &str, names: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in names {
        for rest in html.split(&format!(" {name}=\"")).skip(1) {
            let value = rest.split('"').next().unwrap_or_default();
            found.insert(value.replace("&amp;", "&"));
        }
    }
    found
}

fn html_files(
    root: &Path,
    folder: &Path,
    pages: &mut BTreeMap<PathBuf, String>,
) -> Result<(), String> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(|error| format!("reading {}: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            html_files(root, &path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let name = path.strip_prefix(root).expect("it was listed under the root").to_owned();
            pages.insert(name, read(&path)?);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("reading {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: links are found in prose and not in code; links with a scheme are left alone.
    #[test]
    fn links_are_found_in_prose() {
        let text = "a [b](c.md#d) `[x](y)` [e](<f.md>)\n```\n[g](h)\n```\n[i](https://j)\n";
        let found = markdown_links(text);
        assert_eq!(
            found,
            [(1, "c.md#d".to_owned()), (1, "f.md".to_owned()), (5, "https://j".to_owned())]
        );
        assert_eq!(local("https://j"), None);
        assert_eq!(local("c.md#d"), Some(("c.md", "d")));
        assert_eq!(beside(Path::new("docs/a/b.md"), "../c.md"), Path::new("docs/c.md"));
    }

    /// Claim: a file that is not there and a heading that is not there are each found.
    #[test]
    fn broken_source_links_are_found() {
        let root = crate::workspace_root();
        let from = Path::new("README.md");
        assert_eq!(source_problem(&root, from, "ARCHITECTURE.md#arrows"), None);
        assert_eq!(source_problem(&root, from, "ARCHITECTURE.md#bows"), Some("no such heading"));
        assert_eq!(source_problem(&root, from, "nowhere.md"), Some("no such file"));
    }

    /// Claim: in a built book, a missing page and a missing anchor are each found, and nothing else.
    #[test]
    fn broken_book_links_are_found() {
        let folder = crate::workspace_root().join("target/docs-links-test");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("b")).expect("the target folder can be written");
        let page = "<h1 id=\"top\">t</h1><a href=\"b/c.html#in\">x</a><a href=\"b/c.html#out\">y</a>\
                    <a href=\"gone.html\">z</a><a href=\"#top\">t</a><a href=\"https://h/\">h</a>";
        std::fs::write(folder.join("a.html"), page).expect("it can be written");
        std::fs::write(folder.join("b/c.html"), "<p id=\"in\"><a href=\"../a.html#top\">")
            .expect("it can be written");
        let found = book(&folder).expect("it can be read");
        let _ = std::fs::remove_dir_all(&folder);
        assert_eq!(
            found,
            [
                "a.html: link `b/c.html#out`: no such anchor",
                "a.html: link `gone.html`: no such file",
            ]
        );
    }
}
