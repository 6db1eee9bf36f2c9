package kv

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

// BenchmarkMultiGet looks up n keys at a time, together and apart, in turns, so that what
// else the machine does befalls both. It reports how many times as fast together is: by the
// clock (x), of the medians of turns, as whoever is interrupted in one turn loses more than the
// difference, and by processor time (cpu-x). Both make a slice of values for each call. The
// limits of Gets are those of BenchmarkRead; together, cache misses of several keys overlap, and
// reads of blocks.
func BenchmarkMultiGet(b *testing.B) {
	for _, store := range []struct {
		name   string
		o      Options
		absent bool
		disk   bool
	}{
		{name: "cached"},
		{name: "absent", absent: true},
		{name: "page-cache", o: Options{CacheSize: 2 << 20}},
		{name: "disk", o: Options{CacheSize: 2 << 20}, disk: true},
	} {
		db := readBenchStore(b, store.o)
		for _, n := range []int{1, 2, 8, 32, 128} {
			b.Run(fmt.Sprintf("%s/keys=%d", store.name, n), func(b *testing.B) {
				m := multiGetBench{db: db, keys: make([][]byte, n), turns: max(256/n, 1)}
				if store.absent {
					m.first = readBenchKeys
				}
				if store.disk {
					m.turns = 1
					m.chill = func() { dropPages(b, db.dir) }
				}
				b.ReportAllocs()
				m.run(b, !store.absent)
			})
		}
	}
}

type multiGetBench struct {
	db           *DB
	keys, values [][]byte
	first, step  int
	turns        int    // calls before it is the others' turn
	chill        func() // before each turn
}

// A benchTime is what something took: each turn by the clock, and all of the processors.
type benchTime struct {
	clock []float64
	cpu   float64
}

func (t *benchTime) median() float64 {
	slices.Sort(t.clock)
	return t.clock[len(t.clock)/2]
}

func (m *multiGetBench) run(b *testing.B, present bool) {
	together := func() {
		values, err := m.db.MultiGet(m.keys)
		if err != nil || (values[0] != nil) != present {
			b.Fatal(values[0], err)
		}
	}
	apart := func() {
		m.values = make([][]byte, len(m.keys))
		for i, key := range m.keys {
			m.values[i], _ = m.db.Get(key)
		}
		if (m.values[0] != nil) != present {
			b.Fatal(m.values[0])
		}
	}
	var t, a benchTime
	for b.Loop() {
		m.turn(b, &t, together)
		m.turn(b, &a, apart)
	}
	b.ReportMetric(a.median()/t.median(), "x")
	b.ReportMetric(a.cpu/t.cpu, "cpu-x")
	b.ReportMetric(t.median()/float64(m.turns), "ns/call")
}

func (m *multiGetBench) turn(b *testing.B, sum *benchTime, call func()) {
	if m.chill != nil {
		m.chill()
	}
	cpu, began := float64(turns.ProcessorTime()), time.Now()
	for range m.turns {
		for i := range m.keys {
			m.step = (m.step + 77_773) % readBenchKeys
			m.keys[i] = readBenchKey(m.keys[i], m.first+m.step)
		}
		call()
	}
	sum.clock = append(sum.clock, float64(time.Since(began)))
	sum.cpu += float64(turns.ProcessorTime()) - cpu
}

// tablesIn returns the names of the tables in dir.
func tablesIn(tb testing.TB, dir string) []string {
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	return names
}
