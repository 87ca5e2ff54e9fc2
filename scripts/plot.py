"""Asks the commands of redis-rl about the same traffic, and draws what each lets through. Called by scripts/plot.

plot.py SOCKET CLOCK PICTURE
"""

import socket
import struct
import sys

START = 1_796_040_000_000_000  # a full minute, in microseconds
SECONDS = 180
COMMANDS = [
    ("RL.FIXED", "60", "1m", "fixed window", "#d1495b"),
    ("RL.SLIDING", "60", "1m", "sliding window", "#edae49"),
    ("RL.SLIDINGLOG", "60", "1m", "sliding log", "#00798c"),
    ("RL.TOKENBUCKET", "60", "60/m", "token bucket", "#30638e"),
    ("RL.LEAKY", "60", "60/m", "leaky bucket (as calls go on)", "#7b5ea7"),
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


def picture(rows, calls):
    width, height, left, top = 820, 420, 60, 30
    most = max(len(times) for _, _, times in rows) + 20
    x = lambda milliseconds: left + milliseconds / (SECONDS * 1_000) * width
    y = lambda count: top + height - count / most * height
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 60}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="18">Calls let through, in all; limit 60 a minute, or 60 at once and 60 a minute</text>',
    ]
    for second in range(0, SECONDS + 1, 20):
        dash = "" if second % 60 == 0 else ' stroke-dasharray="2 4"'
        out.append(f'<line x1="{x(second * 1_000):.1f}" y1="{top}" x2="{x(second * 1_000):.1f}" y2="{top + height}" stroke="#bbb"{dash}/>')
        out.append(f'<text x="{x(second * 1_000):.1f}" y="{top + height + 18}" text-anchor="middle">{second} s</text>')
    for count in range(0, most, 40):
        out.append(f'<line x1="{left}" y1="{y(count):.1f}" x2="{left + width}" y2="{y(count):.1f}" stroke="#eee"/>')
        out.append(f'<text x="{left - 8}" y="{y(count) + 4:.1f}" text-anchor="end">{count}</text>')
    # What is asked for, as ticks below the axis.
    for call in calls:
        out.append(f'<line x1="{x(call):.1f}" y1="{top + height + 26}" x2="{x(call):.1f}" y2="{top + height + 38}" stroke="#333" stroke-width="0.5"/>')
    out.append(f'<text x="{left}" y="{top + height + 54}">calls</text>')
    for index, (name, colour, times) in enumerate(rows):
        points, count = [f"{x(0):.1f},{y(0):.1f}"], 0
        for time in [time for time in times if time <= SECONDS * 1_000]:
            points += [f"{x(time):.1f},{y(count):.1f}", f"{x(time):.1f},{y(count + 1):.1f}"]
            count += 1
        points.append(f"{x(SECONDS * 1_000):.1f},{y(count):.1f}")
        out.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        legend = top + 20 + 20 * index
        out.append(f'<line x1="{left + 14}" y1="{legend - 4}" x2="{left + 40}" y2="{legend - 4}" stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{left + 48}" y="{legend}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    path, clock, target = sys.argv[1:]
    server = Server(path, clock)
    calls = traffic()
    rows = []
    print(f"{'':16} {'in all':>7} {'50 to 70 s':>11}")
    for command, limit, pace, name, colour in COMMANDS:
        times = passed(server, command, limit, pace, calls)
        around = sum(50_000 <= time < 70_000 for time in times)
        print(f"{command:16} {len(times):>7} {around:>11}")
        rows.append((name, colour, times))
    with open(target, "w", encoding="utf-8") as file:
        file.write(picture(rows, calls))


main()
