#!/usr/bin/env bash
# The linker of the release (scripts/build.sh): links twice, the second time with the
# functions that `run` executes side by side.
#
# `run` touches a small part of the program, and each page that it touches costs a
# fault, in every process of a sandbox. So first comes what it executes
# (scripts/run-functions.py lists that), then what it is made of, then what only `serve`
# uses. The symbols' names are those of the first link, which stays beside the program
# as PROGRAM-names; the linker passes over what it has not.
#
#   --functions=FILE:SUM   the list. The sum is not looked at here: it makes cargo link
#                          again when the list has changed.
set -euo pipefail

list="" output="" words=()
while [ $# -gt 0 ]; do
    case $1 in
        --functions=*)
            list=${1#--functions=}
            list=${list%:*}
            ;;
        -o)
            output=$2
            words+=("$1" "$2")
            shift
            ;;
        *) words+=("$1") ;;
    esac
    shift
done
if [ -z "$list" ] || [ -z "$output" ]; then
    exec cc "${words[@]}"
fi

named=() last=""
for word in "${words[@]}"; do
    [ "$last" = -o ] && word=$output.named
    [ "$word" = -Wl,--strip-all ] || named+=("$word")
    last=$word
done
cc "${named[@]}"

functions() {
    nm -S "$output.named" | awk 'NF == 4 && $3 ~ /^[tTwWi]$/ { print $4, $2 }'
}
{
    # A name ends in a number of its build, which the list leaves out. A generic function
    # has the same name many times, and its size tells which is meant; the others of that
    # name come behind, in case that one has changed.
    awk '
        NR == FNR { place[$1 " " $2] = NR; if (!($1 in first)) first[$1] = NR; next }
        {
            name = $1
            sub(/\.llvm\.[0-9]+$/, "", name)
            sub(/17h[0-9a-f]+E$/, "E", name)
            if (name " " $2 in place) print 0, place[name " " $2], $1
            else if (name in first) print 1, first[name], $1
        }
    ' "$list" <(functions) | sort -k 1,1n -k 2,2n -k 3 | cut -d " " -f 3
    functions | cut -d " " -f 1 |
        grep -E 'cofferdam_(cli|linux|native|worker|core|backend)|5tokio|4clap|12clap_builder|3std|4core|5alloc|9hashbrown|6rustix|10serde_json|5serde' |
        grep -vE 'sqlx|regorus|hyper|axum|cofferdam_(http|control|store|policy|api)'
} | awk '!seen[$0]++' >"$output.order"

cc "${words[@]}" -Wl,--symbol-ordering-file="$output.order" -Wl,--no-warn-symbol-ordering
mv "$output.named" "$(dirname "$output")/../cofferdam-names"
rm "$output.order"
