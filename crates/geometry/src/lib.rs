//! Placeholder of geometry until its first commit.
