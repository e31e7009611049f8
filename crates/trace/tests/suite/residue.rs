//! Residue tables as text: both shapes, the output of the collector, and damage.

use plumb_trace::{Fill, Latency, Layer, Op, ResidueTable};

use crate::common::tool::{
    All, error_of, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read,
    the_text_before_an_endless_line_stays as before_an_endless_line,
};

fn tables(all: &All) -> Vec<&ResidueTable> {
    all.extras
        .iter()
        .map(|extra| {
            if let Fill::Residue(table) = extra {
                table
            } else {
                panic!()
            }
        })
        .collect()
}

#[test]
fn residue_tables_in_both_shapes() {
    let all = read(
        "Attaching 2 probes...\n# plumb-residue 1 unit=512 modulus=2048 layer=request\n\n\
         sda R 7 8 11\n# a remark\nsda W 2047 16 3 2 1000000\n\
         @[sdb, R, 7, 128]: 1234\n@ios[8, 16, FWFS, 0, 8]: 2\n@[8, 16, FF, 2047, 0]: 1\n\
         # plumb-residue 1 unit=1 modulus=4096\nf F 0 0 1\n",
    );
    let [first, second] = tables(&all)[..] else {
        panic!("two tables")
    };
    assert_eq!((first.unit_bytes, first.modulus_bytes), (512, 1_048_576));
    let rows: Vec<_> = first
        .rows
        .iter()
        .map(|row| {
            (
                row.device.as_str(),
                row.op,
                row.residue_bytes,
                row.len_bytes,
                row.ios,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("sda", Op::Read, 3584, 4096, 11),
            ("sda", Op::Write, 1_048_064, 8192, 3),
            ("sdb", Op::Read, 3584, 65_536, 1234),
            ("8,16", Op::Write, 0, 4096, 2),
            ("8,16", Op::Flush, 1_048_064, 0, 1),
        ]
    );
    assert_eq!(
        (first.rows[1].timed_ios, first.rows[1].device_ns_sum),
        (2, 1_000_000)
    );
    assert_eq!(
        (second.unit_bytes, second.modulus_bytes, second.rows.len()),
        (1, 4096, 1)
    );
    assert_eq!(
        (all.info.layers.as_slice(), all.info.latency.clone()),
        (&[Layer::Request][..], Latency::Known)
    );
}

#[test]
fn a_residue_table_without_its_header_names_the_header() {
    let absent = [
        "sda R 7 8 11\n",
        "@[sda, R, 7, 128]: 1234\n",
        "Attaching 1 probe...\n\n@[8, 0, RA, 7, 8]: 1\n",
    ];
    let absent = absent.map(|text| error_of(text.as_bytes()));
    let broken = [
        "2 unit=512 modulus=2048",
        "1 unit=512",
        "1 unit=0 modulus=1",
        "1 unit=x modulus=8",
        "1",
        "1 unit=18446744073709551615 modulus=2",
        "1 unit=512 modulus=8 layer=disk",
    ];
    let broken =
        broken.map(|head| error_of(format!("# plumb-residue {head}\nsda R 0 8 1\n").as_bytes()));
    insta::assert_snapshot!(absent.join("\n\n") + "\n\n" + &broken.join("\n\n"));
}

#[test]
fn damaged_rows_of_a_residue_table_are_counted() {
    for bad in [
        "sda R 2048 8 1",
        "sda R -1 8 1",
        "sda R 7 8",
        "sda R 7 8 NaN",
        "sda X! 7 8 1",
        "sda r 7 8 1 2",
        "sda R 7 36028797018963968 1",
        "sda R 7 8 1 2 3",
        "sda R 7 8 18446744073709551616",
        "@[sda, R, 7]: 1",
        "@[sda, R, 7, 8] 1",
        "@[sda, R, 7, 8]: 1.5",
        "@[a, b, c, R, 7, 8]: 1",
        "@[, R, 7, 8]: 1",
        "@]: 1[",
    ] {
        let all = read(&format!(
            "# plumb-residue 1 unit=512 modulus=2048\nsda R 7 8 1\n{bad}\n"
        ));
        assert_eq!(
            (tables(&all)[0].rows.len(), all.info.counts.damaged),
            (1, 1),
            "{bad}"
        );
    }
}

/// Output of `collectors/residue.bt` (Linux 6.18, bpftrace 0.17) for a loop device while dd did 21 direct reads of 4
/// KiB in three runs 1 MiB apart, 5 of 512 B from sector 63, and 3 writes of 8 KiB from sector 80.
const RECORDED: &str = "Attaching 2 probes...\n# plumb-residue 1 unit=512 modulus=2048 layer=request\n\n\n\
    @[7, 0, RS, 67, 1]: 1\n@[7, 0, WS, 112, 16]: 1\n@[7, 0, WS, 96, 16]: 1\n@[7, 0, RS, 66, 1]: 1\n\
    @[7, 0, RS, 63, 1]: 1\n@[7, 0, RS, 64, 1]: 1\n@[7, 0, RS, 65, 1]: 1\n@[7, 0, WS, 80, 16]: 1\n\
    @[7, 0, RS, 40, 8]: 3\n@[7, 0, RS, 8, 8]: 3\n@[7, 0, RS, 24, 8]: 3\n@[7, 0, RS, 32, 8]: 3\n\
    @[7, 0, RS, 0, 8]: 3\n@[7, 0, RS, 48, 8]: 3\n@[7, 0, RS, 16, 8]: 3\n";

#[test]
fn the_one_liner_counted_the_io_of_dd() {
    let all = read(RECORDED);
    let table = tables(&all)[0];
    let ios = |op, len_bytes, from: u64, to: u64| -> u64 {
        let rows = table
            .rows
            .iter()
            .filter(|row| row.op == op && row.len_bytes == len_bytes);
        rows.filter(|row| (from..to).contains(&(row.residue_bytes / 512)))
            .map(|row| row.ios)
            .sum()
    };
    assert_eq!(ios(Op::Read, 4096, 0, 56), 21);
    assert_eq!(ios(Op::Read, 512, 63, 68), 5);
    assert_eq!(ios(Op::Write, 8192, 80, 128), 3);
    assert_eq!(table.rows.iter().map(|row| row.ios).sum::<u64>(), 29);
    assert!(table.rows.iter().all(|row| row.device == "7,0") && all.info.is_whole());
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(
        "# plumb-residue 1 unit=512 modulus=2048\nsda R 7 8 1 1 5\n@[8, 0, RA, 7, 8]: 1\n",
    );
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line("# plumb-residue 1 unit=512 modulus=2048\nsda R 7 8 1\n");
}
