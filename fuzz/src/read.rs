//! Reads a trace to its end and verifies the reader's promises.

use plumb_profile::Collector;
use plumb_profile::codec::Saved;
use plumb_trace::{Batch, Fill, Layer, Reader, SourceInfo};

use super::judge::questions;

/// Compressed input unpacks to any length; after this number of fills nothing new comes.
const FILLS_MAX: usize = 64;

/// The profiles of the reader's events. With `fills_max` the reader has to end within that number of fills; without
/// it reading stops after [`FILLS_MAX`].
pub fn to_profiles(reader: &mut dyn Reader, fills_max: Option<usize>) -> Saved {
    let settings = questions().settings();
    let mut collector =
        Collector::new(&settings).expect("the modulus that questions ask for is a good one");
    collector.set_clock(reader.info().clock);
    let mut batch = Batch::default();
    let mut events = 0;
    for fills in 0.. {
        match fills_max {
            Some(most) => assert!(fills <= most, "no end after {fills} fills"),
            None if fills == FILLS_MAX => break,
            None => {}
        }
        match reader.fill(&mut batch) {
            Ok(Fill::Events) => {
                check_batch(&batch);
                events += batch.len() as u64;
                collector.fold(&batch);
            }
            Ok(Fill::End) => {
                check_end(reader, &mut batch, events);
                break;
            }
            Ok(ready_made) => {
                let layer = reader
                    .info()
                    .layers
                    .last()
                    .copied()
                    .unwrap_or(Layer::Request);
                collector.fold_ready_made(&ready_made, layer);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error says something");
                break;
            }
        }
    }
    let info: &SourceInfo = reader.info();
    let mut saved = Saved {
        profiles: collector.finish(info),
        ..Saved::default()
    };
    saved
        .sources
        .insert(format!("{}: {}", info.path, info.format));
    saved.notes.extend(info.notes.iter().cloned());
    saved
        .notes
        .extend(info.damages.iter().map(ToString::to_string));
    saved
}

fn check_batch(batch: &Batch) {
    assert!(!batch.is_empty(), "a fill of events has events");
    for event in batch.events() {
        let device = batch.names.devices().get(event.device as usize);
        assert!(device.is_some(), "device {} has no name", event.device);
        for name in [event.comm, event.file] {
            assert!(
                name == 0 || batch.names.word_of(name).is_some(),
                "name {name} is not known"
            );
        }
        let end = event.start_bytes.checked_add(event.len_bytes);
        assert!(
            end.is_some(),
            "{} bytes at {} have no end",
            event.len_bytes,
            event.start_bytes
        );
        for ns in [event.queue_ns, event.device_ns].into_iter().flatten() {
            assert!(ns >= 0, "an interval of {ns} ns");
        }
    }
}

fn check_end(reader: &mut dyn Reader, batch: &mut Batch, events: u64) {
    assert!(batch.is_empty(), "events came with the end");
    assert!(
        matches!(reader.fill(batch), Ok(Fill::End)),
        "there is something after the end"
    );
    let info = reader.info();
    assert_eq!(
        info.counts.events, events,
        "events counted are those handed over"
    );
    let damages = info.damages.len() as u64;
    assert!(
        damages <= info.counts.damaged,
        "{damages} places kept of {} counted",
        info.counts.damaged
    );
}
