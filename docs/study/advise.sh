#!/bin/sh
# Holds the predictions of kvbench advise against what stores read: the study's trees, and four
# programs' own stores and traces (traces.sh). Each of some forty settings, filters with a cache of the same
# size and of the same memory, is measured on a copy of the store. Prints the tables of
# docs/advise.md. A read of the device is said to take 80 µs. Needs jq, and ten minutes.
#
#     docs/study/advise.sh [DIR]    # default: results/advise
set -eu
cd "$(dirname "$0")/../.."
out=${1:-results/advise}
mkdir -p bin "$out"
out=$(cd "$out" && pwd)
go build -o bin/kvbench ./cmd/kvbench

# made NAME FLAGS: a store of a cell, with a trace.
made() {
	name=$1
	shift
	test -d "$out/$name/store" || bin/kvbench -q trace make "$out/$name" --keys 200000 "$@" >"$out/$name.made"
}
for shape in settled young:16 grown; do
	for workload in uniform zipfian; do
		name=$(echo "$shape-$workload" | tr -d :)
		made "$name" --shape "$shape" --workload "$workload" --cache 4MiB
	done
done
made grown-tiered --shape grown --compaction tiered --workload zipfian --cache 1MiB

docs/study/traces.sh "$out" >&2

for dir in "$out"/*/; do
	name=$(basename "$dir")
	json=$out/$name.json
	trace=$dir/lookups.trace
	test -s "$trace" || trace=$dir/trace
	test -s "$json" || bin/kvbench -q advise "$dir/store" "$trace" --lookups 40000 --device 80us --sweep \
		--json "$json" >"$out/$name.txt"
done

echo '| store and trace | lookups | found | settings | blocks within 10 % | worst | absent alone | in the interval | device reads within 10 % | worst | recommended above the best |'
echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
for dir in "$out"/*/; do
	name=$(basename "$dir")
	jq -r --arg name "$name" '
		def percent: . * 1000 | round | . / 10 | tostring + " %";
		.verdict as $v | .advice.sample as $s |
		[$name, $s.lookups, ($s.found / $s.lookups | percent), $v.checks, $v.blocks_within_10_percent,
			($v.worst_blocks_error | percent), $v.absent_blocks_within_10_percent, $v.absent_within_interval,
			$v.reads_within_10_percent, ($v.worst_reads_error | percent),
			($v.regret | percent)]
		| "| " + (map(tostring) | join(" | ")) + " |"' "$out/$name.json"
done
