//! Threads for answers that take long, such as those from a file. The thread of the server does not wait for them.
//!
//! Each answer has a budget of time, the wait for a thread included. A client whose answer is late gets status 503. A query in a library
//! cannot be stopped, so a late job keeps its thread until it ends; a job whose client has gone is not begun.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::answer::{Answer, RequestFault};

/// Threads.
const THREADS: usize = 2;

/// Jobs that wait for a thread.
const WAITING_MAX: usize = 16;

/// Most bytes of bodies that clients have not read yet. Each job makes a body of its own, and 128 clients can be connected.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The answer of a handler.
pub enum Reply {
    /// An answer that is there.
    Now(Answer),
    /// One that a thread has to make.
    Later(LateAnswer),
}

/// Makes an answer; one that takes several steps looks at its budget in between.
pub type LateAnswer = Box<dyn FnOnce(&Budget) -> Answer + Send>;

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Reply {
        Reply::Now(answer)
    }
}

/// The time for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    end: Instant,
}

impl Budget {
    /// Whether nobody waits for the answer any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

struct Task {
    job: LateAnswer,
    budget: Budget,
    done: oneshot::Sender<Answer>,
}

/// The threads. They end when this is dropped, each behind its present job.
pub(crate) struct Workers {
    tasks: SyncSender<Task>,
    budget: Duration,
    held_bytes: Arc<AtomicUsize>,
}

impl Workers {
    pub(crate) fn start(budget: Duration) -> io::Result<Workers> {
        let (tasks, waiting) = sync_channel::<Task>(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..THREADS {
            let waiting = Arc::clone(&waiting);
            let thread = std::thread::Builder::new().name("http-worker".to_owned());
            thread.spawn(move || while work(&waiting).is_some() {})?;
        }
        Ok(Workers {
            tasks,
            budget,
            held_bytes: Arc::default(),
        })
    }

    /// The answer of a job to a request for a path, or that the server is busy.
    pub(crate) async fn answer(&self, path: &str, job: LateAnswer) -> Answer {
        let budget = Budget {
            end: Instant::now() + self.budget,
        };
        let (done, answer) = oneshot::channel();
        if self.tasks.try_send(Task { job, budget, done }).is_err() {
            return self.busy(path, format!("{WAITING_MAX} requests that wait"));
        }
        match tokio::time::timeout(self.budget, answer).await {
            Ok(Ok(answer)) => self.held(path, answer),
            // The job panicked: its thread has printed the place.
            Ok(Err(_)) => RequestFault {
                place: path.to_owned(),
                found: "an error of the program".to_owned(),
                expected: "an answer".to_owned(),
            }
            .answer(500),
            Err(_) => self.busy(
                path,
                format!("no answer within {} ms", self.budget.as_millis()),
            ),
        }
    }

    fn busy(&self, path: &str, found: String) -> Answer {
        let fault = RequestFault {
            place: path.to_owned(),
            found,
            expected: "the same request later, or a shorter time".to_owned(),
        };
        let seconds = u32::try_from(self.budget.as_secs()).unwrap_or(u32::MAX);
        Answer {
            retry_after_seconds: Some(seconds.max(1)),
            ..fault.answer(503)
        }
    }

    /// An answer whose body counts until its client has read it.
    fn held(&self, path: &str, answer: Answer) -> Answer {
        let len = answer.body.len();
        let held = HeldBody {
            body: answer.body,
            held_bytes: Arc::clone(&self.held_bytes),
        };
        // Made by the thread of the server alone.
        if self.held_bytes.fetch_add(len, Ordering::Relaxed) > HELD_BYTES_MAX.saturating_sub(len) {
            return self.busy(
                path,
                "other clients that do not read their answers".to_owned(),
            );
        }
        Answer {
            body: Bytes::from_owner(held),
            ..answer
        }
    }
}

struct HeldBody {
    body: Bytes,
    held_bytes: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.held_bytes
            .fetch_sub(self.body.len(), Ordering::Relaxed);
    }
}

/// Does the next job; `None` at the end of the server.
fn work(waiting: &Mutex<Receiver<Task>>) -> Option<()> {
    let next = waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv();
    let Task { job, budget, done } = next.ok()?;
    if done.is_closed() || budget.is_over() {
        return Some(());
    }
    // A job that panics must not take its thread from the others.
    if let Ok(answer) = catch_unwind(AssertUnwindSafe(|| job(&budget))) {
        // The client has gone.
        let _ = done.send(answer);
    }
    Some(())
}
