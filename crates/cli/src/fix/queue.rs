//! Settings of a block queue, changed in sysfs: read first, written, and read back.

use std::fs;
use std::io;
use std::path::PathBuf;

use plumb_model::action::QueueChange;
use plumb_plan::queue::file_and_values;
use thiserror::Error;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// A setting that was not changed.
#[derive(Debug, Error)]
enum NotSet {
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path}: found {found}, expected {expected}: nothing was written")]
    Differs {
        path: String,
        found: String,
        expected: String,
    },
    #[error("{path}: found {found} after {wanted} was written")]
    NotTaken {
        path: String,
        found: String,
        wanted: String,
    },
}

/// Shows a change of a disk by the kernel's name, or makes it.
///
/// # Errors
/// When the setting is not as the change says, or the kernel takes it not.
pub fn carry_out(disk: &str, change: &QueueChange, is_wanted: bool) -> Result<Exit, Failure> {
    let (file, wanted, was) = file_and_values(change);
    let name = disk.replace('/', "!");
    let path = PathBuf::from(format!("/sys/class/block/{name}/queue/{file}"));
    output::print_line(&format!("  {}: {was} becomes {wanted}", path.display()))?;
    if !is_wanted {
        output::print("nothing was done: --yes with the name of the device does it\n")?;
        return Ok(Exit::Clean);
    }
    set(&path, &wanted, &was).map_err(|error| Failure::failed(&error))?;
    Ok(Exit::Clean)
}

fn set(path: &std::path::Path, wanted: &str, was: &str) -> Result<(), NotSet> {
    let shown = || path.display().to_string();
    let failed = |source| NotSet::Io {
        path: shown(),
        source,
    };
    let found = chosen(&fs::read_to_string(path).map_err(failed)?);
    if found != was {
        return Err(NotSet::Differs {
            path: shown(),
            found,
            expected: was.to_owned(),
        });
    }
    fs::write(path, wanted).map_err(failed)?;
    let found = chosen(&fs::read_to_string(path).map_err(failed)?);
    if found == wanted {
        return Ok(());
    }
    Err(NotSet::NotTaken {
        path: shown(),
        found,
        wanted: wanted.to_owned(),
    })
}

/// The value of a file of a queue: of schedulers the one in brackets.
fn chosen(text: &str) -> String {
    let in_brackets = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    in_brackets
        .map_or(text.trim(), |(chosen, _)| chosen)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_scheduler_is_in_brackets() {
        for (text, value) in [
            ("none mq-deadline [bfq]\n", "bfq"),
            ("[none]\n", "none"),
            ("128\n", "128"),
        ] {
            assert_eq!(chosen(text), value);
        }
    }

    #[test]
    fn a_setting_that_is_another_one_by_now_stays() {
        let dir = plumb_testkit::temp_dir("queue");
        let path = dir.path().join("read_ahead_kb");
        fs::write(&path, "64\n").expect("room");
        let refused = set(&path, "128", "65536");
        assert!(matches!(refused, Err(NotSet::Differs { found, .. }) if found == "64"));
        assert_eq!(fs::read_to_string(&path).expect("the file"), "64\n");
        set(&path, "128", "64").expect("it is as it was");
        assert_eq!(fs::read_to_string(&path).expect("the file"), "128");
    }
}
