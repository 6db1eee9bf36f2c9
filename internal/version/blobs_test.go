package version

import (
	"log/slog"
	"math"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A blobModel makes edits of a store with blob files, as flushes and compactions do, and knows which
// records each table refers to.
type blobModel struct {
	v     *Version
	state *ManifestState
	num   uint64
	refs  map[uint64]map[uint64]int // by table, then by blob file: records
	sizes map[uint64]int            // records of blob files
}

const blobRecord = 100 // bytes

func (m *blobModel) refsOf(table uint64) (refs []manifest.BlobRef) {
	for num, n := range m.refs[table] {
		refs = append(refs, manifest.BlobRef{Num: num, Records: uint64(n), Bytes: uint64(n) * blobRecord})
	}
	slices.SortFunc(refs, func(a, b manifest.BlobRef) int { return int(a.Num) - int(b.Num) })
	return refs
}

func (m *blobModel) add(e *manifest.Edit, level int, refs map[uint64]int) {
	m.num++
	m.refs[m.num] = refs
	e.Added = append(e.Added, manifest.AddedTable{Level: level, Run: m.num, Table: manifest.Table{Num: m.num,
		Smallest: keyAt(int(m.num)), Largest: keyAt(int(m.num)), Entries: 1000, Blobs: m.refsOf(m.num)}})
}

// edit writes a few blob files with a table, or puts one table in the place of several, without some
// of their references, or moves a table.
func (m *blobModel) edit(t *rapid.T) *manifest.Edit {
	e := &manifest.Edit{}
	var tables []*Table
	m.v.All(func(_ int, tb *Table) { tables = append(tables, tb) })
	what := rapid.IntRange(0, 3).Draw(t, "what")
	if what == 0 || len(tables) == 0 {
		refs := map[uint64]int{}
		for range rapid.IntRange(0, 3).Draw(t, "blob files") {
			m.num++
			n := rapid.IntRange(1, 50).Draw(t, "records")
			m.sizes[m.num], refs[m.num] = n, n
			e.AddedBlobs = append(e.AddedBlobs, manifest.BlobFile{Num: m.num, ID: m.num + 1000, Records: uint64(n),
				Size: int64(leastBlob + n*blobRecord), ValueBytes: 1})
		}
		m.add(e, 0, refs)
		return e
	}
	merged := map[uint64]int{}
	for range rapid.IntRange(1, 3).Draw(t, "inputs") {
		tb := rapid.SampledFrom(tables).Draw(t, "input")
		if slices.ContainsFunc(e.Deleted, func(d manifest.DeletedTable) bool { return d.Num == tb.Num }) {
			continue
		}
		id, _ := m.v.RunOf(tb)
		e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: id.Level, Num: tb.Num})
		if what == 1 {
			e.Added = append(e.Added, manifest.AddedTable{Level: (id.Level + 1) % 7, Run: tb.Num, Table: tb.Table})
			continue
		}
		for num, n := range m.refs[tb.Num] {
			if n -= rapid.IntRange(0, 20).Draw(t, "dropped"); n > 0 {
				merged[num] += n
			}
		}
		delete(m.refs, tb.Num)
	}
	if what > 1 {
		m.add(e, 5, merged)
	}
	m.v.DropBlobs(e)
	return e
}

// check holds a version against the model.
func (m *blobModel) check(t *rapid.T, v *Version) {
	require.NoError(t, v.RecountBlobs())
	live, totals := map[uint64]int{}, BlobTotals{}
	for _, refs := range m.refs {
		for num, n := range refs {
			live[num] += n
		}
	}
	for b := range v.Blobs() {
		require.Equal(t, uint64(live[b.Num]), b.LiveRecords)
		require.Equal(t, uint64(m.sizes[b.Num]-live[b.Num])*blobRecord, b.Garbage())
		require.Same(t, b, v.Blob(b.Num))
		require.Equal(t, b.Num+1000, v.BlobID(b.Num))
		totals.Files++
		totals.Bytes += b.Size
		totals.Records += b.Records
		totals.RecordBytes += b.Records * blobRecord
		totals.LiveRecords += b.LiveRecords
		totals.LiveBytes += b.LiveRecords * blobRecord
	}
	require.Len(t, live, totals.Files, "a file is there as long as a table refers to it")
	require.Equal(t, totals, v.BlobTotals())
	var sums uint64
	for n := range v.Levels {
		sums += v.Levels[n].BlobBytes
	}
	require.Equal(t, totals.LiveBytes, sums)
	require.Equal(t, totals.Files > 0, v.Features()&manifest.FeatureSeparated != 0)
	require.Nil(t, v.Blob(m.num+1))
	require.Zero(t, v.BlobID(m.num+1))

	described := &manifest.Edit{}
	v.Describe(described)
	again, err := (&Version{}).Apply(described)
	require.NoError(t, err)
	require.NoError(t, again.RecountBlobs())
	require.Equal(t, v.BlobTotals(), again.BlobTotals())
}

func TestLiveBytesAreSumsOverTables(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &blobModel{v: &Version{}, state: NewManifestState(), refs: map[uint64]map[uint64]int{},
			sizes: map[uint64]int{}}
		view := &Version{}
		for range rapid.IntRange(1, 20).Draw(t, "edits") {
			e := m.edit(t)
			next, err := m.v.Apply(e)
			require.NoError(t, err)
			m.check(t, next)
			require.NoError(t, m.state.Apply(e))
			if rapid.Bool().Draw(t, "a follower looks") {
				followed, err := m.state.Version(view)
				require.NoError(t, err)
				m.check(t, followed)
				for b := range followed.Blobs() {
					if was := view.Blob(b.Num); was != nil {
						require.Same(t, was.Blob, b.Blob)
					}
				}
				view = followed
			}
			m.v = next
		}
	})
}

// Whatever edit a version is given: what cannot be is an error, and never a sum.
func TestEditsOfBlobFilesThatCannotBe(t *testing.T) {
	file := manifest.BlobFile{Num: 14, ID: 1, Size: leastBlob + 1000, Records: 10, ValueBytes: 1}
	table := func(num uint64, refs ...manifest.BlobRef) manifest.AddedTable {
		return manifest.AddedTable{Table: manifest.Table{Num: num, Smallest: []byte("a"), Largest: []byte("a"),
			Blobs: refs}}
	}
	v, err := (&Version{}).Apply(&manifest.Edit{AddedBlobs: []manifest.BlobFile{file},
		Added: []manifest.AddedTable{table(1, manifest.BlobRef{Num: 14, Records: 6, Bytes: 600})}})
	require.NoError(t, err)
	gone := []manifest.DeletedTable{{Num: 1}}
	for text, e := range map[string]*manifest.Edit{
		"two files of number 14": {AddedBlobs: []manifest.BlobFile{file}},
		"two files of number 1":  {AddedBlobs: []manifest.BlobFile{{Num: 1, ID: 1, Size: 1000}}},
		"so short":               {AddedBlobs: []manifest.BlobFile{{Num: 2, ID: 1, Size: leastBlob - 1}}},
		"blob file 15, which is not there": {Added: []manifest.AddedTable{
			table(2, manifest.BlobRef{Num: 15, Records: 1, Bytes: 1})}},
		"11 records and 700 bytes of blob file 14, which has 10 and 1000": {Added: []manifest.AddedTable{
			table(2, manifest.BlobRef{Num: 14, Records: 5, Bytes: 100})}},
		"7 records and 1001 bytes of blob file 14": {Added: []manifest.AddedTable{
			table(2, manifest.BlobRef{Num: 14, Records: 1, Bytes: 401})}},
		"0 records and 1 bytes": {Deleted: gone, Added: []manifest.AddedTable{
			table(2, manifest.BlobRef{Num: 14, Bytes: 1})}},
		"tables refer to 6 records of it": {DeletedBlobs: []uint64{14}},
		"deleted but not there":           {DeletedBlobs: []uint64{15}},
		"126 records in 1000 bytes": {AddedBlobs: []manifest.BlobFile{{Num: 2, ID: 1, Size: leastBlob + 1000,
			Records: 126}}},
		"18446744073709551615 records in 1000 bytes": {AddedBlobs: []manifest.BlobFile{{Num: 2, ID: 1,
			Size: leastBlob + 1000, Records: math.MaxUint64}}},
		// Totals that wrap round to what can be.
		"1 records and 18446744073709551606 bytes of blob file 14": {Added: []manifest.AddedTable{
			table(2, manifest.BlobRef{Num: 14, Records: 1, Bytes: math.MaxUint64 - 9}),
			table(3, manifest.BlobRef{Num: 14, Records: 1, Bytes: 20})}},
	} {
		_, err := v.Apply(e)
		require.ErrorContains(t, err, text)
	}
	require.ErrorContains(t, NewManifestState().Apply(&manifest.Edit{DeletedBlobs: []uint64{14}}), "not there")
	twice := &manifest.Edit{AddedBlobs: []manifest.BlobFile{file, {Num: 14, ID: 2, Size: file.Size, Records: 1}}}
	require.ErrorContains(t, NewManifestState().Apply(twice), "two files of number 14")

	e := &manifest.Edit{Deleted: gone}
	next, err := v.Apply(e)
	require.NoError(t, err)
	require.ErrorContains(t, next.RecountBlobs(), "blob file 14: no table refers to it")
	v.DropBlobs(e)
	require.Equal(t, []uint64{14}, e.DeletedBlobs)
	next, err = v.Apply(e)
	require.NoError(t, err)
	require.NoError(t, next.RecountBlobs())
}

func TestRecountFindsSumsThatHaveDrifted(t *testing.T) {
	refs := []manifest.BlobRef{{Num: 14, Records: 6, Bytes: 600}}
	v, err := (&Version{}).Apply(&manifest.Edit{
		AddedBlobs: []manifest.BlobFile{{Num: 14, ID: 1, Size: leastBlob + 1000, Records: 10, ValueBytes: 1}},
		Added:      []manifest.AddedTable{{Table: manifest.Table{Num: 1, Blobs: refs}}}})
	require.NoError(t, err)
	b := *v.Blob(14)
	b.LiveBytes--
	v.set(14, &b, new(byte))
	require.ErrorContains(t, v.RecountBlobs(), "6 records and 599 bytes are live, and tables refer to 6 and 600")
	v.set(14, nil, new(byte))
	require.ErrorContains(t, v.RecountBlobs(), "a table refers to blob file 14, which is not there")
	v.blobTotals.Files++
	require.ErrorContains(t, v.RecountBlobs(), "sums over blob files")
}

// A blob file is closed, and removed if it is obsolete, with the last version in use that lists it.
func TestBlobFilesGoWithTheLastVersionThatListsThem(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	blobs := &BlobCache{Path: func(num uint64) string { return "db/" + manifest.FileName(manifest.FileBlob, num) },
		OpenFile: mem.Open}
	tables := &tablecache.Cache{Path: func(num uint64) string { return manifest.FileName(manifest.FileTable, num) }}
	c := &Cleaner{Tables: tables, Blobs: blobs, History: &History{}, FS: mem, Dir: "db",
		Log: slog.New(slog.DiscardHandler), Position: func() manifest.Position { return manifest.Position{} },
		Cleaned: func() {}}
	write := func(num uint64) {
		f, err := mem.Create(blobs.Path(num))
		require.NoError(t, err)
		_, err = f.Write(make([]byte, leastBlob+100))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	there := func() []string {
		names, err := mem.List("db")
		require.NoError(t, err)
		return names
	}
	install := func(v *Version, e *manifest.Edit) *Version {
		v.DropBlobs(e)
		next, err := v.Apply(e)
		require.NoError(t, err)
		require.Len(t, next.come.blobs, len(e.AddedBlobs))
		c.History.Install(next)
		return next
	}
	add := func(num uint64) *manifest.Edit {
		write(num)
		return &manifest.Edit{
			AddedBlobs: []manifest.BlobFile{{Num: num, ID: 1, Size: leastBlob + 100, Records: 1, ValueBytes: 1}},
			Added: []manifest.AddedTable{{Table: manifest.Table{Num: num + 1,
				Blobs: []manifest.BlobRef{{Num: num, Records: 1, Bytes: 100}}}}}}
	}
	first := install(&Version{}, add(14))
	e := add(20)
	e.Deleted = []manifest.DeletedTable{{Num: 15}}
	second := install(first, e)
	require.Equal(t, []uint64{14}, e.DeletedBlobs)
	r, err := first.Blob(14).Open(blobs)
	require.NoError(t, err)
	again, err := first.Blob(14).Open(blobs)
	require.NoError(t, err)
	require.Same(t, r, again)
	require.Equal(t, []string{"000014.blob", "000020.blob"}, there(), "the first version has a reader")
	require.True(t, first.Unref())
	c.clean([]*Version{first}, nil)
	require.Equal(t, []string{"000020.blob"}, there())
	require.Nil(t, first.Blob(14).reader.Load())
	require.True(t, second.Unref())
	c.clean([]*Version{second}, nil)
	require.Equal(t, []string{"000020.blob"}, there(), "the store is closed: what it has stays")
}

func TestABlobFileOfAnotherSizeIsNotOpened(t *testing.T) {
	mem := vfs.NewMem()
	c := &BlobCache{Path: func(uint64) string { return "14.blob" }, OpenFile: mem.Open}
	b := &Blob{BlobFile: manifest.BlobFile{Num: 14, ID: 1, Size: leastBlob + 9}}
	_, err := b.Open(c)
	require.Error(t, err)
	f, err := mem.Create("14.blob")
	require.NoError(t, err)
	_, err = f.Write(make([]byte, leastBlob+8))
	require.NoError(t, err)
	_, err = b.Open(c)
	require.ErrorContains(t, err, "had 97 bytes when it was written and has 96 now")
	require.NoError(t, b.Close())
}

func TestTablesThatReferToBlobFiles(t *testing.T) {
	t.Parallel()
	table := func(num uint64, lo, hi string, blobs ...uint64) manifest.Table {
		m := manifest.Table{Num: num, Size: 100, Smallest: []byte(lo), Largest: []byte(hi), Entries: 9}
		for _, b := range blobs {
			m.Blobs = append(m.Blobs, manifest.BlobRef{Num: b, Records: 1, Bytes: 20})
		}
		return m
	}
	e := &manifest.Edit{}
	for _, num := range []uint64{20, 21, 22} {
		e.AddedBlobs = append(e.AddedBlobs, manifest.BlobFile{Num: num, ID: 1, Size: 1000, Records: 10,
			ValueBytes: 500})
	}
	e.Added = append(e.Added,
		manifest.AddedTable{Level: 6, Table: table(1, "a", "b", 20)},
		manifest.AddedTable{Level: 6, Table: table(2, "c", "d", 21, 22)},
		manifest.AddedTable{Level: 6, Table: table(3, "e", "f")},
		manifest.AddedTable{Level: 6, Table: table(4, "g", "h", 20, 21)},
		manifest.AddedTable{Level: 3, Table: table(5, "a", "h", 22)},
		manifest.AddedTable{Level: 0, Table: table(6, "b", "c", 21)})
	v, err := (&Version{}).Apply(e)
	require.NoError(t, err)
	nums := func(blobs ...uint64) (nums []uint64) {
		of := map[uint64]bool{}
		for _, b := range blobs {
			of[b] = true
		}
		for _, t := range v.ReferringTo(of) {
			nums = append(nums, t.Num)
		}
		return nums
	}
	require.Equal(t, []uint64{1, 4}, nums(20))
	require.Equal(t, []uint64{6, 2, 4}, nums(21), "the newest run first")
	require.Equal(t, []uint64{5, 1, 2, 4}, nums(20, 22))
	require.Nil(t, nums(23))
}
