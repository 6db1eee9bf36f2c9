package sstable

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/stretchr/testify/require"
)

// A goldenFile is a file that every later version of this package reads. Compressors
// may give other bytes one day, so that only the uncompressed ones of the newest
// version must be written again as they are.
//
// The sparse ones have four buckets for three keys and restarts by the number of
// entries alone, as writers of version 1 did at first. The counted ones say what of them
// is overwritten, and when values expire; writers of version 3 did not at first.
type goldenFile struct {
	name   string
	o      WriterOptions
	newest bool
}

func goldens() []goldenFile {
	newest := []goldenFile{
		{name: "plain", o: WriterOptions{BlockSize: 512, RestartInterval: 4, Compression: NoCompression,
			Filter: mustParse("none"), ID: 0x51f7}},
		{name: "blocked", o: WriterOptions{BlockSize: 512, RestartInterval: 8, Compression: NoCompression,
			Filter: mustParse("blocked:10"), IndexPartition: 100, ID: 0x51f8}},
		{name: "snappy-bloom", o: WriterOptions{BlockSize: 512, Compression: Snappy, Filter: mustParse("bloom:10"),
			ID: 0x51f9}},
		{name: "zstd-cuckoo", o: WriterOptions{BlockSize: 512, Compression: Zstd, Filter: mustParse("cuckoo:12"),
			ID: 0x51fa}},
	}
	files := []goldenFile{{"v3-ranges.sst", WriterOptions{BlockSize: 512, RestartInterval: 8, ID: 0x51fb,
		Compression: NoCompression, Filter: mustParse("blocked:10"), RangeFilter: mustParseRange("cut:6")}, true}}
	for _, f := range newest {
		for _, name := range []string{"v1-%s-sparse.sst", "v1-%s.sst", "v3-%s.sst", "v3-%s-counted.sst"} {
			files = append(files, goldenFile{fmt.Sprintf(name, f.name), f.o, strings.HasSuffix(name, "counted.sst")})
		}
	}
	return files
}

// goldenContent is what every golden file holds: keys with shared beginnings,
// several versions, tombstones, empty and long values.
func goldenContent() (vs []version, ts []rangedel.Tombstone) {
	add := func(key string, seq base.SeqNum, kind base.Kind, value string) {
		vs = append(vs, version{base.MakeKey([]byte(key), seq, kind), []byte(value)})
	}
	add("", 1, base.KindSet, "the empty key")
	add("fruit/apple", 9, base.KindSet, "third")
	add("fruit/apple", 5, base.KindDelete, "")
	add("fruit/apple", 2, base.KindSet, "first")
	for i := range 40 {
		add(fmt.Sprintf("user/%04d/name", i*i), base.SeqNum(100+i), base.KindSet, fmt.Sprintf("name of user %d", i))
	}
	add("user/9", base.MaxSeqNum, base.KindSet, string(bytes.Repeat([]byte("long "), 150)))
	add("\xff\xff", 7, base.KindSet, "")
	ts = []rangedel.Tombstone{
		{Start: []byte("fruit"), End: []byte("fruit0"), Seq: 4},
		{Start: []byte("user/0100"), End: []byte("user/0900"), Seq: 110},
		{Start: []byte("user/0500"), Seq: 60},
	}
	return vs, ts
}

func TestGoldenFilesAreRead(t *testing.T) {
	vs, ts := goldenContent()
	for _, g := range goldens() {
		name := filepath.Join("testdata", g.name)
		if golden.Update() && g.newest {
			data, _ := writeFile(t, &g.o, vs, ts...)
			golden.Write(t, name, data)
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), 4096, name)
		r, err := Open(name, &ReaderOptions{ID: g.o.ID})
		require.NoError(t, err)
		require.NoError(t, r.Verify(), name)
		require.NoError(t, r.FilterError(), name)
		require.Equal(t, g.o.Filter.Name() != "none", r.HasFilter(), name)
		require.NoError(t, r.RangeFilterError(), name)
		require.Equal(t, g.o.RangeFilter != nil, r.HasRangeFilter(), name)
		require.Equal(t, g.o.Compression, r.Properties().Compression)
		v := victim{name: name, data: data, vs: vs, ts: ts}
		noticed, verified := v.examine(t, data, nil)
		require.False(t, noticed || verified, name)
		require.NoError(t, r.Close())
	}
}

func TestUncompressedFilesAreWrittenAsEver(t *testing.T) {
	vs, ts := goldenContent()
	for _, g := range goldens() {
		if g.o.Compression != NoCompression || !g.newest {
			continue
		}
		want, err := os.ReadFile(filepath.Join("testdata", g.name))
		require.NoError(t, err)
		got, _ := writeFile(t, &g.o, vs, ts...)
		require.True(t, bytes.Equal(want, got), "%s: the format has changed; it needs a new version", g.name)
	}
}
