//! What measurements say and how surely: intervals, sequential tests and tests of equivalence. Pure arithmetic: no clock, no
//! input, and no randomness but what is handed in.
