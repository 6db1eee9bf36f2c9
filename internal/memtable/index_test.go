package memtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
)

// requireIndex holds the index to its invariants: a key has one slot at most, with
// its newest version in it; a key without one has a full line.
func requireIndex(t *testing.T, m *Memtable, hash func([]byte) uint64) (indexed int) {
	t.Helper()
	slots := map[string]node{}
	for i := range m.index.lines {
		for j := range m.index.lines[i] {
			slot := m.index.lines[i][j].Load()
			if slot == 0 {
				continue
			}
			n := m.index.node(slot)
			user := string(m.user(n))
			if _, twice := slots[user]; twice {
				require.Fail(t, "two slots", "%q", user)
			}
			slots[user] = n
			if l, _, tag := m.index.place(hash(m.user(n))); l != &m.index.lines[i] || tag != slot&m.index.tags {
				require.Fail(t, "a slot out of place", "%q", user)
			}
		}
	}
	last := ""
	for i, n := range levelOf(m, 0) {
		user := string(m.user(n))
		if i > 0 && user == last {
			continue // an older version
		}
		last = user
		if there, ok := slots[user]; ok {
			if there != n {
				require.Fail(t, "an old version in the slot", "%q", user)
			}
			continue
		}
		l, _, _ := m.index.place(hash(m.user(n)))
		for j := range l {
			require.NotZero(t, l[j].Load(), "%q has no slot in a line that has room", user)
		}
	}
	return len(slots)
}

func TestIndexHasMostKeys(t *testing.T) {
	for _, c := range []struct {
		value int
		least float64 // share of the keys
	}{{100, 0.999}, {16, 0.85}, {0, 0.7}} {
		m := New(1 << 20)
		keys := 0
		var err error
		for ; err == nil; keys++ {
			k := base.MakeKey(binary.BigEndian.AppendUint64([]byte("prefixed"), uint64(keys)), 1, base.KindSet)
			err = add(m, k, make([]byte, c.value))
		}
		require.ErrorIs(t, err, ErrFull)
		keys--
		indexed := requireIndex(t, m, xxhash.Sum64)
		require.Greater(t, float64(indexed), c.least*float64(keys), "values of %d bytes", c.value)
		if c.value == 100 {
			denied := 0
			for i := range keys {
				if _, absent := m.indexed(nil, xxhash.Sum64(binary.BigEndian.AppendUint64(nil, uint64(i)))); absent {
					denied++
				}
			}
			require.Greater(t, float64(denied), 0.99*float64(keys), "absent keys that need no search")
		}
	}
}

func TestIndexTakesItsShare(t *testing.T) {
	for _, size := range []int{64 << 10, 1 << 20, 16<<20 + 12345} {
		m := New(CapacityWithin(size))
		require.LessOrEqual(t, len(m.bytes)+int(m.IndexSize()), size+wordSize)
		require.Greater(t, len(m.bytes)+int(m.IndexSize()), size-2*lineSize)
	}
}

func TestOldVersionsBehindMany(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			m := New(1 << 20)
			const versions = 300
			for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(versions) {
				for _, user := range []string{"a", "b", "c"} {
					k := base.MakeKey([]byte(user), base.SeqNum(2*i+2), base.KindSet)
					require.NoError(t, m.Add(k, hash(k.User), []byte(user)))
				}
			}
			for seq := range base.SeqNum(2*versions + 2) {
				value, trailer, ok := m.Get([]byte("b"), hash([]byte("b")), seq)
				require.Equal(t, seq >= 2, ok)
				if ok {
					require.Equal(t, seq&^1, trailer.SeqNum())
					require.Equal(t, "b", string(value))
				}
			}
			requireIndex(t, m, hash)
			requireTowers(t, m)
		})
	}
}

// checkVersion looks a key up of which the version at has been added; 0: none.
func checkVersion(m *Memtable, user []byte, hash, at uint64) error {
	value, trailer, ok := m.Get(user, hash, base.MaxSeqNum)
	if !ok && at > 0 || uint64(trailer.SeqNum()) < at {
		return fmt.Errorf("%q is at version %d (%t), which is older than %d", user, trailer.SeqNum(), ok, at)
	}
	if ok && binary.BigEndian.Uint64(value) != uint64(trailer.SeqNum()) {
		return fmt.Errorf("%q has at version %d the value of %x", user, trailer.SeqNum(), value)
	}
	if _, trailer, ok = m.Get(user, hash, base.SeqNum(at)); ok != (at > 0) || uint64(trailer.SeqNum()) != at {
		return fmt.Errorf("%q was asked for at version %d, answered %d (%t)", user, at, trailer.SeqNum(), ok)
	}
	return nil
}

// Writers race for versions of few keys, and so for their slots; readers must see
// the newest whose Add had returned, or one that is newer.
func TestVersionsInRaces(t *testing.T) {
	const writers, readers, keys, each = 4, 2, 20, 1500
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			m := New(writers * each * EntrySize(8, 8))
			var newest [keys]atomic.Uint64 // whose Add has returned
			var seq atomic.Uint64
			var writing, reading sync.WaitGroup
			var done atomic.Bool
			user := func(i int) []byte { return fmt.Appendf(nil, "%d", i) }
			for w := range writers {
				writing.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(w), 1))
					for range each {
						i, s := rng.IntN(keys), seq.Add(1)
						value := binary.BigEndian.AppendUint64(nil, s)
						if !assert.NoError(t,
							m.Add(base.MakeKey(user(i), base.SeqNum(s), base.KindSet), hash(user(i)), value)) {
							return
						}
						for n := newest[i].Load(); n < s && !newest[i].CompareAndSwap(n, s); n = newest[i].Load() {
						}
					}
				})
			}
			for r := range readers {
				reading.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(r), 2))
					for !done.Load() {
						i := rng.IntN(keys)
						if !assert.NoError(t, checkVersion(m, user(i), hash(user(i)), newest[i].Load())) {
							return
						}
					}
				})
			}
			writing.Wait()
			done.Store(true)
			reading.Wait()
			require.Equal(t, writers*each, m.Len())
			require.Len(t, contents(t, m), writers*each)
			requireIndex(t, m, hash)
			requireTowers(t, m)
		})
	}
}

func FuzzAgreesWithASortedSlice(f *testing.F) {
	for seed := range uint64(4) { // rapid skips what ends before a history does
		history := make([]byte, 16<<10)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(history) // which never fails
		f.Add(history)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		names := []string{"good", "constant", "few"}
		agreesWithASortedSlice(hashes[rapid.SampledFrom(names).Draw(t, "hash")])(t)
	}))
}

func TestNewerVersionBesideOneNotYetIndexed(t *testing.T) {
	version := func(seq base.SeqNum) base.InternalKey { return base.MakeKey([]byte("k"), seq, base.KindSet) }
	hash := xxhash.Sum64([]byte("k"))
	m := New(1 << 12)
	require.NoError(t, add(m, version(50), nil))
	insertion := func(seq base.SeqNum) *insert { return &insert{k: version(seq), hash: hash} }
	p := insertion(70)
	var err error
	p.node, err = m.newNode(p.k, nil, 1)
	require.NoError(t, err)
	require.True(t, m.findNewer(p))
	n := p.node
	require.True(t, m.link(n, 0, &p.splice)) // and that is how far its Add has come

	require.False(t, m.findNewer(insertion(90)), "its place is not next to the version that the index has")
	require.False(t, m.findNewer(insertion(40)), "it is no newer version")
	p = insertion(60)
	require.True(t, m.findNewer(p))
	require.Equal(t, n, p.splice.before[0])
	for _, seq := range []base.SeqNum{90, 60, 40} {
		require.NoError(t, add(m, version(seq), nil))
	}
	m.enter(n, hash)
	var order []int
	for _, e := range contents(t, m) {
		order = append(order, int(e.key.SeqNum()))
	}
	require.Equal(t, []int{90, 70, 60, 50, 40}, order)
	requireIndex(t, m, xxhash.Sum64)
}
