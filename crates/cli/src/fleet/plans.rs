//! The plans of a report: a file for each host of a group whose collection gives a proven remedy for the cause.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_fleet::answer::FleetAnswer;
use plumb_fleet::file_name;
use plumb_geometry::{Grid, plural};

use super::checked::{PlannedHost, WantedRemedies};
use crate::failure::Failure;
use crate::output;

/// The hosts with a collection, by name.
pub type PlannedHosts = BTreeMap<String, PlannedHost>;

/// Writes the plans into a folder, and notes each in the answer. Nothing is written if a file of any of the names is there.
///
/// # Errors
/// When a name is taken, a collection cannot be read again, or a file cannot be written.
pub fn write(
    folder: &Path,
    answer: &mut FleetAnswer,
    hosts: &PlannedHosts,
    grids: &[Grid],
) -> Result<(), Failure> {
    let path_of = |host: &str| folder.join(file_name(host, ".json"));
    let mut wanted: BTreeMap<PathBuf, (&PlannedHost, WantedRemedies)> = BTreeMap::new();
    for group in &mut answer.groups {
        for on in &mut group.on {
            let Some(host) = hosts.get(&on.host) else {
                continue;
            };
            let remedies = host.remedies(group.cause, &on.devices);
            if remedies.is_empty() {
                continue;
            }
            let path = path_of(&on.host);
            on.command = group.remedy.on(&on.host, Some(&path));
            on.plan = Some(path.display().to_string());
            let entry = wanted.entry(path).or_insert((host, WantedRemedies::new()));
            entry.1.extend(remedies);
        }
    }
    wanted
        .keys()
        .try_for_each(|path| output::must_be_new(path))?;
    for (path, (host, remedies)) in &wanted {
        output::write_private(path, host.document(remedies, grids)?.as_bytes())?;
    }
    if wanted.is_empty() {
        output::say(
            "plumb: no plan was written: no collection of a host in a group has a proven remedy for the cause",
        );
    } else {
        let plans = plural(wanted.len() as u64, "plan");
        output::note_written(&format!("{plans} in {}", folder.display()));
    }
    Ok(())
}
