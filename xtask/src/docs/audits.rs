//! The lists of audits in the book: the table of docs/audits/index.md, and the lines of docs/SUMMARY.md. Made from the list
//! in `analysis` and from the name and the question at the top of each audit's file, so that an audit is written down once.

use std::path::Path;

const AUDITS: &str = "instrument/analysis/src/audits";
pub const INDEX: &str = "docs/audits/index.md";
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// The line of docs/SUMMARY.md under which the pages of audits stand.
const SUMMARY_HEAD: &str = "- [What an audit is](audits/index.md)\n";
const INDEX_HEAD: &str = "| audit | the question |\n| --- | --- |\n";

/// The two pages as they should be.
pub fn pages(root: &Path) -> Result<[(&'static str, String); 2], String> {
    let audits = audits(root)?;
    let row =
        |(name, question): &(String, String)| format!("| [{name}]({name}.md) | {question} |\n");
    let table: String = audits.iter().map(row).collect();
    let mut names: Vec<&str> = audits.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let line = |name: &str| format!("  - [{name}](audits/{name}.md)\n");
    let lines: String = names.into_iter().map(line).collect();
    Ok([
        (INDEX, with_block(&read(root, INDEX)?, INDEX_HEAD, &table).ok_or(lacks(INDEX))?),
        (SUMMARY, with_block(&read(root, SUMMARY)?, SUMMARY_HEAD, &lines).ok_or(lacks(SUMMARY))?),
    ])
}

/// Name and question of each audit, in the order of the list.
fn audits(root: &Path) -> Result<Vec<(String, String)>, String> {
    let list = read(root, &format!("{AUDITS}/mod.rs"))?;
    let within = |head: &str, end: &str| {
        let (_, after) = list.split_once(head).ok_or(lacks(AUDITS))?;
        Ok::<_, String>(after.split_once(end).map_or(after, |(inside, _)| inside))
    };
    let of_trials = within("\naudits! {", "}")?.split(',');
    let across = within(".chain([", "::AUDIT])")?;
    let files = of_trials.map(str::trim).filter(|file| !file.is_empty()).chain([across]);
    let mut audits = Vec::new();
    for file in files {
        let path = format!("{AUDITS}/{file}.rs");
        let text = read(root, &path)?;
        let quoted =
            |key: &str| quoted(&text, key).ok_or(format!("{path} has no `{key}` of an audit"));
        audits.push((quoted("name")?, quoted("question")?));
    }
    Ok(audits)
}

/// The string of a field of `const AUDIT`, on the field's line or the next.
fn quoted(text: &str, key: &str) -> Option<String> {
    let declared = text.split_once("const AUDIT: Audit")?.1;
    let (_, after) = declared.split_once(&format!("{key}:"))?;
    after.trim_start().strip_prefix('"')?.split_once('"').map(|(inside, _)| inside.to_owned())
}

/// The page with the lines after `head` that begin as the block does replaced by it.
fn with_block(page: &str, head: &str, block: &str) -> Option<String> {
    let start = page.find(head)? + head.len();
    let begins = block.split_once('[')?.0;
    let is_old = |line: &&str| line.starts_with(begins);
    let old = page[start..].split_inclusive('\n').take_while(is_old);
    let end = start + old.map(str::len).sum::<usize>();
    Some(format!("{}{block}{}", &page[..start], &page[end..]))
}

fn lacks(page: &str) -> String {
    format!("{page} has no place for the list of audits")
}

fn read(root: &Path, name: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(name)).map_err(|error| format!("reading {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every audit is found with its question, the one across trials last, and only the list on a page is replaced.
    #[test]
    fn lists_of_audits() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let all = audits(root).unwrap();
        assert!(
            all.is_sorted_by_key(|(name, _)| (name == "repeatability", name.clone())),
            "{all:?}"
        );
        assert!(
            all.len() > 20 && all.iter().all(|(_, question)| question.contains('?')),
            "{all:?}"
        );
        let page = "a\nhead\n  - [old]\n- [next]\n";
        let made = with_block(page, "head\n", "  - [new]\n").unwrap();
        assert_eq!(made, "a\nhead\n  - [new]\n- [next]\n");
        assert_eq!(with_block("a\n", "head\n", "  - [new]\n"), None);
    }
}
