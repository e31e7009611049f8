//! Loads a device or file with I/O and measures it: the engine, workloads, the probe of a device's grid, benchmarks and the
//! replay of traces. It writes only where it was handed a permission to write.
