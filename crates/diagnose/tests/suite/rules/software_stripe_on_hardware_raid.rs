//! Tests of `software-stripe-on-hardware-raid`.

use plumb_diagnose::Reason;
use plumb_stack::node::keys;

use crate::common::lab::Lab;
use crate::common::number;
use crate::common::stripes::on_array;

#[test]
fn software_stripe_on_hardware_raid() {
    let rule = "software-stripe-on-hardware-raid";
    let judged = on_array(1 << 20, None, None);
    assert_eq!(number(judged.finding(rule), "luns"), 2.0);
    let modelled = |model: Option<&str>| {
        let mut lab = Lab::default();
        let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
        for disk in disks {
            if let Some(model) = model {
                lab.fact(disk, keys::MODEL, model);
            }
        }
        lab.stripe("md0", 64 << 10, &disks);
        lab.judge()
    };
    assert!(modelled(Some("ST18000NM000J")).is_silent(rule));
    assert!(modelled(Some("ST3000DM001")).is_silent(rule), "no T300");
    assert_eq!(modelled(Some("SUN T300")).found_on(rule), ["md0"]);
    let device = "sda".to_owned();
    assert_eq!(*modelled(None).unknown(rule), Reason::DriveOrLun { device });
}
