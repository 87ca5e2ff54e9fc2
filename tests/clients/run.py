"""Answers each line, `user capacity rate cost`, with what the snippets of docs/clients.md make of it."""

import sys
from importlib import import_module

from check import check

redis = import_module(sys.argv[1]).redis
print("ready", flush=True)

for line in sys.stdin:
    user, capacity, rate, cost = line.split()
    try:
        headers = check(redis, user, int(capacity), rate, int(cost))
    except Exception as error:
        print("failed", error, flush=True)
        continue
    print("allowed" if headers is None else " ".join(["denied", *headers.values()]), flush=True)
