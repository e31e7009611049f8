//! SPC traces: a real excerpt beside its conversion by others, and damage.

use plumb_testkit::require;
use plumb_trace::Event;

use crate::common::lines::{Whole, read_real, tests_of_lines};

tests_of_lines!("spc", "0,240840,32768,W,0.011565\n1,8,512,r,0.5\n");

/// The MQSim trace is the SPC one, converted by others: both readers have to see the same I/O.
#[test]
fn spc_as_converted_by_others() {
    require!(RealTraces);
    let spc = read_real("spc/WebSearch-sample.spc");
    let mqsim = read_real("mqsim/wsrch-small.trace");
    assert_eq!((spc.info.format, spc.events.len()), ("spc", 10));
    let name =
        |whole: &Whole, event: &Event| whole.names.devices()[event.device as usize].name.clone();
    for (one, other) in spc.events.iter().zip(&mqsim.events) {
        assert_eq!(name(&spc, one), name(&mqsim, other));
        assert_eq!((one.time_ns, one.op), (other.time_ns, other.op));
        assert_eq!(
            (one.start_bytes, one.len_bytes),
            (other.start_bytes, other.len_bytes)
        );
    }
}
