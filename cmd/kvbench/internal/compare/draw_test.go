package compare

import (
	"math"
	"testing"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"

	"github.com/stretchr/testify/require"
)

func testKeyspace(t *testing.T, n int) *keyspace {
	t.Helper()
	u, err := newKeyspace(&startTask{Keys: n, KeySize: 16, ValueSize: 100, Seed: 7})
	require.NoError(t, err)
	return u
}

func TestRecordsAndAbsentKeysAreDifferentKeys(t *testing.T) {
	u := testKeyspace(t, 1000)
	records := map[string]bool{}
	for i := range u.n + u.spare() {
		records[string(u.AppendKey(nil, i))] = true
	}
	require.Len(t, records, u.n+u.spare(), "no record twice")
	draw, c := u.absentKeys(3), newChunk(u)
	draw(c)
	asked := map[string]bool{}
	for i := range c.len() {
		require.False(t, records[string(c.key(i))])
		asked[string(c.key(i))] = true
	}
	require.Len(t, asked, u.Absent(), "all are asked for before one comes again")
}

func TestDrawingsKnowTheirValues(t *testing.T) {
	u := testKeyspace(t, 1000)
	for name, draw := range map[string]drawing{
		"existing": u.existing(existingOrder, 1), "zipfian": u.zipfian(keys.NewZipf(u.n, keys.Theta), 1),
		"in order": u.inOrder(3),
	} {
		c := newChunk(u)
		draw(c)
		require.Positive(t, c.len())
		for i := range c.len() {
			require.True(t, u.loaded.HasWord(u.AppendValue(nil, c.key(i), false), c.words[i]), name)
		}
	}
	c := newChunk(u)
	draw := u.inOrder(3)
	draw(c)
	require.Equal(t, 334, c.len())
	for i := 1; i < c.len(); i++ {
		require.Less(t, position(c.key(i-1)), position(c.key(i)))
	}
	c.reset()
	draw(c)
	require.Zero(t, c.len(), "at the end there is nothing more")
}

func TestMixesOfYCSB(t *testing.T) {
	u := testKeyspace(t, 100_000)
	for name, want := range map[string]map[verb]float64{
		"ycsb-a": {read: 0.5, update: 0.5},
		"ycsb-b": {read: 0.95, update: 0.05},
		"ycsb-c": {read: 1},
		"ycsb-d": {read: 0.95, insert: 0.05},
		"ycsb-e": {scan: 0.95, insert: 0.05},
		"ycsb-f": {read: 0.5, modify: 0.5},
	} {
		w := &worker{keyspace: u, start: &startTask{ValueSize: 100}, popular: keys.NewZipf(u.n, keys.Theta),
			store: nothing{}}
		y, err := newYCSB(w, name, 1)
		require.NoError(t, err)
		got := map[verb]float64{}
		const chunks = 100
		for range chunks {
			_, err := y.draw()
			require.NoError(t, err)
			for _, o := range y.operations {
				got[o.verb]++
				if o.verb == insert {
					require.NoError(t, y.doOne(&o))
				}
				if o.verb == scan {
					require.LessOrEqual(t, o.limit, maxScan)
					require.Positive(t, o.limit)
				}
			}
		}
		const n = chunks * ycsbChunk
		for v, share := range want {
			require.InDelta(t, share*n, got[v], 5*math.Sqrt(n*share*(1-share))+0.5, "%s verb %d", name, v)
			delete(got, v)
		}
		require.Empty(t, got, name)
		require.Equal(t, name == "ycsb-d" || name == "ycsb-e", w.inserted > 0)
	}
}

func TestInsertsRunOut(t *testing.T) {
	u := testKeyspace(t, 1000)
	w := &worker{keyspace: u, start: &startTask{ValueSize: 100}, popular: keys.NewZipf(u.n, keys.Theta),
		store: nothing{}}
	y, err := newYCSB(w, "ycsb-d", 1)
	require.NoError(t, err)
	for err == nil {
		_, err = y.draw()
	}
	require.ErrorContains(t, err, "ask for more keys")
}
