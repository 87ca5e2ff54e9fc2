# shellcheck shell=bash
# A server under callgrind, and the instructions that calls cost it. It is sourced, after lib.sh; never run.
# Instructions are the same whatever else the machine does.

server=${RL_SERVER:-redis-server}
folder=$(mktemp -d)
process=
# Below the ports that the system hands out to clients.
port=$((20000 + RANDOM % 12000))

end_server() {
    if [[ -n $process ]]; then
        kill -9 "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap end_server EXIT

# start_server MODULE...: with those modules loaded.
start_server() {
    local modules=() module tries
    for module; do modules+=(--loadmodule "$module"); done
    # hz 1, as the server's housekeeping counts too, and runs by the clock.
    valgrind --tool=callgrind --vgdb-prefix="$folder/vgdb" --instr-atstart=no --callgrind-out-file="$folder/out" \
        "$server" --port "$port" --bind 127.0.0.1 --save '' --hz 1 --dynamic-hz no --dir "$folder" "${modules[@]}" \
        >"$folder/log" 2>&1 &
    process=$!
    for ((tries = 0; tries < 300; tries++)); do
        ! redis-cli -p "$port" ping >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    cat "$folder/log" >&2
    die "the server did not start under valgrind"
}

control() { callgrind_control --vgdb-prefix="$folder/vgdb" "$@" "$process" >/dev/null 2>&1; }

# load CALLS KEYS WORD...: makes the call so often, __rand_int__ being one of so many numbers of twelve digits.
load() { redis-benchmark -p "$port" -c 1 -P 16 -r "$2" -n "$1" -q --csv "${@:3}" >/dev/null; }

# feed CALLS KEYS WORD...: makes the call so often, on one key after the other; __rand_int__ is the key's number of twelve digits, and
# __seq__ one that rises from call to call.
feed() {
    awk -v calls="$1" -v keys="$2" -v first="$(($(date +%s%N) / 1000))" -v line="${*:3}" 'BEGIN {
        for (call = 0; call < calls; call++) {
            words = line
            gsub("__rand_int__", sprintf("%012d", call % keys), words)
            gsub("__seq__", sprintf("%.0f", first + call), words)
            count = split(words, word, " ")
            printf "*%d\r\n", count
            for (at = 1; at <= count; at++) printf "$%d\r\n%s\r\n", length(word[at]), word[at]
        }
    }' | redis-cli -p "$port" --pipe >/dev/null
}

# count CALLS KEYS WORD...: prints the instructions a call. What it counted stays in $folder/counted.
count() { counted load "$@"; }

# counted MAKER CALLS KEYS WORD...: the same, MAKER being what makes the calls: load or feed.
counted() {
    local make=$1
    shift
    control --instr=on
    "$make" 16 "${@:2}"
    control --zero
    "$make" "$@"
    control --dump
    control --instr=off
    local newest
    newest=$(find "$folder" -name 'out.*' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
    mv "$newest" "$folder/counted"
    rm -f "$folder"/out.*
    awk -v calls="$1" '/^(totals|summary):/ { total = $2 } END { printf "%d", total / calls }' "$folder/counted"
}
