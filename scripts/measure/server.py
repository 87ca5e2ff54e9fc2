"""A server with the modules, as fast as it is or under callgrind, which counts its instructions."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Who ends the script ends the servers too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

# Where there is no second core, or no taskset, the system places the processes.
PINNED = shutil.which("taskset") and len(os.sched_getaffinity(0)) > 1


def on_core(core):
    """What puts a program on one of the first two cores."""
    return ["taskset", "-c", str(sorted(os.sched_getaffinity(0))[core])] if PINNED else []


def free_port():
    """One below those that the system hands out to clients."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) != 0:
                return port


# Never reached, but as long as there is one, changes count and are handed to the server.
SAVE_POINT = "31536000 1000000000"


class Server:
    """A process of its own, ended with `stop`; also a context. Where it may be quiet, nobody listens or counts, and the module knows it."""

    def __init__(self, program, modules, counted=False, options=(), quiet=False):
        self.folder = tempfile.mkdtemp()
        self.port = free_port()
        self.counted = counted
        words = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "" if quiet else SAVE_POINT]
        words += ["--dir", self.folder, *options]
        for module in modules:
            words += ["--loadmodule", module]
        if counted:
            # hz 1, as the server's housekeeping counts too, and runs by the clock.
            words += ["--hz", "1", "--dynamic-hz", "no"]
            output = f"--callgrind-out-file={self.folder}/out"
            words = ["valgrind", "--tool=callgrind", self.control_prefix(), "--instr-atstart=no", output, *words]
        else:
            words = on_core(0) + words
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            self.await_start(quiet)
        except BaseException:
            self.stop()
            raise

    def await_start(self, quiet):
        for _ in range(300):
            if self.process.poll() is not None:
                break
            if self.answers():
                if quiet:
                    self.wait_until("rl", "rl_effects_propagated", "0")
                return
            time.sleep(0.1)
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as log:
            raise SystemExit(f"{log.read()}\nthe server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self):
        asked = subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, check=False)
        return asked.stdout == b"PONG\n"

    def ask(self, *words):
        """A command's reply as redis-cli prints it."""
        asked = subprocess.run(["redis-cli", "-e", "-p", str(self.port), *words], capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            raise SystemExit(f"{' '.join(words)[:200]}: {asked.stdout.strip() or asked.stderr.strip()}")
        return asked.stdout.strip()

    def info(self, section, field):
        found = re.search(rf"^{field}:(.*?)\r?$", self.ask("INFO", section), re.MULTILINE)
        if not found:
            raise SystemExit(f"INFO {section} has no {field}")
        return found[1]

    def wait_until(self, section, field, wanted):
        for _ in range(600):
            if self.info(section, field) == wanted:
                return
            time.sleep(0.1)
        raise SystemExit(f"{field} did not become {wanted}")

    def processor_ns(self):
        """Processor time that its threads have used."""
        total = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="ascii") as times:
                total += int(times.read().split()[0])
        return total

    def control_prefix(self):
        return f"--vgdb-prefix={self.folder}/vgdb"

    def control(self, *options):
        words = ["callgrind_control", self.control_prefix(), *options, str(self.process.pid)]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def count(self, work):
        """The instructions of the server while this function ran, and callgrind's file about them."""
        self.control("--instr=on")
        self.control("--zero")
        work()
        self.control("--dump")
        self.control("--instr=off")
        # The dumps are numbered, and the last is the one that switching off leaves.
        dumps = [name for name in os.listdir(self.folder) if name.startswith("out.")]
        texts = []
        for name in dumps:
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                texts.append(file.read())
            os.remove(f"{self.folder}/{name}")
        totals = [int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[1]) for text in texts]
        most = max(range(len(texts)), key=totals.__getitem__)
        return totals[most], texts[most]
