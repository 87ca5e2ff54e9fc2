"""Measures a server's processor time for each call, and works out how many cores a load takes. Called by scripts/scale.

scale.py PORT PROCESS CALLS PICTURE
"""

import math
import os
import random
import socket
import sys

from svg import COLOURS, Picture, along

TICKS = os.sysconf("SC_CLK_TCK")
KEYS = 100_000
NODES = 16  # API servers that share the limits
BUSY = 0.6  # of a core: what is planned for, so that a peak and a fork fit
ROUND_TRIP = 0.001
LOADS = (10_000, 100_000, 1_000_000)


class Server:
    """A connection, and the server's process."""

    def __init__(self, port, process):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")
        self.process = process

    def seconds(self):
        """Processor time that the server has used."""
        with open(f"/proc/{self.process}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def ask(self, lines):
        calls = (line.split(" ") for line in lines)
        words = lambda call: "".join(f"${len(word)}\r\n{word}\r\n" for word in call)
        self.socket.sendall("".join(f"*{len(call)}\r\n{words(call)}" for call in calls).encode())
        for line in lines:
            head = self.replies.readline()
            if head[:1] == b"-":
                sys.exit(f"scale.py: {line}: {head.decode().strip()}")
            for _ in range(int(head[1:]) if head[:1] == b"*" else 0):
                self.replies.readline()

    def microseconds(self, name, calls, batch, line):
        """For each of so many calls, of which so many are sent at once; `line` tells the one of a number."""
        self.ask([line(number) for number in range(1_000)])
        before = self.seconds()
        for first in range(1_000, 1_000 + calls, batch):
            self.ask([line(number) for number in range(first, first + batch)])
        figure = (self.seconds() - before) / calls * 1e6
        print(f"{name:55} {figure:8.2f} µs", file=sys.stderr, flush=True)
        return figure


def measure(server, calls):
    draw = random.Random(7)
    many = lambda _: f"RL.TOKENBUCKET user:{draw.randrange(KEYS):06d} 1000000000 1000000"
    hot = lambda _: "RL.TOKENBUCKET hot 1000000000 1000000"
    count = lambda _: f"INCR n:{draw.randrange(KEYS):06d}"
    figures = {}
    for batch in (1, 16):
        how = "one at a time" if batch == 1 else f"{batch} a batch"
        figures["incr", batch] = server.microseconds(f"INCR, {how}", calls, batch, count)
        figures["many", batch] = server.microseconds(f"RL.TOKENBUCKET, {KEYS} keys, {how}", calls, batch, many)
        figures["hot", batch] = server.microseconds(f"RL.TOKENBUCKET, one key, {how}", calls, batch, hot)
        for nodes in (4, 16, 64):
            # Each node in turn says that it has spent all, and asks for as much again.
            lease = lambda number, nodes=nodes, batch=batch: (
                f"RL.LEASE lease:{nodes}:{batch} 1000000000 1000000 node-{number % nodes:04d} {number + 1} 0 1000 5"
            )
            figures["lease", nodes, batch] = server.microseconds(f"RL.LEASE, {nodes} nodes, {how}", calls, batch, lease)
    return figures


def lease_seconds(checks, keys):
    """How long a node's lease lasts where each key is asked for as often as its bucket refills, which holds a second's worth; None
    if a lease does not pay."""
    demand = checks / keys / NODES
    length = min(max(0.05, 4 / demand, 2 * ROUND_TRIP), 0.25)
    return length if demand * length >= 2 else None


def cores(figures, checks, keys, leased, batch):
    """Cores of servers, and calls a second; None where leases don't pay."""
    if not leased:
        return checks * figures["hot" if keys == 1 else "many", batch] / 1e6, checks
    length = lease_seconds(checks, keys)
    if length is None:
        return None
    calls = 1.5 * NODES * keys / length
    return calls * figures["lease", NODES, batch] / 1e6, calls


def told(number):
    """Large ones in groups of three digits, small ones with two that count."""
    return f"{number:,.0f}".replace(",", " ") if number >= 100 else f"{number:.2g}"


def tables(figures):
    print("| call | processor time, one at a time | 16 a batch | calls a second and core, 16 a batch |")
    print("| --- | --- | --- | --- |")
    kinds = [("`INCR`, 100 000 keys", ("incr",)), ("`RL.TOKENBUCKET`, 100 000 keys", ("many",)), ("the same, one key", ("hot",))]
    kinds += [(f"`RL.LEASE`, {nodes} nodes", ("lease", nodes)) for nodes in (4, 16, 64)]
    for name, kind in kinds:
        one, many = figures[(*kind, 1)], figures[(*kind, 16)]
        print(f"| {name} | {one:.1f} µs | {many:.2f} µs | {told(round(1e6 / many, -3))} |")
    print()
    print("| checks a second | keys | direct, 16 a batch: cores / shards | leased: calls a second | cores / shards |")
    print("| --- | --- | --- | --- | --- |")
    for checks in LOADS:
        for keys in (1, 1_000, 1_000_000):
            busy, _ = cores(figures, checks, keys, False, 16)
            shards = math.ceil(busy / BUSY)
            direct = f"{told(busy)} / {shards}" if keys > 1 or shards == 1 else f"{told(busy)}, and one key is on one shard"
            lease = cores(figures, checks, keys, True, 16)
            row = f"| {told(checks)} | {told(keys)} | {direct} |"
            if lease is None:
                print(f"{row} a lease does not pay | as direct |")
            else:
                busy, calls = lease
                print(f"{row} {told(calls)} | {told(busy)} / {math.ceil(busy / BUSY)} |")


def draw(figures, target):
    width, height, left, top = 760, 380, 70, 40
    lowest, highest = -3, 2
    x = along(LOADS[0], LOADS[-1], left, left + width, logarithmic=True)
    y = along(10**lowest, 10**highest, top + height, top, logarithmic=True)
    picture = Picture(left + width + 90, top + height + 50)
    picture.text(left, 20, f"Cores of Redis that a load takes, from {NODES} API servers")
    for power in range(lowest, highest + 1):
        picture.line(left, y(10**power), left + width, y(10**power))
        picture.text(left - 8, y(10**power) + 4, f"{10**power:g}", "end")
    for checks in LOADS:
        picture.line(x(checks), top, x(checks), top + height)
        picture.text(x(checks), top + height + 18, f"{told(checks)} checks a second", "middle")
    picture.line(left, y(BUSY), left + width, y(BUSY), "#999", dash="6 4")
    picture.text(left + width - 4, y(BUSY) - 6, "what is planned for one shard", "end", "#666")
    lines = [
        ("direct, one at a time", 1_000, False, 1),
        ("direct, 16 a batch", 1_000, False, 16),
        ("leased, 1 000 keys", 1_000, True, 16),
        ("leased, one key", 1, True, 16),
    ]
    for index, ((name, keys, leased, batch), colour) in enumerate(zip(lines, COLOURS)):
        points = []
        for step in range(81):
            checks = 10 ** (4 + step / 40)
            figure = cores(figures, checks, keys, leased, batch)
            if figure:
                points.append((x(checks), y(figure[0])))
        picture.curve(points, colour)
        picture.legend(left + 14, top + 18 + 19 * index, name, colour)
    picture.write(target)


def main():
    port, process, calls, target = sys.argv[1:]
    figures = measure(Server(int(port), int(process)), int(calls))
    tables(figures)
    draw(figures, target)


main()
