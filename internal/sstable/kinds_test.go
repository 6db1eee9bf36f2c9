package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

// kindsContent has merge operands and values that expire among others.
func kindsContent() (vs []version) {
	add := func(key string, seq base.SeqNum, kind base.Kind, value string) {
		vs = append(vs, version{base.MakeKey([]byte(key), seq, kind), []byte(value)})
	}
	until := func(at uint64, value string) string { return string(base.AppendExpiry(nil, at)) + value }
	add("counter", 9, base.KindMerge, "+1")
	add("counter", 8, base.KindMerge, "+2")
	add("counter", 4, base.KindSet, "40")
	add("expired", 7, base.KindSetTTL, until(1_000_000, "gone since 1970"))
	add("expired", 3, base.KindSet, "hidden")
	add("forever", 7, base.KindSetTTL, until(1<<62, "for a very long time"))
	for i := range 30 {
		add("many", base.SeqNum(1000-i), base.KindMerge, fmt.Sprintf("operand %d", i))
	}
	add("plain", 2, base.KindSet, "value")
	return vs
}

var kindsOptions = WriterOptions{BlockSize: 128, RestartInterval: 4, Compression: NoCompression, ID: 0x52f0,
	Merger: "a merger"}

func TestGoldenFilesWithAllKinds(t *testing.T) {
	vs := kindsContent()
	data, info := writeFile(t, &kindsOptions, vs)
	golden.File(t, filepath.Join("testdata", "v3-kinds-counted.sst"), data)
	r := requireKinds(t, data)
	require.Equal(t, info.Properties, *r.Properties())
	for _, name := range []string{"v2-kinds.sst", "v3-kinds.sst"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		requireKinds(t, data)
	}
}

// requireKinds requires that a file has the content of kindsContent.
func requireKinds(t *testing.T, data []byte) *Reader {
	vs := kindsContent()
	r := openBytes(t, data, nil)
	require.NoError(t, r.Verify())
	p := r.Properties()
	require.Equal(t, []uint64{32, 2, 1 << 62}, []uint64{p.Merges, p.Expiring, p.LastExpiry})
	require.Equal(t, "a merger", p.Merger)
	it := r.NewIter(IterOptions{})
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Zero(t, base.Compare(vs[n].key, it.Key()))
		require.Equal(t, vs[n].value, it.Value())
		n++
	}
	require.Len(t, vs, n)
	for _, v := range vs {
		var p Probe
		value, trailer, ok, err := r.Find(nil, v.key.User, filterpolicy.Hash(v.key.User), v.key.SeqNum(), &p)
		require.NoError(t, err)
		require.True(t, ok, "%s", v.key)
		require.Equal(t, v.key.Trailer, trailer)
		require.Equal(t, v.value, value)
	}
	return r
}

func TestFindGoesOnToOlderVersionsAcrossBlocks(t *testing.T) {
	data, info := writeFile(t, &kindsOptions, kindsContent())
	require.Greater(t, info.DataBlocks, uint64(5), "the versions of a key cross blocks")
	requireKinds(t, data)
}

// The version stands outside the footer's checksum, and cannot be changed all the same.
func TestTheVersionIsThatOfTheContent(t *testing.T) {
	for name, want := range map[string]uint32{"v1-plain.sst": 1, "v2-kinds.sst": 2, "v3-plain.sst": 3,
		"v3-kinds.sst": 3} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		at := data[len(data)-12:]
		require.Equal(t, want, binary.LittleEndian.Uint32(at))
		for _, wrong := range []uint32{0, 1, 2, 3, 4, 1 << 31} {
			if wrong == want {
				continue
			}
			binary.LittleEndian.PutUint32(at, wrong)
			_, err := NewReader(bytes.NewReader(data), int64(len(data)), nil)
			require.ErrorIs(t, err, ErrCorruption, "version %d for %d", wrong, want)
		}
	}
}

func TestAnExpiringValueNeedsAnExpiry(t *testing.T) {
	w := NewWriter(&bytes.Buffer{}, nil)
	require.ErrorContains(t, w.Add(base.MakeKey([]byte("k"), 1, base.KindSetTTL), []byte("1234567")), "has no expiry")
	_, err := w.Finish()
	require.Error(t, err)
}

func TestVerifyCountsKinds(t *testing.T) {
	data, _ := writeFile(t, &kindsOptions, kindsContent())
	for name, change := range map[string]func(p *Properties){
		"merge operands":  func(p *Properties) { p.Merges++ },
		"expiring values": func(p *Properties) { p.Expiring-- },
		"last expiry":     func(p *Properties) { p.LastExpiry++ },
		"octiles":         func(p *Properties) { p.ExpiryOctiles[6]-- },
		"overwritten":     func(p *Properties) { p.Overwritten++ },
	} {
		r := openBytes(t, data, nil)
		change(r.props)
		err := r.Verify()
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, name)
	}
	var deleted []version
	for i := range DenseStretch {
		deleted = append(deleted, version{base.MakeKey(fmt.Appendf(nil, "%03d", i), 1, base.KindDelete), nil})
	}
	data, _ = writeFile(t, nil, deleted)
	r := openBytes(t, data, nil)
	require.EqualValues(t, DenseStretch, r.props.DenseDeletes)
	r.props.DenseDeletes--
	require.ErrorContains(t, r.Verify(), "dense tombstones")
	r.props.DenseDeletes = 0 // as of a writer that does not count them
	require.NoError(t, r.Verify())
	unknown, _ := writeFile(t, nil, []version{{base.MakeKey([]byte("k"), 1, 7), nil}})
	require.ErrorContains(t, openBytes(t, unknown, nil).Verify(), "no place among point entries")
}
