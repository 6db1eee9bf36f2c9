package pebblefilter_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

// The benchmarks compare filters on the same 16-byte keys. "key" hands over key and
// encoded bytes, as Pebble does, and pays for the hash and for finding the way
// through the bytes; "hash" probes a decoded filter with a hash that is known, as a
// store does that hashes once per lookup.

var benchSizes = []int{100_000, 1_000_000, 10_000_000}

// A rival is a policy under its name in the results.
type rival struct {
	name   string
	pebble pebble.FilterPolicy
	ours   filterpolicy.Policy // nil for Pebble's own
}

func rivals(b *testing.B) []rival {
	b.Helper()
	all := []rival{{"pebble:10", bloom.FilterPolicy(10), nil}, {"pebble:16", bloom.FilterPolicy(16), nil}}
	for _, spec := range []string{"bloom:10", "blocked:10", "blocked:16", "cuckoo:12"} {
		p := parse(b, spec)
		all = append(all, rival{spec, pebblefilter.New(p), p})
	}
	return all
}

const benchKeyLen = 16

func putBenchKey(key []byte, i uint64) {
	binary.BigEndian.PutUint64(key, hashOf(0, i))
	binary.BigEndian.PutUint64(key[8:], hashOf(1, i))
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

const probeMask = 1<<17 - 1

// probeKeys returns keys spread over the n of a filter, or keys that it does not
// have.
func probeKeys(n int, present bool) []byte {
	keys := make([]byte, (probeMask+1)*benchKeyLen)
	for j := range uint64(probeMask + 1) {
		i := uint64(n) + j
		if present {
			i = hashOf(2, j) % uint64(n)
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
					f := decode(b, r.name, data)
					b.Run(name+"/hash", func(b *testing.B) { probeByHash(b, f, keys) })
				}
			}
		}
	}
}

func probeByKey(b *testing.B, r rival, data, keys []byte) {
	b.Helper()
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
	b.Helper()
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

// BenchmarkAgainstPebble takes turns with Pebble's Bloom filter at 10 bits on the
// same keys. The figures are nanoseconds per probe in the fastest round, as other
// load on the machine can only add to it, and their ratios to Pebble's:
//
//	pebble  Pebble's filter, by key and encoded bytes; its hash of the key included
//	bytes   ours, the same way; xxhash included
//	filter  ours, decoded; xxhash included
//	hash    ours, decoded, with a hash that is known, as in a store's second file
func BenchmarkAgainstPebble(b *testing.B) {
	for _, n := range benchSizes {
		all := rivals(b)
		pebbles := encode(all[0].pebble, n)
		for _, r := range all[2:] {
			data := encode(r.pebble, n)
			f := decode(b, r.name, data)
			for _, present := range []bool{false, true} {
				keys := probeKeys(n, present)
				known := hashesOf(keys)
				name := map[bool]string{false: "absent", true: "present"}[present]
				b.Run(fmt.Sprintf("%d/%s/%s", n, r.name, name), func(b *testing.B) {
					sides := []struct {
						name  string
						keys  []byte
						probe func(key []byte) bool
					}{
						{"pebble", keys,
							func(key []byte) bool {
								return all[0].pebble.MayContain(pebble.TableFilter, pebbles,
									key)
							}},
						{"bytes", keys, func(key []byte) bool {
							return r.pebble.MayContain(pebble.TableFilter, data,
								key)
						}},
						{"filter", keys, func(key []byte) bool { return f.MayContainHash(filterpolicy.Hash(key)) }},
						{"hash", known, func(
							key []byte) bool {
							return f.MayContainHash(binary.LittleEndian.Uint64(key))
						}},
					}
					var fastest [4]float64
					for b.Loop() {
						for i, s := range sides {
							timeRound(s.keys, s.probe) // brings the filter into the cache, as far as it fits
							ns := timeRound(s.keys, s.probe)
							if fastest[i] == 0 || ns < fastest[i] {
								fastest[i] = ns
							}
						}
					}
					for i, s := range sides {
						b.ReportMetric(fastest[i], s.name+"-ns")
						b.ReportMetric(fastest[i]/fastest[0], s.name+"-ratio")
					}
				})
			}
		}
	}
}

// hashesOf returns the hashes of keys, each in the place of its key.
func hashesOf(keys []byte) []byte {
	hashes := make([]byte, len(keys))
	for at := 0; at < len(keys); at += benchKeyLen {
		binary.LittleEndian.PutUint64(hashes[at:], filterpolicy.Hash(keys[at:at+benchKeyLen]))
	}
	return hashes
}

// timeRound probes each key once and returns the nanoseconds per key.
func timeRound(keys []byte, probe func(key []byte) bool) float64 {
	begin, maybe := time.Now(), 0
	for at := 0; at < len(keys); at += benchKeyLen {
		if probe(keys[at : at+benchKeyLen]) {
			maybe++
		}
	}
	runtime.KeepAlive(maybe)
	return float64(time.Since(begin).Nanoseconds()) / float64(len(keys)/benchKeyLen)
}
