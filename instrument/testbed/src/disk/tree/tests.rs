//! What is left after the power was cut, rule by rule. Every claim here is about a disk that is not mounted.

use super::*;

const NOW: WallTime = WallTime::from_unix_ns(1);
const BIG: u64 = 1 << 30;

fn attributes() -> Attributes {
    Attributes { mode: 0o100_644, uid: 0, gid: 0, device: 0, modified: NOW, changed: NOW }
}

fn tree(names: NamesRule) -> Tree {
    Tree::new(BIG, names, attributes())
}

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn file(tree: &mut Tree, folder: u64, called: &str) -> u64 {
    tree.create(folder, name(called), What::File(Content::default()), attributes()).unwrap()
}

fn folder(tree: &mut Tree, above: u64, called: &str) -> u64 {
    tree.create(above, name(called), What::Folder(BTreeMap::new()), attributes()).unwrap()
}

fn write(tree: &mut Tree, inode: u64, text: &str) {
    tree.write(inode, 0, text.as_bytes(), NOW).unwrap();
}

/// Paths of files with what they hold.
fn found(tree: &Tree) -> Vec<(String, String)> {
    fn walk(tree: &Tree, folder: u64, path: &str, into: &mut Vec<(String, String)>) {
        for (inode, name) in tree.list(folder).unwrap().into_iter().skip(2) {
            let path = format!("{path}/{}", name.to_str().unwrap());
            match tree.read(inode, 0, 1_000) {
                Ok(bytes) => into.push((path, String::from_utf8(bytes).unwrap())),
                Err(_) => walk(tree, inode, &path, into),
            }
        }
    }
    let mut all = Vec::new();
    walk(tree, ROOT, "", &mut all);
    all
}

fn lose(tree: &mut Tree) -> Vec<(String, String)> {
    tree.lose(Loss::Drop, Seed(1));
    found(tree)
}

fn is(found: &[(String, String)], right: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> = found.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    assert_eq!(found, right);
}

/// Claim: with a journal, a sync of a file keeps its bytes and every name made before it, folders above included,
/// and of other files the name alone; what came after is gone.
#[test]
fn a_journal_keeps_names_in_order() {
    let mut tree = tree(NamesRule::Journal);
    let deep = folder(&mut tree, ROOT, "deep");
    let (a, b) = (file(&mut tree, deep, "a"), file(&mut tree, ROOT, "b"));
    write(&mut tree, a, "kept");
    write(&mut tree, b, "lost");
    tree.sync_file(a, false).unwrap();
    write(&mut tree, a, "kept not");
    file(&mut tree, ROOT, "c");
    is(&lose(&mut tree), &[("/b", ""), ("/deep/a", "kept")]);
    assert_eq!(tree.usage().0, 1);
}

/// Claim: by the strict rule a name is durable when its folder was synced, and not when its file was.
#[test]
fn a_strict_disk_keeps_what_was_asked_for() {
    let mut tree = tree(NamesRule::Strict);
    let deep = folder(&mut tree, ROOT, "deep");
    let a = file(&mut tree, deep, "a");
    write(&mut tree, a, "kept");
    tree.sync_file(a, false).unwrap();
    tree.sync_folder(deep).unwrap();
    is(&lose(&mut tree), &[]);
    let deep = folder(&mut tree, ROOT, "deep");
    let a = file(&mut tree, deep, "a");
    write(&mut tree, a, "kept");
    tree.sync_file(a, true).unwrap();
    tree.sync_folder(deep).unwrap();
    tree.sync_folder(ROOT).unwrap();
    file(&mut tree, ROOT, "c");
    is(&lose(&mut tree), &[("/deep/a", "kept")]);
}

/// Claim: fdatasync of a file that has kept its size and its name makes its bytes durable and no names; of one
/// that has grown, names too.
#[test]
fn a_sync_of_data_alone() {
    let mut tree = tree(NamesRule::Journal);
    let a = file(&mut tree, ROOT, "a");
    write(&mut tree, a, "one");
    tree.sync_file(a, true).unwrap();
    file(&mut tree, ROOT, "b");
    write(&mut tree, a, "two");
    tree.sync_file(a, true).unwrap();
    is(&lose(&mut tree), &[("/a", "two")]);
    file(&mut tree, ROOT, "b");
    write(&mut tree, a, "longer");
    tree.sync_file(a, true).unwrap();
    is(&lose(&mut tree), &[("/a", "longer"), ("/b", "")]);
}

/// Claim: a rename that is not synced leaves the old file under the name; a synced one the new; never neither. What
/// the new file holds is what was synced of it, which a rename does not do.
#[test]
fn a_rename_is_atomic() {
    for rule in [NamesRule::Journal, NamesRule::Strict] {
        let mut tree = tree(rule);
        let old = file(&mut tree, ROOT, "it");
        write(&mut tree, old, "old");
        tree.sync_all();
        let new = file(&mut tree, ROOT, "it.tmp");
        write(&mut tree, new, "new");
        tree.sync_file(new, false).unwrap();
        let rename = |tree: &mut Tree| {
            tree.rename((ROOT, name("it.tmp")), (ROOT, name("it")), Rename::Over, NOW).unwrap();
        };
        rename(&mut tree);
        is(&found(&tree), &[("/it", "new")]);
        let left = lose(&mut tree);
        assert_eq!(left[0], ("/it".to_owned(), "old".to_owned()), "{rule:?}");
        let new = file(&mut tree, ROOT, "it.new");
        write(&mut tree, new, "newer");
        tree.rename((ROOT, name("it.new")), (ROOT, name("it")), Rename::Over, NOW).unwrap();
        tree.sync_folder(ROOT).unwrap();
        let left = lose(&mut tree);
        assert_eq!(left[0], ("/it".to_owned(), String::new()), "{rule:?}");
    }
}

/// Claim: by the strict rule a rename between folders is durable as a whole when either folder was synced, with the
/// changes that it rests on and no others.
#[test]
fn a_rename_between_folders_is_whole() {
    let mut tree = tree(NamesRule::Strict);
    let (from, to) = (folder(&mut tree, ROOT, "from"), folder(&mut tree, ROOT, "to"));
    tree.sync_folder(ROOT).unwrap();
    let a = file(&mut tree, from, "a");
    write(&mut tree, a, "a");
    tree.sync_file(a, false).unwrap();
    tree.rename((from, name("a")), (to, name("a")), Rename::Over, NOW).unwrap();
    file(&mut tree, from, "later");
    tree.sync_folder(to).unwrap();
    tree.sync_folder(to).unwrap();
    is(&lose(&mut tree), &[("/to/a", "a")]);
    tree.rename((to, name("a")), (from, name("b")), Rename::Over, NOW).unwrap();
    is(&lose(&mut tree), &[("/to/a", "a")]);
}

/// Claim: two names that change places do so whole; a rename onto what must not be there is refused.
#[test]
fn the_other_ways_to_rename() {
    let mut tree = tree(NamesRule::Journal);
    let (a, b) = (file(&mut tree, ROOT, "a"), file(&mut tree, ROOT, "b"));
    write(&mut tree, a, "a");
    write(&mut tree, b, "b");
    let (from, to) = ((ROOT, name("a")), (ROOT, name("b")));
    assert_eq!(tree.rename(from, to, Rename::New, NOW), Err(Errno::EXIST));
    tree.rename(from, to, Rename::Exchange, NOW).unwrap();
    is(&found(&tree), &[("/a", "b"), ("/b", "a")]);
    assert_eq!((tree.get(a).unwrap().links, tree.get(b).unwrap().links), (1, 1));
    let inside = folder(&mut tree, ROOT, "folder");
    assert_eq!(tree.rename(from, (ROOT, name("folder")), Rename::Over, NOW), Err(Errno::ISDIR));
    assert_eq!(tree.rename((ROOT, name("folder")), to, Rename::Over, NOW), Err(Errno::NOTDIR));
    file(&mut tree, inside, "x");
    assert_eq!(tree.remove_folder(ROOT, name("folder"), NOW), Err(Errno::NOTEMPTY));
    assert_eq!(
        tree.rename(from, (ROOT, name(&"n".repeat(256))), Rename::Over, NOW),
        Err(Errno::NAMETOOLONG)
    );
}

/// Claim: a file that was removed and not synced is there again; a synced removal is not; a second name keeps a file;
/// a file that is neither open nor in a folder takes no room.
#[test]
fn removals() {
    let mut tree = tree(NamesRule::Journal);
    let a = file(&mut tree, ROOT, "a");
    write(&mut tree, a, "a");
    tree.sync_file(a, false).unwrap();
    tree.unlink(ROOT, name("a"), NOW).unwrap();
    is(&found(&tree), &[]);
    is(&lose(&mut tree), &[("/a", "a")]);
    tree.link(a, ROOT, name("second"), NOW).unwrap();
    tree.unlink(ROOT, name("a"), NOW).unwrap();
    tree.sync_folder(ROOT).unwrap();
    is(&lose(&mut tree), &[("/second", "a")]);
    tree.remember(a);
    tree.unlink(ROOT, name("second"), NOW).unwrap();
    tree.sync_all();
    assert_eq!(tree.read(a, 0, 10), Ok(b"a".to_vec()), "it is open");
    tree.forget(a, 1);
    assert_eq!((tree.read(a, 0, 10), tree.usage().0), (Err(Errno::STALE), 0));
}

/// Claim: a folder that was removed with changes of its names still waiting does no harm to the next sync.
#[test]
fn a_folder_that_came_and_went() {
    let mut tree = tree(NamesRule::Journal);
    let inside = folder(&mut tree, ROOT, "tmp");
    file(&mut tree, inside, "x");
    tree.unlink(inside, name("x"), NOW).unwrap();
    tree.remove_folder(ROOT, name("tmp"), NOW).unwrap();
    let a = file(&mut tree, ROOT, "a");
    tree.sync_file(a, false).unwrap();
    is(&lose(&mut tree), &[("/a", "")]);
    assert_eq!(tree.inodes.len(), 2, "nothing is held that nobody can find");
}

/// Claim: a full disk refuses what takes more room and nothing else; room that was given up counts at once, synced or
/// not; a disk that is made smaller than what it holds is full.
#[test]
fn a_full_disk() {
    let mut tree = Tree::new(10 * PAGE, NamesRule::Journal, attributes());
    let a = file(&mut tree, ROOT, "a");
    let ten = vec![1; 10 * PAGE as usize];
    tree.write(a, 0, &ten, NOW).unwrap();
    let b = file(&mut tree, ROOT, "b");
    assert_eq!(tree.write(b, 0, b"x", NOW), Err(Errno::NOSPC));
    tree.write(a, 5, &ten[..100], NOW).unwrap();
    tree.unlink(ROOT, name("a"), NOW).unwrap();
    tree.write(b, 0, &ten, NOW).unwrap();
    assert_eq!(tree.usage(), (10, 10));
    tree.set_size(5 * PAGE);
    assert_eq!(tree.make_room(b, 10 * PAGE, 1), Err(Errno::NOSPC));
    tree.resize(b, PAGE, NOW).unwrap();
    tree.write(b, PAGE, &ten[..100], NOW).unwrap();
}

/// Claim: a torn loss keeps a beginning of the changes of names, of every length, and the same one for the same seed.
#[test]
fn a_torn_journal_is_a_prefix() {
    let mut counts = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let both: Vec<_> = (0..2)
            .map(|_| {
                let mut tree = tree(NamesRule::Journal);
                for n in 0..4 {
                    file(&mut tree, ROOT, &n.to_string());
                }
                let lost = tree.lose(Loss::Tear, Seed(seed));
                (found(&tree), lost)
            })
            .collect();
        assert_eq!(both[0], both[1]);
        let (found, lost) = &both[0];
        let right: Vec<String> = (0..found.len()).map(|n| format!("/{n}")).collect();
        assert_eq!(found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), right);
        assert_eq!(lost.names, 4 - found.len() as u64);
        counts.insert(found.len());
    }
    assert_eq!(counts.len(), 5);
}

/// Claim: whatever is done in whatever order, the count of pages is that of the pages, a loss leaves what a sync of
/// everything would have left had nothing come after it, and a second loss changes nothing.
#[test]
fn any_order_of_things() {
    for seed in 0..300 {
        let mut rng = Seed(seed).rng();
        let rule = if seed % 2 == 0 { NamesRule::Journal } else { NamesRule::Strict };
        let mut tree = Tree::new(64 * PAGE, rule, attributes());
        let mut folders = vec![ROOT];
        let mut safe = Vec::new();
        for step in 0..120 {
            let pick =
                |rng: &mut model::seed::Rng, of: &[u64]| of[rng.below(of.len() as u64) as usize];
            let (here, there) = (pick(&mut rng, &folders), pick(&mut rng, &folders));
            let (called, other) = (format!("n{}", rng.below(6)), format!("n{}", rng.below(6)));
            let (called, other) = (name(&called), name(&other));
            // What is refused (no such name, not empty, full) is refused; nothing may break.
            match rng.below(9) {
                0 => {
                    let _ = tree.create(here, called, What::File(Content::default()), attributes());
                }
                1 if folders.len() < 4 => {
                    let made =
                        tree.create(ROOT, called, What::Folder(BTreeMap::new()), attributes());
                    folders.extend(made);
                }
                2 => {
                    let _ = tree.unlink(here, called, NOW);
                }
                3 if here == there => {
                    let _ = tree.rename((here, called), (there, other), Rename::Over, NOW);
                }
                4 | 5 => {
                    if let Ok(inode) = tree.lookup(here, called) {
                        let text = format!("{step}").repeat(2_000);
                        let _ = tree.write(inode, rng.below(9_000), text.as_bytes(), NOW);
                    }
                }
                6 => {
                    if let Ok(inode) = tree.lookup(here, called) {
                        let _ = tree.resize(inode, rng.below(20_000), NOW);
                    }
                }
                7 => {
                    if let Ok(inode) = tree.lookup(here, called) {
                        let _ = tree.sync_file(inode, rng.below(2) == 0);
                    }
                }
                _ if step < 60 => {
                    tree.sync_all();
                    safe = all(&tree);
                }
                _ => {}
            }
            let pages: u64 = tree
                .inodes
                .values()
                .map(|inode| match &inode.what {
                    What::File(content) => content.pages(),
                    _ => 0,
                })
                .sum();
            assert_eq!(tree.pages, pages, "seed {seed}, step {step}");
            if rng.below(40) == 0 {
                tree.sync_all();
                safe = all(&tree);
                tree.lose(Loss::Drop, Seed(seed));
                assert_eq!(all(&tree), safe, "seed {seed}, step {step}");
                folders.retain(|folder| tree.folder(*folder).is_ok());
            }
        }
        tree.sync_all();
        safe.clone_from(&all(&tree));
        tree.lose(Loss::Tear, Seed(seed));
        assert_eq!(all(&tree), safe);
    }
}

fn all(tree: &Tree) -> Vec<(String, usize)> {
    found_lengths(tree, ROOT, "")
}

fn found_lengths(tree: &Tree, folder: u64, path: &str) -> Vec<(String, usize)> {
    let mut into = Vec::new();
    for (inode, name) in tree.list(folder).unwrap().into_iter().skip(2) {
        let path = format!("{path}/{}", name.to_str().unwrap());
        match tree.read(inode, 0, u64::MAX) {
            Ok(bytes) => {
                let sum = bytes
                    .iter()
                    .fold(0_usize, |sum, b| (sum.wrapping_mul(31) + usize::from(*b)) & 0xffff_ffff);
                into.push((path, sum));
            }
            Err(_) => into.extend(found_lengths(tree, inode, &path)),
        }
    }
    into
}
