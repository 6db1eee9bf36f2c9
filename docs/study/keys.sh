#!/bin/sh
# Makes the key sets of docs/study.md: words, package names and URLs, one per line, of
# what a Debian system has anyway. Nothing is downloaded but by `apt-get update`, which
# is up to you.
#
#     docs/study/keys.sh [DIR]      # default: study-keys
#
# words.txt     the word list of package wamerican
# packages.txt  the names of all packages that apt knows
# urls.txt      where their files are, on Debian's mirror
set -eu
export LC_ALL=C
dir=${1:-study-keys}
words=/usr/share/dict/american-english

test -s "$words" || { echo "keys.sh: no $words; apt-get install wamerican" >&2; exit 1; }
mkdir -p "$dir"
sort -u "$words" >"$dir/words.txt"
apt-cache dumpavail | sed -n 's/^Package: //p' | sort -u >"$dir/packages.txt"
apt-cache dumpavail | sed -n 's|^Filename: |http://deb.debian.org/debian/|p' | sort -u >"$dir/urls.txt"
for name in packages urls; do
	test -s "$dir/$name.txt" || { echo "keys.sh: apt knows no packages; apt-get update" >&2; exit 1; }
done
cd "$dir"
wc -l words.txt packages.txt urls.txt
sha256sum words.txt packages.txt urls.txt
