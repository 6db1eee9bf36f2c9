package sstable

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

// separatedContent has handles of values in three blob files among other entries.
func separatedContent() (vs []version) {
	at := map[uint64]int64{14: 32, 9: 32, 300: 32}
	ordinals := map[uint64]uint64{}
	add := func(key string, seq base.SeqNum, kind base.Kind, prefix string, file uint64, length int64) {
		value := []byte(prefix)
		if kind.Separated() {
			h := blob.Handle{File: file, Ordinal: ordinals[file], Offset: at[file], Length: length, Size: length - 40}
			at[file] += length
			ordinals[file]++
			value = h.Append(value)
		}
		vs = append(vs, version{base.MakeKey([]byte(key), seq, kind), value})
	}
	until := func(at uint64) string { return string(base.AppendExpiry(nil, at)) }
	add("a", 9, base.KindSetSeparated, "", 14, 5000)
	add("a", 8, base.KindDelete, "", 0, 0)
	add("a", 7, base.KindSetSeparated, "", 9, 6000)
	add("inline", 7, base.KindSet, "value", 0, 0)
	add("ttl", 6, base.KindSetTTLSeparated, until(1_000_000), 14, 70_000)
	add("ttl", 5, base.KindSetTTL, until(2_000_000)+"short", 0, 0)
	for i := range 20 {
		add(fmt.Sprintf("user/%02d", i), 3, base.KindSetSeparated, "", []uint64{14, 300}[i%2], 1<<20)
	}
	return vs
}

var separatedOptions = WriterOptions{BlockSize: 128, RestartInterval: 4, Compression: NoCompression, ID: 0x52f1}

func TestGoldenFileWithHandles(t *testing.T) {
	vs := separatedContent()
	data, info := writeFile(t, &separatedOptions, vs)
	golden.File(t, filepath.Join("testdata", "v4-apart-droppable.sst"), data)
	require.EqualValues(t, 4, data[len(data)-12])
	r := openBytes(t, data, nil)
	require.NoError(t, r.Verify())
	p := r.Properties()
	require.Equal(t, info.Properties, *p)
	require.Equal(t, []uint64{23, 2, 2_000_000, 26}, []uint64{p.Separated, p.Expiring, p.LastExpiry, p.Entries})
	require.EqualValues(t, 81_000+20<<20-23*40, p.SeparatedBytes)
	require.Equal(t, base.Droppable{Overwritten: 6000, Expiring: 70_000, LastExpiry: 1_000_000,
		Octiles: Octiles{1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000}}, p.Droppable)
	require.Equal(t, BlobRefs{{9, 1009, 1, 6000}, {14, 1014, 12, 75_000 + 10<<20}, {300, 1300, 10, 10 << 20}}, p.Blobs)
	for _, o := range []IterOptions{{}, {KeysOnly: true}, {Sequential: true}} {
		it := r.NewIter(o)
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			require.Zero(t, base.Compare(vs[n].key, it.Key()))
			require.Equal(t, vs[n].value, it.Value())
			n++
		}
		require.Len(t, vs, n)
	}
}

// Writers of version 4 did not say at first what of a file could be dropped.
func TestAFileThatDoesNotSayWhatIsDroppable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "v4-apart.sst"))
	require.NoError(t, err)
	r := openBytes(t, data, nil)
	require.NoError(t, r.Verify())
	require.Zero(t, r.Properties().Droppable)
	require.EqualValues(t, 23, r.Properties().Separated)
}

func TestFindGivesHandlesBack(t *testing.T) {
	vs := separatedContent()
	data, _ := writeFile(t, &separatedOptions, vs)
	r := openBytes(t, data, nil)
	for _, v := range vs {
		if !v.key.Kind().Separated() {
			continue
		}
		var p Probe
		value, trailer, ok, err := r.Find(nil, v.key.User, filterpolicy.Hash(v.key.User), v.key.SeqNum(), &p)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, v.key.Trailer, trailer)
		require.Equal(t, v.value, value)
		h, expiry, err := blob.HandleOf(trailer.Kind(), value)
		require.NoError(t, err)

		p = Probe{SkipValue: true}
		value, _, ok, err = r.Find(nil, v.key.User, filterpolicy.Hash(v.key.User), v.key.SeqNum(), &p)
		require.NoError(t, err)
		require.True(t, ok && p.Skipped)
		require.Empty(t, value)
		require.EqualValues(t, h.Size, p.ValueSize, "the size is that of the value")
		require.Equal(t, expiry, p.Expiry)
	}
}

func TestHandlesAreCheckedWhenTheyAreWritten(t *testing.T) {
	good := blob.Handle{File: 14, Offset: 32, Length: 100, Size: 80}.Append(nil)
	for name, v := range map[string]version{
		"malformed handle": {base.MakeKey([]byte("k"), 1, base.KindSetSeparated), good[1:]},
		"has no expiry":    {base.MakeKey([]byte("k"), 1, base.KindSetTTLSeparated), good[:7]},
		"k#1,set-ttl-separated: malformed handle": {base.MakeKey([]byte("k"), 1, base.KindSetTTLSeparated),
			append(base.AppendExpiry(nil, 7), good[1:]...)},
	} {
		w := NewWriter(&bytes.Buffer{}, &separatedOptions)
		require.Error(t, w.Add(v.key, v.value), name)
		_, err := w.Finish()
		require.Error(t, err, name)
	}
	for _, id := range []func(uint64) uint64{nil, func(uint64) uint64 { return 0 }} {
		w := NewWriter(&bytes.Buffer{}, nil)
		w.KnowBlobs(id)
		require.NoError(t, w.Add(base.MakeKey([]byte("k"), 1, base.KindSetSeparated), good))
		_, err := w.Finish()
		require.ErrorContains(t, err, "blob file 14")
	}
}

func TestVerifyCountsReferences(t *testing.T) {
	data, _ := writeFile(t, &separatedOptions, separatedContent())
	for name, change := range map[string]func(p *Properties){
		"separated values":          func(p *Properties) { p.Separated++ },
		"bytes of separated values": func(p *Properties) { p.SeparatedBytes-- },
		"droppable bytes in blob":   func(p *Properties) { p.Droppable.Expiring++ },
		"references to blob files":  func(p *Properties) { p.Blobs[1].Bytes++ },
		"found [{9 0 1 6000}":       func(p *Properties) { p.Blobs = p.Blobs[1:] },
	} {
		r := openBytes(t, data, nil)
		change(r.props)
		err := r.Verify()
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, name)
	}
}

// Whatever the properties say, a file with handles is of the version that has them, and no store
// takes it from elsewhere.
func TestFilesWithHandlesHaveTheirVersion(t *testing.T) {
	data, _ := writeFile(t, &separatedOptions, separatedContent())
	p, err := decodeProperties(propertiesOf(t, data))
	require.NoError(t, err)
	p.written = slotsVersion
	older := withProperties(data, p.encode())
	older[len(older)-12] = slotsVersion
	_, err = NewReader(bytes.NewReader(older), int64(len(older)), nil)
	require.ErrorContains(t, err, "ask for format version 4, the footer says 3")

	zeroed := separatedContent()
	for i := range zeroed {
		zeroed[i].key = base.MakeKey(fmt.Appendf(nil, "%03d", i), 0, zeroed[i].key.Kind())
	}
	data, _ = writeFile(t, &separatedOptions, zeroed)
	_, err = NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{Seq: 7})
	require.ErrorContains(t, err, "refers to blob files")
}

func TestListsOfBlobFilesComeBack(t *testing.T) {
	refs := BlobRefs{{1, 2, 3, 4}, {5, math.MaxUint64, 1, 1 << 60}}
	got, ok := cutBlobRefs(refs.encode())
	require.True(t, ok)
	require.Equal(t, refs, got)
	for name, bad := range map[string]BlobRefs{
		"nothing": {}, "twice": {refs[0], refs[0]}, "not ascending": {refs[1], refs[0]}, "no number": {{0, 1, 1, 1}},
		"no id": {{1, 0, 1, 1}}, "no records": {{1, 1, 0, 1}}, "no bytes": {{1, 1, 1, 0}},
	} {
		_, ok := cutBlobRefs(bad.encode())
		require.False(t, ok, name)
	}
	b := refs.encode()
	_, ok = cutBlobRefs(b[:len(b)-1])
	require.False(t, ok)
}

func TestSalvageKeepsHandles(t *testing.T) {
	vs := separatedContent()
	data, _ := writeFile(t, &separatedOptions, vs)
	n := 0
	_, err := SalvageFile(bytes.NewReader(data[:len(data)-footerSize]), int64(len(data)-footerSize),
		&SalvageOptions{ID: separatedOptions.ID}, func(k base.InternalKey, value []byte) error {
			require.Zero(t, base.Compare(vs[n].key, k))
			require.Equal(t, vs[n].value, value)
			n++
			return nil
		})
	require.NoError(t, err)
	require.Len(t, vs, n)
}
