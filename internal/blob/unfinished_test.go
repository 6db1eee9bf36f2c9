package blob

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
)

// byCommits returns a file of a log, and the handles of its records, whose keys are k2, k1 and k0.
func byCommits(t *testing.T, finish bool) (file []byte, handles []Handle) {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, WriterOptions{Num: 7, ID: testID, ByCommit: true})
	for i, k := range []string{"k2", "k1", "k0"} {
		h, err := w.Add([]byte(k), base.SeqNum(i+1), 0, bytes.Repeat([]byte(k), 50))
		require.NoError(t, err)
		handles = append(handles, h)
	}
	require.NoError(t, w.Flush())
	if finish {
		_, err := w.Finish()
		require.NoError(t, err)
	}
	w.Abandon()
	return out.Bytes(), handles
}

// The records of a file without an end are read by their handles, as far as they are there.
func TestUnfinishedFilesAreRead(t *testing.T) {
	file, handles := byCommits(t, false)
	for n := headerSize; n <= len(file); n++ {
		r, byCommit, err := OpenUnfinished(bytes.NewReader(file[:n]), int64(n), ReaderOptions{Name: "f"})
		require.NoError(t, err)
		require.True(t, byCommit)
		for i, k := range []string{"k2", "k1", "k0"} {
			h := handles[i]
			v, err := r.AppendValue(nil, []byte(k), h)
			if h.Offset+h.Length > int64(n) {
				require.ErrorIs(t, err, base.ErrCorruption)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, bytes.Repeat([]byte(k), 50), v)
		}
	}
	for n := range headerSize {
		_, _, err := OpenUnfinished(bytes.NewReader(file[:n]), int64(n), ReaderOptions{Name: "f"})
		require.ErrorIs(t, err, base.ErrCorruption)
	}
}

// A file in the order of commits says so, and is verified as any other; one in the order of keys must keep it.
func TestTheHeaderSaysTheOrder(t *testing.T) {
	file, _ := byCommits(t, true)
	info, err := ReadInfo(bytes.NewReader(file), int64(len(file)), "f")
	require.NoError(t, err)
	require.True(t, info.ByCommit)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), ReaderOptions{Name: "f", ID: testID})
	require.NoError(t, err)
	require.NoError(t, r.Verify(7, nil))
	copy(file, encodeHeader(testID, byKey))
	require.ErrorContains(t, r.Verify(7, nil), "stands after")
	copy(file, encodeHeader(testID, byCommit+1))
	_, err = ReadInfo(bytes.NewReader(file), int64(len(file)), "f")
	require.ErrorIs(t, err, base.ErrCorruption)
	w := NewWriter(&bytes.Buffer{}, WriterOptions{Num: 7})
	_, err = w.Add([]byte("b"), 1, 0, nil)
	require.NoError(t, err)
	_, err = w.Add([]byte("a"), 2, 0, nil)
	require.ErrorIs(t, err, ErrOrder)
}

// Whatever a file without an end says, reading it takes memory in proportion to what it has.
func TestHostileUnfinishedFiles(t *testing.T) {
	file, handles := byCommits(t, false)
	for mutant := range hostile.Mutants(file, 2000) {
		hostile.Bound{Fixed: 64 << 10}.Require(t, len(mutant), func() {
			r, _, err := OpenUnfinished(bytes.NewReader(mutant), int64(len(mutant)), ReaderOptions{Name: "f"})
			if err != nil {
				return
			}
			for i, k := range []string{"k2", "k1", "k0"} {
				h := handles[i]
				_, _ = r.AppendValue(nil, []byte(k), h) // an error, or the value
				h.Length = 1 << 50
				_, err := r.AppendValue(nil, []byte(k), h)
				require.Error(t, err)
			}
		})
	}
}

// A file of which nobody knows the end makes no handle good that no record can have.
func TestHandlesOfNoRecordAreRefused(t *testing.T) {
	file, handles := byCommits(t, false)
	r, _, err := OpenUnfinished(bytes.NewReader(file), math.MaxInt64/2, ReaderOptions{Name: "f"})
	require.NoError(t, err)
	for _, length := range []int64{1 << 40, 1 << 59, 1 << 60, MaxValue + MaxValue/1000} {
		h := handles[0]
		h.Length = length
		hostile.Bound{Fixed: 64 << 10}.Require(t, len(file), func() {
			_, err := r.AppendValue(nil, []byte("k2"), h)
			require.ErrorIs(t, err, base.ErrCorruption)
		})
		require.False(t, r.Admits(h))
		_, err = DecodeHandle(h.Append(nil))
		require.Error(t, err)
	}
	longest := Handle{File: 1, Offset: headerSize, Length: maxRecord, Size: MaxValue}
	got, err := DecodeHandle(longest.Append(nil))
	require.NoError(t, err)
	require.Equal(t, longest, got)
	require.True(t, r.Admits(longest))
}
