package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A consumer in another process gets each commit, whatever is made of the logs meanwhile.
func TestASlotElsewhereYieldsEachCommit(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*WriteOptions{"sync": Sync, "nosync": NoSync, "async": Async} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := openDir(t, dir, &Options{MemtableSize: 64 << 10})
			require.NoError(t, db.Set([]byte("before"), []byte("1"), o))
			slot := makeSlot(t, db, "index")
			view := openView(t, dir, nil)
			_, err := view.OpenSlot("index")
			require.ErrorIs(t, err, ErrLocked)
			_, err = view.OpenSlot("none")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoError(t, slot.Close())
			far, err := view.OpenSlot("index")
			require.NoError(t, err)
			_, err = db.OpenSlot("index")
			require.ErrorIs(t, err, ErrLocked)
			require.ErrorIs(t, db.DropSlot("index"), ErrLocked)
			n := 0
			for round := range 8 {
				var want listed
				for range 5 {
					k, v := fmt.Appendf(nil, "k%d", n), fmt.Appendf(nil, "v%08000d", n)
					require.NoError(t, db.Set(k, v, o))
					require.NoError(t, want.Set(k, v))
					n++
				}
				if round%3 == 1 {
					require.NoError(t, db.Flush(t.Context()))
				}
				var got listed
				changesOf(t, far, 5, func(c *Change) { require.NoError(t, c.Replay(&got)) })
				require.Equal(t, want, got)
				if round%2 == 1 {
					require.NoError(t, far.Ack(far.Position()))
				}
			}
			require.NoError(t, db.Flush(t.Context()))
			require.Equal(t, far.Position(), db.Slots()[0].Acked)
			require.True(t, db.Slots()[0].Open)
			require.Equal(t, db.Slots()[0].Acked, view.Slots()[0].Acked)
			require.True(t, view.Slots()[0].Open)
			require.NoError(t, far.Close())
			require.NoError(t, db.DropSlot("index"))
			require.NoFileExists(t, filepath.Join(dir, "CONSUMER-index"))
			require.NoError(t, db.Close())
		})
	}
}

// What a view says of slots goes with the view, whatever its writer has by now.
func TestSlotsOfAViewAreAsFarBehindAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	require.NoError(t, makeSlot(t, db, "s").Close())
	require.NoError(t, db.Set([]byte("a"), nil, nil))
	view := openView(t, dir, nil)
	require.NoError(t, db.Set([]byte("b"), nil, nil))
	require.NoError(t, db.Flush(t.Context()))
	require.EqualValues(t, 1, view.Slots()[0].Behind)
	require.NoError(t, view.Refresh(t.Context()))
	require.EqualValues(t, 2, view.Slots()[0].Behind)
	require.NoError(t, errors.Join(view.Close(), db.Close()))
}
