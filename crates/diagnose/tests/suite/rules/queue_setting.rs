//! Tests of `queue-setting`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_model::facts::BadSetting;
use plumb_stack::NodeId;
use plumb_stack::node::keys;

use crate::common::lab::{JudgedLayout, Lab, kernel};
use crate::facts;

/// A disk with these settings of its queue.
#[derive(Clone, Copy, Default)]
struct Queue {
    read_ahead: Option<u64>,
    max_request: Option<u64>,
    max_request_hardware: Option<u64>,
    scheduler: Option<&'static str>,
    is_rotational: Option<bool>,
}

fn queue(queue: Queue) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    for (key, value) in [
        (keys::READ_AHEAD, queue.read_ahead),
        (keys::MAX_REQUEST, queue.max_request),
        (keys::MAX_REQUEST_HARDWARE, queue.max_request_hardware),
    ] {
        lab.builder.fact_if(disk, key, value.map(Bytes), &kernel());
    }
    let (scheduler, is_rotational) = (queue.scheduler, queue.is_rotational);
    lab.builder
        .fact_if(disk, keys::SCHEDULER, scheduler, &kernel());
    lab.builder
        .fact_if(disk, keys::ROTATIONAL, is_rotational, &kernel());
    lab.judge()
}

#[test]
fn queue_setting() {
    let rule = "queue-setting";
    let ahead = queue(Queue {
        read_ahead: Some(67108864),
        ..Queue::default()
    });
    assert_eq!(
        ahead.finding(rule).severity,
        Severity::Warning,
        "64 MiB of the field report"
    );
    let better =
        |judged: &JudgedLayout| match facts!(judged.finding(rule), QueueSetting).settings[0] {
            BadSetting::ReadAhead { better_bytes, .. }
            | BadSetting::Request { better_bytes, .. } => better_bytes,
            BadSetting::Scheduler { .. } => panic!("a size"),
        };
    assert_eq!(better(&ahead), Bytes(128 << 10), "as the kernel has it");
    assert!(
        queue(Queue {
            read_ahead: Some(131072),
            scheduler: Some("none"),
            ..Queue::default()
        })
        .is_silent(rule)
    );
    let cut = queue(Queue {
        max_request: Some(131072),
        max_request_hardware: Some(33553920),
        ..Queue::default()
    });
    assert_eq!(cut.finding(rule).severity, Severity::Note);
    assert_eq!(better(&cut), Bytes(1280 << 10), "as the kernel has it");
    assert!(
        queue(Queue {
            max_request: Some(131072),
            max_request_hardware: Some(131072),
            ..Queue::default()
        })
        .is_silent(rule)
    );
    assert_eq!(
        *queue(Queue {
            max_request: Some(131072),
            ..Queue::default()
        })
        .unknown(rule),
        Reason::HardwareRequest
    );
    let flash = Queue {
        is_rotational: Some(false),
        ..Queue::default()
    };
    let scheduled = queue(Queue {
        scheduler: Some("bfq"),
        ..flash
    });
    assert!(matches!(
        facts!(scheduled.finding(rule), QueueSetting).settings.as_slice(),
        [BadSetting::Scheduler { name, .. }] if name == "bfq"
    ));
    assert!(
        queue(Queue {
            scheduler: Some("bfq"),
            is_rotational: Some(true),
            ..Queue::default()
        })
        .is_silent(rule)
    );
    assert!(
        queue(Queue {
            scheduler: Some("mq-deadline"),
            ..flash
        })
        .is_silent(rule)
    );
    assert!(queue(flash).is_not_asked(rule));
    let md = |read_ahead: u64| {
        let mut lab = Lab::default();
        let disks: Vec<NodeId> = (0..12)
            .map(|at| lab.disk(&format!("sd{at}"), 4096, 0))
            .collect();
        let array = lab.stripe("md0", 512 << 10, &disks);
        lab.fact(array, keys::READ_AHEAD, Bytes(read_ahead));
        lab.judge()
    };
    assert!(
        md(12 << 20).is_silent(rule),
        "two stripes of 6 MiB, as md sets it"
    );
    assert_eq!(md(64 << 20).found_on(rule), ["md0"]);
    assert_eq!(better(&md(64 << 20)), Bytes(12 << 20), "two stripes");
    let both = queue(Queue {
        read_ahead: Some(67108864),
        scheduler: Some("cfq"),
        ..flash
    });
    assert!(
        matches!(
            facts!(both.finding(rule), QueueSetting).settings.as_slice(),
            [BadSetting::ReadAhead { .. }, BadSetting::Scheduler { .. }]
        ),
        "one finding has all of a device, the worst first"
    );
}
