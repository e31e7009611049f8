//! The commands of Plumb on other kernels: see `lab/kernels-guest` and `docs/kernels.md`.

use plumb_testkit::require;
use serde_json::Value;

use crate::guests::run_lab;

/// Commands that Linux before 5.12 cannot run: its BPF programs lack atomic operations that return a value.
const NEED_ATOMICS: [&str; 3] = ["record", "watch --app", "watch --cgroup"];

#[test]
#[ignore = "ten minutes, and a static binary that PLUMB_STATIC names: run by make soak"]
fn commands_work_on_each_kernel() {
    require!(Qemu, Tool("apt-get"));
    let program = std::env::var_os("PLUMB_STATIC").expect("PLUMB_STATIC names the static binary");
    let out = tempfile::tempdir().expect("a directory");
    for series in ["5.10", "6.1", "6.12"] {
        let folder = out.path().as_os_str();
        let words = [folder, "amd64".as_ref(), series.as_ref(), &program];
        run_lab("kernels-guest", words);
        let file = out.path().join(format!("amd64-{series}.json"));
        let text = std::fs::read_to_string(file).expect("the results");
        let results: Value = serde_json::from_str(&text).expect("JSON");
        let commands = results["commands"].as_object().expect("commands");
        assert!(commands.len() >= 19, "{commands:?}");
        for (command, row) in commands {
            let is_too_old = series == "5.10" && NEED_ATOMICS.contains(&command.as_str());
            assert_eq!(row["works"], !is_too_old, "{command} on {series}: {row}");
            if is_too_old {
                let message = row["message"].as_str().expect("a message");
                assert!(message.contains("or later"), "{message}");
            }
        }
    }
}
