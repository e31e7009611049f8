//! Counts the events of a trace: `cargo run -p plumb-trace --example count FILE…`.
use plumb_trace::{Batch, Fill, ReadOptions, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<_> = std::env::args_os().skip(1).map(Into::into).collect();
    for piece in open::pieces(&paths) {
        let mut reader = open::open(&piece, &ReadOptions::default())?;
        let mut batch = Batch::default();
        let (mut events, mut bytes, mut timed, mut ns) = (0u64, 0u64, 0u64, 0i64);
        loop {
            match reader.fill(&mut batch)? {
                Fill::End => break,
                Fill::Events => {
                    events += batch.len() as u64;
                    bytes += batch.len_bytes.iter().sum::<u64>();
                    for event in batch.events() {
                        timed += u64::from(event.device_ns.is_some());
                        ns += event.device_ns.unwrap_or(0);
                    }
                }
                other => println!("{other:?}"),
            }
        }
        println!("{events} events, {bytes} bytes, {timed} timed, {ns} ns");
        println!("{:#?}", reader.info());
    }
    Ok(())
}
