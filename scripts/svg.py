"""Pictures of figures, as SVG. Used by plot.py, scale.py and measure/plots.py."""

import math
from xml.sax.saxutils import escape

COLOURS = ("#d1495b", "#edae49", "#00798c", "#30638e", "#7b5ea7")


def along(low, high, start, end, logarithmic=False):
    """Where on an axis from `start` to `end` a value between `low` and `high` is; what is beyond is at its end."""
    scale = math.log10 if logarithmic else lambda value: value
    bottom, top = scale(low), scale(high)
    return lambda value: start + (min(max(scale(value), bottom), top) - bottom) / (top - bottom) * (end - start)


def marks(most, parts):
    """Round numbers from 0 to that, so many parts at most."""
    power = 10 ** math.floor(math.log10(most / parts))
    step = next(step * power for step in (1, 2, 5, 10) if most / (step * power) <= parts)
    return [mark * step for mark in range(int(most / step) + 1)]


class Picture:
    def __init__(self, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
            '<rect width="100%" height="100%" fill="white"/>',
        ]

    def line(self, x1, y1, x2, y2, colour="#ddd", dash="", width=""):
        more = (f' stroke-dasharray="{dash}"' if dash else "") + (f' stroke-width="{width}"' if width else "")
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>')

    def text(self, x, y, words, anchor="", colour=""):
        more = (f' text-anchor="{anchor}"' if anchor else "") + (f' fill="{colour}"' if colour else "")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def curve(self, points, colour):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')

    def legend(self, x, y, name, colour):
        self.line(x, y - 4, x + 26, y - 4, colour, width=3)
        self.text(x + 34, y, name)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*self.parts, "</svg>", ""]))
