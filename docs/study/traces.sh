#!/bin/sh
# Makes four stores and the traces of lookups in them, with keys, of loads that adapters and a user service see:
# DIR/NAME/store and DIR/NAME/trace for the names below. docs/study.md says what they are.
#
#     docs/study/traces.sh [DIR]       # default: results/traces; what is there already is not made again
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "${1:-results/traces}"
out=$(cd "${1:-results/traces}" && pwd)
for of in bleve:adapters/bleve:internal/trace guard:docs/study:usertrace ipfs:adapters/godatastore:internal/trace \
	chain:adapters/ethdb:internal/trace; do
	name=${of%%:*}
	if [ ! -d "$out/$name" ]; then
		rm -rf "$out/$name.part"
		at=${of#*:}
		(cd "${at%:*}" && GOWORK=off go run "./${at#*:}" "$out/$name.part")
		mv "$out/$name.part" "$out/$name"
	fi
done
