//! Answers of the HTTP API to questions about the history.

use plumb_model::result::api::ApiDocument;

/// The document in JSON.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(document: &ApiDocument) -> Result<String, serde_json::Error> {
    Ok(plumb_quoting::json::line(document)? + "\n")
}
