//! Tests of `read-policy`.

use plumb_diagnose::{Reason, Severity};
use plumb_stack::node::keys;

use crate::common::host::mirrored;
use crate::common::lab::Lab;

#[test]
fn read_policy() {
    let rule = "read-policy";
    let judge = |policy: Option<&str>, models: [&str; 2]| {
        let mut lab = Lab::default();
        let mirror = mirrored(&mut lab);
        for (name, model) in ["c1t0d0s0", "c2t0d0s0"].into_iter().zip(models) {
            let id = lab.builder.node(name);
            lab.fact(id, keys::MODEL, model);
        }
        if let Some(policy) = policy {
            lab.fact(mirror, keys::READ_POLICY, policy);
        }
        lab.judge()
    };
    let same = ["SUN36G", "SUN36G"];
    assert_eq!(
        judge(Some("first"), same).finding(rule).severity,
        Severity::Warning
    );
    assert_eq!(
        judge(Some("geometric"), same).finding(rule).severity,
        Severity::Note
    );
    assert!(judge(Some("round-robin"), same).is_silent(rule));
    assert!(
        judge(Some("first"), ["SUN36G", "remote"]).is_silent(rule),
        "the purpose of that policy"
    );
    assert_eq!(*judge(None, same).unknown(rule), Reason::ReadPolicy);
}
