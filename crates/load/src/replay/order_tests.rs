//! The order against a slow model that looks at every earlier I/O.

use proptest::prelude::*;

use super::*;
use crate::replay::steps::StepAction;

fn step(number: u64, pid: Option<i32>, time_ns: i64, end_ns: Option<i64>) -> ReplayStep {
    ReplayStep {
        number,
        time_ns,
        end_ns,
        action: StepAction::Read,
        start: 0,
        len_bytes: 512,
        sender: pid.map(|pid| (pid, None)),
    }
}

fn numbers(waiting: &mut Waiting) -> Vec<u64> {
    std::iter::from_fn(|| waiting.next())
        .map(|due| due.step.number)
        .collect()
}

#[test]
fn a_thread_waits_for_earlier_completions() {
    let steps = [
        step(1, Some(7), 0, Some(10)),
        step(2, Some(7), 5, Some(30)),
        step(3, Some(8), 6, Some(9)),
        step(4, Some(7), 10, Some(40)),
        step(5, Some(7), 11, None),
        step(6, Some(8), 50, Some(60)),
    ];
    let mut waiting = Waiting::new(Order::Threads);
    steps
        .iter()
        .for_each(|&step| waiting.push(Due { step, due_ns: 0 }));
    assert_eq!(
        numbers(&mut waiting),
        [1, 2, 3],
        "4 was issued when 1 had ended, 6 when 3 had"
    );
    waiting.ended(&steps[1]);
    assert_eq!(numbers(&mut waiting), [0; 0], "nobody waits for 2");
    waiting.ended(&steps[0]);
    assert_eq!(numbers(&mut waiting), [4, 5]);
    waiting.ended(&steps[2]);
    assert_eq!(numbers(&mut waiting), [6]);
    steps[3..].iter().for_each(|step| waiting.ended(step));
    assert_eq!(
        (waiting.len(), waiting.threads.len()),
        (0, 0),
        "nothing is kept"
    );
}

#[test]
fn by_depth_none_waits() {
    let mut waiting = Waiting::new(Order::Depth(4));
    for number in 1..=3 {
        let ends_before_the_next = Some(number as i64 * 10 + 1);
        let step = step(
            number,
            Some(number as i32 % 2),
            number as i64 * 10,
            ends_before_the_next,
        );
        waiting.push(Due { step, due_ns: 0 });
    }
    assert_eq!(numbers(&mut waiting), [1, 2, 3]);
}

proptest! {
    /// Random traces, completed in a random order: each sent step has all of its predecessors back; and each other step
    /// waits for one.
    #[test]
    fn as_the_model_says(
        gaps in prop::collection::vec((0i64..10, 0i32..3, prop::option::of(0i64..40)), 1..60),
        choices in prop::collection::vec(0usize..1000, 200),
    ) {
        let mut time_ns = 0;
        let steps: Vec<ReplayStep> = gaps.iter().enumerate().map(|(at, &(gap, pid, took))| {
            time_ns += gap;
            step(at as u64 + 1, Some(pid), time_ns, took.map(|took| time_ns + took))
        }).collect();
        let mut waiting = Waiting::new(Order::Threads);
        steps.iter().for_each(|&step| waiting.push(Due { step, due_ns: 0 }));
        let (mut gone, mut back): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let had_ended = |earlier: &ReplayStep, later: &ReplayStep| {
            earlier.sender == later.sender && earlier.number < later.number
                && earlier.end_ns.is_some_and(|end_ns| end_ns <= later.time_ns)
        };
        let mut choices = choices.into_iter().cycle();
        while back.len() < steps.len() {
            gone.extend(numbers(&mut waiting));
            for later in &steps {
                let waits_for = |earlier: &&ReplayStep| had_ended(earlier, later) && !back.contains(&earlier.number);
                let blocked = steps.iter().any(|earlier| waits_for(&earlier));
                prop_assert_eq!(gone.contains(&later.number), !blocked || back.contains(&later.number));
            }
            let out: Vec<u64> = gone.iter().copied().filter(|number| !back.contains(number)).collect();
            prop_assert!(!out.is_empty(), "nothing goes on");
            let next = out[choices.next().unwrap_or(0) % out.len()];
            waiting.ended(&steps[next as usize - 1]);
            back.push(next);
        }
    }
}
