//! `plumb serve`: answers the HTTP API for a history, without an agent. It writes nothing, and no agent has to run.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_http::{Answer, Handler, Limits, Reply, Server};

use crate::api::{Api, PATHS};
use crate::cli::Serve;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::history::span;
use crate::signals::stop_flag;
use crate::watch::wait_until;
use crate::{output, privilege};

/// The path that is answered beside those of the API. The counters of `/metrics` are those of a live agent.
const HEALTH: &str = "/healthz";

/// Time for which a wait for the end has no end.
const LONG: Duration = Duration::from_secs(3600);

/// Runs the command.
///
/// # Errors
/// When the history cannot be read, the address is in use, or a file that protects the answers does not fit.
pub fn run(args: &Serve) -> Result<Exit, Failure> {
    if let Some(mistake) = args.address_mistake() {
        return Err(Failure::usage(mistake));
    }
    let access_files = args.access_files();
    let access = access_files.access()?;
    let state_dir = span::folder(args.folder.as_deref().or(args.state_dir.as_deref()))?;
    // As long as one reader has the files open, an agent that ends leaves its log beside them.
    let _open = span::open(&state_dir)?;
    let ended = stop_flag()?;
    let listener = TcpListener::bind(args.listen).map_err(|error| {
        Failure::failed(&error).at(&format!("cannot listen at {}", args.listen))
    })?;
    let files = ["history.db", "recent.db"].map(|file| state_dir.join(file));
    privilege::drop_to(&files, &[])?;
    let folder = state_dir.display().to_string();
    let api = Arc::new(Api {
        state_dir,
        survey: None,
        recent: None,
    });
    let handler: Handler = Arc::new(move |request| {
        if let Some(reply) = api.reply(request) {
            return reply;
        }
        match request.path {
            HEALTH => {
                let api = Arc::clone(&api);
                Reply::Later(Box::new(move |_| api.health()))
            }
            other => Answer::not_found(other, &[&[HEALTH][..], &PATHS].concat()).into(),
        }
    });
    let server = Server::start(listener, Limits::default(), access, handler)
        .map_err(|error| Failure::failed(&error))?;
    output::say(&format!(
        "serving the history in {folder} at {}/api/v1/devices",
        server.url()
    ));
    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
        wait_until(Instant::now() + LONG, &ended, || {});
    }
    Ok(Exit::Clean)
}
