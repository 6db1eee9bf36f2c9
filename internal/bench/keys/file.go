package keys

import (
	"bytes"
	"fmt"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/internal/bench"
)

// File is a source that takes its keys from the lines of a file, which may be any
// bytes. Half of the distinct lines are held out: they are never written, and asked for
// as absent keys, so that these are what real keys look like. A seeded hash of the line
// chooses, whatever the order of the file, and so both halves have the same
// distribution; absent keys that do not lie between two present ones are dropped. The distinct lines stay in memory, with 12 bytes for each:
// 305 MiB for ten million lines of 18 bytes, and up to three times as much while
// they are read.
type File struct {
	set     *set
	present []uint32 // numbers in set
	absent  []uint32
	load    Permutation // of present
	ask     Permutation // of absent
	about   Description
}

// OpenFile reads path, plain or gzip, with one key per line of at most maxLen
// bytes. A file that cannot be opened or has too few keys matches bench.ErrUsage.
func OpenFile(path string, maxLen int, seed uint64) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, bench.Usagef("keys file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errDirectory(path)
	}
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
		return nil, bench.Usagef("keys file %s: too few keys: %d distinct lines leave %d present and %d absent keys between them; want at least 2 and 1",
			path, lines.len(), len(s.present), len(s.absent))
	}
	s.about.Path = path
	s.about.Lines, s.about.Empty, s.about.Duplicates = stats.lines, stats.empty, stats.duplicates
	return s, nil
}

// split deals the keys of a set into present and absent ones.
func split(keys *set, seed uint64) *File {
	f := &File{set: keys}
	var low, high []byte
	var size int
	f.about = Description{Origin: "file", Seed: seed}
	for i := range uint32(keys.len()) {
		key := keys.at(i)
		if Mix(xxhash.Sum64(key)^Mix(seed))&1 == 0 {
			f.absent = append(f.absent, i)
			continue
		}
		f.present = append(f.present, i)
		size += len(key)
		if low == nil || bytes.Compare(key, low) < 0 {
			low = key
		}
		if high == nil || bytes.Compare(key, high) > 0 {
			high = key
		}
	}
	f.keepBetween(low, high)
	f.load = NewPermutation(len(f.present), seed^loadOrder)
	f.ask = NewPermutation(len(f.absent), seed^askOrder)
	f.describe(size)
	return f
}

// keepBetween drops the absent keys outside (low, high).
func (f *File) keepBetween(low, high []byte) {
	inside := f.absent[:0]
	for _, i := range f.absent {
		if key := f.set.at(i); bytes.Compare(key, low) > 0 && bytes.Compare(key, high) < 0 {
			inside = append(inside, i)
		}
	}
	f.about.Outside = len(f.absent) - len(inside)
	f.absent = inside
}

// describe fills the numbers of the description; size is the bytes of all
// present keys.
func (f *File) describe(size int) {
	d := &f.about
	d.Present, d.Absent = len(f.present), len(f.absent)
	if d.Present > 0 {
		d.MeanLen = float64(size) / float64(d.Present)
	}
	for _, numbers := range [][]uint32{f.present, f.absent} {
		for _, i := range numbers {
			n := len(f.set.at(i))
			d.MaxLen = max(d.MaxLen, n)
			if d.MinLen == 0 || n < d.MinLen {
				d.MinLen = n
			}
		}
	}
}

// Present returns the number of present keys.
func (f *File) Present() int { return len(f.present) }

// Absent returns the number of absent keys.
func (f *File) Absent() int { return len(f.absent) }

// AppendPresent appends the i-th present key in load order.
func (f *File) AppendPresent(dst []byte, i int) []byte {
	return append(dst, f.set.at(f.present[f.load.At(i)])...)
}

// AppendAbsent appends the i-th absent key in random order.
func (f *File) AppendAbsent(dst []byte, i int) []byte {
	return append(dst, f.set.at(f.absent[f.ask.At(i)])...)
}

// Describe says which file the keys come from and what was dropped.
func (f *File) Describe() Description { return f.about }
