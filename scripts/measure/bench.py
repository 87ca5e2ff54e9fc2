"""Measures and tells. Called by scripts/bench, whose --help says what the arguments mean."""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

from measure import page, parts, plots, table
from measure.cases import every
from measure.growth import growth
from measure.load import Load
from measure.results import PARTS, Results
from measure.server import PINNED

PAGE = Path("docs/performance.md")
PICTURES = Path("docs/performance")
# What takes long for each call does so for a few only where all shall be short.
SLOW = ("instructions", "latency")
FEW = ("incr", "tokenbucket", "tokenbucket-denied", "lua-token-bucket")


class Bench:
    """What all parts need."""

    def __init__(self, options):
        self.program = options.program
        self.modules = [options.module, options.noop]
        self.load = Load(options.load)
        self.short = options.short
        self.rate = options.rate
        self.keys = 1_000 if options.short else parts.KEYS


def options():
    parser = argparse.ArgumentParser()
    for name in ("program", "module", "noop", "load", "peers", "results"):
        parser.add_argument(f"--{name}", required=True)
    # Of a server that was asked for by name; the page is about the one that is installed.
    parser.add_argument("--name", default="")
    parser.add_argument("--cases", default="")
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--keep-page", action="store_true")
    parser.add_argument("parts", nargs="*")
    return parser.parse_args()


def chosen(cases, names):
    known = {case.name: case for case in cases}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"bench: no call is named '{unknown[0]}': there are {' '.join(known)}", file=sys.stderr)
        sys.exit(2)
    return [known[name] for name in names] if names else cases


def machine(program, days):
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    name, number = re.match(r"(\w+) server v=(\S+)", version).groups()
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cores = len(os.sched_getaffinity(0))
    placed = "the server on one, the caller on the other" if PINNED else "shared by server and caller"
    when = " to ".join((days[0], days[-1])[: len(days)])
    return (
        f"{name} {number}, {when}, on {cores} cores ({model[1] if model else platform.machine()}; {platform.system()} "
        f"{platform.release().split('-')[0]}), {placed}."
    )


def measure(bench, given, cases):
    results = Results(given.results)
    for part in given.parts or PARTS:
        start = time.monotonic()
        some = [case for case in cases if case.name in FEW] if bench.short and part in SLOW else cases
        results.keep(part, growth(bench) if part == "growth" else getattr(parts, part)(bench, some))
        parts.say(f"{part}: {time.monotonic() - start:.0f} s")
    return results


def tell(results, cases, given):
    """The page about the installed server, with its pictures; a page of its own for each other."""
    about = machine(given.program, results.days())
    print(about)
    print(table.aligned(results, cases))
    if given.short or given.keep_page:
        return
    PICTURES.mkdir(exist_ok=True)
    if given.name:
        text = f"# {given.name}\n\nWhat each figure means is in [performance](../performance.md). {about}\n\n"
        (PICTURES / f"{given.name}.md").write_text(text + table.markdown(results, cases) + "\n")
        parts.say(f"written to {PICTURES / given.name}.md")
        return
    PAGE.write_text(page.rewrite(PAGE.read_text(), page.regions(results, cases, about)))
    if results.part("instructions"):
        plots.instructions(results, cases, PICTURES / "instructions.svg")
    if results.part("times"):
        plots.throughput(results, cases, PICTURES / "throughput.svg")
    if results.part("growth"):
        plots.growth(results, PICTURES / "growth.svg")
    parts.say(f"written to {PAGE} and {PICTURES}")


def main():
    given = options()
    cases = chosen(every(Path(given.peers)), given.cases.split())
    tell(measure(Bench(given), given, cases), cases, given)


main()
