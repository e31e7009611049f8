//! libCacheSim's format is refused.

use plumb_trace::Error;

use crate::common::lines::{read, read_as};

#[test]
fn oracle_general_is_refused_with_the_reason() {
    let record = |k: u32| {
        [
            &(k / 9).to_le_bytes()[..],
            &u64::from(k).to_le_bytes(),
            &4096u32.to_le_bytes(),
            &(-1i64).to_le_bytes(),
        ]
        .concat()
    };
    let bytes: Vec<u8> = (0..500).flat_map(record).collect();
    for refused in [read(&bytes), read_as("oracleGeneral", b"anything")] {
        let Some(error @ Error::Refused { .. }) = refused.err() else {
            panic!("not refused")
        };
        assert!(error.to_string().contains("first access"), "{error}");
    }
}
