package kv

import (
	"bytes"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/stretchr/testify/require"
)

func TestWaitForChangeByDefault(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want time.Duration
	}{
		{Options{}, 10 * time.Millisecond},
		{Options{PollInterval: time.Minute}, time.Minute},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}}, time.Second},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}, PollInterval: time.Minute}, time.Minute},
	} {
		o, err := c.o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, o.PollInterval)
	}
}

// Values of at least 4 KiB are separated unless the options say otherwise, or reads are requests or come out of maps.
func TestSeparateFromHasADefault(t *testing.T) {
	scale.Alone(t)
	from, everywhere, atCommit := defaultSeparateFrom, separateEverywhere, defaultSeparateAtCommit
	t.Cleanup(func() { defaultSeparateFrom, separateEverywhere, defaultSeparateAtCommit = from, everywhere, atCommit })
	if everywhere {
		defaultSeparateFrom, separateEverywhere, defaultSeparateAtCommit = 4<<10, false, false
	}
	for _, c := range []struct {
		o         Options
		separated uint64
	}{
		{Options{}, 2},
		{Options{SeparateAtCommit: true}, 2},
		{Options{SeparateFrom: -1}, 0},
		{Options{SeparateFrom: 8 << 10}, 1},
		{Options{MemoryMap: true}, 0},
		{Options{MemoryMap: true, SeparateFrom: 4 << 10}, 2},
		{Options{MemoryMap: true, SeparateAtCommit: true}, 2},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}}, 0},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}, SeparateFrom: 4 << 10}, 2},
	} {
		dir := ""
		if c.o.Objects == nil {
			dir = t.TempDir()
		}
		db, err := Open(dir, &c.o)
		require.NoError(t, err)
		for i, size := range []int{4<<10 - 1, 4 << 10, 8 << 10} {
			require.NoError(t, db.Set([]byte{byte(i)}, bytes.Repeat([]byte{'v'}, size), NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		require.Equal(t, c.separated, db.Metrics().Blobs.Records, "%+v", c.o)
		require.NoError(t, db.Close())
	}
}

// usersIdleCompaction is what stores have that are no test's.
var usersIdleCompaction = defaultIdleCompaction

// Only a Leveled store merges runs while it is idle, and only on a disk.
func TestIdleCompactionByDefault(t *testing.T) {
	t.Parallel()
	require.Equal(t, 10*time.Second, usersIdleCompaction)
	object := &objects.Config{Store: objstore.NewMem()}
	never := Options{IdleCompaction: -1}
	for _, c := range []struct{ o, want Options }{
		{Options{}, Options{IdleCompaction: defaultIdleCompaction}},
		{Options{IdleCompaction: time.Second}, Options{IdleCompaction: time.Second}},
		{Options{IdleCompaction: time.Second, Compaction: Tiered}, never},
		{Options{IdleCompaction: time.Second, Compaction: LazyLeveled}, never},
		{Options{IdleCompaction: time.Second, Objects: object}, never},
		{Options{IdleCompaction: time.Second, InMemory: true}, never},
	} {
		o, err := c.o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want.IdleCompaction, o.IdleCompaction)
	}
}
