"""What docs/performance.md says in figures: texts between marks in the page, written anew from what was measured."""

import math
import re

from measure.shares import ALL, CASES
from measure.table import markdown, told

BUSY = 0.6  # of a core: what is planned for, as in docs/scale.md
MILLION = 1_000_000


def ratios(results):
    """A call's cost as a part of another's, by instructions and by processor time."""
    instructions, times = results.part("instructions"), results.part("times")
    lines = [
        "| this | against | instructions | where nobody can listen | with an append-only file | CPU time |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, label, others, against in (
        ("tokenbucket", "`RL.TOKENBUCKET`", ("incr",), "`INCR`"),
        ("tokenbucket", "`RL.TOKENBUCKET`", ("incr-expire",), "`INCR` + `EXPIRE NX`"),
        ("tokenbucket", "`RL.TOKENBUCKET`", ("lua-token-bucket",), "the token bucket in Lua"),
        ("tokenbucket", "`RL.TOKENBUCKET`", ("lua-gcra",), "GCRA in Lua"),
        ("tokenbucket-denied", "`RL.TOKENBUCKET`, denied", ("lua-token-bucket-denied",), "the same in Lua"),
        ("sliding", "`RL.SLIDING`", ("lua-sliding-window",), "the sliding window counter in Lua"),
        ("log", "`RL.SLIDINGLOG`", ("lua-log",), "the sliding log in Lua"),
        ("multi-3", "`RL.MULTI` of 3", ("tokenbucket", "sliding", "fixed"), "the three calls"),
    ):
        part = lambda cost: f"{cost(name) / sum(map(cost, others)):.2f}"
        cells = [
            part(lambda case: instructions[case]["alone"]),
            part(lambda case: instructions[case]["quiet"]),
            part(lambda case: instructions[case]["file"]),
            part(lambda case: times[case]["many-16"]["ns"]),
        ]
        lines.append(f"| {label} | {against} | {' | '.join(cells)} |")
    return "\n".join(lines)


def where(results):
    """Where the instructions of a call go."""
    figures = {name: figure["shares"] for name, figure in results.part("instructions").items() if name in CASES}
    lines = [f"| | {' | '.join(CASES.values())} |", f"| --- |{' ---: |' * len(CASES)}"]
    for kind in ALL:
        lines.append(f"| {kind} | {' | '.join(told(figures[name].get(kind, 0)) for name in CASES)} |")
    return "\n".join(lines)


def core(results):
    """What a core does, and so how many shards a million checks a second take."""
    times = results.part("times")
    lines = [
        "| call | CPU time, one at a time | 16 a batch | calls a second and core | shards for a million checks a second |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, keys, label in (
        ("incr", "many", "`INCR`"),
        ("tokenbucket", "many", "`RL.TOKENBUCKET`, 100 000 keys"),
        ("tokenbucket", "one", "`RL.TOKENBUCKET`, one key"),
        ("tokenbucket-denied", "many", "`RL.TOKENBUCKET`, denied"),
        ("sliding", "many", "`RL.SLIDING`"),
        ("log", "many", "`RL.SLIDINGLOG`"),
        ("multi-3", "many", "`RL.MULTI` of 3"),
        ("lease", "many", "`RL.LEASE`, renewed"),
        ("lua-token-bucket", "many", "the token bucket in Lua"),
    ):
        alone, batch = (times[name][f"{keys}-{pipeline}"]["ns"] for pipeline in (1, 16))
        shards = "one key is on one" if keys == "one" else "–" if name == "lease" else str(shards_for_a_million(batch))
        lines.append(
            f"| {label} | {alone / 1_000:.1f} µs | {batch / 1_000:.2f} µs | {told(round(1e9 / batch, -3))} | {shards} |"
        )
    return "\n".join(lines)


def shards_for_a_million(ns):
    return math.ceil(MILLION * ns / 1e9 / BUSY)


def leases(results):
    """From how many checks on leases take less of Redis than direct calls, and what a million checks take then."""
    times = results.part("times")
    direct, lease = (times[name]["many-16"]["ns"] for name in ("tokenbucket", "lease"))
    least = 1.5 * lease / direct
    calls = 1.5 * 16 / 0.05
    return "\n".join(
        [
            f"- A direct check takes {direct / 1_000:.2f} µs of a core, 16 a batch: a million a second are "
            f"{MILLION * direct / 1e9:.1f} cores, so ⌈{MILLION * direct / 1e9:.1f} / {BUSY}⌉ = {shards_for_a_million(direct)} shards.",
            f"- A call for a lease takes {lease / 1_000:.2f} µs, and a server makes 1.5 of them in the time T that a lease lasts, "
            "however many checks it decides meanwhile.",
            f"- So a server that sees a key λ times a second takes less of Redis by leases where λ × T > 1.5 × {lease / 1_000:.2f} / "
            f"{direct / 1_000:.2f} = {least:.1f}: at the usual T of 50 ms from {math.ceil(least / 0.05)} checks a second on, for each "
            "server and key.",
            f"- A million checks a second on one key, from 16 servers: 1.5 × 16 / 0.05 s = {told(calls)} calls a second, "
            f"{100 * calls * lease / 1e9:.2f} % of a core, where direct calls would take {MILLION * direct / 1e9:.1f} cores of one "
            "shard, which has one.",
        ]
    )


def logs(results):
    figures = results.part("growth")["log"]
    lines = [
        "| entries | admitted | denied | `RL.PEEK` | `RL.REFUND … AGE` | bytes an admitted call replicates | bytes an entry |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for size, admitted in figures["admitted"].items():
        others = (figures[name][size] for name in ("denied", "RL.PEEK", "RL.REFUND, 1 ms old"))
        costs = " | ".join(told(figure["instructions"]) for figure in (admitted, *others))
        lines.append(f"| {told(int(size))} | {costs} | {told(admitted['sent'])} | {admitted['entry']:.1f} |")
    return "\n".join(lines)


def regions(results, cases, machine):
    """By name of mark: the texts for which there are figures."""
    texts = {"machine": lambda: machine, "table": lambda: markdown(results, cases)}
    made = {"ratios": ratios, "where": where, "core": core, "leases": leases, "logs": logs}
    texts |= {name: lambda make=make: make(results) for name, make in made.items()}
    found = {}
    for name, make in texts.items():
        try:
            found[name] = make()
        except KeyError:
            continue
    return found


def rewrite(page, texts):
    """Puts each text between <!-- measured: NAME --> and <!-- end -->."""
    for name, text in texts.items():
        marked = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = marked.subn(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", page)
        if count != 1:
            raise SystemExit(f"the page has {count} places for '{name}'")
    return page
