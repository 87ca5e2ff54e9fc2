"""What is measured of each call. A part takes the cases and returns figures by name of case."""

import statistics
import sys
import time
from contextlib import ExitStack

from measure import shares
from measure.server import Server

KEYS = 100_000
PIPELINES = (1, 16, 64)
LISTENERS = {"alone": "nothing listening", "file": "append-only file", "replica": "a replica", "quiet": "known that nobody listens"}


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def fill(bench, case, server, keys, turns):
    """The digests of its scripts, when all keys are there."""
    digests = case.digests(server)
    for commands in case.filling():
        bench.load.fill(server, commands, keys, turns, digests)
    return digests


def instructions(bench, cases):
    """Of the server, for one call of 16 a pipeline: where nobody listens, but might, with an append-only file, with a replica, and where
    the module knows that nobody does."""
    keys, calls = (200, 200) if bench.short else (2_000, 4_000)
    figures = {case.name: {} for case in cases}
    appended = ("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
    for listener, about in LISTENERS.items():
        say(f"instructions, {about}")
        with ExitStack() as running:
            options = appended if listener == "file" else ()
            quiet = listener == "quiet"
            server = running.enter_context(Server(bench.program, bench.modules, counted=True, options=options, quiet=quiet))
            if listener == "replica":
                following = ("--replicaof", "127.0.0.1", str(server.port))
                replica = running.enter_context(Server(bench.program, bench.modules, options=following))
                replica.wait_until("replication", "master_link_status", "up")
            for case in cases:
                server.ask("FLUSHALL", "SYNC")
                digests = fill(bench, case, server, keys, case.turns)
                case.check(server, digests)
                count, told = bench.load.count(server, case.calls(), calls, keys, digests)
                figures[case.name][listener] = count
                if listener == "alone" and case.name in shares.CASES:
                    figures[case.name]["shares"] = {name: cost / calls for name, cost in shares.of(told).items()}
                say(f"{case.name:24} {count:9.0f}")
    return figures


def filled_servers(bench, cases, running):
    """A server for each case, with its keys: so calls of one can follow those of another without filling in between."""
    servers = {}
    for case in cases:
        server = running.enter_context(Server(bench.program, bench.modules))
        digests = fill(bench, case, server, bench.keys, case.turns)
        case.check(server, digests)
        servers[case.name] = server, digests
    return servers


def there_and_back(cases, number):
    """In an order that is turned round from round to round, so that what else happens on the machine meets all alike."""
    return cases if number % 2 == 0 else cases[::-1]


def times(bench, cases):
    """Calls a second and the server's processor time for each, as fast as it answers; medians of rounds."""
    rounds, seconds = (1, 0.02) if bench.short else (3, 0.4)
    with ExitStack() as running:
        say(f"filling {bench.keys} keys for each of {len(cases)} calls")
        servers = filled_servers(bench, cases, running)
        samples = {}
        for number in range(rounds):
            for keys in (bench.keys, 1):
                for pipeline in PIPELINES:
                    say(f"times, round {number + 1} of {rounds}: {keys} keys, pipeline {pipeline}")
                    for case in there_and_back(cases, number):
                        server, digests = servers[case.name]
                        commands = case.calls() if keys > 1 else case.calls_on_one()
                        run = lambda calls: bench.load.run(server, commands, keys, digests, calls=calls, pipeline=pipeline)
                        before = samples.setdefault((case.name, keys, pipeline), [])
                        # As many as take so long by the round before, or by a few.
                        per_second = before[-1][0] if before else per_second_of(run(max(1_000, 50 * pipeline)))
                        calls = max(500, round(per_second * seconds))
                        start = server.processor_ns()
                        told = run(calls)
                        before.append((per_second_of(told), (server.processor_ns() - start) / calls))
    figures = {}
    for (name, keys, pipeline), taken in samples.items():
        kind = "one" if keys == 1 else "many"
        figures.setdefault(name, {})[f"{kind}-{pipeline}"] = {
            "per_second": statistics.median(per_second for per_second, _ in taken),
            "ns": statistics.median(ns for _, ns in taken),
        }
    return figures


def per_second_of(told):
    return told["calls"] / told["seconds"]


def latency(bench, cases):
    """From when a call was due to its answer, at a steady rate, in microseconds; medians of rounds."""
    rounds, seconds = (1, 1) if bench.short else (3, 2)
    rate = 2_000 if bench.short else bench.rate
    with ExitStack() as running:
        servers = filled_servers(bench, cases, running)
        samples = {case.name: [] for case in cases}
        for number in range(rounds):
            say(f"latency, round {number + 1} of {rounds}: {rate} calls a second")
            for case in there_and_back(cases, number):
                server, digests = servers[case.name]
                told = bench.load.run(server, case.calls(), bench.keys, digests, rate=rate, seconds=seconds)
                samples[case.name].append(told)
    return {
        name: {field: statistics.median(told[field] for told in taken) for field in ("p50", "p99", "p999")}
        for name, taken in samples.items()
    }


def memory(bench, cases):
    """Bytes for each of a million keys with names of 15 bytes, all that they take included, filled once."""
    keys = 10_000 if bench.short else 1_000_000
    figures = {}
    for case in cases:
        if not case.memory:
            continue
        with Server(bench.program, bench.modules) as server:
            used = lambda: int(server.info("memory", "used_memory"))
            before = used()
            fill(bench, case, server, keys, turns=1)
            # The table of keys has its final size once it stops to move.
            time.sleep(1 if not bench.short else 0)
            figures[case.name] = {"bytes": (used() - before) / keys}
            say(f"memory, {case.name:24} {figures[case.name]['bytes']:6.0f} bytes a key")
    return figures
