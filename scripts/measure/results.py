"""What was measured, kept in files by server and part, so that parts can be measured one at a time."""

import json
import time
from pathlib import Path

PARTS = ("instructions", "times", "latency", "memory", "growth")


class Results:
    def __init__(self, folder):
        self.folder = Path(folder)

    def keep(self, part, figures):
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"day": time.strftime("%Y-%m-%d"), "figures": figures}
        (self.folder / f"{part}.json").write_text(json.dumps(kept, indent=1))

    def read(self, part):
        file = self.folder / f"{part}.json"
        return json.loads(file.read_text()) if file.is_file() else {}

    def part(self, name):
        """Empty if it was never measured."""
        return self.read(name).get("figures", {})

    def days(self):
        """When the parts were measured, in order."""
        return sorted({kept["day"] for kept in map(self.read, PARTS) if kept})
