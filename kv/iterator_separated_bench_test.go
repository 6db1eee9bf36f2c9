package kv

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

// BenchmarkLargeScan scans stores of large values, in tables and in blob files, in turns, so that what else the machine
// does befalls both: of keys alone, and of all values, of which a byte in each page is looked at. It reports how many
// times as fast a scan is with values separated (x, and cpu-x by processor time), and what that takes for a key.
func BenchmarkLargeScan(b *testing.B) {
	for _, s := range separatedSizes {
		var dbs [2]*DB
		for i, store := range largeStores[:2] {
			dbs[i] = largeValues(b, s.size, s.keys, store.o)
		}
		for _, c := range []struct {
			name            string
			o               IterOptions
			backward, chill bool
		}{
			{name: "keys", o: IterOptions{KeysOnly: true}},
			{name: "values"},
			{name: "all/backward", backward: true},
			{name: "all/dropped", chill: true},
			{name: "all/backward/dropped", backward: true, chill: true},
		} {
			b.Run(fmt.Sprintf("%s/%s", s.name, c.name), func(b *testing.B) {
				var times [2]benchTime
				for b.Loop() {
					for i, db := range dbs {
						if c.chill {
							dropAllPages(b, db.dir)
						}
						cpu, began := float64(turns.ProcessorTime()), time.Now()
						require.Equal(b, s.keys, scanLarge(b, db, &c.o, c.backward))
						times[i].clock = append(times[i].clock, float64(time.Since(began)))
						times[i].cpu += float64(turns.ProcessorTime()) - cpu
					}
				}
				inline, separated := times[0].median(), times[1].median()
				b.ReportMetric(inline/separated, "x")
				b.ReportMetric(times[0].cpu/times[1].cpu, "cpu-x")
				b.ReportMetric(inline/float64(s.keys), "inline-ns/key")
				b.ReportMetric(separated/float64(s.keys), "separated-ns/key")
			})
		}
	}
}

// BenchmarkLargeMultiGet looks up 64 keys at a time that lie together, and 64 that do not, in stores of large
// values, in tables and in blob files, in turns, and reports what BenchmarkLargeScan does, for a call.
func BenchmarkLargeMultiGet(b *testing.B) {
	for _, s := range separatedSizes[:2] {
		var dbs [2]*DB
		for i, store := range largeStores[:2] {
			dbs[i] = largeValues(b, s.size, s.keys, store.o)
		}
		inOrder := make([][]byte, s.keys)
		for i := range inOrder {
			inOrder[i] = readBenchKey(nil, i)
		}
		slices.SortFunc(inOrder, bytes.Compare)
		for _, stride := range []int{1, 611} {
			b.Run(fmt.Sprintf("%s/stride=%d", s.name, stride), func(b *testing.B) {
				var times [2]benchTime
				keys, at := make([][]byte, 64), 0
				for b.Loop() {
					for k := range keys {
						at = (at + stride) % s.keys
						keys[k] = inOrder[at]
					}
					for i, db := range dbs {
						cpu, began := float64(turns.ProcessorTime()), time.Now()
						if _, err := db.MultiGet(keys); err != nil {
							b.Fatal(err)
						}
						times[i].clock = append(times[i].clock, float64(time.Since(began)))
						times[i].cpu += float64(turns.ProcessorTime()) - cpu
					}
				}
				b.ReportMetric(times[0].median()/times[1].median(), "x")
				b.ReportMetric(times[0].cpu/times[1].cpu, "cpu-x")
				b.ReportMetric(times[1].median(), "separated-ns/call")
			})
		}
	}
}

// lookedAt keeps what a scan looks at.
var lookedAt int

// scanLarge goes through a store, and returns how many keys it has.
func scanLarge(b *testing.B, db *DB, o *IterOptions, backward bool) (keys int) {
	it, err := db.NewIter(o)
	require.NoError(b, err)
	first, next := it.First, it.Next
	if backward {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		v := it.Value()
		for at := 0; at < len(v); at += 4096 {
			lookedAt += int(v[at])
		}
		keys++
	}
	require.NoError(b, it.Close())
	return keys
}
