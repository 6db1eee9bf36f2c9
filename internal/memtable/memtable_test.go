package memtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/property"
)

type entry struct {
	key   base.InternalKey
	value string
}

func (e entry) String() string { return fmt.Sprintf("%s=%q", e.key, e.value) }

// add and get hash keys as the store does.
func add(m *Memtable, k base.InternalKey, value []byte) error {
	return m.Add(k, xxhash.Sum64(k.User), value)
}

func get(m *Memtable, user []byte, seq base.SeqNum) ([]byte, base.Trailer, bool) {
	return m.Get(user, xxhash.Sum64(user), seq)
}

// hashes are functions that callers may use, down to the worst: reads must be right
// with each of them.
var hashes = map[string]func([]byte) uint64{
	"good":     xxhash.Sum64,
	"constant": func([]byte) uint64 { return 1 << 40 },
	"few":      func(b []byte) uint64 { return xxhash.Sum64(b) % 3 << 62 },
}

// contents reads a table in both directions, which must agree.
func contents(t require.TestingT, m *Memtable) []entry {
	entries := []entry{}
	it := m.NewIter()
	for ok := it.First(); ok; ok = it.Next() {
		entries = append(entries, entry{it.Key().Clone(), string(it.Value())})
	}
	require.False(t, it.Valid())
	backward := []entry{}
	for ok := it.Last(); ok; ok = it.Prev() {
		backward = append(backward, entry{it.Key().Clone(), string(it.Value())})
	}
	slices.Reverse(backward)
	require.Equal(t, entries, backward)
	return entries
}

func byKey(a, b entry) int { return base.Compare(a.key, b.key) }

// genKey draws user keys that are short, share prefixes longer than a word,
// differ only by zeros at the end, or are arbitrary.
func genKey() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 3),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0xff}), 0, 3), func(b []byte) []byte {
			return append([]byte("prefixed"), b...)
		}),
		rapid.SliceOfN(rapid.Byte(), 0, 20),
	)
}

func genInternalKey() *rapid.Generator[base.InternalKey] {
	return rapid.Custom(func(t *rapid.T) base.InternalKey {
		return base.MakeKey(
			genKey().Draw(t, "user"),
			base.SeqNum(rapid.Uint64Range(0, 5).Draw(t, "seq")),
			rapid.SampledFrom([]base.Kind{base.KindSet, base.KindDelete}).Draw(t, "kind"))
	})
}

func TestAgreesWithASortedSlice(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) { property.Check(t, agreesWithASortedSlice(hash)) })
	}
}

func agreesWithASortedSlice(hash func([]byte) uint64) func(*rapid.T) {
	return func(t *rapid.T) {
		m := New(1 << 16)
		require.True(t, m.Empty())
		model := []entry{}
		for range rapid.IntRange(0, 60).Draw(t, "adds") {
			e := entry{genInternalKey().Draw(t, "key"), rapid.StringN(0, 9, -1).Draw(t, "value")}
			at, present := slices.BinarySearchFunc(model, e, byKey)
			err := m.Add(e.key, hash(e.key.User), []byte(e.value))
			if present {
				require.ErrorIs(t, err, ErrDuplicate)
				continue
			}
			require.NoError(t, err)
			e.key = e.key.Clone()
			if e.key.User == nil {
				e.key.User = []byte{}
			}
			model = slices.Insert(model, at, e)
		}
		require.Equal(t, len(model), m.Len())
		require.Equal(t, len(model) == 0, m.Empty())
		require.Equal(t, model, contents(t, m))
		for range 20 {
			k := genInternalKey().Draw(t, "probe")
			checkSeeks(t, m, model, k)
			checkVersions(t, m, model, k.User, hash(k.User), k.SeqNum())
		}
		for _, e := range model {
			checkSeeks(t, m, model, e.key)
			for seq := base.SeqNum(0); seq <= 6; seq++ {
				checkVersions(t, m, model, e.key.User, hash(e.key.User), seq)
			}
		}
	}
}

// checkSeeks holds SeekGE and SeekLT at a key against the model.
func checkSeeks(t require.TestingT, m *Memtable, model []entry, k base.InternalKey) {
	at, _ := slices.BinarySearchFunc(model, entry{key: k}, byKey)
	it := m.NewIter()
	requireAt(t, it, it.SeekGE(k), model, at)
	if at < len(model) {
		requireAt(t, it, it.Next(), model, at+1)
		it.SeekGE(k)
		requireAt(t, it, it.Prev(), model, at-1)
	}
	requireAt(t, it, it.SeekLT(k), model, at-1)
	if at > 0 {
		requireAt(t, it, it.Next(), model, at)
	}
}

// checkVersions holds Get and SeekVersion against the model.
func checkVersions(t require.TestingT, m *Memtable, model []entry, user []byte, hash uint64, seq base.SeqNum) {
	at, _ := slices.BinarySearchFunc(model, entry{key: base.SearchKey(user, seq)}, byKey)
	visible := at < len(model) && bytes.Equal(model[at].key.User, user)
	it := m.NewIter()
	if it.SeekVersion(user, hash, seq); visible {
		requireAt(t, it, it.Valid(), model, at)
	}
	require.Equal(t, visible, it.Valid())
	value, trailer, ok := m.Get(user, hash, seq)
	require.Equal(t, visible, ok)
	if ok {
		require.Equal(t, model[at].key.Trailer, trailer)
		require.Equal(t, model[at].value, string(value))
	}
}

func requireAt(t require.TestingT, it *Iter, ok bool, model []entry, at int) {
	require.Equal(t, 0 <= at && at < len(model), ok)
	require.Equal(t, ok, it.Valid())
	if ok {
		require.Equal(t, model[at], entry{it.Key().Clone(), string(it.Value())})
	}
}

func TestAddCopies(t *testing.T) {
	m := New(1 << 10)
	key, value := []byte("a key of more than a word"), []byte("value")
	require.NoError(t, add(m, base.MakeKey(key, 1, base.KindSet), value))
	clear(key)
	clear(value)
	got, trailer, ok := get(m, []byte("a key of more than a word"), 1)
	require.True(t, ok)
	require.Equal(t, "value", string(got))
	require.Equal(t, base.MakeTrailer(1, base.KindSet), trailer)
	require.Equal(t, len(got), cap(got), "an append must not reach the next entry")
}

func TestGetSeesVersionsUpToItsSequenceNumber(t *testing.T) {
	m := New(1 << 12)
	k := []byte("k")
	require.NoError(t, add(m, base.MakeKey(k, 30, base.KindSet), []byte("v30")))
	require.NoError(t, add(m, base.MakeKey(k, 10, base.KindSet), []byte("v10")))
	require.NoError(t, add(m, base.MakeKey(k, 20, base.KindDelete), nil))
	for _, c := range []struct {
		seq   base.SeqNum
		found base.SeqNum
		kind  base.Kind
		value string
	}{
		{10, 10, base.KindSet, "v10"},
		{19, 10, base.KindSet, "v10"},
		{20, 20, base.KindDelete, ""},
		{29, 20, base.KindDelete, ""},
		{30, 30, base.KindSet, "v30"},
		{base.MaxSeqNum, 30, base.KindSet, "v30"},
	} {
		value, trailer, ok := get(m, k, c.seq)
		require.True(t, ok)
		require.Equal(t, base.MakeTrailer(c.found, c.kind), trailer)
		require.Equal(t, c.value, string(value))
	}
	for _, absent := range []string{"", "j", "k\x00", "kk", "l"} {
		_, _, ok := get(m, []byte(absent), base.MaxSeqNum)
		require.False(t, ok, "%q", absent)
	}
	_, _, ok := get(m, k, 9)
	require.False(t, ok)
}

func TestIteratorOnNoEntry(t *testing.T) {
	m := New(1 << 10)
	it := m.NewIter()
	for range 2 {
		require.False(t, it.Valid())
		require.False(t, it.Next())
		require.False(t, it.Prev())
		require.Equal(t, base.InternalKey{}, it.Key())
		require.Nil(t, it.Value())
		require.False(t, it.First())
		require.False(t, it.Last())
		require.False(t, it.SeekGE(base.SearchKey(nil, base.MaxSeqNum)))
		require.False(t, it.SeekLT(base.MakeKey([]byte{0xff}, 0, 0)))
	}
	require.NoError(t, add(m, base.MakeKey(nil, 0, 0), nil))
	require.True(t, it.First())
	require.Empty(t, it.Value())
	require.False(t, it.Prev())
	require.False(t, it.Next(), "an iterator that walked past an end stays there")
}

func TestFullTableRefusesAndStaysWhole(t *testing.T) {
	m := New(1 << 12)
	added := []entry{}
	var err error
	for i := 0; err == nil; i++ {
		e := entry{base.MakeKey(fmt.Appendf(nil, "%04d", i), 1, base.KindSet), "value"}
		if err = add(m, e.key, []byte(e.value)); err == nil {
			added = append(added, e)
		}
	}
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, add(m, base.MakeKey([]byte("big"), 1, base.KindSet), make([]byte, 1<<12)), ErrFull)
	require.Equal(t, added, contents(t, m))
	require.LessOrEqual(t, m.Size(), int64(1<<12))
	require.Greater(t, m.Size(), int64(1<<12-EntrySize(4, 5)))
}

func TestTinyCapacityIsAlwaysFull(t *testing.T) {
	for _, capacity := range []int{math.MinInt, -1, 0, 1, 8, 50, 99} {
		m := New(capacity)
		require.ErrorIs(t, add(m, base.MakeKey([]byte("k"), 1, base.KindSet), nil), ErrFull)
		require.True(t, m.Empty())
		require.Empty(t, contents(t, m))
		require.False(t, m.Reserve(EntrySize(1, 0)))
	}
}

func TestEntrySizeIsAnUpperBound(t *testing.T) {
	m := New(1 << 22)
	for keyLen := range 40 {
		for valueLen := range 40 {
			key := binary.BigEndian.AppendUint32(make([]byte, 0, 40), uint32(valueLen))
			key = append(key, make([]byte, 40)...)[:keyLen]
			before := m.Size()
			err := add(m, base.MakeKey(key, base.SeqNum(valueLen), base.KindSet), make([]byte, valueLen))
			require.NoError(t, err)
			require.LessOrEqual(t, m.Size()-before, int64(EntrySize(keyLen, valueLen)))
		}
	}
	require.Equal(t, 56+8+8+16+3, EntrySize(0, 3))
	require.Equal(t, 56+8+24+16+3, EntrySize(17, 3))
}

func TestReserve(t *testing.T) {
	m := New(4 << 10)
	require.False(t, m.Reserve(-1))
	require.False(t, m.Reserve(math.MaxInt))
	require.False(t, m.Reserve(4<<10))
	require.True(t, m.Reserve(2<<10))
	require.False(t, m.Reserve(2<<10))
	require.True(t, m.Reserve(1<<10))
	m.Release(2 << 10)
	m.Release(1 << 10)
	require.True(t, m.Reserve(3<<10))
}

func TestReservedAddsAreNeverRefused(t *testing.T) {
	m := New(256 << 10)
	var next, refused atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				const batch = 5
				n := batch * EntrySize(8, 20)
				if !m.Reserve(n) {
					refused.Add(1)
					return
				}
				for range batch {
					key := binary.BigEndian.AppendUint64(nil, uint64(next.Add(1)))
					assert.NoError(t, add(m, base.MakeKey(key, 1, base.KindSet), make([]byte, 20)))
				}
				m.Release(n)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 4, refused.Load())
	require.EqualValues(t, next.Load(), m.Len())
	require.Greater(t, m.Size(), int64(250<<10), "worst cases are given back")
}

func TestHeightsFallByFour(t *testing.T) {
	for _, versions := range []string{"of one key", "one of each key", "of a hundred keys"} {
		t.Run(versions, func(t *testing.T) { requireHeights(t, versions) })
	}
}

func requireHeights(t *testing.T, versions string) {
	t.Helper()
	const n = 1 << 18
	var count [maxHeight + 1]int
	m := New(0)
	m.seed = 0x2545f4914f6cdd1d
	for i := range uint64(n) {
		trailer, key := i<<8|1, make([]byte, 8)
		switch versions {
		case "of one key":
		case "one of each key":
			binary.BigEndian.PutUint64(key, i)
			trailer = 1
		case "of a hundred keys":
			binary.BigEndian.PutUint64(key, i%100)
		}
		count[m.drawHeight(base.Trailer(trailer), xxhash.Sum64(key))]++
	}
	require.Zero(t, count[0])
	rest := float64(n)
	for h := 1; h <= 6; h++ {
		// 8 standard deviations of a binomial share of 3/4.
		require.InDelta(t, rest*0.75, count[h], 8*math.Sqrt(rest*0.75*0.25), "height %d", h)
		rest -= float64(count[h])
	}
}

func TestDuplicateIsRefusedInRaces(t *testing.T) {
	const writers, keys = 4, 200
	m := New(1 << 20)
	var added atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, 7)) // the same keys for all
			for _, i := range rng.Perm(keys) {
				err := add(m, base.MakeKey([]byte{byte(i)}, base.SeqNum(i), base.KindSet), []byte{byte(w)})
				if err == nil {
					added.Add(1)
				} else {
					assert.ErrorIs(t, err, ErrDuplicate)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, keys, added.Load())
	require.Equal(t, keys, m.Len())
	require.Len(t, contents(t, m), keys)
}
