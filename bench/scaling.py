#!/usr/bin/env python3
"""The figures of docs/scaling.md: measures the costs of one host, and computes and simulates those of a fleet.

    bench/scaling.py            prints the tables
    bench/scaling.py write      puts them into docs/scaling.md
    bench/scaling.py check      compares docs/scaling.md with them; exit status 1 names the first difference
    bench/scaling.py test       compares the simulation with schedules worked out by hand
    bench/scaling.py measure    measures again: writes bench/scaling.json and docs/scaling.md

The tables come from bench/scaling.json and ASSUMED alone, so they are the same on every machine. `measure` needs `make bench`'s programs in
target/dist, or in the folder PLUMB_DIST. The simulation has the rules of the agent
(crates/cli/src/agent/export.rs): a look each minute, one object at a time, waits of 1 s, 2 s, 4 s … up to 5 min after a failure.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = pathlib.Path(os.environ.get("PLUMB_DIST") or ROOT / "target" / "dist")
FIGURES = ROOT / "bench" / "scaling.json"
DOCUMENT = ROOT / "docs" / "scaling.md"
TIERS = ("5m", "1h", "1d")
WORDS = {"5m": "5 minutes", "1h": "an hour", "1d": "a day"}

# Of a host with 20 devices: 2 busy (100 to 500 I/O/s), 6 light (2 to 20) and 12 nearly idle (0.1 to 0.3).
MEASURED = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}

# Prices are round figures of large clouds, and no quotes. A busy cluster uses about 60 % of what is paid.
ASSUMED = {
    "core_hour_dollars": 0.05,
    "utilisation": 0.6,
    "gb_month_dollars": 0.023,
    "get_dollars_per_1000": 0.0004,
    "get_bytes": 8 << 20,
    "spark_cores": 64,
    "network_gb_per_s": 1.25,
    "store_puts_per_s": 3500,
    "folder_puts_per_s": 200,
    "agent_ns_per_io": 342,
    "cores": 2,
    "hour_s": 3600,
}

HOSTS, DEVICES = 10_000, 20
DAYS_OF_MONTH, DAYS_OF_YEAR = 30, 365

# The rules of the agent, s.
LOOK_S, GRACE_S, FIRST_WAIT_S, WAIT_MAX_S = 60, 120, 1, 300


def simulate(looks, objects, capacity):
    """The exports of hosts after midnight, second by second.

    `looks` has the second of each host's first look after the end of the day, `objects` is the number of objects of each host, and the store
    takes `capacity` objects a second and refuses the others. Returns the second in which the last object is taken, the refusals, and the
    most objects that were wanted in one second.
    """
    wanted = {}
    for second in looks:
        wanted.setdefault(second, []).append((0, FIRST_WAIT_S))
    refusals, most, last = 0, 0, 0
    draw = random.Random(1)
    while wanted:
        second = min(wanted)
        hosts = wanted.pop(second)
        most = max(most, len(hosts))
        draw.shuffle(hosts)
        for taken, wait in hosts[:capacity]:
            last = second
            if taken + 1 < objects:
                wanted.setdefault(second + 1, []).append((taken + 1, FIRST_WAIT_S))
        for taken, wait in hosts[capacity:]:
            refusals += 1
            wanted.setdefault(second + wait, []).append((taken, min(2 * wait, WAIT_MAX_S)))
    return last, refusals, most


def first_looks(hosts, seed):
    """A host looks each minute since its start, so in a random second of the first minute after the grace."""
    draw = random.Random(seed)
    return [GRACE_S + draw.randrange(LOOK_S) for _ in range(hosts)]


def number(value):
    """Three digits, with separators."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def bytes_words(value):
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1000:
            return f"{number(value)} {unit}"
        value /= 1000
    return f"{number(value)} PB"


def time_words(seconds):
    if seconds is None:
        return "not measured"
    for limit, unit, length in ((1e-3, "µs", 1e-6), (1, "ms", 1e-3), (120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{number(seconds / length)} {unit}"
    return f"{number(seconds / 86_400)} days"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def an_hour(seconds):
    return None if seconds is None else seconds / 24


def of_host():
    rows = []
    for tier in TIERS:
        cost = MEASURED[tier]
        rows.append([WORDS[tier], number(cost["windows"] / 24), bytes_words(cost["bytes"] / 24), time_words(an_hour(cost["export_cpu_s"])),
                     time_words(cost["profile_cpu_s"] / 24)])
    return table(["windows of", "windows a host-hour", "exported bytes a host-hour", "CPU of the export", "CPU of `fleet profile`"], rows)


def of_fleet():
    rows = []
    for tier in TIERS:
        cost = MEASURED[tier]
        day = HOSTS * cost["bytes"]
        rows.append([WORDS[tier], f"{HOSTS * cost['objects']:,}", bytes_words(day), bytes_words(DAYS_OF_YEAR * day),
                     time_words(HOSTS * cost["profile_cpu_s"]), time_words(DAYS_OF_YEAR * HOSTS * cost["profile_cpu_s"])])
    events = HOSTS * MEASURED["events_of_day"]
    day, cpu = events * MEASURED["raw_bytes_of_event"], events * MEASURED["raw_cpu_ns_of_event"] / 1e9
    rows.append([f"raw traces, {number(events / 1e9)} billion I/O a day", "", bytes_words(day), bytes_words(DAYS_OF_YEAR * day), time_words(cpu),
                 time_words(DAYS_OF_YEAR * cpu)])
    return table(["windows of", "objects a day", "a day", "a year", "CPU of `fleet profile`, a day", "a year"], rows)


def of_exports():
    rows = []
    for name, capacity in (("a folder on NFS", ASSUMED["folder_puts_per_s"]), ("an object store", ASSUMED["store_puts_per_s"])):
        for hosts in (1000, 10_000, 100_000):
            last, refusals, most = simulate(first_looks(hosts, 1), 2, capacity)
            rows.append([f"{name}, {capacity:,} objects a second", f"{hosts:,}", f"{most:,}", f"{refusals:,}", time_words(last)])
    return table(["target", "hosts", "objects wanted in the busiest second", "refusals", "all objects there after midnight UTC"], rows)


def of_limits():
    cost = MEASURED
    cores, hour = ASSUMED["cores"], ASSUMED["hour_s"]
    rows = [["agent", f"{ASSUMED['agent_ns_per_io']} ns an I/O ([benchmarks.md](benchmarks.md#watching-and-recording))", "5 % of one processor",
             f"{number(0.05e9 / ASSUMED['agent_ns_per_io'])} I/O a second of the host"]]
    for tier in TIERS:
        of_tier = cost[tier]
        rows.append([f"`fleet profile` of windows of {WORDS[tier]}", f"{time_words(of_tier['profile_cpu_s'])} a host-day",
                     f"an hour of {cores} processors for a day", f"{number(cores * hour / of_tier['profile_cpu_s'])} hosts"])
        rows.append([f"network of that machine, windows of {WORDS[tier]}", f"{bytes_words(of_tier['bytes'])} a host-day",
                     f"{ASSUMED['network_gb_per_s']} GB/s for an hour",
                     f"{number(hour * ASSUMED['network_gb_per_s'] * 1e9 / of_tier['bytes'])} hosts"])
    day = "a host-day of windows of a day"
    if cost["merge_cpu_s"]:
        rows.append(["`fleet merge`", f"{time_words(cost['merge_cpu_s'])} {day}", "an hour of one processor", f"{number(hour / cost['merge_cpu_s'])} hosts"])
    rows.append(["`fleet report` of a fleet file", f"{time_words(cost['report_cpu_s'])} {day}", f"180 s of {cores} processors",
                 f"{number(cores * 180 / cost['report_cpu_s'])} hosts"])
    if cost["bytes_of_input"]:
        rows.append(["list of inputs in memory", f"{number(cost['bytes_of_input'])} bytes an input", "2 GiB",
                     f"{number((2 << 30) / cost['bytes_of_input'])} inputs"])
    return table(["part", "cost", "limit", "reached with"], rows)


def of_month():
    events = DAYS_OF_MONTH * HOSTS * MEASURED["events_of_day"]
    stored_gb = events * MEASURED["raw_bytes_of_event"] / 1e9
    core_hours = events * MEASURED["raw_cpu_ns_of_event"] / 1e9 / 3600
    paid = core_hours / ASSUMED["utilisation"]
    gets = stored_gb * 1e9 / ASSUMED["get_bytes"]
    dollars = lambda value: f"${number(value)}"
    return table(["month of raw traces", "", "price"], [
        ["I/O", f"{number(events / 1e12)} trillion", ""],
        ["stored for a month", bytes_words(stored_gb * 1e9), dollars(stored_gb * ASSUMED["gb_month_dollars"])],
        ["CPU of the profiles", f"{number(core_hours)} core-hours", ""],
        ["paid core-hours", number(paid), dollars(paid * ASSUMED["core_hour_dollars"])],
        [f"requests of {ASSUMED['get_bytes'] >> 20} MiB", f"{number(gets / 1e6)} million", dollars(gets / 1000 * ASSUMED["get_dollars_per_1000"])],
        [f"time on {ASSUMED['spark_cores']} cores", time_words(3600 * paid / ASSUMED["spark_cores"]), ""]])


def of_assumptions():
    return table(["assumption", "value"], [
        ["price of a core-hour", f"${ASSUMED['core_hour_dollars']}"],
        ["share of paid core-hours that profiles", f"{ASSUMED['utilisation'] * 100:.0f} %"],
        ["price of a GB for a month", f"${ASSUMED['gb_month_dollars']}"],
        ["price of 1,000 requests", f"${ASSUMED['get_dollars_per_1000']}"],
        ["network of a machine", f"{ASSUMED['network_gb_per_s']} GB/s"],
        ["objects that an object store takes", f"{ASSUMED['store_puts_per_s']:,} a second"],
        ["objects that a folder on NFS takes", f"{ASSUMED['folder_puts_per_s']:,} a second"]])


TABLES = {"host": of_host, "fleet": of_fleet, "exports": of_exports, "limits": of_limits, "month": of_month, "assumptions": of_assumptions}


def written(text):
    """The document with the tables of today."""
    for name, make in TABLES.items():
        begin, end = f"<!-- bench/scaling.py: {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            sys.exit(f"{DOCUMENT}: found no lines {begin.strip()} and {end}")
        text = before + begin + make() + "\n" + end + after
    return text


def write():
    DOCUMENT.write_text(written(DOCUMENT.read_text()))


def check():
    text = DOCUMENT.read_text()
    for at, (found, expected) in enumerate(zip(text.splitlines(), written(text).splitlines()), 1):
        if found != expected:
            sys.exit(f"{DOCUMENT}:{at}: found {found}\nexpected {expected}; run bench/scaling.py write")
    if text != written(text):
        sys.exit(f"{DOCUMENT}: found another number of lines; run bench/scaling.py write")


def test():
    """Schedules by hand."""
    def equal(found, expected):
        if found != expected:
            sys.exit(f"found {found}, expected {expected}")

    # One host: its objects come one second after the other.
    equal(simulate([120], 2, 1), (121, 0, 1))
    # Two hosts in one second: one is refused, waits 1 s, and is alone then.
    equal(simulate([5, 5], 1, 1), (6, 1, 2))
    # Three hosts, seconds: 0 takes one; 1 takes one of two; the last one waits 2 s more.
    equal(simulate([0, 0, 0], 1, 1), (3, 3, 3))
    # Nine more of ten are refused at 0; then 8 at 1, 7 at 3, 6 at 7, 5 at 15, 4 at 31, 3 at 63, 2 at 127, 1 at 255; the last waits 256 s.
    equal(simulate([0] * 10, 1, 1), (511, sum(range(10)), 10))
    # The next wait is 300 s and not 512, and the one behind it as well.
    equal(simulate([0] * 12, 1, 1), (511 + 300 + 300, sum(range(12)), 12))
    # Room for all: nothing is refused.
    equal(simulate([7] * 50, 3, 50), (9, 0, 50))
    equal([bytes_words(value) for value in (12, 1234, 97.2e9)], ["12 B", "1.23 KB", "97.2 GB"])
    equal([time_words(value) for value in (2e-6, 0.0314, 90, 600, 30_000, 1e6)], ["2 µs", "31.4 ms", "90 s", "10 min", "8.33 h", "11.6 days"])


def cpu_of(*words, statuses=(0, 1, 3)):
    """Runs a program, and returns its CPU time in seconds and its peak memory in bytes."""
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in statuses:
        sys.exit(f"{words}: ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def copies(folder, host, count):
    """Links the objects of a host under other names of hosts."""
    for at in range(count):
        shutil.copytree(folder / host, folder / f"host=copy{at:05}", copy_function=os.link)
    shutil.rmtree(folder / host)


def measure():
    plumb, measured = DIST / "plumb", {}
    count = 10
    with tempfile.TemporaryDirectory(prefix="plumb-scaling-", dir=ROOT / "target") as made:
        place = pathlib.Path(made)
        store = place / "store"
        said = subprocess.run([DIST / "examples" / "year", "day", store], check=True, capture_output=True, text=True).stdout
        sizes = {name: int(value) for name, value in (line.split() for line in said.splitlines())}
        for tier in TIERS:
            out = place / tier
            cpu, _ = cpu_of(plumb, "history", "export", "--fleet", out, "--tier", tier, "--state-dir", store)
            objects = list(out.rglob("*.parquet"))
            host = objects[0].relative_to(out).parts[0]
            cost = {"windows": sizes[f"windows_{tier}"], "objects": len(objects), "bytes": sum(path.stat().st_size for path in objects), "export_cpu_s": cpu}
            copies(out, host, count)
            result = place / f"{tier}.fleet"
            cost["profile_cpu_s"] = cpu_of(plumb, "fleet", "profile", out, "-o", result)[0] / count
            measured[tier] = cost
            if tier == "1d":
                measured["merge_cpu_s"] = cpu_of(plumb, "fleet", "merge", result, "-o", place / "merged.fleet")[0] / count
                measured["report_cpu_s"] = cpu_of(plumb, "fleet", "report", result, "--json")[0] / count
                report = subprocess.run([plumb, "fleet", "report", result, "--json"], capture_output=True, text=True).stdout
                measured["events_of_day"] = json.loads(report)["result"]["ios"] // count
        raw = place / "raw"
        raw.mkdir()
        events = 5_000_000
        subprocess.run([DIST / "examples" / "synthetic_parquet", raw, str(events)], check=True, stderr=subprocess.DEVNULL)
        cpu, _ = cpu_of(plumb, "fleet", "profile", raw, "-o", place / "raw.fleet")
        measured["raw_bytes_of_event"] = sum(path.stat().st_size for path in raw.iterdir()) / events
        measured["raw_cpu_ns_of_event"] = cpu / events * 1e9
        # Empty files in other shards: the memory is that of their names.
        peaks = []
        for inputs in (10_000, 40_000):
            folder = place / f"inputs-{inputs}"
            for at in range(inputs):
                into = folder / f"day=2026-11-{at % 30:02}" / f"host=h{at % 10_000:04}"
                into.mkdir(parents=True, exist_ok=True)
                (into / f"{at:06}.csv").touch()
            peaks.append(cpu_of(plumb, "fleet", "profile", folder, "--skip-bad", "--shard", "0/100000", "-o", place / "inputs.fleet")[1])
        measured["bytes_of_input"] = (peaks[1] - peaks[0]) / 30_000
    FIGURES.write_text(json.dumps(measured, indent=2) + "\n")
    MEASURED.clear()
    MEASURED.update(measured)
    write()


def main():
    commands = {"write": write, "check": check, "test": test, "measure": measure}
    if len(sys.argv) == 1:
        for name, make in TABLES.items():
            print(f"\n{name}\n\n{make()}")
    elif len(sys.argv) == 2 and sys.argv[1] in commands:
        commands[sys.argv[1]]()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
