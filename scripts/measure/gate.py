"""Counts the instructions of calls and holds them against the baseline. Called by scripts/gate.

gate.py PROGRAM MODULE NOOP LOAD BASELINE check|update
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from measure.cases import HALF, PLENTY
from measure.load import Load
from measure.parts import say
from measure.server import Server

CALLS, KEYS, FEW, TOLERANCE = 10_000, 2_000, 20, 3
LONG = "36500d"
DENIED = "RL.TOKENBUCKET d:{random} 1000 1/h"
THREE = f"b:{{random}} TOKENBUCKET {PLENTY} 1000 1 s:{{random}} SLIDING {PLENTY} {LONG} 1"
RENEWAL = f"{PLENTY} 1000 node-000000 {{rising}} 1 1 1h"
SETTINGS = {"rl.notify-denied": "no", "notify-keyspace-events": "", "rl.top-keys": "0"}
# Commands that decide nothing, of the same shape.
FLOORS = {
    "one": f"NOOP.INTEGERS b:{{random}} {PLENTY} 1000",
    "two": f"NOOP.INTEGERS b:{{random}} {PLENTY} 1000 ; NOOP.INTEGERS b:{{random}} {PLENTY} 1000",
    "three": f"NOOP.INTEGERS {THREE} f:{{random}} FIXED {PLENTY} {LONG} 1",
    "renewal": f"NOOP.INTEGERS u:{{random}} {RENEWAL}",
}

# Of each limiter a half-used one, and a used-up one; so every key is there, its expiry far, and stays. Commands, keys, and how often
# for each key.
FILL = (
    (f"RL.TOKENBUCKET b:{{next}} {PLENTY} 1000 {HALF}", KEYS, 1),
    ("RL.TOKENBUCKET d:{next} 1000 1/h 1000", KEYS, 1),
    (f"RL.FIXED f:{{next}} {PLENTY} {LONG} {HALF}", KEYS, 1),
    (f"RL.FIXED g:{{next}} {PLENTY} {LONG} {PLENTY}", KEYS, 1),
    (f"RL.SLIDING s:{{next}} {PLENTY} {LONG} {HALF}", KEYS, 1),
    (f"RL.SLIDING z:{{next}} {PLENTY} {LONG} {PLENTY}", KEYS, 1),
    (f"RL.SLIDINGLOG l:{{next}} {PLENTY} {LONG} {HALF}", KEYS, 1),
    (f"RL.SLIDINGLOG m:{{next}} {PLENTY} {LONG} {PLENTY}", KEYS, 1),
    (f"RL.LEAKY q:{{next}} {PLENTY} 1000 {HALF}", KEYS, 1),
    ("RL.LEAKY y:{next} 1000 1/h 1000", KEYS, 1),
    (f"RL.CONCURRENT c:{{next}} {PLENTY} {LONG} holder-000000", KEYS, 1),
    # Limiters with many holders, and buckets with many leases.
    (f"RL.CONCURRENT h:{{next}} {PLENTY} {LONG} holder-{{turn}}", FEW, 100),
    (f"RL.CONCURRENT t:{{next}} {PLENTY} {LONG} holder-{{turn}}", FEW, 1_000),
    (f"RL.LEASE u:{{next}} {PLENTY} 1000 node-{{turn}} {{rising}} 0 1 1h", FEW, 1),
    (f"RL.LEASE v:{{next}} {PLENTY} 1000 node-{{turn}} {{rising}} 0 1 1h", FEW, 100),
    (f"RL.LEASE w:{{next}} {PLENTY} 1000 node-{{turn}} {{rising}} 0 1 1h", FEW, 1_024),
)


@dataclass(frozen=True)
class Row:
    """A call: its commands, on how many keys, less which floor, and under which settings. Where it `allocates`, it does so for a
    reason: a state grows, a reply is a text."""

    name: str
    commands: str
    keys: int = KEYS
    floor: str = "one"
    settings: tuple = ()
    allocates: bool = False


ROWS = (
    Row("tokenbucket-allowed", f"RL.TOKENBUCKET b:{{random}} {PLENTY} 1000"),
    Row("tokenbucket-denied", DENIED),
    Row("fixed-allowed", f"RL.FIXED f:{{random}} {PLENTY} {LONG}"),
    Row("fixed-denied", f"RL.FIXED g:{{random}} {PLENTY} {LONG}"),
    Row("sliding-allowed", f"RL.SLIDING s:{{random}} {PLENTY} {LONG}"),
    Row("log-allowed", f"RL.SLIDINGLOG l:{{random}} {PLENTY} {LONG}", allocates=True),
    Row("log-denied", f"RL.SLIDINGLOG m:{{random}} {PLENTY} {LONG}"),
    Row("leaky-allowed", f"RL.LEAKY q:{{random}} {PLENTY} 1000"),
    Row("peek", "RL.PEEK b:{random}"),
    Row("multi-3-allowed", f"RL.MULTI {THREE} f:{{random}} FIXED {PLENTY} {LONG} 1", floor="three"),
    Row("multi-3-denied", f"RL.MULTI {THREE} g:{{random}} FIXED {PLENTY} {LONG} 1", floor="three"),
    Row("concurrent-1", f"RL.CONCURRENT c:{{random}} {PLENTY} {LONG} holder-000000"),
    Row("concurrent-100", f"RL.CONCURRENT h:{{random}} {PLENTY} {LONG} holder-000050", FEW),
    Row("concurrent-1000", f"RL.CONCURRENT t:{{random}} {PLENTY} {LONG} holder-000500", FEW),
    Row("concurrent-1000-denied", f"RL.CONCURRENT t:{{random}} 1000 {LONG} another", FEW),
    Row("concurrent-1000-denied-for-long", f"RL.CONCURRENT t:{{random}} 500 {LONG} another", FEW),
    # A renewal has a higher number than the one before.
    Row("lease-1", f"RL.LEASE u:{{random}} {RENEWAL}", FEW, "renewal"),
    Row("lease-100", f"RL.LEASE v:{{random}} {RENEWAL}", FEW, "renewal"),
    Row("lease-1024", f"RL.LEASE w:{{random}} {RENEWAL}", FEW, "renewal"),
    Row("tokenbucket-on-leased", f"RL.TOKENBUCKET w:{{random}} {PLENTY} 1000", FEW),
    # What a denied call costs more that is told to listeners (there are none), or counted for RL.TOP: where each key is kept, and
    # where one in two hundred is.
    Row("denied-notified", DENIED, settings=(("rl.notify-denied", "yes"), ("notify-keyspace-events", "Ed"))),
    Row("denied-top-hot", DENIED, 500, settings=(("rl.top-keys", "1000"),)),
    Row("denied-top-cold", DENIED, settings=(("rl.top-keys", "10"),)),
    Row("sliding-denied", f"RL.SLIDING z:{{random}} {PLENTY} {LONG}"),
    Row("leaky-denied", "RL.LEAKY y:{random} 1000 1/h"),
    Row("tokenbucket-new", f"RL.TOKENBUCKET n:{{rising}} {PLENTY} 1000 {HALF}"),
    Row("refund", "RL.REFUND b:{random} 1"),
    Row("log-refund", "RL.REFUND l:{random} 1 AGE 1ms", allocates=True),
    Row("debit", f"RL.DEBIT b:{{random}} {PLENTY} 1000 1"),
    Row("release-none", "RL.RELEASE c:{random} nobody"),
    Row(
        "concurrent-and-release",
        f"RL.CONCURRENT c:{{random}} {PLENTY} {LONG} holder-000001 ; RL.RELEASE c:{{random}} holder-000001",
        floor="two",
        allocates=True,
    ),
    Row("inspect", "RL.INSPECT b:{random}", allocates=True),
    Row("top", "RL.TOP 10", floor="none", settings=(("rl.top-keys", "10"),), allocates=True),
)


def count(load, server, row):
    for name, value in row.settings:
        server.ask("CONFIG", "SET", name, value)
    load.run(server, row.commands, row.keys, calls=1_000, pipeline=16, connections=1)
    # The lesser of two: what the server does by the clock meanwhile is in one of them, as a rule.
    instructions, told = min(load.count(server, row.commands, CALLS, row.keys) for _ in range(2))
    # The server's functions through which a module allocates.
    if not row.allocates and re.search(r"\) RM_(Alloc|Calloc|Realloc)", told):
        sys.exit(f"gate: {row.commands} allocates memory on every call")
    for name, _ in row.settings:
        server.ask("CONFIG", "SET", name, SETTINGS[name])
    return round(instructions)


def counted(program, modules, load, rows, before):
    """What calls cost less their floors, by name, on a server of its own; printed as it comes."""
    own = {}
    with Server(program, modules, counted=True) as server:
        for commands, keys, turns in FILL:
            load.fill(server, commands, keys, turns)
        floors = {name: count(load, server, Row(name, commands)) for name, commands in FLOORS.items()} | {"none": 0}
        print(f"{'call':32} {'instructions':>12} {'less no-op':>12} {'baseline':>12} {'change':>8}")
        print(f"{'no-op':32} {floors['one']:12}", flush=True)
        for row in rows:
            instructions = count(load, server, row)
            own[row.name] = instructions - floors[row.floor]
            known = before.get(row.name)
            change = f"{100 * (own[row.name] / known - 1):+.1f} %" if known else ""
            verdict = "  above the baseline" if is_dearer(row, own, before) else ""
            print(f"{row.name:32} {instructions:12} {own[row.name]:12} {known or '-':>12} {change:>8}{verdict}", flush=True)
    return own


def is_dearer(row, own, before):
    return row.name in before and own[row.name] * 100 > before[row.name] * (100 + TOLERANCE)


def main():
    program, module, noop, load, baseline, mode = sys.argv[1:]
    load, baseline = Load(load), Path(baseline)
    about = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    name, number = re.match(r"(\w+) server v=([0-9.]+)", about).groups()
    version = f"{name.lower()}-{number}"
    lines = [line.split() for line in baseline.read_text().splitlines()]
    before = {call: int(count) for server, call, count in lines if server == version}
    run = lambda rows: counted(program, [module, noop], load, rows, before)

    say(f"counting in {version}")
    own = run(ROWS)
    if mode == "update":
        kept = [" ".join(line) for line in lines if line[0] != version]
        baseline.write_text("\n".join(kept + [f"{version} {call} {count}" for call, count in own.items()]) + "\n")
        say(f"written to {baseline}")
        return
    for _ in range(2):
        dearer = [row for row in ROWS if is_dearer(row, own, before)]
        if not dearer:
            break
        # From process to process the server's own part differs by up to a hundredth: where keys lie, for one.
        say(f"once more, in another server: {' '.join(row.name for row in dearer)}")
        own |= {name: min(own[name], again) for name, again in run(dearer).items()}
    else:
        dearer = [row for row in ROWS if is_dearer(row, own, before)]
    if dearer:
        sys.exit(
            f"gate: {len(dearer)} calls cost more than {TOLERANCE} % more instructions than before: find out why, or accept it "
            "with --update"
        )
    if not before:
        say(f"no baseline for {version}: nothing was judged")


main()
