package values

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/version"
)

// The file of a stream stays if a memtable holds it, and is removed if the stream ends before that.
func TestStreamsThatAreNotCommittedLeaveNoFile(t *testing.T) {
	t.Parallel()
	failure := errors.New("failure")
	value := bytes.Repeat([]byte("v"), 1000)
	commit := func(held bool, err error) func(*testing.T, *testStore, *File) {
		return func(t *testing.T, _ *testStore, f *File) {
			require.NoError(t, f.Fill([]byte("k"), 1, 1000, bytes.NewReader(value)))
			require.NoError(t, f.Finish())
			require.ErrorIs(t, f.Commit(func(blob.Handle) error { return err }, func() bool { return held }), err)
		}
	}
	for name, c := range map[string]struct {
		stays bool
		do    func(t *testing.T, ts *testStore, f *File)
	}{
		"created": {false, func(*testing.T, *testStore, *File) {}},
		"cut off": {false, func(t *testing.T, _ *testStore, f *File) {
			require.ErrorIs(t, f.Fill([]byte("k"), 1, 1001, bytes.NewReader(value)), io.ErrUnexpectedEOF)
		}},
		"closed before its end": {false, func(t *testing.T, ts *testStore, f *File) {
			require.NoError(t, f.Fill([]byte("k"), 1, 1000, bytes.NewReader(value)))
			require.NoError(t, ts.Close())
			require.ErrorIs(t, f.Finish(), base.ErrClosed)
		}},
		"closed before its commit": {false, func(t *testing.T, ts *testStore, f *File) {
			require.NoError(t, f.Fill([]byte("k"), 1, 1000, bytes.NewReader(value)))
			require.NoError(t, f.Finish())
			require.NoError(t, ts.Close())
			require.ErrorIs(t, f.Commit(nil, nil), base.ErrClosed)
		}},
		"refused":   {false, commit(false, failure)},
		"uncertain": {true, commit(true, failure)},
		"committed": {true, commit(true, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := newTestStore(t)
			f, err := ts.Create()
			require.NoError(t, err)
			c.do(t, ts, f)
			f.End()
			if !c.stays {
				ts.requireFiles()
				require.Zero(t, ts.Written.Load())
				return
			}
			ts.requireFiles(1)
			require.EqualValues(t, f.Size, ts.Written.Load())
			got, err := ts.Append(nil, &version.Version{}, []byte("k"), f.handle)
			require.NoError(t, err)
			require.Equal(t, value, got)
			require.Equal(t, f.ID, ts.ID(&version.Version{}, f.Num))
		})
	}
}

func TestAHandleOfAnUnknownFileIsDamage(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	_, err := ts.Reader(&version.Version{}, 7)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "000007.blob")
	require.Zero(t, ts.ID(&version.Version{}, 7))
}
