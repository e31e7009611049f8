//! Compiles the programs for the kernel, and takes the constants of the headers that they share with Rust.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let processor = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let processor = format!("-DPLUMB_{}", processor.to_uppercase());
    for layer in ["block", "vfs", "record"] {
        let source = format!("bpf/{layer}.bpf.c");
        compile(&source, &[&processor], &out.join(format!("{layer}.o")));
        compile(
            &source,
            &[&processor, "-DPLUMB_COPY_FIELDS"],
            &out.join(format!("{layer}_copying.o")),
        );
    }
    compile("bpf/empty.bpf.c", &[], &out.join("empty.o"));
    for name in ["abi", "record"] {
        let header = fs::read_to_string(format!("bpf/{name}.h")).expect("a header");
        fs::write(out.join(name).with_extension("rs"), constants(&header))
            .expect("a file in OUT_DIR");
    }
}

/// Debug information stays in: offsets of the kernel's structures are found by it. The folder of the build stays out.
fn compile(source: &str, flags: &[&str], object: &Path) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", source, "-o",
        ])
        .arg(object)
        .arg("-fdebug-compilation-dir=.")
        .args(flags)
        .status();
    match status {
        Ok(status) if status.success() => pack(object),
        Ok(status) => panic!("{clang} ended with {status} on {source}"),
        Err(error) => {
            panic!("found no {clang} ({error}), expected clang 14 or later: apt-get install clang")
        }
    }
}

/// Compresses an object: the program contains seven, and loads few of them.
fn pack(object: &Path) {
    let bytes = fs::read(object).expect("the object that clang wrote");
    let packed = zstd::encode_all(bytes.as_slice(), 19).expect("memory for the compression");
    fs::write(object.with_extension("o.zst"), packed).expect("a file in OUT_DIR");
}

/// A Rust constant for each line `#define PLUMB_NAME NUMBER`.
fn constants(header: &str) -> String {
    let constant = |line: &str| {
        let (name, value) = line.strip_prefix("#define PLUMB_")?.split_once(' ')?;
        let value: u64 = value.trim().parse().ok()?;
        Some(format!("pub(crate) const {name}: usize = {value};\n"))
    };
    header.lines().filter_map(constant).collect()
}
