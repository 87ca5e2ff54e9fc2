"""How the cost of a call grows with what is there: a panel of the plot for each thing that can be much."""

import statistics
from dataclasses import dataclass
from typing import Callable

from measure.cases import HALF, PLENTY
from measure.parts import say
from measure.server import Server

LONG = "36500d"


@dataclass(frozen=True)
class Panel:
    """`at` says for a size: keys, what fills them (commands and how often for each key), and the calls by name. So many calls are
    counted."""

    name: str
    title: str
    sizes: tuple
    at: Callable
    calls: int = 2_000


def keys(size):
    bucket = f"RL.TOKENBUCKET b:{{next}} {PLENTY} 1000 {HALF}"
    calls = {"RL.TOKENBUCKET": f"RL.TOKENBUCKET b:{{random}} {PLENTY} 1000", "GET": "GET g:{random}"}
    return size, [(bucket, 1), ("SET g:{next} 1", 1)], calls


def log(size):
    """Many short logs, so that counted calls don't lengthen one by much; one of the longest."""
    call = f"RL.SLIDINGLOG l:{{random}} {PLENTY} {LONG}"
    calls = {
        "denied": f"{call} {PLENTY}",
        "RL.PEEK": "RL.PEEK l:{random}",
        "admitted": call,
        "RL.REFUND, 1 ms old": "RL.REFUND l:{random} 1 AGE 1ms",
    }
    return max(1, min(2_000, 20_000 // size)), [(call.replace("random", "next"), size)], calls


def rows(size):
    lease = f"{PLENTY} 1000 node-{{turn}}"
    calls = {
        "RL.LEASE, renewed": f"RL.LEASE l:{{random}} {PLENTY} 1000 node-000000 {{rising}} 1 1 1h",
        "RL.TOKENBUCKET beside them": f"RL.TOKENBUCKET l:{{random}} {PLENTY} 1000",
    }
    return 20, [(f"RL.LEASE l:{{next}} {lease} {{rising}} 0 1 1h", size)], calls


def holders(size):
    call = f"RL.CONCURRENT c:{{random}} LIMIT {LONG}"
    calls = {
        "renewed": f"{call} holder-000000".replace("LIMIT", str(PLENTY)),
        "denied": f"{call} another".replace("LIMIT", str(size)),
    }
    return 20, [(f"RL.CONCURRENT c:{{next}} {PLENTY} {LONG} holder-{{turn}}", size)], calls


def several(size):
    limits = " ".join(f"b{number}:{{random}} TOKENBUCKET {PLENTY} 1000 1" for number in range(size))
    fill = [(f"RL.TOKENBUCKET b{number}:{{next}} {PLENTY} 1000 {HALF}", 1) for number in range(size)]
    return 200, fill, {"RL.MULTI": f"RL.MULTI {limits}"}


PANELS = (
    Panel("keys", "keys on the server", (1_000, 10_000, 100_000, 1_000_000), keys),
    Panel("log", "entries of a sliding log", (10, 100, 1_000, 10_000, 100_000), log, calls=800),
    Panel("rows", "nodes with a lease of one bucket", (1, 4, 16, 64, 256, 1_024), rows),
    Panel("holders", "holders of places", (1, 10, 100, 1_000), holders),
    Panel("several", "limits of one RL.MULTI", (1, 2, 4, 8, 16, 32), several),
)


def growth(bench):
    """By panel, call and size: instructions, 16 a pipeline, and processor time in nanoseconds."""
    figures = {}
    settings = ("CONFIG", "SET", "rl.max-log-entries", "200000")
    with (
        Server(bench.program, bench.modules, counted=True) as counted,
        Server(bench.program, bench.modules) as timed,
    ):
        for server in (counted, timed):
            server.ask(*settings)
        for panel in PANELS:
            for size in panel.sizes[:1] if bench.short else panel.sizes:
                number, fill, calls = panel.at(size)
                for server in (counted, timed):
                    server.ask("FLUSHALL", "SYNC")
                    for commands, turns in fill:
                        bench.load.fill(server, commands, number, turns)
                for name, commands in calls.items():
                    told = {
                        "instructions": bench.load.count(counted, commands, 100 if bench.short else panel.calls, number)[0],
                        "ns": nanoseconds(bench, timed, commands, number),
                    }
                    if panel.name == "log" and name == "admitted":
                        told |= log_bytes(bench, timed, commands, number, size)
                    figures.setdefault(panel.name, {}).setdefault(name, {})[str(size)] = told
                    say(f"{size:>8} {panel.title}: {name:28} {told['instructions']:9.0f} {told['ns'] / 1_000:7.2f} µs")
    return figures


def nanoseconds(bench, server, commands, number):
    """Of processor time for a call, 64 a pipeline; the median of rounds, which are short, since calls change what they measure."""
    run = lambda calls: bench.load.run(server, commands, number, calls=calls, pipeline=64, connections=1)
    run(200)
    taken = []
    for _ in range(1 if bench.short else 5):
        start = server.processor_ns()
        run(1_000)
        taken.append((server.processor_ns() - start) / 1_000)
    return statistics.median(taken)


def log_bytes(bench, server, commands, number, size):
    """What an admitted call adds to the append-only file, and what an entry takes; the calls before lengthened the logs."""
    calls = 160
    server.ask("CONFIG", "SET", "appendonly", "yes")
    server.wait_until("persistence", "aof_rewrite_in_progress", "0")
    server.wait_until("persistence", "aof_rewrite_scheduled", "0")
    size_of_file = lambda: int(server.info("persistence", "aof_current_size"))
    before = size_of_file()
    bench.load.run(server, commands, number, calls=calls, pipeline=16, connections=1)
    sent = (size_of_file() - before) / calls
    server.ask("CONFIG", "SET", "appendonly", "no")
    # A log of its own, of just so many entries.
    server.ask("DEL", "m:000000000000")
    bench.load.fill(server, commands.replace("l:{random}", "m:{next}"), 1, size)
    memory = int(server.ask("MEMORY", "USAGE", "m:000000000000"))
    return {"sent": sent, "entry": memory / size}
