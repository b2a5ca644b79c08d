//! Every kind of fault, in one list. A kind is a file here, with what it declares (its keys, what it needs, what is
//! wrong with one) and what it does; and one line in [`KINDS`]. The experiment reader, its schema and the documents
//! take their part from the list.

mod disk;
mod kill;
mod link;
mod partition;
mod pause;
mod power;
mod replace;
mod restart;
mod rot;
mod rotate;
mod wipe;

use model::fault::FaultKind;

use super::journal::Fault;
use super::scene::Scene;

/// In the order in which they are named to people.
pub(super) const KINDS: &[Kind] = &[
    pause::KIND,
    kill::KIND,
    restart::KIND,
    wipe::KIND,
    replace::KIND,
    rotate::KIND,
    partition::KIND,
    link::KIND,
    power::KIND,
    disk::KIND,
    rot::KIND,
];

/// One kind.
pub(super) struct Kind {
    pub declared: FaultKind,
    /// Begins one. What is to be undone is given back; it notes in the scene's journal what it does, and for whom it
    /// could not.
    pub begin: fn(&Fault, &mut Scene) -> Option<Box<dyn Underway>>,
}

/// A fault that lasts.
pub(super) trait Underway: Send {
    /// Undoes it, because its time or the trial is over (then it is cut short), and notes that.
    fn end(self: Box<Self>, of: &Fault, scene: &mut Scene, cut_short: bool);
}

pub(super) fn of(word: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.declared.word == word)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::fault::FaultKey;

    use super::*;

    /// Claim: no two kinds share a word, no key has the name of a word or of what every fault has, and a key that
    /// several kinds have is of one form.
    #[test]
    fn words_and_keys_are_told_apart() {
        let mut words = vec!["at", "for", "kind", "on", "keys"];
        let mut keys: BTreeMap<&str, FaultKey> = BTreeMap::new();
        for kind in KINDS.iter().map(|kind| kind.declared) {
            assert!(!words.contains(&kind.word), "{}", kind.word);
            words.push(kind.word);
            assert!(!kind.meaning.ends_with('.') && kind.called.contains(' '), "{}", kind.word);
            for key in kind.keys {
                let known = *keys.entry(key.name).or_insert(*key);
                assert_eq!((known.form, known.default), (key.form, key.default), "{}", key.name);
            }
        }
        assert!(keys.keys().all(|key| !words.contains(key)), "{keys:?}");
    }
}
