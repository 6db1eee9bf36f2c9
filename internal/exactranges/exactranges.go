// Package exactranges is a family of range filters that are never wrong: they hold the keys
// themselves. It is for tests, and the yardstick of measurements.
package exactranges

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Name is the family's name on disk.
const Name = "exact"

// A Policy makes such filters. It is its own decoder.
type Policy struct{}

var _ filterpolicy.RangeDecoder = Policy{}

// Asked counts the questions to all filters of the process.
var Asked atomic.Int64

// Name implements filterpolicy.RangePolicy.
func (Policy) Name() string { return Name }

func (Policy) String() string { return Name }

// NewRangeBuilder implements filterpolicy.RangePolicy.
func (Policy) NewRangeBuilder() filterpolicy.RangeBuilder { return &builder{} }

// magic begins and ends an encoded filter.
const magic = "exact ranges"

type builder struct{ keys [][]byte }

func (b *builder) AddKey(key []byte) { b.keys = append(b.keys, bytes.Clone(key)) }

// Finish encodes the keys, each with its length before it.
func (b *builder) Finish(dst []byte) ([]byte, bool) {
	ok := slices.IsSortedFunc(b.keys, bytes.Compare)
	data := append(dst, magic...)
	for _, k := range b.keys {
		data = append(binary.AppendUvarint(data, uint64(len(k))), k...)
	}
	b.keys = nil
	if !ok {
		return dst, false
	}
	return append(data, magic...), true
}

// A filter is encoded keys, and where each begins.
type filter struct {
	data   []byte
	starts []uint32
}

// DecodeRange implements filterpolicy.RangeDecoder.
func (Policy) DecodeRange(data []byte) (filterpolicy.RangeFilter, error) {
	rest, begins := bytes.CutPrefix(data, []byte(magic))
	rest, ends := bytes.CutSuffix(rest, []byte(magic))
	if !begins || !ends {
		return nil, filterpolicy.ErrCorrupt
	}
	f := filter{data: rest}
	for at := 0; at < len(rest); {
		n, width := binary.Uvarint(rest[at:])
		if width <= 0 || n > uint64(len(rest)-at-width) {
			return nil, filterpolicy.ErrCorrupt
		}
		f.starts = append(f.starts, uint32(at))
		at += width + int(n)
	}
	return &f, nil
}

func (f *filter) key(i int) []byte {
	rest := f.data[f.starts[i]:]
	n, width := binary.Uvarint(rest)
	return rest[width:][:n]
}

func (f *filter) MayContainRange(lo, hi []byte) bool {
	Asked.Add(1)
	i := sort.Search(len(f.starts), func(i int) bool { return bytes.Compare(f.key(i), lo) >= 0 })
	return i < len(f.starts) && (hi == nil || bytes.Compare(f.key(i), hi) < 0)
}
