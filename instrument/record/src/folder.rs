//! The folder of one run: which files it has, and the way to its trials. All paths inside are relative to the
//! folder, so that a copy elsewhere reads the same.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clock::WallTime;
use model::facts::Environment;
use model::picture::RawFile;
use model::plan::{PLAN_SCHEMA, Plan};
use model::result::{RunResult, SCHEMA as RESULT_SCHEMA};

use crate::disk;
use crate::documents::{Schema, read_json, write_json};
use crate::error::RecordError;
use crate::name::{folder_name, is_plain_file_name};
use crate::trial::TrialFolder;

const EXPERIMENT: &str = "experiment.toml";
const PLAN: &str = "plan.toml";
const ENVIRONMENT: &str = "environment.json";
const SUMMARY: &str = "summary.json";
const SETTINGS: &str = "settings";
/// The most files of one trial that are listed with a checksum.
const TRIAL_FILES_MAX: usize = 1000;
/// Runs of one name that may start in the same second.
const SAME_SECOND_MAX: u32 = 1000;

/// One run on disk: `runs/<utc>_<name>/`.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder of a new run, `<utc>_<name>`, with `-2`, `-3`, … if that is taken.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(runs: &Path, name: &str, started: WallTime) -> Result<Self, RecordError> {
        let at = |path: &Path, source| RecordError::Create { path: path.to_owned(), source };
        disk::create_folders(runs).map_err(|error| at(runs, error))?;
        let stem = format!("{}_{}", started.compact(), folder_name(name));
        for attempt in 1..=SAME_SECOND_MAX {
            let path =
                runs.join(if attempt == 1 { stem.clone() } else { format!("{stem}-{attempt}") });
            match disk::create_folder(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&path, error)),
            }
        }
        Err(at(&runs.join(stem), io::Error::from(io::ErrorKind::AlreadyExists)))
    }

    /// Opens a folder that is there.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(Self { path: path.to_owned() });
        }
        Err(RecordError::Missing {
            path: path.to_owned(),
            next: "name a run folder; `assay list` shows those that there are",
        })
    }

    /// The runs in a folder of runs, oldest first. Other folders in it are left out.
    ///
    /// # Errors
    /// When `runs` cannot be read.
    pub fn list(runs: &Path) -> Result<Vec<Self>, RecordError> {
        let entries = fs::read_dir(runs).map_err(|error| RecordError::reading(runs, error))?;
        let mut found: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join(PLAN).is_file() || path.join(SETTINGS).is_dir())
            .collect();
        found.sort();
        Ok(found.into_iter().map(|path| Self { path }).collect())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a text file (`experiment.toml`, `report.md`) whole.
    ///
    /// # Errors
    /// When the name is not a plain file name, or the file cannot be written.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RecordError> {
        disk::write_whole(&self.file(name)?, text.as_bytes())
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// When the name is not a plain file name, or the file cannot be read.
    pub fn text(&self, name: &str) -> Result<String, RecordError> {
        disk::read_text(&self.file(name)?)
    }

    /// Writes plan.toml.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_plan(&self, plan: &Plan) -> Result<(), RecordError> {
        let path = self.path.join(PLAN);
        let text = toml::to_string(plan).map_err(|error| {
            RecordError::writing(&path, io::Error::new(io::ErrorKind::InvalidData, error))
        })?;
        disk::write_whole(&path, text.as_bytes())
    }

    /// Reads plan.toml.
    ///
    /// # Errors
    /// When it is missing or is not a plan.
    pub fn plan(&self) -> Result<Plan, RecordError> {
        let path = self.path.join(PLAN);
        let text = disk::read_text(&path)?;
        if let Ok(Schema { schema }) = toml::from_str(&text)
            && !schema.is_empty()
            && schema != PLAN_SCHEMA
        {
            return Err(RecordError::OtherVersion { path, found: schema, known: PLAN_SCHEMA });
        }
        parse_plan(&text).map_err(|why| RecordError::damaged(&path, why))
    }

    /// plan.toml as it stands; empty if there is none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn plan_text(&self) -> Result<String, RecordError> {
        text_or_nothing(&self.path.join(PLAN))
    }

    /// The experiment as it was written; empty if the folder has none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn experiment(&self) -> Result<String, RecordError> {
        text_or_nothing(&self.path.join(EXPERIMENT))
    }

    /// The files that hold what was measured and how, by path, with length and CRC-32. Reports are not among them:
    /// they can be made again.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn raw_files(&self) -> Result<Vec<RawFile>, RecordError> {
        let mut files = Vec::new();
        for name in [EXPERIMENT, PLAN, ENVIRONMENT] {
            self.add_raw_file(&self.path.join(name), &mut files)?;
        }
        for trial in self.trials()? {
            let is_known = trial.known_files()?;
            for path in disk::files_of(trial.path(), TRIAL_FILES_MAX)? {
                if is_known(&path) {
                    self.add_raw_file(&path, &mut files)?;
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn add_raw_file(&self, path: &Path, files: &mut Vec<RawFile>) -> Result<(), RecordError> {
        match disk::checksum(path) {
            Ok(sealed) => {
                let relative = path.strip_prefix(&self.path).unwrap_or(path);
                files.push(RawFile {
                    path: relative.to_string_lossy().into_owned(),
                    bytes: sealed.bytes,
                    crc32: sealed.crc32,
                });
                Ok(())
            }
            Err(RecordError::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes environment.json.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_environment(&self, environment: &Environment) -> Result<(), RecordError> {
        write_json(&self.path.join(ENVIRONMENT), environment)
    }

    /// Reads environment.json.
    ///
    /// # Errors
    /// When it is missing or is not one.
    pub fn environment(&self) -> Result<Environment, RecordError> {
        read_json(&self.path.join(ENVIRONMENT))
    }

    /// Writes summary.json.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_result(&self, result: &RunResult) -> Result<(), RecordError> {
        write_json(&self.path.join(SUMMARY), result)
    }

    /// Reads summary.json.
    ///
    /// # Errors
    /// When it is missing, is not one, or was written by another version of Assay.
    pub fn result(&self) -> Result<RunResult, RecordError> {
        let path = self.path.join(SUMMARY);
        let Schema { schema } = read_json(&path)?;
        if schema != RESULT_SCHEMA {
            return Err(RecordError::OtherVersion { path, found: schema, known: RESULT_SCHEMA });
        }
        read_json(&path)
    }

    /// The folder of one trial, made if it is not there: `settings/<key made safe>/trial-<index>`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn trial(&self, setting_key: &str, trial_index: u32) -> Result<TrialFolder, RecordError> {
        let trial = self.trial_at(setting_key, trial_index);
        disk::create_folders(trial.path())
            .map_err(|source| RecordError::Create { path: trial.path().to_owned(), source })?;
        Ok(trial)
    }

    /// Removes the run if none of its trials left a file: nothing was done. Says whether it did, or found nothing at all.
    ///
    /// # Errors
    /// When it cannot be looked through or removed.
    pub fn remove_unused(&self) -> Result<bool, RecordError> {
        if !self.path.is_dir() {
            return Ok(true);
        }
        let failed = |error| RecordError::writing(&self.path, error);
        if holds_a_file(&self.path.join(SETTINGS)).map_err(failed)? {
            return Ok(false);
        }
        fs::remove_dir_all(&self.path).map_err(failed)?;
        Ok(true)
    }

    /// The trials that have a folder, in the order of the plan: by setting, then by index.
    ///
    /// # Errors
    /// When plan.toml cannot be read.
    pub fn trials(&self) -> Result<Vec<TrialFolder>, RecordError> {
        Ok(self.trials_of(&self.plan()?))
    }

    /// The same of a plan that was read already.
    #[must_use]
    pub fn trials_of(&self, plan: &Plan) -> Vec<TrialFolder> {
        let mut trials = Vec::new();
        for setting in &plan.settings {
            // What is there is listed, rather than every planned index looked for: a plan may claim any number.
            let settings = self.path.join(SETTINGS);
            let folder = settings.join(folder_name(&setting.key));
            // A link would lead out of the folder.
            if !disk::is_own_folder(&settings) || !disk::is_own_folder(&folder) {
                continue;
            }
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut found: Vec<u32> = entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .filter_map(|entry| trial_index(entry.file_name().to_str()?))
                .filter(|index| *index < setting.trials)
                .collect();
            found.sort_unstable();
            trials.extend(found.into_iter().map(|index| self.trial_at(&setting.key, index)));
        }
        trials
    }

    fn trial_at(&self, setting_key: &str, trial_index: u32) -> TrialFolder {
        let relative = format!("{SETTINGS}/{}/trial-{trial_index}", folder_name(setting_key));
        TrialFolder::at(self.path.join(&relative), relative, setting_key.to_owned(), trial_index)
    }

    fn file(&self, name: &str) -> Result<PathBuf, RecordError> {
        if is_plain_file_name(name) {
            return Ok(self.path.join(name));
        }
        Err(RecordError::Name { name: name.to_owned() })
    }
}

/// Whether there is anything but folders in a folder; one that is not there holds nothing.
fn holds_a_file(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_dir() || holds_a_file(&entry.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `trial-7` → 7; nothing else that would name the same folder (`trial-07`, `trial-+7`).
fn trial_index(name: &str) -> Option<u32> {
    let index = name.strip_prefix("trial-")?.parse().ok()?;
    (name == format!("trial-{index}")).then_some(index)
}

/// The plan in a text.
pub(crate) fn parse_plan(text: &str) -> Result<Plan, String> {
    toml::from_str(text).map_err(|error| format!("it is not a plan: {}", error.message()))
}

/// The text of a file that may be missing.
fn text_or_nothing(path: &Path) -> Result<String, RecordError> {
    match disk::read_text(path) {
        Err(RecordError::Missing { .. }) => Ok(String::new()),
        read => read,
    }
}
