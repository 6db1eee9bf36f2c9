package filters

import (
	"encoding/binary"
	"fmt"

	"github.com/FastFilter/xorfilter"
	bitsbloom "github.com/bits-and-blooms/bloom/v3"
	"github.com/cockroachdb/pebble/v2"
	pebblebloom "github.com/cockroachdb/pebble/v2/bloom"
	seiflotfy "github.com/seiflotfy/cuckoofilter"

	"github.com/siftkv/siftkv/filterpolicy"
)

// A set is a filter that was built.
type set struct {
	contains func(h uint64) bool
	bytes    int // that it takes
}

// A candidate makes filters. Its build is timed as a whole.
type candidate struct {
	name string
	// build makes a filter of distinct hashes. Libraries that take bytes get the
	// eight bytes of a hash, and hash them again: that is in their times.
	build func(hashes []uint64) (set, error)
	// theory says what to expect of so many keys; ok is false if nothing is known.
	theory func(keys int) (bitsPerKey, fpr float64, ok bool)
}

func policyCandidate(p filterpolicy.Policy) candidate {
	b := p.NewBuilder()
	return candidate{
		name: p.String(),
		build: func(hashes []uint64) (set, error) {
			for _, h := range hashes {
				b.AddHash(h)
			}
			data, ok := b.Finish(nil)
			if !ok {
				return set{}, fmt.Errorf("%s declines to make a filter of %d keys", p, len(hashes))
			}
			f, err := filterpolicy.Decode(p.Name(), data)
			if err != nil {
				return set{}, err
			}
			return set{f.MayContainHash, len(data)}, nil
		},
		theory: func(keys int) (bitsPerKey, fpr float64, ok bool) {
			e := filterpolicy.Expected(p, keys)
			return e.BitsPerKey, e.FPR, e.OK
		},
	}
}

// libraries are the filters that users would otherwise pick.
var libraries = []candidate{
	{name: "pebble bloom(10)", build: buildPebble(10)},
	{name: "pebble bloom(16)", build: buildPebble(16)},
	{name: "bits-and-blooms 1 %", build: buildBitsAndBlooms},
	{name: "FastFilter BinaryFuse8", build: buildFuse8},
	{name: "FastFilter Xor8", build: buildXor8},
	{name: "seiflotfy cuckoo", build: buildSeiflotfy},
}

// keyBytes is the form in which libraries that take bytes get a hash.
func keyBytes(buf *[8]byte, h uint64) []byte {
	binary.LittleEndian.PutUint64(buf[:], h)
	return buf[:]
}

func buildPebble(bits int) func([]uint64) (set, error) {
	policy := pebblebloom.FilterPolicy(bits)
	return func(hashes []uint64) (set, error) {
		var buf [8]byte
		w := policy.NewWriter(pebble.TableFilter)
		for _, h := range hashes {
			w.AddKey(keyBytes(&buf, h))
		}
		data := w.Finish(nil)
		return set{func(h uint64) bool {
			return policy.MayContain(pebble.TableFilter, data, keyBytes(&buf, h))
		}, len(data)}, nil
	}
}

func buildBitsAndBlooms(hashes []uint64) (set, error) {
	var buf [8]byte
	f := bitsbloom.NewWithEstimates(uint(len(hashes)), 0.01)
	for _, h := range hashes {
		f.Add(keyBytes(&buf, h))
	}
	return set{func(h uint64) bool { return f.Test(keyBytes(&buf, h)) }, int(f.Cap()+7) / 8}, nil
}

func buildFuse8(hashes []uint64) (set, error) {
	f, err := xorfilter.PopulateBinaryFuse8(append([]uint64(nil), hashes...))
	if err != nil {
		return set{}, err
	}
	return set{f.Contains, len(f.Fingerprints)}, nil
}

func buildXor8(hashes []uint64) (set, error) {
	f, err := xorfilter.Populate(append([]uint64(nil), hashes...))
	if err != nil {
		return set{}, err
	}
	return set{f.Contains, len(f.Fingerprints)}, nil
}

// buildSeiflotfy gives the filter room to spare: an insert that fails there drops
// another key, and the run would end with a false negative.
func buildSeiflotfy(hashes []uint64) (set, error) {
	var buf [8]byte
	f := seiflotfy.NewFilter(uint(len(hashes)) * 5 / 4)
	for _, h := range hashes {
		if !f.Insert(keyBytes(&buf, h)) {
			return set{}, fmt.Errorf("seiflotfy cuckoo refuses a key although it has room for %d", len(hashes)*5/4)
		}
	}
	return set{func(h uint64) bool { return f.Lookup(keyBytes(&buf, h)) }, len(f.Encode())}, nil
}
