#!/usr/bin/env python3
"""Plumb beside its peers on the same data: paired runs, medians and spread.

Prints Markdown tables for docs/benchmarks.md. Data is generated once into target/bench and read from a warm
cache. Each pair of commands runs in turn (A B A B ...) on the same processors, so that a machine whose speed
drifts does not favour either. Times are those of whole processes, except DuckDB's, which is the query
alone: its start and the loading of Python do not count against it.
"""

import argparse
import collections
import itertools
import json
import math
import mmap
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "target" / "bench"
PLUMB = ROOT / "target" / "dist" / "plumb"
TESTKIT = ROOT / "target" / "dist" / "plumb-testkit"
COLLECT = ROOT / "target" / "dist" / "examples" / "collect"
COST = ROOT / "target" / "dist" / "examples" / "cost"
YEAR = ROOT / "target" / "dist" / "examples" / "year"
DAY_TIER = ROOT / "target" / "dist" / "examples" / "day_tier"
SYNTHETIC = ROOT / "target" / "dist" / "examples" / "synthetic_parquet"

QUERY = """
CREATE TABLE result AS SELECT {keys} device, op, sector % 2048 AS residue, len_bytes,
  count(*) AS ios, count(device_ns) AS timed, sum(device_ns) AS ns
FROM read_parquet('{files}') GROUP BY ALL
"""

# What biolatency.bt and biosnoop.bt do, for kernels without the kprobes that those of Debian 12 want.
BPFTRACE_LATENCY = """
tracepoint:block:block_rq_issue { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
  @us = hist((nsecs - @start[args->dev, args->sector]) / 1000);
  delete(@start[args->dev, args->sector]);
}
"""

BPFTRACE_SNOOP = """
tracepoint:block:block_rq_issue { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
  printf("%d %d %s %d %d %d\\n", nsecs / 1000, args->dev, args->rwbs, args->sector, args->nr_sector,
    (nsecs - @start[args->dev, args->sector]) / 1000);
  delete(@start[args->dev, args->sector]);
}
"""

DUCKDB = """
import sys, time
sys.path.insert(0, {packages!r})
import duckdb
connection = duckdb.connect()
connection.execute("SET threads = {threads}")
connection.execute("SET enable_progress_bar = false")
started = time.perf_counter()
connection.execute({query!r})
seconds = time.perf_counter() - started
groups, ios = connection.execute("SELECT count(*), sum(ios) FROM result").fetchone()
print(seconds, groups, ios, duckdb.__version__)
"""


class Run:
    """One finished process: wall and CPU seconds, peak memory, output."""

    def __init__(self, command, processors):
        started = time.perf_counter()
        # A session of its own, as fio's jobs have: the kernel shares processors out by session where it groups by them.
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
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


def beside_btt(base, runs):
    """Runs of plumb, and of blkparse and btt, in turn on one processor, over the files of `base/host`."""
    merged = DATA / "merged.bin"
    peer = shell(f"cd {base}", f"blkparse -i host -d {merged} -O -q >/dev/null 2>&1", f"btt -i {merged} >/dev/null")
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(check(Run(plumb([base]), {0}), "plumb"))
        theirs.append(check(Run(peer, {0}), "blkparse and btt"))
    merged.unlink(missing_ok=True)
    return ours, theirs


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
    ours, theirs = beside_btt(base, runs)
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
    counted = json.loads(Run(plumb(files, "--json"), {0, 1}).output)
    seen = sum(entry["events"] for entry in counted["inputs"])
    if seen != events:
        sys.exit(f"plumb counted {seen} of {events} events")
    rows, ratios = beside_duckdb("plumb analyze, full profile", plumb(files), base / "*.parquet", events, runs)
    table(f"Parquet, {events / 1e6:.0f} million events in {len(files)} files, {size / events:.2f} bytes an event", BESIDE_DUCKDB, rows)
    print(f"\nplumb is {spread(ratios)} times as fast.")


BESIDE_DUCKDB = ["command", "processors", "million events/s, median (spread)", "CPU s", "peak MiB"]


def beside_duckdb(title, command, files, events, runs, keys=""):
    """Runs of a command of plumb, and of DuckDB's GROUP BY into a table, in turn on two processors: rows of a table, and DuckDB's times by
    those of plumb. Rows that Python fetches would take DuckDB a quarter longer."""
    packages = str(ROOT / "target" / "bench-python-packages")
    script = DUCKDB.format(packages=packages, threads=2, query=QUERY.format(files=files, keys=keys))
    ours, theirs, groups, version = [], [], 0, b"?"
    for _ in range(runs):
        ours.append(check(Run(command, {0, 1}), "plumb"))
        run = check(Run([sys.executable, "-c", script], {0, 1}), "DuckDB")
        seconds, groups, counted, version = run.output.split(maxsplit=3)
        run.wall = float(seconds)
        if int(counted) != events:
            sys.exit(f"DuckDB counted {int(counted)} of {events} events")
        theirs.append(run)
    named = [(title, ours), (f"DuckDB {version.decode().strip()}, residue GROUP BY alone ({int(groups):,} rows)", theirs)]
    rows = [[name, "2", spread([events / 1e6 / run.wall for run in some], 1), spread([run.cpu for run in some]),
             f"{max(run.mib for run in some):.0f}"] for name, some in named]
    return rows, [b.wall / a.wall for a, b in zip(ours, theirs)]


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


# The end of the year that the example `year` writes, and windows as identifiers count them.
YEAR_END_DAY = 20_819
YEAR_DAYS = 365
SERIES = 4096
SIZE_LIMIT_GIB = 1.9

# sqlite3 reads the same rows: every column of the totals, and the bytes of the wider widths (max, since length reads no bytes).
TOTALS = "ios reads writes read_bytes write_bytes off_4k timed p50_ns p99_ns max_ns to_4k to_16k to_64k to_256k longer".split()
GLANCE_PEER = f"SELECT count(*), {', '.join(f'sum({name})' for name in TOTALS)} FROM glance_5m WHERE id >= {{first}}"
BYTES_PEER = f"""
WITH RECURSIVE day(n) AS (SELECT {{first}} UNION ALL SELECT n + 1 FROM day WHERE n + 1 < {YEAR_END_DAY})
SELECT count(*), max(profile), max(senders), max(residues) FROM day
JOIN histograms_1d ON histograms_1d.id = n * {SERIES} + {{series}} JOIN table_1d USING (id)
"""


def bench_history(runs, hours, days):
    """A year of 200 devices: its size, and the time of questions to it, beside sqlite3's own read of the same rows."""
    base = DATA / "history"
    said = DATA / "history.txt"
    if not said.exists():
        shutil.rmtree(base, ignore_errors=True)
        DATA.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        made = subprocess.run([YEAR, "make", base, str(hours), str(days)], check=True, capture_output=True, text=True).stdout
        said.write_text(made + f"seconds {time.perf_counter() - started:.0f}\n")
    size = dict(line.rsplit(" ", 1) for line in said.read_text().splitlines())
    size = {name: int(value) for name, value in size.items()}
    recent, history = ((size[f"{name}.db"] + size[f"{name}.db-wal"]) / 2**20 for name in ("recent", "history"))
    gib = size["bytes"] / 2**30
    table(f"{days} days of 200 devices: 20 busy, 60 light, 120 idle; the last {hours} h from events", ["", ""], [
        ["`recent.db` with its log, MiB", f"{recent:,.0f}"],
        ["`history.db` with its log, MiB", f"{history:,.0f}"],
        ["both, GiB", f"{gib:.2f} (limit {SIZE_LIMIT_GIB})"],
        *([f"windows of {word}", f"{size[f'windows_{tier}']:,}"]
          for tier, word in (("5m", "5 minutes"), ("1h", "an hour"), ("1d", "a day"))),
        ["evicted windows", f"{size['evicted']}"]])
    print(f"\nThe generator took {size['seconds']} s.")
    device = "sda"
    span = f"history:{device}@{year_words(days)}"
    glance = GLANCE_PEER.format(first=(YEAR_END_DAY - 1) * 288 * SERIES)
    blobs = BYTES_PEER.format(first=YEAR_END_DAY - days, series=0)
    sqlite = lambda name, query: ["sqlite3", "-readonly", str(base / name), query]
    totals_peer = sqlite("recent.db", glance)
    pairs = [
        ("totals of 24 h of all devices", 50, [str(YEAR), "glance", str(base)], totals_peer),
        ("histograms of a busy device over the year", 200, [str(YEAR), "histograms", str(base), device],
         sqlite("history.db", blobs)),
        ("`plumb analyze` of it with `--shift`", 200, plumb([span], "--state-dir", str(base), "--grid", "4k", "--shift", "+1s"),
         sqlite("history.db", blobs))]
    rows, misses = [], []
    for title, limit, command, peer in pairs:
        ours, theirs = [], []
        for _ in range(runs + 1):
            ours.append((check if command[0] == str(PLUMB) else sound)(Run(command, {0}), title))
            theirs.append(sound(Run(peer, {0}), "sqlite3"))
        # The first of each fills the cache.
        ours, theirs = ours[1:], theirs[1:]
        if peer == totals_peer:
            # Windows and I/O of both.
            found, expected = ours[0].output.split()[:2], theirs[0].output.split(b"|")[:2]
            if found != expected:
                sys.exit(f"{title}: {found}, and sqlite3 has {expected}")
        wall = [run.wall * 1e3 for run in ours]
        rows.append([title, spread(wall, 0), spread([run.cpu * 1e3 for run in ours], 0), f"{limit}",
                     spread([run.wall * 1e3 for run in theirs], 0), f"{max(run.mib for run in ours):.0f}"])
        if statistics.median(wall) > limit:
            misses.append(f"{title}: {statistics.median(wall):.0f} ms, limit {limit} ms")
    table("Questions to it, on one processor", ["question", "wall ms, median (spread)", "CPU ms", "limit ms",
                                                "sqlite3 reads the same rows, wall ms", "peak MiB"], rows)
    if size["evicted"] or gib > SIZE_LIMIT_GIB:
        misses.append(f"size: {gib:.2f} GiB and {size['evicted']} evicted windows, limit {SIZE_LIMIT_GIB} GiB and none")
    for miss in misses:
        print(f"\nabove its limit: {miss}")


def sound(run, name):
    """A run of a program without findings: it ends with status 0."""
    if run.status != 0:
        sys.exit(f"{name} ended with status {run.status}")
    return run


def year_words(days):
    """The whole time of the generated history as a span, in UTC."""
    day = lambda number: time.strftime("%Y-%m-%dT00:00Z", time.gmtime(number * 86_400))
    return f"{day(YEAR_END_DAY - days)}..{day(YEAR_END_DAY)}"


# Programs of awk that read the fields a summary of starts and lengths needs, and no more.
AWK_SUMS = {
    "disksim": "{ n++; bytes += $4 * 512; off += $3 % 8 != 0 } END { print n, bytes, off }",
    "blkparse": '$6 == "D" { n++; bytes += $10 * 512; off += $8 % 8 != 0 } END { print n, bytes, off }',
}


def generate(name, events, out):
    subprocess.run([TESTKIT, "generate", name, "--events", str(events), "--devices", "4", "--out", out],
                   check=True, stderr=subprocess.DEVNULL)


def bench_text(runs, events):
    """Text with blanks: one recording in order, and the same recording three times, so that its time jumps back twice."""
    DATA.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, program in AWK_SUMS.items():
        once = DATA / f"{name}.txt"
        generate(name, events, once)
        appended = DATA / f"{name}-appended.txt"
        subprocess.run(shell(f"cat {once} {once} {once} > {appended}"), check=True)
        for file, title in ((once, name), (appended, f"{name} appended to itself twice")):
            megabytes = file.stat().st_size / 1e6
            warm([file])
            ours, awk = [], []
            for _ in range(runs):
                ours.append(check(Run(plumb([file]), {0}), "plumb"))
                awk.append(Run(["awk", program, str(file)], {0}))
            rows.append([title, spread([megabytes / run.wall for run in ours], 0),
                         spread([megabytes / run.cpu for run in ours], 0),
                         f"{max(run.mib for run in ours):.0f}", spread([megabytes / run.wall for run in awk], 0)])
            file.unlink()
    table(f"Text with blanks, {events:,} I/O, to the full profile on one processor",
          ["file", "plumb analyze, MB/s, median (spread)", "MB by second of processor", "peak MiB", "awk, three sums, MB/s"],
          rows)


def bench_jumps(runs, events):
    """Each format as one recording and as three recordings one after the other, of equal size, in turn."""
    DATA.mkdir(parents=True, exist_ok=True)
    base = DATA / "jumps"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    pairs = []
    for name in ("msr", "disksim", "blkparse"):
        part, once, thrice = (base / f"{name}-{count}.txt" for count in ("part", "once", "thrice"))
        generate(name, events // 3, part)
        generate(name, events // 3 * 3, once)
        subprocess.run(shell(f"cat {part} {part} {part} > {thrice}"), check=True)
        part.unlink()
        pairs.append((name, [once], [thrice]))
    for count, recordings in (("once", 1), ("thrice", 3)):
        (base / count).mkdir()
        subprocess.run([SYNTHETIC, str(base / count), str(events), str(recordings)], check=True, stderr=subprocess.DEVNULL)
    pairs.append(("Parquet, 16 files", *(sorted((base / count).iterdir()) for count in ("once", "thrice"))))
    for count, part_events in (("blktrace-part", events // 3), ("blktrace-once", events // 3 * 3)):
        (base / count).mkdir()
        subprocess.run([TESTKIT, "generate", "blktrace", "--events", str(part_events), "--cpus", "16", "--devices", "1",
                        "--out", base / count / "host"], check=True, stderr=subprocess.DEVNULL)
    (base / "blktrace-thrice").mkdir()
    for file in (base / "blktrace-part").iterdir():
        subprocess.run(shell(f"cat {file} {file} {file} > {base / 'blktrace-thrice' / file.name}"), check=True)
    shutil.rmtree(base / "blktrace-part")
    pairs.append(("binary blktrace, 16 files", [base / "blktrace-once"], [base / "blktrace-thrice"]))
    rows = []
    for name, once, thrice in pairs:
        warm([file for folder in once + thrice for file in ([folder] if folder.is_file() else folder.iterdir())])
        rates = {True: [], False: []}
        mib = 0
        megabytes = sum(file.stat().st_size for folder in once
                        for file in ([folder] if folder.is_file() else folder.iterdir())) / 1e6
        for _ in range(runs):
            for is_once, files in ((True, once), (False, thrice)):
                run = check(Run(plumb(files), {0}), "plumb")
                rates[is_once].append(events / 1e6 / run.wall)
                mib = max(mib, run.mib)
        rows.append([name, spread([rate / events * 1e6 * megabytes for rate in rates[True]], 0),
                     spread(rates[True], 1), spread(rates[False], 1),
                     spread([b / a for a, b in zip(rates[True], rates[False])]), f"{mib:.0f}"])
    table(f"Three recordings in one file, {events:,} I/O, to the full profile on one processor",
          ["format", "one recording, MB/s, median (spread)", "million I/O/s", "three recordings, million I/O/s", "ratio",
           "peak MiB"], rows)
    for folder, what in (("blktrace-once", "one recording"), ("blktrace-thrice", "three recordings in each file")):
        ours, theirs = beside_btt(base / folder, runs)
        ratios = [b.wall / a.wall for a, b in zip(ours, theirs)]
        print(f"\nBinary blktrace, {what}: plumb {spread([run.wall for run in ours])} s, blkparse and btt "
              f"{spread([run.wall for run in theirs])} s, {spread(ratios, 1)} times as long.", flush=True)
    shutil.rmtree(base)


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


def bench_start(runs):
    """Short commands of the static binary, each beside a peer: warm, and without the cost of a fork of this program."""
    static = ROOT / "target" / f"{os.uname().machine}-unknown-linux-musl" / "dist" / "plumb"
    if not static.exists():
        raise SystemExit(f"found no {static}, expected the binary of make static")
    # A host of ten disks with a partition each.
    root = DATA / "small-host"
    if not root.exists():
        root.mkdir(parents=True)
        subprocess.run([COLLECT, "--make", str(root), "20"], check=True, stdout=subprocess.DEVNULL)
    commands = {
        "plumb --version (static)": [str(static), "--version"],
        "lsblk --version": [shutil.which("lsblk"), "--version"],
        "plumb check, a host of ten disks (static)": [str(static), "check", "--fail-on", "none", "--root", str(root)],
        "plumb check, this host (static)": [str(static), "check", "--fail-on", "none"],
        "lsblk --topology, this host": [shutil.which("lsblk"), "--topology"],
        "true": [shutil.which("true")],
    }
    limits = {"plumb --version (static)": 3, "plumb check, a host of ten disks (static)": 8}
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    walls = {name: [] for name in commands}
    for _ in range(runs * 40):
        for name, command in commands.items():
            started = time.perf_counter()
            child = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
            _, status = os.waitpid(child, 0)
            walls[name].append((time.perf_counter() - started) * 1e3)
            if os.waitstatus_to_exitcode(status) not in (0, 3):
                raise SystemExit(f"{name} ended with status {status}")
    table(f"Start, {runs * 40} runs each in turn", ["command", "wall ms, median (spread)", "limit"],
          [[name, spread(found, 1), f"{limits[name]} ms" if name in limits else ""] for name, found in walls.items()])
    missed = [name for name, limit in limits.items() if statistics.median(walls[name]) > limit]
    if missed:
        raise SystemExit(f"slower than the limit: {', '.join(missed)}")


class LoopDisk:
    """A loop device on a file in memory."""

    def __enter__(self):
        self.file = pathlib.Path("/dev/shm") / f"plumb-bench-{os.getpid()}"
        with open(self.file, "wb") as image:
            image.truncate(256 << 20)
        # Reads of what was never written would not touch memory at all.
        subprocess.run(["dd", "if=/dev/urandom", f"of={self.file}", "bs=1M", "count=256", "conv=notrunc", "status=none"],
                       check=True)
        shown = subprocess.run(["losetup", "--find", "--show", self.file], check=True, capture_output=True, text=True)
        self.path = shown.stdout.strip()
        self.name = pathlib.Path(self.path).name
        return self

    def end_by(self, affinity):
        """Sets on which processors I/O end, see AFFINITIES."""
        pathlib.Path(f"/sys/block/{self.name}/queue/rq_affinity").write_text(affinity)

    def __exit__(self, *_):
        # The next user of the device expects the kernel's default.
        self.end_by("1")
        subprocess.run(["losetup", "--detach", self.path], check=False)
        self.file.unlink()


class OwnDisk:
    """A file on the disk that holds this directory: as fast as a disk is, and not as memory is."""

    def __enter__(self):
        DATA.mkdir(parents=True, exist_ok=True)
        self.path = str(DATA / "own-disk")
        subprocess.run(["dd", "if=/dev/urandom", f"of={self.path}", "bs=1M", "count=1024", "conv=fsync", "status=none"],
                       check=True)
        device = os.stat(self.path).st_dev
        node = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
        self.name = (node.parent if (node / "partition").exists() else node).name
        return self

    def __exit__(self, *_):
        pathlib.Path(self.path).unlink()


def fio(disk, seconds, *flags):
    """Random reads of 4 KiB, 32 at a time: how many there were, and how many a second."""
    done = subprocess.run(
        ["fio", "--name=bench", f"--filename={disk.path}", "--direct=1", "--rw=randread", "--bs=4k", "--norandommap",
         "--ioengine=io_uring", "--iodepth=32", "--time_based", f"--runtime={seconds}", "--output-format=json", *flags],
        check=True, capture_output=True, text=True)
    read = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read"]
    return read["total_ios"], read["iops"]


def programs(pid):
    """Of each BPF program that a process holds: ns it ran, and how often, by the kernel's count."""
    found = {}
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            fields = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if "run_cnt" in fields:
            found[int(fields["prog_id"])] = (int(fields["run_time_ns"]), int(fields["run_cnt"]))
    return found


class Attached:
    """A tool at work: its programs are attached, and no more of them come. None where it does not start here."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        before = {}
        for _ in range(60):
            time.sleep(0.5)
            if self.process.poll() is not None:
                return None
            now = programs(self.process.pid)
            if now and now.keys() == before.keys():
                return self.process.pid
            before = now
        return None

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def cost_of(command, disk, seconds):
    """ns of programs an I/O, and how many programs ran an I/O."""
    with Attached(command) as pid:
        if pid is None:
            return None
        before = programs(pid)
        ios, _ = fio(disk, seconds)
        after = programs(pid)
    ran = [sum(after[one][at] - before.get(one, (0, 0))[at] for one in after) for at in (0, 1)]
    return ran[0] / ios, ran[1] / ios


def watch_command(disk):
    return [str(PLUMB), "watch", disk.name, "--json", "--interval", "1s", "--fail-on", "none"]


def bench_watch(parts, rounds, throughput_rounds, seconds):
    if os.geteuid() != 0:
        print("\nwatch: left out, since BPF and loop devices want root")
        return
    with LoopDisk() as disk:
        if "cost" in parts:
            watch_cost(disk, rounds, seconds)
        if "peers" in parts:
            watch_peers(disk, rounds, seconds)
    if "app" in parts:
        with LoopDisk() as disk, CachedFile(disk) as cached:
            watch_app(cached, rounds, seconds)
    if "throughput" in parts:
        with OwnDisk() as disk:
            watch_throughput(disk, f"a file on {disk.name}", throughput_rounds, seconds)
        with LoopDisk() as disk:
            watch_throughput(disk, "a loop device in memory", throughput_rounds, seconds)


def watch_cost(disk, rounds, seconds):
    done = subprocess.run([COST, disk.name, str(rounds), str(seconds)], check=True, capture_output=True, text=True)
    table(f"Programs of plumb watch and record, by bpf_stats, medians of {rounds} alternations with empty programs", ["what"],
          [[line] for line in done.stdout.splitlines()])


def watch_peers(disk, rounds, seconds):
    empty = [str(COST), "empty"]
    tools = {"plumb watch": watch_command(disk)}
    for name in ("biosnoop.bt", "biolatency.bt", "biosnoop-bpfcc", "biolatency-bpfcc"):
        if shutil.which(name):
            tools[f"{name} ({'bpftrace' if name.endswith('.bt') else 'bcc'})"] = [name]
    tools["bpftrace, biosnoop by tracepoints"] = ["bpftrace", "-e", BPFTRACE_SNOOP]
    tools["bpftrace, biolatency by tracepoints"] = ["bpftrace", "-e", BPFTRACE_LATENCY]
    stats = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    was = stats.read_text()
    stats.write_text("1")
    try:
        costs = {name: [] for name in tools}
        for _ in range(rounds):
            # What counting itself costs a run of a program is that of an empty one.
            ns, runs = cost_of(empty, disk, seconds)
            for name, command in tools.items():
                found = cost_of(command, disk, seconds)
                if found:
                    costs[name].append((found[0] - found[1] * ns / runs, found[1]))
    finally:
        stats.write_text(was)
    rows = []
    for name, some in costs.items():
        # Without the kprobes that it wants a tool may start, and see nothing.
        if some and max(one[1] for one in some) >= 0.5:
            rows.append([name, spread([one[0] for one in some], 0), f"{statistics.median([one[1] for one in some]):.1f}"])
        else:
            rows.append([name, "sees no I/O on this kernel", "-"])
    table(f"All programs of a tool, by bpf_stats, above as many empty ones, {rounds} alternations",
          ["tool", "ns an I/O, median (spread)", "programs run an I/O"], rows)


def watch_throughput(disk, what, rounds, seconds):
    tools = {"empty programs": [str(COST), "empty"], "plumb watch": watch_command(disk)}
    without, ratios = [], {name: [] for name in tools}
    for _ in range(rounds):
        _, alone = fio(disk, seconds)
        without.append(alone)
        for name, command in tools.items():
            with Attached(command) as pid:
                if pid is None:
                    sys.exit(f"{name} could not be attached")
                ratios[name].append(fio(disk, seconds)[1] / alone)
    rows = [["nothing attached", spread([iops / 1e3 for iops in without], 0) + " thousand/s"]]
    rows += [[name, spread(some, 3) + " of that"] for name, some in ratios.items()]
    beside = [watch / empty for empty, watch in zip(*ratios.values())]
    rows.append(["plumb watch beside empty programs", spread(beside, 3)])
    table(f"Random reads of 4 KiB, depth 32, from {what}, {rounds} alternations of {seconds} s",
          ["attached", "fio, median (spread)"], rows)


# Parts of one processor that the agent may take, by I/O a second.
AGENT_LIMITS = {50_000: 1.5, 200_000: 5.0}
# Where an I/O ends, by `queue/rq_affinity`: an NVMe drive with a queue for each processor ends it where it was issued. Elsewhere each end takes
# cache lines from the other processor.
AFFINITIES = {"2": "the processor that issued it", "1": "any processor"}


def thread_ns(pid):
    """ns that the threads of a process ran."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def busy_seconds():
    """Seconds that all processors were busy since the start of the host."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, open("/proc/stat").readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def agent_figures(pid, disk, seconds, rate):
    """While fio reads at a rate: I/O a second, seconds that processors were busy in a second, percent of one processor of the
    programs and of the process, and how many programs ran a second."""
    before, ran = (programs(pid), thread_ns(pid)) if pid else ({}, 0)
    busy, began = busy_seconds(), time.perf_counter()
    _, found = fio(disk, seconds, f"--rate_iops={rate}")
    wall = time.perf_counter() - began
    busy = (busy_seconds() - busy) / wall
    if not pid:
        return found, busy, 0, 0, 0
    after = programs(pid)
    ns, runs = [sum(after[one][at] - before.get(one, (0, 0))[at] for one in after) for at in (0, 1)]
    # fio starts and ends within the wall time: the programs run in the seconds of the load alone.
    return found, busy, ns / 1e7 / seconds, (thread_ns(pid) - ran) / 1e7 / wall, runs / seconds


def bench_agent(rounds, seconds):
    if os.geteuid() != 0:
        print("\nagent: left out, since BPF and loop devices want root")
        return
    stats = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    was = stats.read_text()
    rows = []
    with LoopDisk() as disk, tempfile.TemporaryDirectory() as folder:
        stats.write_text("1")
        try:
            for affinity, (rate, limit) in itertools.product(AFFINITIES, AGENT_LIMITS.items()):
                disk.end_by(affinity)
                alone, beside, above = [], [], []
                for _ in range(rounds):
                    alone.append(agent_figures(None, disk, seconds, rate))
                    # What counting itself costs a run of a program is that of an empty one.
                    ns, runs = cost_of([str(COST), "empty"], disk, 2)
                    with Attached([str(PLUMB), "agent", "--state-dir", folder]) as pid:
                        if pid is None:
                            sys.exit("the agent could not be started")
                        beside.append(agent_figures(pid, disk, seconds, rate))
                    above.append(beside[-1][2] + beside[-1][3] - beside[-1][4] * ns / runs / 1e7)
                more = [(one[1] - other[1]) * 100 for one, other in zip(beside, alone)]
                rows.append([AFFINITIES[affinity], f"{rate:,}", spread([one[0] for one in beside], 0), spread([one[2] for one in beside]),
                             spread([one[3] for one in beside]), spread([one[2] + one[3] for one in beside]), str(limit),
                             spread(above), spread(more, 1)])
        finally:
            stats.write_text(was)
    table(f"plumb agent beside fio, percent of one processor, {rounds} alternations of {seconds} s with and without it",
          ["I/O end on", "I/O a second wanted", "reached", "programs in the kernel, by bpf_stats", "the process", "both", "limit",
           "both, above empty programs", "more busy time of all processors"], rows)


def connect_and_send(address, bytes_sent):
    """A connection with these bytes on it; None where the server has no place for it."""
    try:
        stream = socket.create_connection(address, 10)
        stream.settimeout(0.1)
        stream.sendall(bytes_sent)
        return stream
    except OSError:
        return None


def flood(address, is_over):
    """Clients with giant headers, foreign hosts and nothing at all; the last 4,000 stay connected."""
    head = b"GET /metrics HTTP/1.1\r\n"
    giant = head + b"Host: localhost\r\nX-Long: " + b"a" * (64 << 10)
    requests = [giant, head + b"Host: evil.example\r\n\r\n", b"\xff" * 4096, head]
    held, opened = collections.deque(maxlen=4_000), 0
    while opened < 10_000 or not is_over.is_set():
        held.append(connect_and_send(address, requests[opened % len(requests)]))
        opened += 1
        if opened % 50 == 0:
            time.sleep(0.005)


def be_slow(address, is_over):
    """2,000 clients that send a byte of their header now and then."""
    clients = [None] * 2_000
    while not is_over.is_set():
        for number, client in enumerate(clients):
            try:
                client.sendall(b"a")
            except (AttributeError, OSError):
                clients[number] = connect_and_send(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        time.sleep(0.2)


def metrics_ms(address):
    """ms from the begin of the connection to the end of the answer; None without one."""
    began = time.perf_counter()
    with socket.create_connection(address, 60) as stream:
        stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b"".join(iter(lambda: stream.recv(1 << 16), b""))
    return (time.perf_counter() - began) * 1e3 if answer.startswith(b"HTTP/1.1 200 ") else None


def bench_agent_clients(seconds):
    """A good client of the agent, alone and among hostile ones."""
    if os.geteuid() != 0:
        print("\nagent-clients: left out, since BPF wants root")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        address = ("127.0.0.1", 19_974)
        configuration = pathlib.Path(folder) / "agent.toml"
        configuration.write_text(f'state_dir = "{folder}/store"\nlisten = "{address[0]}:{address[1]}"\ninterval = "1s"\n')
        with Attached([str(PLUMB), "agent", "--config", str(configuration)]) as pid:
            if pid is None:
                sys.exit("the agent could not be started")
            for name, hostile in (("no other client", []), ("10,000 connections and 2,000 slow ones", [flood, be_slow])):
                is_over = multiprocessing.Event()
                others = [multiprocessing.Process(target=one, args=(address, is_over)) for one in hostile]
                for other in others:
                    other.start()
                found, until = [], time.monotonic() + seconds
                while time.monotonic() < until:
                    try:
                        found.append(metrics_ms(address))
                    except OSError:
                        found.append(None)
                    time.sleep(0.02)
                is_over.set()
                for other in others:
                    other.join()
                times = sorted(one for one in found if one is not None)
                anonymous = next(line for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon"))
                figures = [statistics.median(times), times[len(times) * 99 // 100], times[-1]]
                rows.append([name, str(len(times)), *(f"{ms:.1f}" for ms in figures), str(found.count(None)),
                             f"{int(anonymous.split()[1]) / 1024:.0f}"])
    table(f"Answers of plumb agent to /metrics, {seconds} s each; the limit is 100 ms",
          ["beside", "answers", "ms, median", "99 %", "most", "without an answer", "anonymous MiB of the agent"], rows)


# Counts the calls and the bytes of the one call that fio uses, by process: neither files nor their file systems.
BPFTRACE_CALLS = """tracepoint:syscalls:sys_exit_pread64 /args->ret > 0/ {
    @calls[pid, comm] = count(); @bytes[pid, comm] = sum(args->ret); }"""


class CachedFile:
    """A file of 64 MiB on an ext4 on a disk, all of it in the page cache."""

    def __init__(self, disk):
        self.name = disk.name
        subprocess.run(["mkfs.ext4", "-q", "-F", disk.path], check=True)
        self.at = tempfile.mkdtemp()
        self.file = f"{self.at}/file"
        self.disk = disk

    def __enter__(self):
        subprocess.run(["mount", self.disk.path, self.at], check=True)
        subprocess.run(["dd", "if=/dev/urandom", f"of={self.file}", "bs=1M", "count=64", "conv=fsync", "status=none"],
                       check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.at], check=True)
        os.rmdir(self.at)


def cached_reads(cached, seconds):
    """Random reads of 4 KiB from the page cache, one after the other: how many there were, and how many a second."""
    done = subprocess.run(
        ["fio", "--name=bench", f"--filename={cached.file}", "--rw=randread", "--bs=4k", "--norandommap", "--ioengine=psync",
         "--invalidate=0", "--size=64m", "--time_based", f"--runtime={seconds}", "--output-format=json"],
        check=True, capture_output=True, text=True)
    read = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read"]
    return read["total_ios"], read["iops"]


def watch_app(cached, rounds, seconds):
    """The cost of a call: cached reads, since no disk hides the time of the programs."""
    tools = {
        "an empty program at the end of each call": ["bpftrace", "-e", "tracepoint:raw_syscalls:sys_exit { }"],
        "plumb watch --app": [str(PLUMB), "watch", "--app", cached.name, "--json", "--interval", "1s", "--fail-on", "none"],
        "bpftrace, calls and bytes of pread64": ["bpftrace", "-e", BPFTRACE_CALLS],
    }
    stats = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    was = stats.read_text()
    costs, ratios, without = {name: [] for name in tools}, {name: [] for name in tools}, []
    for _ in range(rounds):
        _, alone = cached_reads(cached, seconds)
        without.append(alone)
        # In another order each time: drift of the machine favours none.
        for name, command in random.sample(list(tools.items()), len(tools)):
            with Attached(command) as pid:
                if pid is None:
                    sys.exit(f"{name} could not be attached")
                # The count of run times takes time itself: not while the speed is measured.
                ratios[name].append(cached_reads(cached, seconds)[1] / alone)
                stats.write_text("1")
                try:
                    before = programs(pid)
                    ios, _ = cached_reads(cached, seconds)
                    after = programs(pid)
                finally:
                    stats.write_text(was)
                costs[name].append(sum(after[one][0] - before.get(one, (0, 0))[0] for one in after) / ios)
    rows = [["nothing attached", "-", spread([iops / 1e3 for iops in without], 0) + " thousand/s"]]
    rows += [[name, spread(costs[name], 0), spread(ratios[name], 3) + " of that"] for name in tools]
    table(f"Reads of 4 KiB from the page cache by pread64, {rounds} alternations of {seconds} s",
          ["attached", "ns of programs a read, by bpf_stats", "fio, median (spread)"], rows)


def record_once(disk, file, seconds):
    """I/O a second, I/O that fio counted, and what a recording of them says of itself."""
    recording = subprocess.Popen([PLUMB, "record", "--json", "-o", file, disk.path], stdout=subprocess.PIPE)
    while not file.exists() and recording.poll() is None:
        time.sleep(0.05)
    sent, rate = fio(disk, seconds)
    recording.send_signal(signal.SIGINT)
    output, _ = recording.communicate()
    file.unlink()
    return rate, sent, json.loads(output)["result"]


def bench_record(runs, seconds=5):
    if os.geteuid() != 0:
        print("\nrecord: left out, since BPF and loop devices want root")
        return
    with LoopDisk() as disk:
        DATA.mkdir(parents=True, exist_ok=True)
        found = [record_once(disk, DATA / "record.parquet", seconds) for _ in range(runs)]
    table("Recording at full rate", ["I/O a second, median (spread)", "fio's count less rows and lost", "lost"], [[
        spread([rate for rate, _, _ in found], 0),
        str(sum(sent - result["ios"] - result["lost"] for _, sent, result in found)),
        f"{sum(result['lost'] for _, _, result in found)} of {sum(sent for _, sent, _ in found):,}"]])


class ZramDisk:
    """A disk in compressed memory, full of what does not compress; absent on kernels without zram."""

    def __enter__(self):
        self.number = pathlib.Path("/sys/class/zram-control/hot_add").read_text().strip()
        self.sysfs = pathlib.Path(f"/sys/block/zram{self.number}")
        (self.sysfs / "disksize").write_text(str(64 << 20))
        self.room = tempfile.mkdtemp()
        self.path = f"{self.room}/zram{self.number}"
        # No udev runs everywhere.
        major, minor = (self.sysfs / "dev").read_text().strip().split(":")
        subprocess.run(["mknod", self.path, "b", major, minor], check=True)
        subprocess.run(["dd", "if=/dev/urandom", f"of={self.path}", "bs=1M", "count=64", "oflag=direct", "status=none"],
                       check=True)
        return self

    def __exit__(self, *_):
        (self.sysfs / "reset").write_text("1")
        pathlib.Path("/sys/class/zram-control/hot_remove").write_text(self.number)
        shutil.rmtree(self.room)


FIO_SETS = {
    "io_uring": ["--ioengine=io_uring"],
    "io_uring, fixed buffers, registered files": ["--ioengine=io_uring", "--fixedbufs", "--registerfiles"],
    "... and batches of 16": ["--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--iodepth_batch_submit=16",
                              "--iodepth_batch_complete_min=1", "--iodepth_batch_complete_max=32"],
    "... and batches of 32": ["--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--iodepth_batch_submit=32",
                              "--iodepth_batch_complete_min=1", "--iodepth_batch_complete_max=32"],
    "libaio, batches of 16": ["--ioengine=libaio", "--iodepth_batch_submit=16", "--iodepth_batch_complete_min=1",
                              "--iodepth_batch_complete_max=32"],
    "psync, 32 processes": ["--ioengine=psync", "--numjobs=32", "--group_reporting"],
}


def fio_load(disk, flags, until, depth=32):
    """A run of fio, its I/O and its I/O a second."""
    run = Run(["fio", "--name=bench", f"--filename={disk.path}", "--direct=1", "--rw=randread", "--bs=4k", "--norandommap",
               f"--iodepth={depth}", "--output-format=json", *flags, *until], {0, 1})
    text = run.output.decode()
    read = json.loads(text[text.index("{"):])["jobs"][0]["read"]
    return run, read["total_ios"], read["iops"]


def plumb_load(disk, flags, until, depth=32):
    """The same of plumb."""
    run = Run([str(PLUMB), "bench", disk.path, "--depth", str(depth), "--json", *flags, *until], {0, 1})
    if run.status != 0:
        sys.exit(f"plumb bench ended with status {run.status}")
    total = json.loads(run.output)["result"]["runs"][0]["total"]
    return run, total["ios"], total["ios_per_second"]


# What each is told to run for so many seconds, and for one I/O.
UNTIL = {fio_load: (lambda seconds: ["--time_based", f"--runtime={seconds}"], ["--number_ios=1"]),
         plumb_load: (lambda seconds: ["--for", f"{seconds}s"], ["--ios", "1"])}


def median_interval(values):
    """Order statistics that hold the median in 95 of 100 cases at least; the extremes where there are too few."""
    ordered = sorted(values)
    count, outside, left_out = len(ordered), 0.0, 0
    # Each further value left out at both ends adds the chance that so many of all lie on one side of the median.
    while left_out + 1 <= count // 2:
        outside += 2 * math.comb(count, left_out) / 2 ** count
        if outside > 0.05:
            break
        left_out += 1
    at = max(left_out - 1, 0)
    return ordered[at], ordered[-1 - at]


def load_costs(name, disk, rounds, seconds):
    """us of user and system time an I/O, by the kernel's count of all threads of a process, its workers for the ring among
    them, less what the process takes for one I/O: starting and ending is not loading."""
    tools = {f"plumb bench --batch {batch}": (plumb_load, ["--batch", str(batch)]) for batch in (1, 16)}
    tools |= {f"fio {name}": (fio_load, flags) for name, flags in FIO_SETS.items()}
    idle = {tool: statistics.median(load(disk, flags, UNTIL[load][1])[0].cpu for _ in range(5))
            for tool, (load, flags) in tools.items()}
    costs, rates = {tool: [] for tool in tools}, {tool: [] for tool in tools}
    for _ in range(rounds):
        for tool, (load, flags) in tools.items():
            run, ios, rate = load(disk, flags, UNTIL[load][0](seconds))
            costs[tool].append((run.cpu - idle[tool]) * 1e6 / ios)
            rates[tool].append(rate / 1e3)
    table(f"CPU of a random read of 4 KiB, depth 32, {name}, {rounds} alternations of {seconds} s",
          ["tool", "us an I/O, median (spread)", "thousand I/O a second"],
          [[tool, spread(costs[tool]), spread(rates[tool], 0)] for tool in tools])
    fastest = lambda some: min(some, key=lambda tool: statistics.median(costs[tool]))
    best = fastest([tool for tool in tools if tool.startswith("fio")])
    best_ring = fastest([tool for tool in tools if tool.startswith("fio") and "io_uring" in FIO_SETS[tool[4:]][0]])
    for ours in (tool for tool in tools if tool.startswith("plumb")):
        for other in dict.fromkeys([best_ring, best]):
            ratios = [mine / its for mine, its in zip(costs[ours], costs[other])]
            low, high = median_interval(ratios)
            print(f"\n{ours}: {statistics.median(ratios):.3f} of {other}, 95 % interval {low:.3f} to {high:.3f}.")


def load_rates(disk, rounds, seconds):
    """I/O a second at depths at which a thread waits for single I/O, beside fio's io_uring."""
    rows = []
    for depth in (1, 16):
        tools = {"plumb": lambda: plumb_load(disk, [], UNTIL[plumb_load][0](seconds), depth),
                 "fio": lambda: fio_load(disk, ["--ioengine=io_uring"], UNTIL[fio_load][0](seconds), depth)}
        rates = {name: [] for name in tools}
        for _ in range(rounds):
            # In another order each time: drift of the machine favours none.
            for name in random.sample(list(tools), len(tools)):
                rates[name].append(tools[name]()[2] / 1e3)
        ratios = [ours / theirs for ours, theirs in zip(rates["plumb"], rates["fio"])]
        low, high = median_interval(ratios)
        rows.append([str(depth), spread(rates["plumb"], 0), spread(rates["fio"], 0),
                     f"{statistics.median(ratios):.3f} (95 % interval {low:.3f}-{high:.3f})"])
    table(f"Random reads of 4 KiB from a loop device in memory, thousand a second, {rounds} alternations of {seconds} s",
          ["depth", "plumb bench", "fio io_uring", "plumb / fio, paired"], rows)


def bench_load(parts, rounds, seconds):
    if os.geteuid() != 0:
        print("\nload: left out, since loop devices want root")
        return
    if "rates" in parts:
        with LoopDisk() as disk:
            load_rates(disk, rounds, seconds)
    if "costs" not in parts:
        return
    with LoopDisk() as disk:
        load_costs("loop on tmpfs", disk, rounds, seconds)
    if pathlib.Path("/sys/class/zram-control/hot_add").exists():
        with ZramDisk() as disk:
            load_costs("zram", disk, rounds, seconds)


VDBENCH_SECONDS = 9 * 60  # nine offsets of 60 s each, as H. Vandenbergh's parameter file has them


def probe_once(ratio, cell, phase):
    """Seconds and verdict of a probe of cells that charge so much for a miss."""
    command = [TESTKIT, "cells", str(cell), str(phase), str(ratio)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as device:
        target = device.stdout.readline().strip()
        done = subprocess.run([PLUMB, "probe", target, "--json"], stdout=subprocess.PIPE)
        device.stdin.close()
    result = json.loads(done.stdout)["result"]
    grid = result["grid"] or {}
    is_right = (grid.get("granularity_bytes"), grid.get("offset_bytes")) == (cell, (cell - phase) % cell)
    word = "right" if is_right else "inconclusive" if result["verdict"] == "inconclusive" else "wrong"
    return result["seconds"], word


def bench_probe(runs):
    rows = []
    for ratio in (2.0, 1.5, 1.25, 1.1):
        places = [(4096, 3584), (8192, 1024), (4096, 0), (8192, 3584), (4096, 1024), (8192, 0)]
        found = [probe_once(ratio, *places[run % len(places)]) for run in range(runs)]
        words = [word for _, word in found]
        counts = ", ".join(f"{words.count(word)} {word}" for word in ("right", "inconclusive", "wrong"))
        rows.append([f"{ratio:.2f}", spread([seconds for seconds, _ in found], 1), counts, f"{VDBENCH_SECONDS}, no verdict"])
    table(f"Which grid, and what a miss costs: cells of 4 and 8 KiB, 2,000 reads/s, {runs} probes each",
          ["a miss costs", "plumb probe, s, median (spread)", "verdicts", "Vdbench, nine offsets of 60 s, s"], rows)


class MoveDisk:
    """A loop device with one partition at 1 MiB, and room behind it; its file on the disk of this directory or in memory."""

    START = 1 << 20

    def __init__(self, mib, room_mib, is_in_memory):
        self.len, self.size = mib << 20, (mib + room_mib + 4) << 20
        self.is_in_memory = is_in_memory

    def __enter__(self):
        DATA.mkdir(parents=True, exist_ok=True)
        self.file = (pathlib.Path("/dev/shm") if self.is_in_memory else DATA) / f"plumb-move-{os.getpid()}"
        subprocess.run(["dd", "if=/dev/urandom", f"of={self.file}", "bs=1M", f"count={self.size >> 20}", "conv=fsync",
                        "status=none"], check=True)
        direct = [] if self.is_in_memory else ["--direct-io=on"]
        shown = subprocess.run(["losetup", "--find", "--show", *direct, self.file], check=True, capture_output=True, text=True)
        self.path = shown.stdout.strip()
        self.node = f"{self.path}p1"
        return self

    def __exit__(self, *_):
        subprocess.run(["partx", "--delete", self.path], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "--detach", self.path], check=False)
        self.file.unlink()

    def reset(self):
        """The partition where it was. What it holds is noise either way."""
        subprocess.run(["partx", "--delete", self.path], check=False, stderr=subprocess.DEVNULL)
        label = f"label: gpt\nstart={self.START >> 9}, size={self.len >> 9}, type=linux\n"
        subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--wipe=always", self.path], input=label,
                       check=True, text=True)
        subprocess.run(["partx", "--add", self.path], check=True)
        # What is left in a cache is written at nobody's cost.
        os.sync()

    def plumb(self, shift):
        self.reset()
        journal = DATA / "move-journal"
        to = self.START + shift
        run = Run([str(PLUMB), "fix", "move", self.node, "--to", f"{to >> 9}s", "--journal", str(journal),
                   "--journal-same-disk", "--yes", pathlib.Path(self.node).name, "--json"], {0, 1})
        result = json.loads(run.output)["result"] if run.status == 0 else {}
        if result.get("state") != "complete":
            sys.exit(f"plumb fix move ended with status {run.status}: {run.output.decode()}")
        run.verifying = result["verifying_seconds"]
        return run

    def sfdisk(self, shift, *flags):
        self.reset()
        # Where its log goes nobody waits for.
        log = f"--move-data={DATA}/move.log"
        change = f"echo '+{shift >> 9},' | sfdisk --quiet --no-reread --no-tell-kernel -N 1 {log} {' '.join(flags)} {self.path}"
        run = Run(shell(change), {0, 1})
        if run.status != 0:
            sys.exit(f"sfdisk ended with status {run.status}")
        return run

    def copy(self, shift, and_read_again=False):
        """Raw: a MiB read, a MiB written."""
        skip, count = self.START >> 20, self.len >> 20
        to = skip + (shift >> 20)
        commands = [f"dd if={self.path} of={self.path} bs=1M skip={skip} seek={to} count={count} iflag=direct oflag=direct "
                    "conv=notrunc status=none"]
        if and_read_again:
            commands.append(f"dd if={self.path} of=/dev/null bs=1M skip={to} count={count} iflag=direct status=none")
        return Run(shell(*commands), {0, 1})

    def flush_seconds(self, count=32):
        """What a flush takes behind each MiB written."""
        memory = mmap.mmap(-1, 1 << 20)
        memory.write(os.urandom(1 << 20))
        disk = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        took = []
        for index in range(count):
            os.pwrite(disk, memory, self.START + (index << 20))
            began = time.perf_counter()
            os.fdatasync(disk)
            took.append(time.perf_counter() - began)
        os.close(disk)
        return statistics.mean(took)


def ratio_words(values):
    low, high = median_interval(values)
    return f"{statistics.median(values):.2f}, 95 % interval {low:.2f} to {high:.2f}"


def move_beside(disk, where, rounds, shift_mib, peer_name, peer):
    """Alternations of a move and a peer's; returns how many times as long the peer took, and all runs of ours."""
    shift = shift_mib << 20
    ours, theirs = [], []
    for number in range(rounds):
        # Which of them is first changes: neither has the other's writes behind it always.
        for who in ((ours, theirs) if number % 2 == 0 else (theirs, ours)):
            who.append(disk.plumb(shift) if who is ours else peer(shift))
    mib = disk.len >> 20
    row = lambda name, some: [name, spread([run.wall for run in some]), spread([mib / run.wall for run in some], 0),
                              f"{max(run.mib for run in some):.0f}"]
    table(f"A move of {mib:,} MiB by {shift_mib} MiB, {where}, {rounds} alternations",
          ["command", "s, median (spread)", "MiB/s", "peak MiB"], [row("plumb fix move", ours), row(peer_name, theirs)])
    ratios = [b.wall / a.wall for a, b in zip(ours, theirs)]
    print(f"\n{peer_name} takes {ratio_words(ratios)} times as long.")
    unverified = [b.wall / (a.wall - a.verifying) for a, b in zip(ours, theirs)]
    print(f"{spread([run.verifying for run in ours])} s of a move are for reading again what was written; without them it "
          f"would be {ratio_words(unverified)}.")
    return ours


def bench_move(rounds, mib):
    if os.geteuid() != 0:
        print("\nmove: left out, since loop devices want root")
        return
    for is_in_memory, where in ((False, "a loop device with direct I/O on a file of a disk"),
                                (True, "a loop device on a file in memory")):
        with MoveDisk(mib, 68, is_in_memory) as disk:
            ours = move_beside(disk, where, rounds, 1, "sfdisk --move-data --move-use-fsync",
                               lambda shift: disk.sfdisk(shift, "--move-use-fsync"))
            move_limit(disk, ours, 1)
            for shift in (16, 64):
                move_beside(disk, where, rounds, shift, "sfdisk --move-data, not durable", disk.sfdisk)
            move_beside(disk, where, rounds, 64, "dd, O_DIRECT, a MiB at a time", disk.copy)
            move_beside(disk, where, rounds, 64, "dd, and all of it read again",
                        lambda shift: disk.copy(shift, and_read_again=True))


def move_limit(disk, ours, shift_mib):
    """Beside what it cannot be far below: to copy once, and to flush behind each window."""
    flushes, copies = [], []
    for _ in ours:
        flushes.append(disk.flush_seconds())
        copies.append(disk.copy(shift_mib << 20).wall)
    windows = (disk.len >> 20) // shift_mib
    limits = [windows * flush + copy for flush, copy in zip(flushes, copies)]
    print(f"\nA flush takes {spread([flush * 1e3 for flush in flushes])} ms, a raw copy {spread(copies)} s: {windows:,} windows "
          f"and a copy {spread(limits)} s. The move takes {spread([run.wall / limit for run, limit in zip(ours, limits)])} of "
          "that.")


def bench_fleet(runs, hosts, devices):
    """A day of a fleet in the detail of the day tier, and a repeated call over recordings that have not changed."""
    DATA.mkdir(parents=True, exist_ok=True)
    day = DATA / "day.fleet"
    if not day.exists():
        subprocess.run([DAY_TIER, day, str(hosts), str(devices)], check=True)
    processors = os.sched_getaffinity(0)
    report = [PLUMB, "fleet", "report", "--json"]
    some = [Run(report + [day], processors) for _ in range(runs)]
    rows = [[f"{hosts:,} hosts with {devices} devices, {day.stat().st_size / 1e9:.2f} GB", *fleet_cells(some)]]
    recordings, state = DATA / "recordings", DATA / "recordings.fleet"
    if not recordings.exists():
        write_recordings(recordings)
    state.unlink(missing_ok=True)
    first = Run(report + [recordings, "--state", state], processors)
    rows.append(["10,000 recordings, the first call", *fleet_cells([first])])
    again = [Run(report + [recordings, "--state", state], processors) for _ in range(runs)]
    rows.append(["the same, nothing new", *fleet_cells(again)])
    table("plumb fleet report", ["input", "s, median (spread)", "CPU s", "peak MiB"], rows)


# Memory of a pass over 10,000 files, MiB.
FLEET_MIB = 150


def bench_fleet_parquet(runs, events):
    """The profile of Parquet traces beside DuckDB's GROUP BY: few large files, and 10,000 small ones."""
    large, small = DATA / "fleet-large", DATA / "fleet-small"
    if not large.exists():
        large.mkdir(parents=True)
        subprocess.run([SYNTHETIC, str(large), str(events)], check=True, stderr=subprocess.DEVNULL)
    if not small.exists():
        originals = DATA / "fleet-originals"
        originals.mkdir(parents=True, exist_ok=True)
        subprocess.run([SYNTHETIC, str(originals), str(events // 10_000 * 16)], check=True, stderr=subprocess.DEVNULL)
        for at, original in zip(range(10_000), itertools.cycle(sorted(originals.glob("*.parquet")))):
            place = small / f"host=h{at % 1000:03}"
            place.mkdir(parents=True, exist_ok=True)
            os.link(original, place / f"{at}.parquet")
    result, rows, misses = DATA / "parquet.fleet", [], []
    for folder, count in ((large, events), (small, events // 10_000 * 10_000)):
        files = list(folder.rglob("*.parquet"))
        warm(files)
        title = f"plumb fleet profile, {len(files):,} files"
        # Plumb keeps hosts apart. A large file is a host, and the name of its device tells which.
        keys = "host, " if folder == small else ""
        command = [str(PLUMB), "fleet", "profile", str(folder), "-o", str(result)]
        some, ratios = beside_duckdb(title, command, folder / "**/*.parquet", count, runs, keys)
        report = json.loads(Run([str(PLUMB), "fleet", "report", str(result), "--json"], {0, 1}).output)
        if report["result"]["ios"] != count:
            sys.exit(f"plumb counted {report['result']['ios']} of {count} events")
        for row, ratio in zip(some, (spread(ratios), "")):
            rows.append([*row, ratio])
        if statistics.median(ratios) < 1:
            misses.append(f"{title}: {statistics.median(ratios):.2f} times as fast as DuckDB, limit 1")
        if int(some[0][4]) > FLEET_MIB:
            misses.append(f"{title}: {some[0][4]} MiB, limit {FLEET_MIB} MiB")
    table(f"plumb fleet profile, Parquet, {events / 1e6:.0f} million events", [*BESIDE_DUCKDB, "times as fast"], rows)
    for miss in misses:
        print(f"\nmissed: {miss}")


def fleet_cells(some):
    return [spread([run.wall for run in some]), spread([run.cpu for run in some]), f"{max(run.mib for run in some):.0f}"]


def write_recordings(folder):
    """10,000 recordings of 1,000 hosts, with 240 I/O each."""
    draw = random.Random(1)
    for at in range(10_000):
        place = folder / f"host=h{at % 1000:03}"
        place.mkdir(parents=True, exist_ok=True)
        lines = [f"{134_398_656_000_000_000 + at * 10_000_000 + line * 10_000},srv,{at // 1000},Read,"
                 f"{draw.randrange(1 << 24) * 4096},{4096 << line % 4},{800 + line}" for line in range(240)]
        (place / f"{at}.csv").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--events", type=int, default=50_000_000, help="of the Parquet and CSV data")
    parser.add_argument("--blktrace-events", type=int, default=2_700_000, help="each gives five records")
    parser.add_argument("--watch-rounds", type=int, default=20, help="alternations that the costs in the kernel are medians of")
    parser.add_argument("--throughput-rounds", type=int, default=40, help="the same of fio with and without it")
    parser.add_argument("--watch-seconds", type=int, default=2, help="of fio in each of them")
    parser.add_argument("--load-rounds", type=int, default=30, help="alternations that the costs of loading are medians of")
    parser.add_argument("--load-seconds", type=int, default=2, help="of each tool in each of them")
    parser.add_argument("--move-rounds", type=int, default=9, help="alternations of moves")
    parser.add_argument("--move-mib", type=int, default=1024, help="length of the partition that is moved")
    parser.add_argument("--agent-rounds", type=int, default=5, help="alternations that the cost of the agent is a median of")
    parser.add_argument("--agent-seconds", type=int, default=30, help="of fio in each of them; the agent reads each 10 s")
    parser.add_argument("--history-hours", type=int, default=48, help="hours of the generated history that are made from events")
    parser.add_argument("--history-days", type=int, default=YEAR_DAYS, help="days of it; the limits are those of a year")
    parser.add_argument("--hosts", type=int, default=10_000, help="of the fleet, with 20 devices each")
    parser.add_argument("only", nargs="*", help="blktrace, parquet, csv, text, jumps, check, start, record, load, probe, move, agent, history, fleet, "
                        "watch or one of fleet-report, fleet-parquet, watch-cost, watch-throughput, watch-peers, watch-app, agent-cost, agent-clients, load-costs, "
                        "load-rates; all without")
    arguments = parser.parse_args()
    wanted = arguments.only or ["blktrace", "parquet", "csv", "text", "jumps", "check", "start", "watch", "agent", "record", "load", "probe", "move",
                                "history", "fleet"]
    cpus = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    print(f"{len(cpus)} x {cpus[0] if cpus else 'unknown processor'}, kernel {os.uname().release}, "
          f"{arguments.runs} runs each")
    if "blktrace" in wanted:
        bench_blktrace(arguments.runs, arguments.blktrace_events)
    if "parquet" in wanted:
        bench_parquet(arguments.runs, arguments.events)
    if "check" in wanted:
        bench_check(arguments.runs)
    if "start" in wanted:
        bench_start(arguments.runs)
    if {"agent", "agent-cost"} & set(wanted):
        bench_agent(arguments.agent_rounds, arguments.agent_seconds)
    if {"agent", "agent-clients"} & set(wanted):
        bench_agent_clients(arguments.agent_seconds)
    if "record" in wanted:
        bench_record(arguments.runs)
    if "history" in wanted:
        bench_history(arguments.runs, arguments.history_hours, arguments.history_days)
    if "probe" in wanted:
        bench_probe(arguments.runs)
    if "move" in wanted:
        bench_move(arguments.move_rounds, arguments.move_mib)
    if {"fleet", "fleet-report"} & set(wanted):
        bench_fleet(arguments.runs, arguments.hosts, 20)
    if {"fleet", "fleet-parquet"} & set(wanted):
        bench_fleet_parquet(arguments.runs, arguments.events)
    if "csv" in wanted:
        bench_csv(arguments.runs, arguments.events)
    if "text" in wanted:
        bench_text(arguments.runs, arguments.events // 10)
    if "jumps" in wanted:
        bench_jumps(arguments.runs, arguments.events // 10)
    parts = [part for part in ("costs", "rates") if {"load", f"load-{part}"} & set(wanted)]
    if parts:
        bench_load(parts, arguments.load_rounds, arguments.load_seconds)
    parts = [part for part in ("cost", "throughput", "peers", "app") if {"watch", f"watch-{part}"} & set(wanted)]
    if parts:
        bench_watch(parts, arguments.watch_rounds, arguments.throughput_rounds, arguments.watch_seconds)
    if os.environ.get("PLUMB_BENCH_KEEP") is None:
        shutil.rmtree(DATA, ignore_errors=True)


if __name__ == "__main__":
    main()
