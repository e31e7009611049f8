//! The JSON of a finding on a layout.

use plumb_stack::{Kind, ProblemId};

use crate::common::problems::noticed;

/// `target` and `layer` keep their places; a layer of a stack is named by its kind.
#[test]
fn the_shape_of_a_finding() {
    let mut lab = noticed(ProblemId::BrokenLabel);
    lab.host(plumb_stack::node::keys::NMD, 1_u64);
    let disk = lab.bare("d0");
    let soft = lab.runs(Kind::SoftPartition, "d1", &[(disk, 8, 8)]);
    lab.fact(soft, plumb_stack::node::keys::MANAGER, "svm");
    let judged = lab.judge();
    let json = |rule: &str| serde_json::to_value(judged.finding(rule)).expect("a finding");
    let label = json("broken-label");
    assert_eq!(
        label["target"],
        serde_json::json!({"host": null, "device": "sda", "part": null, "layer": "disk", "identity": null})
    );
    assert_eq!(label["rule"], "broken-label");
    assert_eq!(label["facts"]["source"]["format"], "gpt");
    let host = json("too-many-metadevices");
    assert_eq!(
        (&host["target"]["layer"], &host["target"]["device"]),
        (&"host".into(), &"(host)".into())
    );
}
