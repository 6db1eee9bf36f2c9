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
for part in bits small young levels budget seeds luck keys; do
	bin/kvbench sweep --spec "docs/study/$part.yaml" --out "$out/$part" >"$out/$part.txt"
done
