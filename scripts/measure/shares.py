"""Where the instructions of a call go: callgrind's file, read by what the module asks of the server."""

import re
from collections import Counter

MODULES = ("libredis_rl", "libnoop")
# What a function of the server is for, by its name; the first that fits.
KINDS = (
    ("replying with integers", re.compile(r"RM_ReplyWith")),
    ("opening and closing keys", re.compile(r"RM_(OpenKey|CloseKey)")),
    ("asking and setting the expiry", re.compile(r"RM_[GS]etAbsExpire")),
    ("handing over the effect", re.compile(r"RM_Replicate")),
    ("what else the module asks for", re.compile(r"RM_")),
)
REST = "the server: reading, looking up and sending, as for any command"
OWN = "the module itself"
ALL = (REST, *(kind for kind, _ in KINDS), OWN)
# Of which calls it is told, and what the page calls them.
CASES = {
    "noop": "decides nothing",
    "tokenbucket": "`RL.TOKENBUCKET`",
    "tokenbucket-denied": "denied",
    "log": "`RL.SLIDINGLOG`",
    "multi-3": "`RL.MULTI` of 3",
}


class Names:
    """The names of a file, which gives each in full once and then by its number."""

    def __init__(self):
        self.known = {}

    def of(self, text):
        number, name = re.match(r"\((\d+)\)(?: (.*))?", text).groups()
        if name:
            self.known[number] = name
        return self.known[number]


def is_module(file):
    return any(name in file for name in MODULES)


def of(text):
    """Instructions by what they are for, of all the calls that were counted."""
    objects, functions = Names(), Names()
    caller = callee = function = ""
    found, total, is_call = Counter(), 0, False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if key == "ob":
            caller = callee = objects.of(value)
        elif key == "cob":
            callee = objects.of(value)
        elif key == "fn":
            functions.of(value)
        elif key == "cfn":
            function = functions.of(value)
        elif key == "calls":
            is_call = True
        elif not equals and re.match(r"[-+*\d]", line):
            cost = int(line.split()[1])
            total += 0 if is_call else cost
            if is_module(caller):
                if not is_call:
                    found[OWN] += cost
                elif not is_module(callee):
                    # What is none of the server's functions is the system's library.
                    found[next((kind for kind, names in KINDS if names.search(function)), OWN)] += cost
            is_call, callee = False, caller
    found[REST] = total - sum(found.values())
    return found
