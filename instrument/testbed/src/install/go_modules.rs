//! The modules in a program that Go built, against the list of their sums (`go.sums`).
//!
//! Go notes in each program which modules it is built from, each with the sum of its files. Building runs nothing of them, so
//! the comparison comes before the first byte of a stranger's code is run, dependencies included. A new pin needs its lines:
//! `go version -m PROGRAM` prints them.

/// Module, version and sum, one module a line, sorted.
pub(super) const SUMS: &str = include_str!("go.sums");

/// The most of `go version -m` that is read: the largest program of the list has a tenth of it.
pub(super) const BYTES_MAX: usize = 1 << 20;

/// Checks what `go version -m` said: the program is of the pinned module and version, and every module has a known sum.
pub(super) fn check(said: &str, package: &str, version: &str, sums: &str) -> Result<(), String> {
    let mut is_pinned = false;
    let mut unsummed = None;
    for line in said.lines() {
        let mut words = line.split_ascii_whitespace();
        let (kind, module) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !matches!(kind, "mod" | "dep" | "=>") {
            continue;
        }
        let (its_version, sum) = (words.next().unwrap_or_default(), words.next());
        if kind == "mod" && module == OURS {
            continue;
        }
        if kind != "=>"
            && let Some(earlier) = unsummed.take()
        {
            return Err(format!("{earlier} has no sum"));
        }
        let Some(sum) = sum else {
            // One that is replaced has its sum on the next line.
            unsummed = Some(format!("{module} {its_version}"));
            continue;
        };
        unsummed = None;
        let known = format!("{module} {its_version} {sum}");
        if sums.lines().all(|line| line != known) {
            return Err(unknown(sums, module, its_version, sum));
        }
        is_pinned |= its_version == version && is_of(package, module);
    }
    if let Some(module) = unsummed {
        return Err(format!("{module} has no sum"));
    }
    if is_pinned { Ok(()) } else { Err(format!("no module of {package} at {version} is in it")) }
}

/// The module of ours that a program is built from where its own cannot be.
const OURS: &str = "build";

fn is_of(package: &str, module: &str) -> bool {
    package.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn unknown(sums: &str, module: &str, version: &str, sum: &str) -> String {
    let start = format!("{module} {version} ");
    match sums.lines().find_map(|line| line.strip_prefix(&start)) {
        Some(wanted) => format!("{module} {version}: expected the sum {wanted}, got {sum}"),
        None => format!("{module} {version} {sum} is not in the list of sums"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ENTRIES, How};
    use super::*;

    const SAID: &str = "/cache/x/x: go1.26.8\n\tpath\ta.b/x/cmd/x\n\tmod\ta.b/x\tv1.2.3\th1:AAA=\n\
        \tdep\tc.d/y\tv0.1.0\n\t=>\te.f/y\tv0.1.1\th1:BBB=\n\tbuild\t-compiler=gc\n";
    const KNOWN: &str = "a.b/x v1.2.3 h1:AAA=\ne.f/y v0.1.1 h1:BBB=\n";

    fn refused(said: &str, package: &str, version: &str) -> String {
        check(said, package, version, KNOWN).expect_err("it differs")
    }

    /// Claim: a program of known modules passes, one with a replaced dependency too; another sum, a module that is not in the
    /// list, one without a sum, another version and another module are each refused, by name.
    #[test]
    fn modules() {
        assert_eq!(check(SAID, "a.b/x/cmd/x", "v1.2.3", KNOWN), Ok(()));
        let other = SAID.replace("AAA", "ZZZ");
        assert_eq!(
            refused(&other, "a.b/x", "v1.2.3"),
            "a.b/x v1.2.3: expected the sum h1:AAA=, got h1:ZZZ="
        );
        let added = format!("{SAID}\tdep\tg.h/z\tv1.0.0\th1:CCC=\n");
        let added = refused(&added, "a.b/x", "v1.2.3");
        assert_eq!(added, "g.h/z v1.0.0 h1:CCC= is not in the list of sums");
        let replaced = SAID.replace("\t=>\te.f/y\tv0.1.1\th1:BBB=\n", "");
        assert_eq!(refused(&replaced, "a.b/x", "v1.2.3"), "c.d/y v0.1.0 has no sum");
        assert_eq!(refused(SAID, "a.b/x", "v1.2.4"), "no module of a.b/x at v1.2.4 is in it");
        assert!(refused(SAID, "a.b/xylophone", "v1.2.3").starts_with("no module of"));
        assert!(refused("", "a.b/x", "v1.2.3").starts_with("no module of"));
        let ours =
            SAID.replace("\tmod\ta.b/x\tv1.2.3", "\tmod\tbuild\t(devel)\n\tdep\ta.b/x\tv1.2.3");
        assert_eq!(check(&ours, "a.b/x/cmd/x", "v1.2.3", KNOWN), Ok(()));
    }

    /// Claim: the list is sorted, each line is a module, a version and a sum, and every Go pin of the table stands in it.
    #[test]
    fn the_list_has_every_pin() {
        let lines: Vec<Vec<&str>> = SUMS.lines().map(|line| line.split(' ').collect()).collect();
        assert!(SUMS.lines().zip(SUMS.lines().skip(1)).all(|(one, next)| one < next));
        assert!(lines.iter().all(|words| words.len() == 3 && words[2].starts_with("h1:")));
        for entry in ENTRIES {
            if let How::Go { package, version } | How::GoModule { package, version } = entry.how {
                let has = lines.iter().any(|words| words[1] == version && is_of(package, words[0]));
                assert!(has, "{package}@{version} has no sum; add its lines of go version -m");
            }
        }
    }
}
