//! The merge of fleet files: in any order and grouping, and with files that are given twice.

use plumb_fleet::MergeError;
use plumb_testkit::Rng;

use crate::support::{host, input, merged, written};

#[test]
fn the_order_and_grouping_do_not_matter() {
    let inputs: Vec<_> = (0..30u64)
        .map(|at| {
            let host = format!("host{}", at % 4);
            let device = ["sda", "sdb"][(at / 4 % 2) as usize];
            input(&host, &format!("{host}/{at}"), device, 1 + at)
        })
        .collect();
    let hosts: Vec<_> = (0..4)
        .map(|at| {
            let mine = inputs
                .iter()
                .filter(|one| one.facts.host == format!("host{at}"));
            host(&mine.cloned().collect::<Vec<_>>())
        })
        .collect();
    let whole = written(&hosts);
    let files: Vec<Vec<u8>> = inputs
        .iter()
        .map(|one| written(std::slice::from_ref(one)))
        .collect();
    let mut rng = Rng::new(1);
    for _ in 0..20 {
        let mut order: Vec<usize> = (0..files.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let cut = rng.below(files.len() as u64) as usize;
        let [left, right] = [&order[..cut], &order[cut..]].map(|part| {
            let files: Vec<&[u8]> = part.iter().map(|&at| &files[at][..]).collect();
            merged(&files).expect("apart")
        });
        assert_eq!(merged(&[&right, &left]).expect("apart"), whole);
        // Twice, and a part of it once more.
        let again = merged(&[&left, &whole, &right, &whole, &files[order[0]]]);
        assert_eq!(again.expect("contained"), whole);
    }
}

#[test]
fn inputs_that_cannot_be_taken_apart_are_refused() {
    let [a, b, c] = ["a", "b", "c"].map(|name| input("h", name, "sda", 1));
    let file = |inputs: &[plumb_fleet::HostIo]| written(&[host(inputs)]);
    let (one, other) = (file(&[a.clone(), b.clone()]), file(&[b.clone(), c.clone()]));
    for files in [[&one, &other], [&other, &one]] {
        let files = files.map(|bytes| &bytes[..]);
        let refused = merged(&files).expect_err("an overlap");
        assert!(
            matches!(&refused, MergeError::Overlap { input, .. } if input == "b"),
            "{refused}"
        );
    }
    // A file that contains both helps.
    let all = file(&[a, b, c]);
    assert_eq!(merged(&[&one, &other, &all]).expect("contained"), all);
}

#[test]
fn an_input_that_changed_is_refused() {
    let files = [3, 4].map(|ios| written(&[input("h", "a", "sda", ios)]));
    let refused = merged(&[&files[0], &files[1]]).expect_err("two versions");
    assert!(matches!(refused, MergeError::Changed { .. }), "{refused}");
}

#[test]
fn an_input_that_was_read_later_is_not_missing() {
    let mut bad = plumb_fleet::HostIo::new("h");
    bad.facts.unread.extend(["a", "b"].map(str::to_owned));
    let (bad, good) = (written(&[bad]), written(&[input("h", "a", "sda", 3)]));
    let all = merged(&[&bad, &good]).expect("apart");
    assert_eq!(all, merged(&[&good, &bad]).expect("apart"));
    let hosts = plumb_fleet::file::decode(&all).expect("whole");
    assert!(hosts[0].facts.unread.iter().eq(["b"]));
}

#[test]
fn a_damaged_file_is_named() {
    let good = written(&[input("a", "a", "sda", 3)]);
    let mut bad = written(&[input("b", "b", "sda", 3)]);
    let at = bad.len() - 30;
    bad[at] ^= 1;
    let refused = merged(&[&good, &bad]).expect_err("damage");
    assert!(
        matches!(&refused, MergeError::File { file, .. } if file == "file 1"),
        "{refused}"
    );
}
