#!/bin/sh
# Prints the numbers of every table of docs/study.md from the results that run.sh made, and makes pages
# with charts in DIR. The numbers of the page's own charts are in docs/pictures/study_test.go.
#
#     docs/study/tables.sh [DIR]    # default: results/study
set -eu
cd "$(dirname "$0")/../.."
out=${1:-results/study}
mkdir -p bin
go build -o bin/kvbench ./cmd/kvbench

# table PART METRICS [FLAGS]: one table of a part's results.
table() {
	part=$1 metrics=$2
	shift 2
	bin/kvbench report "$out/$part" --metric "$metrics" --format markdown "$@"
	echo
}

table bits 'store filter-bits/key,absent fpr' --rows filter --where engine=siftkv
table bits 'store filter-bits/key,absent fpr' --rows engine,filter --where engine=pebble-iterator
table bits 'absent blocks/op,existing blocks/op' --rows engine,filter --where filter=none --where filter=own:10 --where filter=blocked:10
table small 'store filter-bits/key' --rows filter --columns keys
table young 'absent blocks/op' --rows engine,filter --columns shape
table young 'existing blocks/op' --rows engine,filter --columns shape
table levels 'store runs,store write-amp,store space-amp,existing blocks/op' --rows compaction --where engine=siftkv --where filter=bloom:10 --where budget=uniform
table levels 'store filter-bits/key,absent blocks/op,absent disk-blocks/op,existing disk-blocks/op' --rows compaction,budget,filter --where engine=siftkv \
	--where filter=none --where filter=bloom:6 --where filter=bloom:8 --where filter=bloom:10 --where filter=bloom:12 --where filter=bloom:14 --where filter=oracle
table levels 'absent blocks/op' --rows compaction,budget --columns filter --where engine=siftkv \
	--where filter=none --where filter=bloom:6 --where filter=bloom:8 --where filter=bloom:10 --where filter=bloom:12 --where filter=bloom:14 \
	--html "$out/blocks.html" --title 'Blocks for an absent key by filter memory' --x 'store filter-bits/key' --log-y
table levels 'store filter-bits/key,absent blocks/op,existing blocks/op' --rows engine,filter --where compaction=leveled --where budget=uniform \
	--where filter=none --where filter=own:10 --where filter=bloom:10
table budget 'absent blocks/op' --rows budget,filter --where cache=1MiB
table budget 'absent disk-blocks/op' --rows budget,filter --columns cache \
	--html "$out/reads.html" --title 'Disk reads for an absent key by cache' --log-y
table budget 'existing disk-blocks/op' --rows budget,filter --columns cache
table seeds 'absent blocks/op,absent disk-blocks/op' --rows cache,budget,filter
table seeds 'store filter-bits/key,absent disk-blocks/op,existing disk-blocks/op' --rows cache,data-seed --columns budget
table luck 'absent fpr,absent disk-blocks/op' --rows workload
table keys 'absent fpr' --rows filter --columns keys --where shape=settled --where workload=uniform --where engine=siftkv
table keys 'absent blocks/op' --rows shape,filter --columns keys --where workload=uniform --where engine=siftkv
table keys 'existing disk-blocks/op' --rows shape,filter,workload --columns keys --where engine=siftkv
table keys 'absent blocks/op' --rows engine,workload --columns keys --where filter=own:10
table ranges 'scan blocks/op' --rows shape,range --columns scan --where keys=100000
table ranges 'scan blocks/op' --rows range --columns keys,scan --where shape=young:16 --where scan=0 --where scan=behind

# The budget, level by level: keys, bits per key, blocks and disk reads per lookup. A level has no row for a count of 0.
for cache in 65536 2097152 8388608; do
	jq -r --argjson cache "$cache" 'select(.settings.cache_bytes == $cache and (.settings.filter == "bloom:9" or .settings.filter == "bloom:10"))
		| . as $r | .shape.levels[] | (.level | tostring) as $n
		| [$r.rows[] | select(.cell.level == $n)] as $rows
		| def of(m): [$rows[] | select(.metric == m) | .value][0] // 0;
		if $r.schema != "kvbench.rows/v2" then error("\($r.name) has the schema \($r.schema), not kvbench.rows/v2")
		elif $rows == [] then error("\($r.name) has no rows of level \($n)") else . end |
		[$cache, $r.settings.budget, "L\($n)", .entries, 8 * .filter_bytes / .entries,
			of("absent blocks/op"), of("absent disk-blocks/op")] | @tsv' "$out"/budget/*.json
done

bin/kvbench report "$out/bits" --html "$out/bits.html" >/dev/null
