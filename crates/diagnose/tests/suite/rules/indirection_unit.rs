//! Tests of `indirection-unit`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Source};

use crate::common::lab::{JudgedLayout, Lab};
use crate::common::number;

fn on_flash(unit: u64, source: Source, page: Option<u64>, ashift: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let disk = lab.disk("nvme0n1", 4096, 0);
    lab.grid(disk, CellKind::IndirectionUnit, unit, 0, source);
    let partition = lab.partition("nvme0n1p1", disk, 2048);
    if let Some(ashift) = ashift {
        lab.fact(partition, keys::ASHIFT, ashift);
    }
    lab.judge()
}

#[test]
fn indirection_unit() {
    let rule = "indirection-unit";
    let judged = on_flash(64 << 10, Source::User, Some(8192), None);
    assert_eq!(
        judged.finding(rule).cost.as_ref().map(|cost| cost.value),
        Some(8.0)
    );
    assert_eq!(judged.finding(rule).severity, Severity::Warning);
    assert!(on_flash(16 << 10, Source::User, Some(16 << 10), None).is_silent(rule));
    let reason = Reason::WritesToFlash {
        on: "nvme0n1".to_owned(),
        unit_bytes: Bytes(16 << 10),
    };
    let unsaid = on_flash(16 << 10, Source::User, None, None);
    assert_eq!(*unsaid.unknown(rule), reason);
    assert!(
        on_flash(4096, Source::User, Some(512), None).is_not_asked(rule),
        "the usual size of writes"
    );
    let pool = on_flash(16 << 10, Source::User, None, Some(12));
    assert_eq!(number(pool.finding(rule), "written_bytes"), 4096.0, "2^12");
    assert!(on_flash(16 << 10, Source::User, None, Some(14)).is_silent(rule));
    assert!(
        on_flash(16 << 10, Source::User, None, Some(999))
            .whys(rule)
            .len()
            == 1,
        "no such shift"
    );
}

/// NPWG beside a smaller NPWA is a wish.
#[test]
fn preferred_sizes_of_a_drive_are_notes() {
    let drive = |field: &str| Source::Drive {
        field: field.to_owned(),
    };
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(4096));
    let disk = lab.disk("nvme0n1", 4096, 0);
    lab.grid(disk, CellKind::WriteAlignment, 4096, 0, drive("NPWA"));
    lab.grid(disk, CellKind::IndirectionUnit, 16384, 0, drive("NPWG"));
    lab.partition("nvme0n1p1", disk, 2048);
    assert_eq!(
        lab.judge().finding("indirection-unit").severity,
        Severity::Note
    );
}
