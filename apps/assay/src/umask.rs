//! Who may read the files that this process makes.

/// Answers of a system and files of its nodes are their owner's alone, whatever the user's umask says.
pub fn only_own_files() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}
