package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/kv"
)

// closedWithLog writes a store with one write in a table and three, one record each, in a log, and closes it. It
// returns the log's name.
func closedWithLog(t *testing.T, dir string) (log string) {
	t.Helper()
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("in a table"), nil))
	require.NoError(t, db.Flush(t.Context()))
	for i := range 3 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%d", i), make([]byte, 100), nil))
	}
	require.NoError(t, db.Close())
	logs := filesOf(t, dir, manifest.FileWAL)
	return logs[len(logs)-1]
}

// What the log of a store that was closed cleanly has lost is lost for certain, and the manifest has the numbers.
func TestWhatTheLogOfAClosedStoreHasLostIsCertain(t *testing.T) {
	t.Parallel()
	const header, record = 32, 100 // bytes; a record has more
	for name, c := range map[string]struct {
		spoil       func(t *testing.T, log string, data []byte)
		first, last uint64 // lost; 0: none
	}{
		"missing":            {func(t *testing.T, log string, _ []byte) { require.NoError(t, os.Remove(log)) }, 2, 4},
		"emptied":            {func(t *testing.T, log string, _ []byte) { replace(t, log, nil) }, 2, 4},
		"header alone":       {func(t *testing.T, log string, d []byte) { replace(t, log, d[:header]) }, 2, 4},
		"one record is left": {func(t *testing.T, log string, d []byte) { replace(t, log, d[:header+150]) }, 3, 4},
		"first record":       {flipAt(header + record/2), 2, 2},
		"second record":      {flipAt(header + 2*record), 3, 3},
		"without its end":    {func(t *testing.T, log string, d []byte) { replace(t, log, d[:len(d)-15]) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			log := closedWithLog(t, dir)
			data, err := os.ReadFile(log)
			require.NoError(t, err)
			c.spoil(t, log, data)
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			if c.last == 0 {
				require.False(t, r.Needed, "%+v", r)
				require.Len(t, contents(t, dir), 4)
				return
			}
			require.Len(t, r.Lost, 1, "%+v", r.Lost)
			loss := r.Lost[0]
			require.True(t, r.LostForSure())
			require.Equal(t, filepath.Base(log), loss.File)
			require.Equal(t, c.last-c.first+1, *loss.Writes)
			require.Equal(t, []uint64{c.first, c.last}, []uint64{loss.FirstSeq, loss.LastSeq})
			require.Len(t, contents(t, dir), 4-int(*loss.Writes))
		})
	}
}

// flipAt returns a damage that flips a bit of one byte.
func flipAt(at int) func(t *testing.T, log string, data []byte) {
	return func(t *testing.T, log string, data []byte) {
		t.Helper()
		data[at] ^= 1
		replace(t, log, data)
	}
}

// A record of a killed store's log that is damaged, with others around it, is one loss of one write.
func TestADamagedRecordIsLostOnce(t *testing.T) {
	t.Parallel()
	for first, at := range map[uint64]int{2: 80, 3: 230} {
		dir, now := crashed(t, func(set func(k, v string), db *kv.DB) {
			set("a", "in a table")
			require.NoError(t, db.Flush(t.Context()))
			for i := range 3 {
				set(fmt.Sprintf("key%d", i), string(make([]byte, 100)))
			}
		})
		log := filesOf(t, dir, manifest.FileWAL)[0]
		data, err := os.ReadFile(log)
		require.NoError(t, err)
		flipAt(at)(t, log, data)
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.EqualValues(t, 1, countLost(r), "%+v", r.Lost)
		require.Equal(t, first, r.Lost[0].FirstSeq)
		require.Equal(t, first, r.Lost[0].LastSeq)
		require.Len(t, contents(t, dir), len(now)-1)
	}
}

// The log of a killed store that breaks off does not tell whether its last writes were synced, and no note says that
// they were not.
func TestNoNoteSaysThatLostWritesWereNotSynced(t *testing.T) {
	t.Parallel()
	dir, _ := crashed(t, func(set func(k, v string), _ *kv.DB) {
		set("a", "synced")
		set("b", "synced")
	})
	log := filesOf(t, dir, manifest.FileWAL)[0]
	info, err := os.Stat(log)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(log, info.Size()-3))
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Len(t, s.Notes, 1)
	require.Contains(t, s.Notes[0], "does not tell whether what is missing was synced")
}
