#!/usr/bin/env python3
"""Plumb beside its peers on the same data: paired runs, medians and spread.

Prints Markdown tables for docs/benchmarks.md. Data is generated once into target/bench and read from a warm
cache. Each pair of commands runs in turn (A B A B ...) on the same processors, so that a machine whose speed
drifts does not favour either. Times are those of whole processes, except DuckDB's, which is the query
alone: its start and the loading of Python do not count against it.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "target" / "bench"
PLUMB = ROOT / "target" / "release" / "plumb"
TESTKIT = ROOT / "target" / "release" / "plumb-testkit"
COLLECT = ROOT / "target" / "release" / "examples" / "collect"
COST = ROOT / "target" / "release" / "examples" / "cost"
SYNTHETIC = ROOT / "target" / "release" / "examples" / "synthetic_parquet"

QUERY = """
SELECT device, op, sector % 2048 AS residue, len_bytes, count(*), count(device_ns), sum(device_ns)
FROM read_parquet('{files}') GROUP BY ALL
"""

DUCKDB = """
import sys, time
sys.path.insert(0, {packages!r})
import duckdb
connection = duckdb.connect()
connection.execute("SET threads = {threads}")
connection.execute("SET enable_progress_bar = false")
started = time.perf_counter()
rows = connection.execute({query!r}).fetchall()
print(time.perf_counter() - started, len(rows), sum(row[4] for row in rows), duckdb.__version__)
"""


class Run:
    """One finished process: wall and CPU seconds, peak memory, output."""

    def __init__(self, command, processors):
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )
        self.output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.status = process.returncode
        self.wall = time.perf_counter() - started
        self.cpu = usage.ru_utime + usage.ru_stime
        self.mib = usage.ru_maxrss / 1024


def shell(*commands):
    return ["bash", "-c", "set -e; " + "; ".join(commands)]


def plumb(files, *flags):
    return [str(PLUMB), "analyze", "--fail-on", "none", *flags, *map(str, files)]


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def warm(files):
    for file in files:
        with open(file, "rb") as source:
            while source.read(1 << 24):
                pass


def check(run, name):
    if run.status not in (0, 1, 3):
        sys.exit(f"{name} ended with status {run.status}")
    return run


def table(title, head, rows):
    print(f"\n## {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def bench_blktrace(runs, events):
    base = DATA / "blktrace"
    if not base.exists():
        base.mkdir(parents=True)
        subprocess.run(
            [TESTKIT, "generate", "blktrace", "--events", str(events), "--cpus", "16", "--devices", "1",
             "--out", base / "host"], check=True, stderr=subprocess.DEVNULL)
    files = sorted(base.glob("host.blktrace.*"))
    size = sum(file.stat().st_size for file in files)
    warm(files)
    merged = DATA / "merged.bin"
    peer = shell(f"cd {base}", f"blkparse -i host -d {merged} -O -q >/dev/null 2>&1", f"btt -i {merged} >/dev/null")
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(check(Run(plumb([base]), {0}), "plumb"))
        theirs.append(check(Run(peer, {0}), "blkparse and btt"))
    merged.unlink(missing_ok=True)
    both = [check(Run(plumb([base]), {0, 1}), "plumb") for _ in range(runs)]
    ratios = [b.wall / a.wall for a, b in zip(ours, theirs)]
    head = ["command", "processors", "wall s, median (spread)", "MB/s", "peak MiB"]
    row = lambda name, cpus, some: [
        name, str(cpus), spread([run.wall for run in some]),
        f"{size / 1e6 / statistics.median([run.wall for run in some]):.0f}",
        f"{max(run.mib for run in some):.0f}"]
    table(f"Binary blktrace, {size / 1e6:.0f} MB in 16 per-CPU files, to the full profile", head, [
        row("plumb analyze", 1, ours),
        row("blkparse -d, then btt", 1, theirs),
        row("plumb analyze", 2, both)])
    print(f"\nblkparse and btt take {spread(ratios, 1)} times as long on one processor.")


def bench_parquet(runs, events):
    base = DATA / "parquet"
    if not base.exists():
        base.mkdir(parents=True)
        subprocess.run([SYNTHETIC, str(base), str(events)], check=True, stderr=subprocess.DEVNULL)
    files = sorted(base.glob("*.parquet"))
    size = sum(file.stat().st_size for file in files)
    warm(files)
    packages = str(ROOT / "target" / "bench-python-packages")
    script = DUCKDB.format(packages=packages, threads=2, query=QUERY.format(files=base / "*.parquet"))
    ours, theirs, rows, version = [], [], 0, "?"
    for _ in range(runs):
        ours.append(check(Run(plumb(files), {0, 1}), "plumb"))
        run = check(Run([sys.executable, "-c", script], {0, 1}), "DuckDB")
        seconds, rows, counted, version = run.output.split(maxsplit=3)
        run.wall = float(seconds)
        if int(counted) != events:
            sys.exit(f"DuckDB counted {int(counted)} of {events} events")
        theirs.append(run)
    counted = json.loads(Run(plumb(files, "--json"), {0, 1}).output)
    seen = sum(entry["events"] for entry in counted["inputs"])
    if seen != events:
        sys.exit(f"plumb counted {seen} of {events} events")
    ratios = [b.wall / a.wall for a, b in zip(ours, theirs)]
    rate = lambda some: spread([events / 1e6 / run.wall for run in some], 1)
    table(f"Parquet, {events / 1e6:.0f} million events in {len(files)} files, {size / events:.2f} bytes an event",
          ["command", "processors", "million events/s, median (spread)", "peak MiB"], [
              ["plumb analyze, full profile", "2", rate(ours), f"{max(run.mib for run in ours):.0f}"],
              [f"DuckDB {version.decode().strip()}, residue GROUP BY alone ({int(rows):,} rows)", "2", rate(theirs),
               f"{max(run.mib for run in theirs):.0f}"]])
    print(f"\nplumb is {spread(ratios)} times as fast.")


def bench_csv(runs, events):
    DATA.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in ("msr", "alibaba", "spc"):
        file = DATA / f"{name}.csv"
        if not file.exists():
            subprocess.run([TESTKIT, "generate", name, "--events", str(events), "--devices", "4", "--out", file],
                           check=True, stderr=subprocess.DEVNULL)
        size = file.stat().st_size
        warm([file])
        some = [check(Run(plumb([file]), {0}), "plumb") for _ in range(runs)]
        copy = [Run(shell(f"wc -l {file}"), {0}) for _ in range(runs)]
        rows.append([f"plumb analyze, {name}", "1", spread([size / 1e6 / run.wall for run in some], 0),
                     spread([events / 1e6 / run.wall for run in some], 1),
                     f"{max(run.mib for run in some):.0f}",
                     spread([size / 1e6 / run.wall for run in copy], 0)])
        file.unlink()
    table(f"CSV, {events / 1e6:.0f} million events, to the full profile",
          ["command", "processors", "MB/s, median (spread)", "million events/s", "peak MiB", "wc -l MB/s"], rows)


def bench_check(runs):
    root = DATA / "host"
    if not root.exists():
        root.mkdir(parents=True)
        subprocess.run([COLLECT, "--make", str(root), "10000"], check=True, stdout=subprocess.DEVNULL)
    rows = []
    for name, flags in (("5,000 disks with a partition each", ["--root", str(root)]), ("this host", [])):
        command = [str(PLUMB), "check", "--fail-on", "none", *flags]
        found = [check(Run(command, {0, 1}), "plumb") for _ in range(runs)]
        rows.append([f"plumb check, {name}", spread([run.wall * 1e3 for run in found], 0),
                     f"{max(run.mib for run in found):.0f}"])
    table("Check", ["command", "wall ms, median (spread)", "peak MiB"], rows)


def fio(device, seconds, *flags):
    """How many 4 KiB reads at random fio counted, 32 in flight."""
    done = subprocess.run(
        ["fio", "--name=load", "--direct=1", "--rw=randread", "--bs=4k", "--ioengine=io_uring", "--iodepth=32",
         "--norandommap", "--time_based", f"--runtime={seconds}", f"--filename={device}", "--output-format=json", *flags],
        check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["jobs"][0]["read"]["total_ios"]


def record_once(device, file, seconds):
    """I/O a second, I/O that fio counted, and what a recording of them says of itself."""
    recording = subprocess.Popen([PLUMB, "record", "--json", "-o", file, device], stdout=subprocess.PIPE)
    while not file.exists() and recording.poll() is None:
        time.sleep(0.05)
    sent = fio(device, seconds)
    recording.send_signal(signal.SIGINT)
    output, _ = recording.communicate()
    file.unlink()
    return sent / seconds, sent, json.loads(output)["result"]


def bench_record(runs, seconds=5):
    """Needs root, fio and bpftrace; the disk is a loop device on a file in memory."""
    place = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    image = place / "disk"
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    device = subprocess.run(["losetup", "--find", "--show", image], check=True, stdout=subprocess.PIPE,
                            text=True).stdout.strip()
    try:
        cost = subprocess.run([COST, device, str(runs), "3"], check=True, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL).stdout.splitlines()
        table("An I/O in the kernel", ["programs", "issue ns", "complete ns", "queue ns"],
              [[line.split(":")[0], *(part.split()[1] for part in line.split(": ")[1].split(", "))]
               for line in cost[:4]])
        print("\n" + "; ".join(cost[4:]) + ".")
        DATA.mkdir(parents=True, exist_ok=True)
        found = [record_once(device, DATA / "record.parquet", seconds) for _ in range(runs)]
        table("Recording at full rate", ["I/O a second, median (spread)", "fio's count less rows and lost", "lost"], [[
            spread([rate for rate, _, _ in found], 0),
            str(sum(sent - result["ios"] - result["lost"] for _, sent, result in found)),
            f"{sum(result['lost'] for _, _, result in found)} of {sum(sent for _, sent, _ in found):,}"]])
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--events", type=int, default=50_000_000, help="of the Parquet and CSV data")
    parser.add_argument("--blktrace-events", type=int, default=2_700_000, help="each gives five records")
    parser.add_argument("only", nargs="*", help="blktrace, parquet, csv, check, record; the first four without")
    arguments = parser.parse_args()
    wanted = arguments.only or ["blktrace", "parquet", "csv", "check"]
    cpus = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    print(f"{len(cpus)} x {cpus[0] if cpus else 'unknown processor'}, kernel {os.uname().release}, "
          f"{arguments.runs} runs each")
    if "blktrace" in wanted:
        bench_blktrace(arguments.runs, arguments.blktrace_events)
    if "parquet" in wanted:
        bench_parquet(arguments.runs, arguments.events)
    if "check" in wanted:
        bench_check(arguments.runs)
    if "record" in wanted:
        bench_record(arguments.runs)
    if "csv" in wanted:
        bench_csv(arguments.runs, arguments.events)
    if os.environ.get("PLUMB_BENCH_KEEP") is None:
        shutil.rmtree(DATA, ignore_errors=True)


if __name__ == "__main__":
    main()
