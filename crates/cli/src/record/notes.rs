//! Notes about a disk's recording.

use plumb_capture::DiskTally;
use plumb_geometry::group_digits;
use plumb_trace::Layer;

/// The gaps of a disk's rows, and rows of several events.
pub(super) fn of_disk(tally: &DiskTally) -> impl Iterator<Item = String> + use<> {
    let told = [
        (tally.lost, "I/O lost: the buffer was full"),
        (
            tally.requeues,
            "issues of an I/O that had been issued before, recorded once",
        ),
        (tally.partial_completions, "completions of a part of an I/O"),
        (
            tally.unmatched_issues,
            "I/O whose completion was not seen, so without latency",
        ),
        (tally.unknown_senders, "I/O with an unknown sender"),
    ];
    let device = tally.device.clone();
    let told = told.into_iter().filter(|(count, _)| *count > 0);
    told.map(move |(count, words)| format!("{device}: {} {words}", group_digits(count)))
}

/// Disks that handed I/O on to others that are recorded as well.
pub(super) fn seen_again(tallies: &[DiskTally]) -> impl Iterator<Item = String> {
    let is_recorded = |name: &String| {
        tallies
            .iter()
            .any(|tally| tally.device == *name && tally.sent > 0)
    };
    let by_bios = tallies
        .iter()
        .filter(|tally| tally.sent > 0 && tally.layer == Layer::Bio);
    by_bios.filter_map(move |DiskTally { device, .. }| {
        let mut below = plumb_capture::names_below(device);
        below.retain(is_recorded);
        let on = below.join(", ");
        let words = format!(
            "I/O of {device} are handed on to {on}, and recorded there again: never add them up"
        );
        (!below.is_empty()).then_some(words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_fault_needs_no_word_and_each_fault_has_one() {
        let well = DiskTally {
            device: "loop0".to_owned(),
            layer: Layer::Request,
            sent: 1009,
            lost: 0,
            requeues: 0,
            partial_completions: 0,
            unmatched_issues: 0,
            unmatched_completions: 0,
            unknown_senders: 0,
            unseen_failures: [0; 6],
        };
        assert_eq!(of_disk(&well).count(), 0);
        let unseen = DiskTally {
            unmatched_issues: 1234,
            ..well.clone()
        };
        let told: Vec<String> = of_disk(&unseen).collect();
        insta::assert_snapshot!(told.join("\n\n"));
        let all = DiskTally {
            lost: 1,
            requeues: 2,
            partial_completions: 3,
            unmatched_issues: 4,
            unknown_senders: 5,
            ..well
        };
        assert_eq!(of_disk(&all).count(), 5);
    }
}
