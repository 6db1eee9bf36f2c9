package keys

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// File is a source that takes its keys from the lines of a file, which may be any bytes. Half
// of the distinct lines are held out: they are never written, and asked for as absent keys, so
// that these are what real keys look like. A seeded hash of the line chooses, whatever the
// order of the file, so that both halves have the same distribution; absent keys that do not
// lie between two present ones are dropped. The distinct lines stay in memory, with 12 bytes
// for each: 305 MiB for ten million lines of 18 bytes, and up to four times as much while
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
	lines, stats, err := readLines(text, maxLen)
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

type lineStats struct {
	lines, empty, duplicates int
}

// gzipMagic opens every gzip member (RFC 1952, section 2.3.1).
var gzipMagic = []byte{0x1f, 0x8b}

// plain returns the text of r: r itself, or unpacked if it holds gzip.
func plain(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(len(gzipMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, gzipMagic) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

// readLines collects the distinct lines of r. A line ends with LF or CR LF; the
// last may have no end. Empty lines are skipped. A line above maxLen bytes is
// an error that names its number.
func readLines(r io.Reader, maxLen int) (*set, lineStats, error) {
	var stats lineStats
	seen := newSet()
	// One byte more than the longest line and its CR LF, so that a full buffer
	// without a line end means a line too long.
	lines := bufio.NewReaderSize(r, max(maxLen+3, 1<<16))
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			seen.seal()
			return seen, stats, nil
		}
		stats.lines++
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !tooLong && !errors.Is(err, io.EOF) {
			return nil, stats, fmt.Errorf("line %d: %w", stats.lines, err)
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		switch {
		case tooLong || len(line) > maxLen:
			return nil, stats, bench.Usagef("line %d: longer than %d bytes, the limit of a key", stats.lines, maxLen)
		case len(line) == 0:
			stats.empty++
			continue
		}
		if _, added := seen.add(line); !added {
			stats.duplicates++
		}
	}
}

type listed struct {
	set             *set
	present, absent []uint32 // numbers in set, in the order of loading and of asking
	about           Description
}

func (l *listed) Present() int { return len(l.present) }

func (l *listed) Absent() int { return len(l.absent) }

func (l *listed) AppendPresent(dst []byte, i int) []byte {
	return append(dst, l.set.at(l.present[i])...)
}

func (l *listed) AppendAbsent(dst []byte, i int) []byte { return append(dst, l.set.at(l.absent[i])...) }

func (l *listed) Describe() Description { return l.about }

// between returns what tells whether a key lies between two present ones.
func (l *listed) between() func(number uint32) bool {
	var low, high []byte
	for _, n := range l.present {
		key := l.set.at(n)
		if low == nil || bytes.Compare(key, low) < 0 {
			low = key
		}
		if high == nil || bytes.Compare(key, high) > 0 {
			high = key
		}
	}
	return func(n uint32) bool {
		key := l.set.at(n)
		return bytes.Compare(key, low) > 0 && bytes.Compare(key, high) < 0
	}
}

// shuffled returns numbers in the random order of a seed.
func shuffled(numbers []uint32, seed uint64) []uint32 {
	order, out := NewPermutation(len(numbers), seed), make([]uint32, len(numbers))
	for i := range out {
		out[i] = numbers[order.At(i)]
	}
	return out
}

func (l *listed) describe() {
	d, size := &l.about, 0
	d.Present, d.Absent = len(l.present), len(l.absent)
	for i, numbers := range [][]uint32{l.present, l.absent} {
		for j, number := range numbers {
			n := len(l.set.at(number))
			if d.MaxLen = max(d.MaxLen, n); i == 0 && j == 0 || n < d.MinLen {
				d.MinLen = n
			}
			if i == 0 {
				size += n
			}
		}
	}
	if d.Present > 0 {
		d.MeanLen = float64(size) / float64(d.Present)
	}
}

// A set holds distinct keys back to back in one allocation and numbers them in
// the order of their first sight. Once it is sealed it keeps no pointer per key for the
// garbage collector to follow.
type set struct {
	bytes   []byte
	ends    []uint64          // key i is bytes[ends[i]:ends[i+1]]; ends[0] is 0
	numbers map[string]uint32 // of keys; nil if sealed
}

func newSet() *set { return &set{ends: make([]uint64, 1, 1024), numbers: map[string]uint32{}} }

func (s *set) len() int { return len(s.ends) - 1 }

// at returns key i. It must not be changed.
func (s *set) at(i uint32) []byte {
	return s.bytes[s.ends[i]:s.ends[i+1]:s.ends[i+1]]
}

// add copies key into the set, and returns its number; added is false if it was there. There is memory for 4 billion
// keys at most.
func (s *set) add(key []byte) (number uint32, added bool) {
	if number, ok := s.numbers[string(key)]; ok {
		return number, false
	}
	number = uint32(s.len())
	s.bytes = append(s.bytes, key...)
	s.ends = append(s.ends, uint64(len(s.bytes)))
	s.numbers[string(key)] = number
	return number, true
}

// seal gives the numbers back; add must not be called again.
func (s *set) seal() { s.numbers = nil }
