//! The thread that accepts connections and serves them.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::answer::{Request, refusal};
use crate::workers::{Reply, Workers};

/// Makes the answer to a request. It runs on the thread of the server, so it leaves an answer that takes long to a job.
pub type Handler = Arc<dyn Fn(&Request<'_>) -> Reply + Send + Sync>;

/// Bounds on clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for a client to send the header of its request.
    pub header: Duration,
    /// Time for a whole connection.
    pub connection: Duration,
    /// Connections that are open at a time. A further one takes the place of the oldest that has not sent its header yet; if all have
    /// sent it, that of the oldest, whose client does not read.
    pub connections_max: usize,
    /// Length of a header.
    pub header_bytes_max: usize,
    /// Lines of a header.
    pub headers_max: usize,
    /// Time for an answer that a job makes.
    pub budget: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            header: Duration::from_secs(5),
            connection: Duration::from_secs(30),
            connections_max: 128,
            header_bytes_max: 16 << 10,
            headers_max: 64,
            budget: Duration::from_secs(2),
        }
    }
}

/// Connections that the kernel keeps until the thread accepts them; the kernel's own limit is 4,096 by default (somaxconn). It drops the
/// first packet of a further one, and the client repeats it after a second.
const WAITING_CONNECTIONS_MAX: i32 = 4096;

/// Time without a new connection after one could not be accepted: the process has no file descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A server at work. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve a listening socket.
    ///
    /// # Errors
    /// If the socket is not on a loopback address, or the kernel refuses a thread or its means to wait.
    pub fn start(listener: TcpListener, limits: Limits, handler: Handler) -> io::Result<Server> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("found address {address}, expected a loopback address"),
            ));
        }
        listener.set_nonblocking(true)?;
        // A socket that listens already takes the new number. The library's own sockets have 128.
        SockRef::from(&listener).listen(WAITING_CONNECTIONS_MAX)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let shared = Arc::new(Shared {
            own_name: own_name(address),
            limits,
            handler,
            workers: Workers::start(limits.budget)?,
        });
        let listener = {
            let _guard = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let thread = std::thread::Builder::new().name("http".to_owned());
        let thread = thread.spawn(move || {
            runtime.spawn(async move { accept(&listener, &shared).await });
            // Connections end with the runtime.
            runtime.block_on(stopped.notified());
        })?;
        Ok(Server {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing to end.
            let _ = thread.join();
        }
    }
}

struct Shared {
    own_name: String,
    limits: Limits,
    handler: Handler,
    workers: Workers,
}

/// An address as a `Host` header names it.
fn own_name(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// A connection that may still be open.
struct Connection {
    has_header: Arc<AtomicBool>,
    task: AbortHandle,
}

async fn accept(listener: &tokio::net::TcpListener, shared: &Arc<Shared>) {
    let mut open: Vec<Connection> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        make_room(&mut open, shared.limits.connections_max);
        let has_header = Arc::new(AtomicBool::new(false));
        let serving = serve(stream, Arc::clone(shared), Arc::clone(&has_header));
        let task = tokio::spawn(serving).abort_handle();
        open.push(Connection { has_header, task });
    }
}

/// Makes room for one more connection, if need be by ending one.
fn make_room(open: &mut Vec<Connection>, connections_max: usize) {
    if open.len() < connections_max {
        return;
    }
    open.retain(|connection| !connection.task.is_finished());
    if open.len() >= connections_max {
        let waits = |connection: &Connection| !connection.has_header.load(Ordering::Relaxed);
        let oldest = open.iter().position(waits).unwrap_or(0);
        open.remove(oldest).task.abort();
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, has_header: Arc<AtomicBool>) {
    let limits = shared.limits;
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        has_header.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(respond(&request, &shared).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .keep_alive(false)
        .max_buf_size(limits.header_bytes_max)
        .max_headers(limits.headers_max)
        .serve_connection(TokioIo::new(stream), service);
    // A client that is too slow, or sends no HTTP, is closed and gets no more than hyper's answer.
    let _ = tokio::time::timeout(limits.connection, connection).await;
}

async fn respond(request: &hyper::Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let headers = request.headers();
    let path = request.uri().path();
    let reply = match refusal(request.method(), headers, &shared.own_name) {
        Some(refused) => Reply::Now(refused),
        None => {
            let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
            (shared.handler)(&Request {
                path,
                query: request.uri().query(),
                accept: accept.unwrap_or(""),
            })
        }
    };
    let answer = match reply {
        Reply::Now(answer) => answer,
        Reply::Later(job) => shared.workers.answer(path, job).await,
    };
    answer.response(headers)
}
