"""Asks the commands of redis-rl about the same traffic, and draws what each lets through. Called by scripts/plot.

plot.py SOCKET CLOCK PICTURE
"""

import socket
import struct
import sys

from svg import COLOURS, Picture, along

START = 1_796_040_000_000_000  # a full minute, in microseconds
SECONDS = 180
COMMANDS = [
    ("RL.FIXED", "60", "1m", "fixed window"),
    ("RL.SLIDING", "60", "1m", "sliding window"),
    ("RL.SLIDINGLOG", "60", "1m", "sliding log"),
    ("RL.TOKENBUCKET", "60", "60/m", "token bucket"),
    ("RL.LEAKY", "60", "60/m", "leaky bucket (as calls go on)"),
]


def traffic():
    """Calls as times in milliseconds: one every two seconds, and bursts of 100 around the edge of the second minute."""
    calls = [second * 1_000 for second in range(0, SECONDS, 2)]
    for burst in (54, 61, 100):
        calls += [burst * 1_000 + 20 * call for call in range(100)]
    return sorted(calls)


class Server:
    """A connection, and the server's clock."""

    def __init__(self, path, clock):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.replies = self.socket.makefile("rb")
        self.clock = open(clock, "r+b", buffering=0)

    def at(self, milliseconds):
        self.clock.seek(0)
        self.clock.write(struct.pack("<q", START + milliseconds * 1_000))

    def decide(self, *words):
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words]
        self.socket.sendall(b"".join(parts))
        head = self.replies.readline()
        if head != b"*5\r\n":
            sys.exit(f"plot.py: {' '.join(words)}: {head.decode().strip()}")
        return [int(self.replies.readline()[1:]) for _ in range(5)]


def passed(server, command, limit, pace, calls):
    """When calls go on, in milliseconds: at once if they are allowed, a queue's when their turn comes."""
    times = []
    for call in calls:
        server.at(call)
        allowed, _, _, wait, _ = server.decide(command, command, limit, pace)
        if allowed:
            times.append(call + wait)
    return sorted(times)


def draw(rows, calls, target):
    width, height, left, top = 820, 420, 60, 30
    most = max(len(times) for _, _, times in rows) + 20
    x = along(0, SECONDS * 1_000, left, left + width)
    y = along(0, most, top + height, top)
    picture = Picture(left + width + 20, top + height + 60)
    picture.text(left, 18, "Calls let through, in all; limit 60 a minute, or 60 at once and 60 a minute")
    for second in range(0, SECONDS + 1, 20):
        at = x(second * 1_000)
        picture.line(at, top, at, top + height, "#bbb", dash="" if second % 60 == 0 else "2 4")
        picture.text(at, top + height + 18, f"{second} s", "middle")
    for count in range(0, most, 40):
        picture.line(left, y(count), left + width, y(count), "#eee")
        picture.text(left - 8, y(count) + 4, str(count), "end")
    # What is asked for, as ticks below the axis.
    for call in calls:
        picture.line(x(call), top + height + 26, x(call), top + height + 38, "#333", width=0.5)
    picture.text(left, top + height + 54, "calls")
    for index, (name, colour, times) in enumerate(rows):
        points, count = [(x(0), y(0))], 0
        for time in [time for time in times if time <= SECONDS * 1_000]:
            points += [(x(time), y(count)), (x(time), y(count + 1))]
            count += 1
        points.append((x(SECONDS * 1_000), y(count)))
        picture.curve(points, colour)
        picture.legend(left + 14, top + 20 + 20 * index, name, colour)
    picture.write(target)


def main():
    path, clock, target = sys.argv[1:]
    server = Server(path, clock)
    calls = traffic()
    rows = []
    print(f"{'':16} {'in all':>7} {'50 to 70 s':>11}")
    for (command, limit, pace, name), colour in zip(COMMANDS, COLOURS):
        times = passed(server, command, limit, pace, calls)
        around = sum(50_000 <= time < 70_000 for time in times)
        print(f"{command:16} {len(times):>7} {around:>11}")
        rows.append((name, colour, times))
    draw(rows, calls, target)


main()
