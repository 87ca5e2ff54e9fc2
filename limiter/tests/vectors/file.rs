//! Vectors as they are written down.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What happens to keys that are fresh, one step after the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// What a failure of it would mean.
    pub why: String,
    pub steps: Vec<Step>,
}

/// A call at a time, and its reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Microseconds since the Unix epoch.
    pub at_us: u64,
    /// The words of the call.
    pub call: Vec<String>,
    pub reply: Reply,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Reply {
    Integer(i64),
    Integers(Vec<i64>),
    /// How the text of the error begins.
    Error {
        error: String,
    },
    Null(()),
}

impl Reply {
    /// Whether `told` is this reply: integers are equal, and of an error the text begins so.
    pub fn is_met_by(&self, told: &Reply) -> bool {
        match (self, told) {
            (Self::Error { error }, Self::Error { error: text }) => text.starts_with(error.as_str()),
            _ => self == told,
        }
    }
}

/// The folder that holds all files, at the top of the repository: the tests of two packages read it.
pub fn folder() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("vectors"));
    above.find(|folder| folder.join("README.md").is_file()).expect("the folder of the vectors")
}

/// All files, by name and in the order of their names.
pub fn files() -> Vec<(String, Vec<Scenario>)> {
    let entries = fs::read_dir(folder()).expect("a readable folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a readable file");
        let scenarios = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, scenarios)
    };
    paths.iter().map(read).collect()
}
