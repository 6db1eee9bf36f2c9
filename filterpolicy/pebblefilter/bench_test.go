package pebblefilter_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

// The benchmarks compare filters on the same 16-byte keys. "key" hands over key and
// encoded bytes, as Pebble does, and pays for the hash and for finding the way through
// the bytes; "hash" probes a decoded filter with a hash that is known, as a store does that
// hashes once per lookup.

var benchSizes = []int{100_000, 1_000_000, 10_000_000}

// A rival is a policy under its name in the results.
type rival struct {
	name   string
	pebble pebble.FilterPolicy
	ours   filterpolicy.Policy // nil for Pebble's own
}

func rivals(b *testing.B) []rival {
	all := []rival{{"pebble:10", bloom.FilterPolicy(10), nil}, {"pebble:16", bloom.FilterPolicy(16), nil}}
	for _, spec := range []string{"bloom:10", "blocked:10", "blocked:16", "cuckoo:12"} {
		p := filtertest.Policy(b, spec)
		all = append(all, rival{spec, pebblefilter.New(p), p})
	}
	return all
}

const benchKeyLen = 16

func putBenchKey(key []byte, i uint64) {
	binary.BigEndian.PutUint64(key, filtertest.Good(0).At(i))
	binary.BigEndian.PutUint64(key[8:], filtertest.Good(1).At(i))
}

func encode(p pebble.FilterPolicy, n int) []byte {
	w := p.NewWriter(pebble.TableFilter)
	key := make([]byte, benchKeyLen)
	for i := range uint64(n) {
		putBenchKey(key, i)
		w.AddKey(key)
	}
	return w.Finish(nil)
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range benchSizes {
		for _, r := range rivals(b) {
			b.Run(fmt.Sprintf("%d/%s", n, r.name), func(b *testing.B) {
				size := 0
				for b.Loop() {
					size = len(encode(r.pebble, n))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
				b.ReportMetric(8*float64(size)/float64(n), "bits/key")
			})
		}
	}
}

const probeMask = 1<<15 - 1

// probeKeys returns keys spread over the n of a filter, or keys that it does not have.
func probeKeys(n int, present bool) []byte {
	keys := make([]byte, (probeMask+1)*benchKeyLen)
	for j := range uint64(probeMask + 1) {
		i := uint64(n) + j
		if present {
			i = filtertest.Good(2).At(j) % uint64(n)
		}
		putBenchKey(keys[j*benchKeyLen:], i)
	}
	return keys
}

func BenchmarkProbe(b *testing.B) {
	for _, n := range benchSizes {
		for _, r := range rivals(b) {
			data := encode(r.pebble, n)
			for _, present := range []bool{false, true} {
				name := fmt.Sprintf("%d/%s/absent", n, r.name)
				if present {
					name = fmt.Sprintf("%d/%s/present", n, r.name)
				}
				keys := probeKeys(n, present)
				b.Run(name+"/key", func(b *testing.B) { probeByKey(b, r, data, keys) })
				if r.ours != nil {
					f := filtertest.Open(b, r.name, data)
					b.Run(name+"/hash", func(b *testing.B) { probeByHash(b, f, keys) })
				}
			}
		}
	}
}

func probeByKey(b *testing.B, r rival, data, keys []byte) {
	maybe, i := 0, 0
	for b.Loop() {
		at := i & probeMask * benchKeyLen
		if r.pebble.MayContain(pebble.TableFilter, data, keys[at:at+benchKeyLen]) {
			maybe++
		}
		i++
	}
	b.ReportMetric(100*float64(maybe)/float64(i), "%maybe")
}

func probeByHash(b *testing.B, f filterpolicy.Filter, keys []byte) {
	hashes := make([]uint64, probeMask+1)
	for j := range hashes {
		hashes[j] = filterpolicy.Hash(keys[j*benchKeyLen : (j+1)*benchKeyLen])
	}
	maybe, i := 0, 0
	for b.Loop() {
		if f.MayContainHash(hashes[i&probeMask]) {
			maybe++
		}
		i++
	}
	b.ReportMetric(100*float64(maybe)/float64(i), "%maybe")
}

// BenchmarkAgainstPebble takes turns: each round runs the same keys through Pebble's
// Bloom filter at 10 bits and through each of ours, and the figure is the median round's
// time over the median of Pebble's. Other load on the machine hits both alike. Pebble's
// side includes its hash of the key; ours, xxhash.
func BenchmarkAgainstPebble(b *testing.B) {
	all := rivals(b)
	for _, n := range benchSizes {
		data := make([][]byte, len(all))
		for i, r := range all {
			data[i] = encode(r.pebble, n)
		}
		for _, present := range []bool{false, true} {
			keys := probeKeys(n, present)
			name := map[bool]string{false: "absent", true: "present"}[present]
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				times := takeTurns(b, all, data, keys)
				for i, r := range all {
					b.ReportMetric(times[2*i], r.name+"-key-ns")
					b.ReportMetric(times[2*i]/times[0], r.name+"-key-ratio")
					if r.ours != nil {
						b.ReportMetric(times[2*i+1], r.name+"-ns")
						b.ReportMetric(times[2*i+1]/times[0], r.name+"-ratio")
					}
				}
			})
		}
	}
}

// takeTurns returns nanoseconds per probe: for each rival by key and encoded bytes, and then by
// key and decoded filter.
func takeTurns(b *testing.B, all []rival, data [][]byte, keys []byte) []float64 {
	rounds := make([][]float64, 2*len(all))
	time1 := func(i int, probe func(key []byte) bool) {
		begin, maybe := time.Now(), 0
		for at := 0; at < len(keys); at += benchKeyLen {
			if probe(keys[at : at+benchKeyLen]) {
				maybe++
			}
		}
		ns := float64(time.Since(begin).Nanoseconds()) / float64(len(keys)/benchKeyLen)
		rounds[i] = append(rounds[i], ns)
	}
	filters := make([]filterpolicy.Filter, len(all))
	for i, r := range all {
		if r.ours != nil {
			filters[i] = filtertest.Open(b, r.name, data[i])
		}
	}
	for b.Loop() {
		for i, r := range all {
			time1(2*i, func(key []byte) bool { return r.pebble.MayContain(pebble.TableFilter, data[i], key) })
			if f := filters[i]; f != nil {
				time1(2*i+1, func(key []byte) bool { return f.MayContainHash(filterpolicy.Hash(key)) })
			}
		}
	}
	medians := make([]float64, len(rounds))
	for i, times := range rounds {
		if len(times) != 0 {
			slices.Sort(times)
			medians[i] = times[len(times)/2]
		}
	}
	return medians
}
