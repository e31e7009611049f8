//! The profiles of exported windows: each I/O once, although several objects and several tiers have it.
//!
//! The objects are read twice: first the names of the windows, which decides about the windows that count, then their profiles, object by
//! object. So only the profiles of one object are in memory.

use std::path::PathBuf;

use plumb_fleet::{WindowChoice, WindowName};
use plumb_profile::ProfileSet;
use plumb_profile::codec;
use plumb_trace::parquet::load::load;

use crate::failure::Failure;

/// The sum of the windows in some objects, and whether every profile was sound.
///
/// # Errors
/// If an object cannot be read.
pub fn profiles(objects: &[PathBuf]) -> Result<(ProfileSet, bool), Failure> {
    let mut choice = WindowChoice::default();
    let mut row = 0;
    for object in objects {
        let numbers = ["from", "seconds", "ios"];
        load(
            object,
            &numbers,
            &["identity", "layer", "profile"],
            &mut |rows| {
                let (numbers, blobs) = (&rows.numbers, &rows.blobs);
                for at in 0..numbers[0].len() {
                    let word = |column: usize| {
                        String::from_utf8_lossy(blobs[column][at].data()).into_owned()
                    };
                    let window = WindowName {
                        identity: word(0),
                        layer: word(1),
                        from_ns: numbers[0][at],
                        seconds: numbers[1][at],
                    };
                    choice.add(window, numbers[2][at], blobs[2][at].data(), row);
                    row += 1;
                }
            },
        )
        .map_err(|error| Failure::failed(&error))?;
    }
    let chosen = choice.rows();
    let mut is_chosen = vec![false; row];
    for at in &chosen {
        is_chosen[*at] = true;
    }
    let (mut sum, mut is_whole, mut row) = (ProfileSet::default(), true, 0);
    for object in objects {
        load(object, &[], &["profile"], &mut |rows| {
            for profile in &rows.blobs[0] {
                if is_chosen.get(row) == Some(&true) {
                    match codec::decode(profile.data()) {
                        Ok(saved) => saved.profiles.into_iter().for_each(|one| sum.absorb(one)),
                        Err(_) => is_whole = false,
                    }
                }
                row += 1;
            }
        })
        .map_err(|error| Failure::failed(&error))?;
    }
    Ok((sum, is_whole))
}
