//! Reads this host, or the tree of one, and says how long that took.
//!
//!     collect [ROOT]             without a root, this host, with its ioctls
//!     collect --make ROOT COUNT  a tree of so many disks and partitions, half and half

use std::path::Path;
use std::time::Instant;

use plumb_stack::Builder;
use plumb_stack::linux::{self, Elsewhere, Live, Root};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--make", root, count] => make(Path::new(root), count.parse()?),
        [root] => read(Path::new(root), &Elsewhere)?,
        _ => read(Path::new("/"), &Live::default())?,
    }
    Ok(())
}

fn make(root: &Path, count: usize) {
    let mut host = FakeHost::new(root);
    for number in 0..count / 2 {
        let name = format!("sd{number}x");
        host.disk(&FakeDisk::named(&name));
        host.partition(&name, 1, 2048, 1 << 20);
    }
}

fn read(path: &Path, kernel: &dyn linux::Kernel) -> Result<(), Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let root = Root::open(path, kernel)?;
    let mut builder = Builder::default();
    let host = linux::collect(&root, &mut builder)?;
    let stack = builder.finish();
    let took = begin.elapsed();
    if stack.nodes().count() < 40 {
        for (top, node) in stack.nodes() {
            println!("{}: {}, {:?}", node.name, node.kind.text(), node.size);
            let landings = stack.landings(top);
            for one in landings.all.iter().skip(1) {
                let period = one
                    .period
                    .map(|period| format!(" mod {}", period.0))
                    .unwrap_or_default();
                println!(
                    "    is on {} at {}{period}",
                    stack.node(one.on).name,
                    one.shift
                );
            }
            for (node, why) in &landings.lost {
                println!("    lost on {}: {why:?}", stack.node(*node).name);
            }
            for fact in &node.grids {
                println!("    {:?} {} {:?}", fact.what, fact.grid, fact.belief);
            }
        }
    }
    for note in stack.notes() {
        println!("note: {note}");
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    println!(
        "{} nodes in {took:?}; {:?}; {peak}",
        stack.nodes().count(),
        host.work()
    );
    Ok(())
}
