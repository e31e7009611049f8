//! Placeholder of testkit until its first commit.
