"""What was measured, kept in files by server and part, so that parts can be measured one at a time."""

import json
from pathlib import Path

PARTS = ("instructions", "times", "latency", "memory", "growth")


class Results:
    def __init__(self, folder):
        self.folder = Path(folder)

    def keep(self, part, figures):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{part}.json").write_text(json.dumps(figures, indent=1))

    def part(self, name):
        """Empty if it was never measured."""
        file = self.folder / f"{name}.json"
        return json.loads(file.read_text()) if file.is_file() else {}
