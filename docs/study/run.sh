#!/bin/sh
# Makes the results that docs/study.md is written from: the key sets, then a sweep for
# each part of the study, which goes on where it was stopped.
#
#     docs/study/run.sh [DIR]       # default: results/study
set -eu
cd "$(dirname "$0")/../.."
out=${1:-results/study}
mkdir -p bin "$out"
go build -o bin/kvbench ./cmd/kvbench
docs/study/keys.sh study-keys
for part in bits small young levels budget seeds luck repeats keys ranges; do
	bin/kvbench sweep --spec "docs/study/$part.yaml" --out "$out/$part" >"$out/$part.txt"
done
bin/kvbench objects --in-memory --cache 0 --memory 0 --reps 2 --json "$out/objects.json" --filter \
	'none blocked:4 blocked:6 blocked:8 blocked:10 blocked:12 blocked:16 blocked:20 ribbon:4 ribbon:6 ribbon:8 ribbon:12 ribbon:16' >"$out/objects.txt"
