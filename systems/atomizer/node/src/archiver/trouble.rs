//! Why an archiver takes nothing more: it says so and ends, instead of asking for ever or storing what does not fit.

/// What contradicts an archive. Atomizers are numbered as they were given, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Blocks come that are of another ledger.
    #[error(
        "expected blocks of ledger {own:016x}, got one of ledger {ledger:016x} from atomizer {peer}: that one has lost its \
         disk, or is of another system; restore its folder, or archive the other ledger into an empty folder"
    )]
    Ledger {
        /// Who sent it.
        peer: usize,
        /// The archive's ledger.
        own: u64,
        /// The block's.
        ledger: u64,
    },
    /// A block that is stored comes again and is another one.
    #[error(
        "expected block {height} as it is stored here, got another one from atomizer {peer}: one of the two has lost what was \
         durable; compare with the archives of other archivers"
    )]
    Differs {
        /// Who sent it.
        peer: usize,
        /// The block.
        height: u64,
    },
    /// A block comes that does not follow the last one by its hash.
    #[error(
        "expected block {height} to follow the one before by its hash, got one from atomizer {peer} that does not: one of the \
         two has lost what was durable; compare with the archives of other archivers"
    )]
    Follows {
        /// Who sent it.
        peer: usize,
        /// The block.
        height: u64,
    },
    /// Blocks are missing that all atomizers have forgotten.
    #[error(
        "blocks {first} to {last} are missing here and pruned at each atomizer: they were said to be stored; begin with a copy \
         of the folder of an archiver that has them"
    )]
    Pruned {
        /// The first that is missing.
        first: u64,
        /// The last of those that no atomizer can send.
        last: u64,
    },
}
