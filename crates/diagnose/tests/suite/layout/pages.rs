//! Each rule on layouts has a page with its thresholds, as those on I/O have.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::MISALIGNED_TARGET;
use plumb_diagnose::layout::*;
use plumb_geometry::Bytes;
use plumb_stack::problem_ids;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

fn percent(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// What the threshold line of a rule has to hold.
fn thresholds(rule: &str) -> Vec<String> {
    let size = |bytes: u64| Bytes(bytes).to_string();
    match rule {
        "misaligned-partition" => {
            vec![format!(
                "units of {} or more",
                size(misaligned_partition::WARNING_BYTES_MIN)
            )]
        }
        "split-io" => vec![
            format!("from {} of I/O on", percent(split_io::SHARE_MIN)),
            format!("warning from {}", percent(split_io::SHARE_WARNING)),
        ],
        "narrow-stripe" => vec![
            format!("less than {} I/O", narrow_stripe::IOS_PER_CHUNK_MIN),
            format!("up to {} I/O", narrow_stripe::IOS_PER_CHUNK_WARNING),
            format!(
                "{} or more is never narrow",
                size(narrow_stripe::WIDE_BYTES)
            ),
        ],
        "soft-partition-drift" => {
            vec![format!(
                "exactly {} sector behind",
                soft_partition_drift::HEADER_SECTORS
            )]
        }
        "stripe-segment-mismatch" => {
            vec![format!(
                "proposed up to {}",
                size(stripe_segment_mismatch::PROPOSED_BYTES_MAX)
            )]
        }
        "parity-small-writes" => vec![
            format!(
                "{} operations with one parity",
                parity_small_writes::write_cost(1)
            ),
            format!("{} with two", parity_small_writes::write_cost(2)),
        ],
        "record-mismatch" => {
            vec![format!(
                "warning from {} times",
                record_mismatch::AMPLIFICATION_WARNING
            )]
        }
        "indirection-unit" => vec![
            format!(
                "units of {} or more",
                size(indirection_unit::UNIT_BYTES_MIN)
            ),
            format!(
                "warning from {} times",
                indirection_unit::AMPLIFICATION_WARNING
            ),
        ],
        "geometry-mismatch" => vec![geometry_mismatch::TOLD.join(", ")],
        "discard-misaligned" => {
            vec![format!(
                "units of {} or more",
                size(discard_misaligned::UNIT_BYTES_MIN)
            )]
        }
        "implausible-hint" => vec![
            format!("above {}", size(implausible_hint::OPTIMAL_BYTES_MAX)),
            implausible_hint::BRIDGE_BYTES.to_string(),
        ],
        "misstated-grid" => {
            use misstated_grid::Fault;
            let word = |fault: Fault| fault.severity().word();
            vec![
                format!(
                    "smaller than a unit below, or off it, is a {}",
                    word(Fault::Hidden)
                ),
                format!("a larger one a {}", word(Fault::Larger)),
                format!("is {}", word(Fault::Refused)),
                misstated_grid::HANDED_ON.join(" or "),
            ]
        }
        "queue-setting" => vec![
            format!(
                "read-ahead above {}",
                size(queue_setting::READ_AHEAD_BYTES_MAX)
            ),
            format!("{} stripes of an array", queue_setting::STRIPES_AHEAD),
            format!("requests below {}", size(queue_setting::REQUEST_BYTES_MIN)),
            format!("at least {} times", queue_setting::REQUEST_RATIO),
            queue_setting::SEEK_SCHEDULERS.join(" or "),
        ],
        "too-few-disks" => vec![format!("{} more", percent(too_few_disks::MARGIN_MIN))],
        "single-path" => vec![format!("less than {} paths", single_path::PATHS_MIN)],
        "software-stripe-on-hardware-raid" => {
            vec![format!(
                "at least {} LUN",
                software_stripe_on_hardware_raid::LUNS_MIN
            )]
        }
        "software-raid5" => vec![format!(
            "at least {} chunk of parity",
            software_raid5::PARITY_MIN
        )],
        "read-policy" => vec![format!("other than {}", read_policy::EVEN)],
        "mirror-write-copy" => vec![format!("{:#x}", mirror_write_copy::COPY_FLAG)],
        "small-resync-io" => vec![format!(
            "less than {}",
            size(small_resync_io::RESYNC_BYTES_MIN)
        )],
        "small-maxphys" => vec![format!(
            "less than {}",
            size(small_maxphys::MAXPHYS_BYTES_MIN)
        )],
        "no-direct-io" => vec![format!(
            "pages of {} to {}",
            size(*no_direct_io::PAGE_BYTES.start()),
            size(*no_direct_io::PAGE_BYTES.end())
        )],
        "no-logging" => no_logging::OPTIONS.map(str::to_owned).to_vec(),
        "small-segmap" => vec![format!(
            "at most {} percent",
            small_segmap::SEGMAP_PERCENT_DEFAULT
        )],
        "too-many-metadevices" => vec![
            format!("{} % of nmd", too_many_metadevices::PERCENT_NOTE),
            too_many_metadevices::NMD_DEFAULT.to_string(),
            plumb_geometry::group_digits(too_many_metadevices::NMD_MAX),
            format!("{} times", too_many_metadevices::TIMES_NEEDED),
        ],
        "double-counted" => vec![percent(double_counted::SAME_WITHIN)],
        problem if problem_ids::ALL.contains(&problem) => {
            vec![format!("always a {}", problems::severity(rule).word())]
        }
        other => panic!("{other}: thresholds are not named here"),
    }
}

/// Rules that judge I/O as well: the page says both, each on a line of its own.
const SHARED: [&str; 2] = ["split-io", "record-mismatch"];

/// Rules, and the problems that have no rule of their own.
fn ids() -> BTreeSet<&'static str> {
    let rules = RULES
        .iter()
        .map(|rule| rule.id)
        .filter(|id| *id != problems::OTHERS.id);
    rules.chain(problem_ids::ALL).collect()
}

#[test]
fn each_rule_has_a_page_with_its_thresholds() {
    let index = read("README.md");
    for id in ids() {
        let page = read(&format!("{id}.md"));
        assert!(
            page.starts_with(&format!("# {id}\n")),
            "{id}: another heading"
        );
        assert!(
            index.contains(&format!("({id}.md)")),
            "{id} is not in the index"
        );
        let start = if SHARED.contains(&id) {
            "Threshold of the layout: "
        } else {
            "Threshold: "
        };
        let line = page.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("{id}: no line `{start}…`"));
        for expected in thresholds(id) {
            assert!(
                line.contains(&expected),
                "{id}: found `{line}`, expected `{expected}`"
            );
        }
        assert_has_all_parts(id, &page);
    }
}

fn assert_has_all_parts(id: &str, page: &str) {
    for part in [
        "What it means",
        "How it is seen",
        "What it costs",
        "What it does not mean",
        "How to mend it",
        "Where the method is from",
    ] {
        assert!(
            page.contains(&format!("## {part}\n")),
            "{id}: no part `{part}`"
        );
    }
    assert!(page.contains("**Way back:**"), "{id}: no way back");
}

#[test]
fn what_a_probe_finds_has_a_page() {
    let page = read(&format!("{MISALIGNED_TARGET}.md"));
    assert!(
        page.starts_with(&format!("# {MISALIGNED_TARGET}\n")),
        "another heading"
    );
    assert!(
        read("README.md").contains(&format!("({MISALIGNED_TARGET}.md)")),
        "not in the index"
    );
    assert_has_all_parts(MISALIGNED_TARGET, &page);
}

/// And no page is left of a rule that is gone.
#[test]
fn each_page_has_a_rule() {
    let of_io = plumb_diagnose::RULES.iter().map(|rule| rule.id);
    let ids: Vec<&str> = ids()
        .into_iter()
        .chain(of_io)
        .chain([MISALIGNED_TARGET])
        .collect();
    for entry in std::fs::read_dir(root()).expect("a readable folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("a plain name");
        let id = name.strip_suffix(".md").expect("a page");
        assert!(id == "README" || ids.contains(&id), "{name}: no such rule");
    }
}
