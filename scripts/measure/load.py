"""Calls by the thousand, made by the program in examples/load."""

import json
import subprocess

from measure.server import on_core


class Load:
    """The program, and what its words need: the digests of scripts, by name."""

    def __init__(self, program):
        self.program = program

    def run(self, server, commands, keys=1, digests=(), **options):
        """Makes the calls and returns what the program says. `commands` is one text: words, and ; between commands."""
        words = [dict(digests).get(word, word) for word in commands.split()]
        options = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        line = [self.program, "--port", str(server.port), "--keys", str(keys), *options, "--", *words]
        ended = subprocess.run(on_core(1) + line, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise SystemExit(f"{commands}: {ended.stderr.strip()}")
        return json.loads(ended.stdout)

    def fill(self, server, commands, keys, turns=1, digests=()):
        """Each key in turn, so many times."""
        self.run(server, commands, keys, digests, calls=keys * turns, pipeline=64, connections=1)

    def count(self, server, commands, calls, keys, digests=()):
        """The server's instructions for one such call, 16 a pipeline, and callgrind's file about them."""
        make = lambda calls: self.run(server, commands, keys, digests, calls=calls, pipeline=16, connections=1)
        server.control("--instr=on")
        make(min(calls, 200))
        total, told = server.count(lambda: make(calls))
        return total / calls, told
