package keys

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// File is a source that takes its keys from the lines of a file, which may be any bytes. Half
// of the distinct lines are held out: they are never written, and asked for as absent keys, so
// that these are what real keys look like. A seeded hash of the line chooses, whatever the
// order of the file, so that both halves have the same distribution; absent keys that do not
// lie between two present ones are dropped. The distinct lines stay in memory, with 12 bytes
// for each: 305 MiB for ten million lines of 18 bytes, and up to three times as much while
// they are read.
type File struct{ listed }

// OpenFile reads path, plain or gzip, with one key per line of at most maxLen
// bytes. A file that cannot be opened or has too few keys matches bench.ErrUsage.
func OpenFile(path string, maxLen int, seed uint64) (*File, error) {
	f, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := plain(f)
	if err != nil {
		return nil, fmt.Errorf("keys file %s: %w", path, err)
	}
	lines, stats, err := readLines(text, maxLen, seed)
	if err != nil {
		return nil, fmt.Errorf("keys file %s: %w", path, err)
	}
	s := split(lines, seed)
	if len(s.present) < 2 || len(s.absent) < 1 {
		return nil, bench.Usagef("keys file %s: too few keys: %d distinct lines leave %d present and %d absent keys "+
			"between them; want at least 2 and 1",
			path, lines.len(), len(s.present), len(s.absent))
	}
	s.about.Path = path
	s.about.Lines, s.about.Empty, s.about.Duplicates = stats.lines, stats.empty, stats.duplicates
	return s, nil
}

// split deals the keys of a set into present and absent ones.
func split(keys *set, seed uint64) *File {
	f := &File{listed{set: keys, about: Description{Origin: "file", Seed: seed}}}
	var held []uint32
	for i := range uint32(keys.len()) {
		if Mix(xxhash.Sum64(keys.at(i))^Mix(seed))&1 == 0 {
			held = append(held, i)
		} else {
			f.present = append(f.present, i)
		}
	}
	between := f.between()
	for _, i := range held {
		if between(i) {
			f.absent = append(f.absent, i)
		}
	}
	f.about.Outside = len(held) - len(f.absent)
	f.present, f.absent = shuffled(f.present, seed^loadOrder), shuffled(f.absent, seed^askOrder)
	f.describe()
	return f
}
