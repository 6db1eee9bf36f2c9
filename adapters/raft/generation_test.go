package siftraft

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// What a process leaves that is killed in the middle of a snapshot or a restore is removed, and is never the state.
func TestWhatAKilledProcessLeavesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	s := persist(t, f)
	require.NoError(t, f.Close())

	require.NoError(t, os.Mkdir(filepath.Join(dir, "snapshot-7"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "snapshot-7", "000001.sst"), []byte("half"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "CURRENT.tmp"), []byte("stor"), 0o600))
	require.NoError(t, kv.Restore(t.Context(), stream(s), filepath.Join(dir, "store-9"), nil))
	require.Error(t, kv.Restore(t.Context(), stream(s[:len(s)/2]), filepath.Join(dir, "store-10"), nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("not the FSM's"), 0o600))

	again := openFSM(t, dir, nil)
	require.Equal(t, []string{"CURRENT", "notes", "store-1"}, names(t, dir))
	require.Equal(t, "a=1 ", contents(t, again))
	require.NoError(t, again.Restore(stream(s)))
	require.Equal(t, []string{"CURRENT", "notes", "store-11"}, names(t, dir), "no name is used twice")
}

func TestAnFSMWhoseStoreIsGoneIsNotMadeAnew(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	require.NoError(t, f.Restore(stream(persist(t, f))))
	require.NoError(t, f.Close())
	current := filepath.Join(dir, "CURRENT")
	content, err := os.ReadFile(current)
	require.NoError(t, err)
	require.Equal(t, "store-3\n", string(content))

	for _, wrong := range []string{
		"", "store-3", "store-\n", "store-x\n", "../store-3\n", "store-4\n", "store-3/../x\n",
	} {
		require.NoError(t, os.WriteFile(current, []byte(wrong), 0o600))
		_, err = OpenFSM(dir, nil)
		require.Error(t, err, "%q", wrong)
	}
	require.NoError(t, os.Remove(current))
	_, err = OpenFSM(dir, nil)
	require.ErrorContains(t, err, "store-3")
	require.Equal(t, []string{"store-3"}, names(t, dir))
	require.NoError(t, os.WriteFile(current, content, 0o600))
	openFSM(t, dir, nil)
}

func TestOneProcessHasAnFSM(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	_, err := OpenFSM(dir, nil)
	require.ErrorIs(t, err, kv.ErrLocked)
	require.NoError(t, f.Restore(stream(persist(t, f))))
	_, err = OpenFSM(dir, nil)
	require.ErrorIs(t, err, kv.ErrLocked)
	require.NoError(t, f.Close())
	openFSM(t, dir, nil)
}
