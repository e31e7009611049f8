//! What `plumb` found, made readable: one file for each form. Nothing is computed here; numbers are scaled, put
//! into words and drawn.

#![forbid(unsafe_code)]

pub mod format;
pub mod html;

pub use html::html;

/// One analysed profile with what was found on it.
pub struct Section<'a> {
    /// The profile, for the pictures.
    pub profile: &'a plumb_profile::Profile,
    /// What was computed of it.
    pub analysis: &'a plumb_diagnose::Analysis,
}

/// Everything that a report of `plumb analyze` shows.
pub struct Report<'a> {
    /// What it is about, for the head of the page.
    pub title: String,
    /// Version of the program.
    pub version: &'a str,
    /// Command that made it.
    pub command: String,
    /// Inputs, as the user named them.
    pub sources: &'a [String],
    /// What a reader must know of the inputs, a sentence each.
    pub notes: &'a [String],
    /// One for each device and layer.
    pub sections: Vec<Section<'a>>,
    /// Findings of all sections.
    pub diagnosis: &'a plumb_diagnose::Diagnosis,
}
