package wal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A log that grows by any number of bytes at a time gives every record once, as soon
// as it is whole.
func TestFollowALogThatGrows(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := vfs.NewMem()
		f, err := mem.Create("whole")
		require.NoError(t, err)
		w := NewWriter(f, 7)
		var want [][]byte
		for range 60 {
			record := make([]byte, rng.IntN(3000)<<rng.IntN(6)>>1)
			for i := range record {
				record[i] = byte(rng.IntN(3))
			}
			want = append(want, record)
			require.NoError(t, w.Append(record))
			if rng.IntN(3) == 0 {
				require.NoError(t, w.Sync())
			}
		}
		require.NoError(t, w.Close())
		src, err := mem.Open("whole")
		require.NoError(t, err)
		size, err := src.Size()
		require.NoError(t, err)
		whole := make([]byte, size)
		_, err = src.ReadAt(whole, 0)
		require.NoError(t, err)

		growing, err := mem.Create("growing")
		require.NoError(t, err)
		file, err := mem.Open("growing")
		require.NoError(t, err)
		r := NewReader(file, "growing", 7)
		var got [][]byte
		for {
			more, err := r.Follow()
			require.NoError(t, err)
			for more {
				record, err := r.Next()
				if err != nil {
					require.True(t, errors.Is(err, io.EOF) || r.CrashExplains(err), "seed %d: %v", seed, err)
					break
				}
				got = append(got, bytes.Clone(record))
			}
			require.Equal(t, len(whole) == 0, r.Clean(), "seed %d", seed)
			if len(whole) == 0 {
				break
			}
			n := min(1+rng.IntN(40_000), len(whole))
			_, err = growing.Write(whole[:n])
			require.NoError(t, err)
			whole = whole[n:]
		}
		require.Equal(t, len(want), len(got), "seed %d", seed)
		for i := range want {
			require.True(t, bytes.Equal(want[i], got[i]), "seed %d, record %d", seed, i)
		}
		more, err := r.Follow()
		require.NoError(t, err)
		require.False(t, more, "it has ended")
		require.EqualValues(t, size, r.size)
	}
}

func TestFollowDoesNotPassDamage(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("log")
	require.NoError(t, err)
	w := NewWriter(f, 7)
	for range 3 {
		require.NoError(t, w.Append([]byte("record")))
		require.NoError(t, w.Sync())
	}
	file, err := mem.Open("log")
	require.NoError(t, err)
	size, err := file.Size()
	require.NoError(t, err)
	data := make([]byte, size)
	_, err = file.ReadAt(data, 0)
	require.NoError(t, err)
	data[fileHeaderSize+headerSize] ^= 1
	g, err := mem.Create("damaged")
	require.NoError(t, err)
	_, err = g.Write(data)
	require.NoError(t, err)
	damaged, err := mem.Open("damaged")
	require.NoError(t, err)
	r := NewReader(damaged, "damaged", 7)
	_, first := r.Next()
	require.Error(t, first)
	require.False(t, r.CrashExplains(first))
	_, err = g.Write([]byte("more"))
	require.NoError(t, err)
	more, err := r.Follow()
	require.NoError(t, err)
	require.False(t, more)
	_, err = r.Next()
	require.Equal(t, first, err)
}
