package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

func TestASetHasItsHashesAndNoOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 3, 10, 1000, 100_000} {
		hashes := make([]uint64, n)
		in := map[uint64]bool{}
		for i := range hashes {
			hashes[i] = rng.Uint64()
			if n == 1000 && i%3 == 0 { // crowded at both ends of the table
				hashes[i] = uint64(i) - 30
			}
			in[hashes[i]] = true
		}
		s := newKeySet(hashes)
		for _, h := range hashes {
			require.True(t, s.MayContainHash(h))
			for _, near := range []uint64{h - 1, h + 1, ^h, rng.Uint64(), 0, 1} {
				require.Equal(t, in[near], s.MayContainHash(near), "%#x of %d", near, n)
			}
		}
		require.Equal(t, in[0], s.MayContainHash(0))
	}
	require.True(t, newKeySet([]uint64{0}).MayContainHash(0))
}

func TestFiltersAreNumbersOfKeySets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	p := newOracle(dir)
	require.Equal(t, p, newOracle(dir+"/."), "one directory, one policy")
	b := p.NewBuilder()
	var files [][]byte
	for file := range uint64(3) {
		for h := file * 10; h < file*10+10; h++ {
			b.AddHash(h)
			b.AddHash(h)
		}
		data, ok := b.Finish([]byte("x"))
		require.True(t, ok)
		require.Len(t, data, 1+oracleSize)
		files = append(files, data[1:])
	}
	for file, data := range files {
		f, err := filterpolicy.DecodeWith(newOracle(dir), OracleFilter, data)
		require.NoError(t, err)
		for h := range uint64(40) {
			require.Equal(t, h/10 == uint64(file), f.MayContainHash(h))
		}
		pebble := newOracle(dir).pebble()
		require.False(t, pebble.MayContain(0, data, []byte("a key")))
	}
	for name, data := range map[string][]byte{
		"empty": {}, "short": files[0][:7], "long": append(files[0][:8:8], 0),
		"unknown": binary.LittleEndian.AppendUint64(nil, 3), "huge": binary.LittleEndian.AppendUint64(nil, 1<<63),
	} {
		_, err := p.Decode(data)
		require.ErrorIs(t, err, errOtherOracle, name)
		require.True(t, p.pebble().MayContain(0, data, []byte("a key")), "what is not known is not ruled out: %s", name)
	}
	_, err := newOracle(filepath.Join(t.TempDir(), "other")).Decode(files[0])
	require.ErrorIs(t, err, errOtherOracle)
	_, err = filterpolicy.Decode(OracleFilter, files[0])
	require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily)
}

func TestSetsOfAStoreThatIsGoneAreDropped(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	require.NoError(t, os.Mkdir(dir, 0o750))
	data, _ := newOracle(dir).NewBuilder().Finish(nil)
	newOracle(filepath.Join(parent, "second"))
	_, err := newOracle(dir).Decode(data)
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir))
	newOracle(filepath.Join(parent, "third"))
	_, err = newOracle(dir).Decode(data)
	require.ErrorIs(t, err, errOtherOracle)
}
