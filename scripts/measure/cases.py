"""The calls that are compared. Each finds its keys there, far from expiring, and in the state that its name says."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

LUA = Path("benches/lua")
PLENTY = 1_000_000_000
HALF = PLENTY // 2


@dataclass(frozen=True)
class Case:
    """A call: its commands in one text, and what fills each key before. {key} is the number of a key."""

    name: str
    label: str
    commands: str
    fill: tuple = ()
    hot: str = ""  # the commands on one hot key, where they can't be the same
    script: str = ""  # what {sha} stands for
    turns: int = 1  # how often each key is filled; memory is measured after the first time
    memory: bool = False  # whether memory is measured: once for each kind of state

    def calls(self):
        return self.commands.replace("{key}", "{random}")

    def calls_on_one(self):
        return (self.hot or self.commands).replace("{key}", "{random}")

    def filling(self):
        return [text.replace("{key}", "{next}") for text in self.fill]

    def digests(self, server):
        return {"{sha}": server.ask("SCRIPT", "LOAD", self.script)} if self.script else {}

    def check(self, server, digests):
        """Ends the program unless the server allows or denies, by the first word of its reply, as the name says."""
        known = {**digests, "{key}": "0" * 12, "{rising}": str(time.time_ns() // 1_000)}
        words = self.commands.partition(" ; ")[0]
        for name, value in known.items():
            words = words.replace(name, value)
        reply = server.ask(*words.split()).partition("\n")[0]
        if (reply == "0") != self.name.endswith("-denied"):
            raise SystemExit(f"{self.name}: the answer to {words} is not what it should be: {reply}")


def of_server():
    expiring = "INCR rl:{key} ; EXPIRE rl:{key} 3600 NX"
    return [
        Case("ping", "`PING`", "PING"),
        Case("get", "`GET`", "GET rl:{key}", ("SET rl:{key} 1",)),
        Case("incr", "`INCR`", "INCR rl:{key}", ("INCR rl:{key}",), memory=True),
        Case("incr-expire", "`INCR` + `EXPIRE NX`", expiring, (expiring,), memory=True),
        Case("noop", "a module's command that decides nothing", f"NOOP.INTEGERS rl:{{key}} {PLENTY} 1000"),
    ]


def of_module():
    cases = []
    # What is denied finds all used, and nothing comes back while it is measured.
    for command, limit, slow in (
        ("FIXED", "36500d", "36500d"),
        ("SLIDING", "36500d", "36500d"),
        ("TOKENBUCKET", "1000", "1/h"),
        ("LEAKY", "1000", "1/h"),
    ):
        name, call = command.lower(), f"RL.{command} rl:{{key}}"
        plenty, little = f"{call} {PLENTY} {limit}", f"{call} 1000 {slow}"
        cases.append(Case(name, f"`RL.{command}`", plenty, (f"{plenty} {HALF}",), memory=True))
        cases.append(Case(f"{name}-denied", f"`RL.{command}`, denied", little, (f"{little} 1000",)))
    log = "RL.SLIDINGLOG rl:{key}"
    several = f"RL.MULTI b:{{key}} TOKENBUCKET {PLENTY} 1000 1 s:{{key}} SLIDING {PLENTY} 36500d 1"
    fill_several = (
        f"RL.TOKENBUCKET b:{{key}} {PLENTY} 1000 {HALF}",
        f"RL.SLIDING s:{{key}} {PLENTY} 36500d {HALF}",
        f"RL.FIXED f:{{key}} {PLENTY} 36500d {HALF}",
        f"RL.FIXED g:{{key}} {PLENTY} 36500d {PLENTY}",
    )
    hold = f"RL.CONCURRENT rl:{{key}} {PLENTY} 36500d holder-0"
    lease = f"RL.LEASE rl:{{key}} {PLENTY} 1000 node-0 {{rising}}"
    return cases + [
        Case(
            "log",
            "`RL.SLIDINGLOG`, from 10 entries on",
            f"{log} {PLENTY} 1h",
            (f"{log} {PLENTY} 1h",),
            # So many come to one key that only a short window bounds its log.
            hot=f"RL.SLIDINGLOG hot:{{key}} {PLENTY} 100ms",
            turns=10,
            memory=True,
        ),
        Case("log-denied", "`RL.SLIDINGLOG`, denied", f"{log} 10 1h", (f"{log} 10 1h",), turns=10),
        Case("peek", "`RL.PEEK`", "RL.PEEK rl:{key}", (f"RL.TOKENBUCKET rl:{{key}} {PLENTY} 1000 {HALF}",)),
        Case("multi-3", "`RL.MULTI` of 3", f"{several} f:{{key}} FIXED {PLENTY} 36500d 1", fill_several),
        Case("multi-3-denied", "`RL.MULTI` of 3, denied", f"{several} g:{{key}} FIXED {PLENTY} 36500d 1", fill_several),
        Case("concurrent", "`RL.CONCURRENT`, renewed", hold, (hold,), memory=True),
        Case("lease", "`RL.LEASE`, renewed", f"{lease} 1 1 1h", (f"{lease} 0 1 1h",), memory=True),
    ]


def script_case(name, label, words, fill, script, keys="1 rl:{key}", **more):
    call = f"EVALSHA {{sha}} {keys}"
    return Case(name, label, f"{call} {words}", (f"{call} {fill}",), script=script, **more)


def of_scripts():
    """What is written where there is no module: benches/lua."""
    cases = []
    for file, label, plenty, little in (
        ("token_bucket", "token bucket", f"{PLENTY} 1000", "1000 0.0001"),
        ("gcra", "GCRA", f"{PLENTY} 1000", "1000 0.0001"),
        ("sliding_window", "sliding window counter", f"{PLENTY} 3600000000", "1000 3600000000"),
    ):
        name, label, script = "lua-" + file.replace("_", "-"), f"Lua: {label}", (LUA / f"{file}.lua").read_text()
        cases.append(script_case(name, label, f"{plenty} 1", f"{plenty} {HALF}", script, memory=True))
        cases.append(script_case(f"{name}-denied", f"{label}, denied", f"{little} 1", f"{little} 1000", script))
    script, name = (LUA / "sliding_log.lua").read_text(), "{rising}"
    plenty, full = f"{PLENTY} 3600000 {name}", f"10 3600000 {name}"
    hot = f"EVALSHA {{sha}} 1 hot:{{key}} {PLENTY} 100 {name}"
    label = "Lua: sliding log, from 10 entries on"
    return cases + [
        script_case("lua-log", label, plenty, plenty, script, hot=hot, turns=10, memory=True),
        script_case("lua-log-denied", "Lua: sliding log, denied", full, full, script, turns=10),
    ]


def of_limits(folder):
    """The package limits, for Python, as pip unpacks it."""
    script = lambda name: (folder / "limits/resources/redis/lua_scripts" / f"{name}.lua").read_text()
    both = "2 rl:{key} rm:{key}"
    fixed, sliding = "36000000 1", f"{PLENTY} 36000000"
    # This script takes the caller's time: here in microseconds, so that a window holds a hundred calls of a key only where they
    # come within as many microseconds.
    moving = "{rising} 100 3600 1"
    hot = "EVALSHA {sha} 1 hot:{key} {rising} 100 1 1"
    sliding_script, moving_script = script("acquire_sliding_window"), script("acquire_moving_window")
    label = "limits (Python): moving window of 100"
    return [
        script_case("limits-fixed", "limits (Python): fixed window", fixed, fixed, script("incr_expire"), memory=True),
        script_case(
            "limits-sliding",
            "limits (Python): sliding window counter",
            f"{sliding} 1",
            f"{sliding} {HALF}",
            sliding_script,
            both,
            memory=True,
        ),
        script_case("limits-moving", label, moving, moving, moving_script, hot=hot, turns=10, memory=True),
    ]


def of_flexible(folder):
    """The package rate-limiter-flexible, for Node.js, as npm packs it."""
    source = (folder / "package/lib/RateLimiterRedis.js").read_text()
    script = re.search(r"incrTtlLuaScript = `(.*?)`", source, re.DOTALL)[1].replace("\\\n", "\n")
    label, words = "rate-limiter-flexible (Node.js): fixed window", "1 36000000"
    return [script_case("flexible-fixed", label, words, words, script, memory=True)]


def every(peers):
    """All cases, those of packages where scripts/bench has put them into that folder."""
    cases = of_server() + of_module() + of_scripts()
    for package, of_package in (("limits", of_limits), ("package", of_flexible)):
        if (peers / package).is_dir():
            cases += of_package(peers)
    return cases
