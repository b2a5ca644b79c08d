//! In which order a client's transfers take nonces, which of them replace the one before, and which are to revert: a pure
//! function of the seed and of how many came before, so that a check can say of each transaction in the record what it
//! was, without anything having been kept.

use model::Seed;

/// Parts of a whole that shares are counted in.
pub(crate) const PARTS: u64 = 1_000_000;

/// What the experiment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) seed: Seed,
    pub(crate) accounts: u32,
    /// More than one: clients that do not know of each other have one account.
    pub(crate) clients_per_account: u32,
    /// Of [`PARTS`] transfers so many take the nonce of the one before and pay more.
    pub(crate) replacing: u64,
    /// Of [`PARTS`] transfers so many go to a contract that refuses them.
    pub(crate) reverting: u64,
}

/// How far a client has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    count: u64,
    nonces: u64,
}

/// One transfer of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) nonce: u64,
    pub(crate) replaces: bool,
    pub(crate) reverts: bool,
}

impl Course {
    /// How many clients there are, where the load does not say it.
    pub(crate) const fn clients(&self) -> u32 {
        self.accounts.saturating_mul(self.clients_per_account)
    }

    /// Whose account a client uses.
    pub(crate) const fn account(&self, client: u32) -> u32 {
        client / self.clients_per_account % self.accounts
    }

    /// The next transfer of a client.
    pub(crate) fn step(&self, client: u32, walk: &mut Walk) -> Step {
        let mut draw = {
            let name = u64::from(client) << 40 | walk.count;
            self.seed.split_index("step", name).rng()
        };
        let replaces = walk.count > 0 && draw.below(PARTS) < self.replacing;
        let reverts = draw.below(PARTS) < self.reverting;
        walk.count += 1;
        walk.nonces += u64::from(!replaces);
        Step { nonce: walk.nonces - 1, replaces, reverts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a client's nonces are dense from zero, a replacement has that of the one before, shares are what was asked
    /// for, and the same course is walked each time.
    #[test]
    fn walks() {
        let course = Course {
            seed: Seed(5),
            accounts: 3,
            clients_per_account: 2,
            replacing: 100_000,
            reverting: 50_000,
        };
        let steps = |client| {
            let mut walk = Walk::default();
            (0..10_000).map(|_| course.step(client, &mut walk)).collect::<Vec<_>>()
        };
        let all = steps(4);
        assert_eq!(all, steps(4));
        assert!(all != steps(5) && !all[0].replaces);
        for pair in all.windows(2) {
            assert_eq!(pair[1].nonce, pair[0].nonce + u64::from(!pair[1].replaces));
        }
        let count = |is: fn(&Step) -> bool| all.iter().filter(|step| is(step)).count();
        assert!((900..1100).contains(&count(|step| step.replaces)));
        assert!((430..570).contains(&count(|step| step.reverts)));
        let accounts: Vec<u32> = (0..8).map(|client| course.account(client)).collect();
        assert_eq!(accounts, [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(course.clients(), 6);
    }
}
