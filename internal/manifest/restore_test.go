package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// The state of a restore comes back, what is damaged is told, and so is what a later release wrote.
func TestTheStateOfARestore(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	s, err := Restore(mem, "db")
	require.NoError(t, err)
	require.Zero(t, s)
	want := RestoreState{Done: 1, Manifest: 7, Doing: 3, Offset: 4096}
	require.NoError(t, SetRestore(mem, "db", want))
	s, err = Restore(mem, "db")
	require.NoError(t, err)
	require.Equal(t, want, s)

	good, err := vfs.ReadSmallFile(mem, "db/"+RestoreName, maxCurrentSize)
	require.NoError(t, err)
	for i := range good {
		for bit := range 8 {
			good[i] ^= 1 << bit
			require.NoError(t, vfs.ReplaceFile(mem, "db/"+RestoreName, good))
			_, err = Restore(mem, "db")
			require.ErrorIs(t, err, base.ErrCorruption, "%q", good)
			require.NotErrorIs(t, err, ErrNewerFormat, "%q", good)
			good[i] ^= 1 << bit
		}
	}
	require.NoError(t, vfs.ReplaceFile(mem, "db/"+RestoreName, base.SealLine("siftkv restore=2 done=soon")))
	_, err = Restore(mem, "db")
	require.ErrorIs(t, err, ErrNewerFormat)
}
