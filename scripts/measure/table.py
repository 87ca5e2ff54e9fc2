"""The figures of all calls as one table."""

from dataclasses import dataclass
from typing import Callable

INCR = "incr"


def told(number):
    """In groups of three digits."""
    return f"{number:,.0f}".replace(",", " ")


@dataclass(frozen=True)
class Column:
    """A head in the page, one for the terminal, and how the figure is found for the name of a case."""

    head: str
    short: str
    figure: Callable
    form: Callable = told


def columns(results):
    instructions, times = results.part("instructions"), results.part("times")
    latency, memory = results.part("latency"), results.part("memory")
    ns = lambda name, how: times[name][how]["ns"]
    ratio = lambda how: lambda name: ns(name, how) / ns(INCR, how)
    two = lambda number: f"{number:.2f}"
    rate = lambda how: lambda name: times[name][how]["per_second"] / 1_000
    return (
        Column("instructions", "instr", lambda name: instructions[name]["alone"]),
        Column("where nobody can listen", "nobody", lambda name: instructions[name]["quiet"]),
        Column("with an append-only file", "+file", lambda name: instructions[name]["file"]),
        Column("with a replica", "+replica", lambda name: instructions[name]["replica"]),
        Column("CPU time, ns", "CPU ns", lambda name: ns(name, "many-16")),
        Column("× `INCR`", "xINCR", ratio("many-16"), two),
        Column("× `INCR`, one key", "x,1 key", ratio("one-16"), two),
        Column("thousand calls/s, pipeline 1", "k/s P1", rate("many-1")),
        Column("16", "P16", rate("many-16")),
        Column("64", "P64", rate("many-64")),
        Column("64, one key", "P64,1 key", rate("one-64")),
        Column("p50, µs", "p50 µs", lambda name: latency[name]["p50"]),
        Column("p99", "p99", lambda name: latency[name]["p99"]),
        Column("p99.9", "p99.9", lambda name: latency[name]["p999"]),
        Column("bytes a key", "B/key", lambda name: memory[name]["bytes"]),
    )


def rows(results, cases):
    """A row of text for each case; a figure that was not measured is a dash."""

    def cell(column, name):
        try:
            return column.form(column.figure(name))
        except KeyError:
            return "–"

    return [(case.label, [cell(column, case.name) for column in columns(results)]) for case in cases]


def aligned(results, cases):
    heads = [column.short for column in columns(results)]
    body = [(label.replace("`", ""), cells) for label, cells in rows(results, cases)]
    widths = [max(map(len, column)) for column in zip(heads, *(cells for _, cells in body))]
    first = max(len(label) for label, _ in body)
    line = lambda label, cells: "  ".join([f"{label:{first}}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths))])
    return "\n".join([line("call", heads), *(line(label, cells) for label, cells in body)])


def markdown(results, cases):
    heads = [column.head for column in columns(results)]
    line = lambda cells: f"| {' | '.join(cells)} |"
    body = [line([label, *cells]) for label, cells in rows(results, cases)]
    return "\n".join([line(["call", *heads]), line(["---"] + ["---:"] * len(heads)), *body])
