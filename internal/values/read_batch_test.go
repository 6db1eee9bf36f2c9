package values

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/version"
)

// logged writes values to the file of a log, and returns their reads, each with its value.
func (ts *testStore) logged(lengths ...int) (reads []Read) {
	var b batchrepr.Writer
	values := map[string][]byte{}
	for i, n := range lengths {
		key := fmt.Sprintf("key%04d", i)
		values[key] = bytes.Repeat([]byte{byte(i)}, n)
		b.Add(base.KindSet, []byte(key), values[key])
	}
	for e, err := range batchrepr.All(ts.commit(&b, 1, ts.newLog(), ts.newMem())) {
		require.NoError(ts.t, err)
		h, _, err := blob.HandleOf(e.Key.Kind(), e.Value)
		require.NoError(ts.t, err)
		reads = append(reads, Read{Handle: h, Key: bytes.Clone(e.Key.User), Owner: len(reads),
			Value: values[string(e.Key.User)]})
	}
	return reads
}

// without returns reads without their values, in reverse.
func without(reads []Read) []Read {
	reads = slices.Clone(reads)
	slices.Reverse(reads)
	for i := range reads {
		reads[i].Value = nil
	}
	return reads
}

// A batch reads all values but those to read alone, whatever their order, and is used again.
func TestReadBatchReadsTogether(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	reads := ts.logged(100, 5000, 100, maxGap*2, 200, maxJoined, 100, 100)
	v := &version.Version{}
	var b ReadBatch
	for _, far := range []bool{false, true} {
		b.Reads = without(reads)
		b.Reads[0].Alone = true
		missing := Read{Handle: blob.Handle{File: 99, Offset: 32, Length: 100, Size: 50}, Key: []byte("k")}
		b.Reads = append(b.Reads, missing)
		slow := b.Read(ts.Store, v, far)
		require.True(t, slow || !far, "requests take long")
		for _, r := range b.Reads[1:len(reads)] {
			require.True(t, r.Done, "%d", r.Owner)
			require.Equal(t, reads[r.Owner].Value, r.Value)
		}
		require.False(t, b.Reads[0].Done)
		require.False(t, b.Reads[len(reads)].Done)
		var c counters.Blobs
		b.Count(&c)
		require.EqualValues(t, len(reads)-1, c.Reads.Load())
		require.Positive(t, b.Memory())
		b.Reset()
		b.Release()
		require.Zero(t, b.Memory())
	}
}

// ReadEach shows each value once.
func TestReadBatchShowsEachValue(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	reads := ts.logged(100, 5000, 100, maxGap*2, 200, maxJoined, 100, 100)
	for _, far := range []bool{false, true} {
		b := ReadBatch{Reads: without(reads)}
		var mu sync.Mutex
		shown := map[int]int{}
		b.ReadEach(ts.Store, &version.Version{}, far, func(r *Read) {
			mu.Lock()
			defer mu.Unlock()
			if shown[r.Owner]++; r.Done {
				require.Equal(t, reads[r.Owner].Value, r.Value)
			}
		})
		require.Len(t, shown, len(reads))
		for owner, n := range shown {
			require.Equal(t, 1, n, "%d", owner)
		}
	}
}

// Only near neighbours of one file are read together, and no more than maxJoined bytes.
func TestSpansTakeNearNeighbours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next blob.Handle
		want bool
	}{
		"adjacent":     {blob.Handle{File: 1, Offset: 1000, Length: 900}, true},
		"a small gap":  {blob.Handle{File: 1, Offset: 1800, Length: 900}, true},
		"a wide gap":   {blob.Handle{File: 1, Offset: 2000, Length: 900}, false},
		"another file": {blob.Handle{File: 2, Offset: 1000, Length: 900}, false},
		"too long":     {blob.Handle{File: 1, Offset: 1000, Length: maxJoined/2 + 1}, false},
	} {
		s := span{reader: &blob.Reader{}, length: 1000, reads: []*Read{{Handle: blob.Handle{File: 1, Length: 1000}}}}
		require.Equal(t, c.want, s.takes(c.next), name)
		s.reader = nil
		require.False(t, s.takes(c.next), name)
	}
}
