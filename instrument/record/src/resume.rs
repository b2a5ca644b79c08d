//! Going on with a run that was stopped: which of its trials are whole, and away with one that is not.

use std::fs;

use crate::error::RecordError;
use crate::folder::RunFolder;

impl RunFolder {
    /// Whether a trial ran to its end.
    ///
    /// # Errors
    /// When its facts are there and cannot be read, or plan.toml cannot.
    pub fn is_whole(&self, setting_key: &str, trial_index: u32) -> Result<bool, RecordError> {
        let is_it =
            |it: &crate::TrialFolder| it.setting() == setting_key && it.trial() == trial_index;
        let Some(folder) = self.trials()?.into_iter().find(is_it) else { return Ok(false) };
        match folder.facts() {
            Err(RecordError::Missing { .. }) => Ok(false),
            facts => facts.map(|facts| {
                facts.complete && facts.interrupted().is_empty() && !facts.after.ledger.was_cut
            }),
        }
    }

    /// Removes what a trial left that did not run to its end, so that it can be run anew.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget_trial(&self, setting_key: &str, trial_index: u32) -> Result<(), RecordError> {
        let is_it =
            |it: &crate::TrialFolder| it.setting() == setting_key && it.trial() == trial_index;
        let Some(folder) = self.trials()?.into_iter().find(is_it) else { return Ok(()) };
        fs::remove_dir_all(folder.path())
            .map_err(|error| RecordError::writing(folder.path(), error))
    }
}
