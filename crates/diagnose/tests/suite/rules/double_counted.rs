//! Tests of `double-counted`.

use plumb_model::Confidence;
use plumb_stack::Kind;
use plumb_stack::node::keys;

use crate::common::lab::Lab;
use crate::common::number;
use crate::facts;

/// The paper's iostat: md26 on md2 on ssd3, each with 402 reads a second.
#[test]
fn double_counted() {
    let rule = "double-counted";
    let judge = |rates: [Option<f64>; 3]| {
        let mut lab = Lab::default();
        let disk = lab.bare("ssd3");
        let volume = lab.runs(Kind::Concat, "md2", &[(disk, 0, 1 << 20)]);
        let soft = lab.runs(Kind::SoftPartition, "md26", &[(volume, 8, 1 << 10)]);
        for (id, rate) in [disk, volume, soft].into_iter().zip(rates) {
            if let Some(rate) = rate {
                lab.fact(id, keys::IOS_PER_SECOND, rate);
            }
        }
        lab.judge()
    };
    let judged = judge([Some(402.0); 3]);
    let finding = judged.finding(rule);
    let facts = facts!(finding, DoubleCounted);
    assert_eq!(facts.devices, ["md2", "md26", "ssd3"]);
    assert_eq!(
        (facts.sum_ios_per_second, facts.bottom_ios_per_second),
        (1206.0, 402.0)
    );
    assert!(facts.is_same);
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(finding.target.device, "md26");
    assert_eq!(number(finding, "asked_ios_per_second"), 402.0);
    let more = judge([Some(600.0), None, Some(402.0)]);
    assert_eq!(
        more.finding(rule).confidence,
        Confidence::Medium,
        "others use the disk as well"
    );
    assert!(
        judge([Some(402.0), None, None]).is_silent(rule),
        "one layer is no layers"
    );
    assert!(judge([None, None, None]).is_not_asked(rule));
    assert!(
        judge([Some(f64::NAN), None, None]).is_not_asked(rule),
        "no number"
    );
}
