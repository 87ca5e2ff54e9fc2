"""The figures as pictures."""

from measure.growth import PANELS
from measure.parts import LISTENERS
from measure.table import told
from svg import COLOURS, Picture, along, marks

BAR = 10


def bars(title, panels, cases, path):
    """A row for each case, and in each panel a bar for each series. A panel: its title, unit, and series: name and values."""
    most_series = max(len(series) for _, series in panels)
    left, width, top, gap = 330, 430, 54 + 18 * most_series, 60
    row_height = 10 + BAR * most_series
    height = row_height * len(cases)
    picture = Picture(left + (width + gap) * len(panels) + 20, top + height + 40)
    picture.text(left, 18, title)
    for row, case in enumerate(cases):
        picture.text(left - 10, top + row_height * (row + 0.5), case.label.replace("`", ""), "end")
    for number, (name, series) in enumerate(panels):
        start = left + (width + gap) * number
        most = max(value for _, values in series for value in values.values())
        x = along(0, most, start, start + width)
        picture.text(start, 36, name)
        for mark in marks(most, 6):
            picture.line(x(mark), top - 4, x(mark), top + height)
            picture.text(x(mark), top + height + 18, told(mark), "middle")
        for index, (label, values) in enumerate(series):
            colour = COLOURS[index]
            picture.legend(start, 54 + 18 * index, label, colour)
            for row, case in enumerate(cases):
                if case.name in values:
                    y = top + row_height * row + 5 + BAR * index
                    picture.bar(start, y, x(values[case.name]) - start, BAR - 1, colour)
    picture.write(path)


def instructions(results, cases, path):
    figures = results.part("instructions")
    costs = lambda key: {name: figure[key] for name, figure in figures.items() if key in figure}
    series = [(label, costs(key)) for key, label in LISTENERS.items()]
    bars("Instructions of the server for a call, 16 a pipeline", [("", series)], cases, path)


def throughput(results, cases, path):
    figures = results.part("times")
    panels = []
    for title, keys in (("100 000 keys", "many"), ("one key", "one")):
        series = []
        for pipeline in (1, 16, 64):
            values = {name: figure[f"{keys}-{pipeline}"]["per_second"] / 1_000 for name, figure in figures.items()}
            series.append((f"pipeline {pipeline}", values))
        panels.append((title, series))
    bars("Thousand calls a second, 50 connections, the server on one core", panels, cases, path)


def growth(results, path):
    """A column of two panels for each thing that grows: instructions, and below them processor time."""
    figures = results.part("growth")
    left, top, width, height, gap, below = 70, 60, 250, 200, 80, 130
    picture = Picture(left + (width + gap) * len(PANELS), top + 2 * height + below + 120)
    picture.text(left, 18, "What a call costs as there is more: instructions of the server, and below them its processor time in µs")
    for column, panel in enumerate(PANELS):
        calls, start = figures[panel.name], left + (width + gap) * column
        sizes = sorted({int(size) for told_of in calls.values() for size in told_of})
        x = along(sizes[0], sizes[-1], start, start + width, logarithmic=True)
        for row, (field, unit) in enumerate((("instructions", 1), ("ns", 1_000))):
            head = top + row * (height + below)
            most = 1.1 * max(told_of[field] / unit for call in calls.values() for told_of in call.values())
            y = along(0, most, head + height, head)
            picture.text(start, head - 10, panel.title)
            for mark in marks(most, 5):
                picture.line(start, y(mark), start + width, y(mark))
                picture.text(start - 6, y(mark) + 4, told(mark) if mark >= 10 else f"{mark:g}", "end")
            for size in sizes:
                picture.line(x(size), head, x(size), head + height, "#eee")
                picture.text(x(size), head + height + 16, told(size).replace(" 000 000", "M").replace(" 000", "K"), "middle")
            for index, (name, told_of) in enumerate(calls.items()):
                points = [(x(int(size)), y(figure[field] / unit)) for size, figure in told_of.items()]
                picture.curve(points, COLOURS[index])
                picture.legend(start, head + height + 38 + 18 * index, name, COLOURS[index])
    picture.write(path)
