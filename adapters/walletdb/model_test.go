package siftwalletdb

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/btcsuite/btcwallet/walletdb"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// dump returns all that is in a database, a line each.
func dump(t testing.TB, d walletdb.DB) (lines []string) {
	t.Helper()
	view(t, d, func(tx walletdb.ReadTx) { lines = dumpTx(t, tx) })
	return lines
}

func dumpTx(t testing.TB, tx walletdb.ReadTx) (lines []string) {
	var walk func(path string, b walletdb.ReadBucket)
	walk = func(path string, b walletdb.ReadBucket) {
		lines = append(lines, path)
		if n := b.(walletdb.ReadWriteBucket).Sequence(); n > 0 {
			lines = append(lines, fmt.Sprintf("%s#%d", path, n))
		}
		require.NoError(t, b.ForEach(func(k, v []byte) error {
			if v == nil {
				walk(fmt.Sprintf("%s%s/", path, k), b.NestedReadBucket(k))
				return nil
			}
			lines = append(lines, fmt.Sprintf("%s%s=%s", path, k, v))
			require.Equal(t, string(v), string(b.Get(k)))
			return nil
		}))
	}
	require.NoError(t, tx.ForEachBucket(func(name []byte) error {
		walk(string(name)+"/", tx.ReadBucket(name))
		return nil
	}))
	return lines
}

// A pair is two databases, or two parts of them, of which all calls are made: ours and bbolt's.
type pair[T any] struct{ ours, usual T }

// say returns what a call has answered; errors of both count as equal that read alike.
func say(parts ...any) string {
	var s strings.Builder
	for _, p := range parts {
		if b, ok := p.([]byte); ok && b == nil {
			p = "nil"
		}
		fmt.Fprintf(&s, "%s|", fmt.Sprintf("%v", p))
	}
	return s.String()
}

// history makes random calls of one transaction.
type history struct {
	t    testing.TB
	r    *rand.Rand
	tx   pair[walletdb.ReadWriteTx]
	said []string
}

func (h *history) same(what string, ours, usual string) {
	h.t.Helper()
	h.said = append(h.said, what)
	require.Equal(h.t, usual, ours, "after %v", h.said)
}

// name returns a key or the name of a bucket, of few that there are.
func (h *history) name() []byte {
	names := []string{"a", "b", "c", "\x00", "\xff", "\xff\xff", "a\x00", "a\x01", "ab", strings.Repeat("long", 30)}
	return []byte(names[h.r.IntN(len(names))])
}

// bucket returns a bucket that is there in both, or nil, where neither has it.
func (h *history) bucket() *pair[walletdb.ReadWriteBucket] {
	name := h.name()[:1]
	b := pair[walletdb.ReadWriteBucket]{h.tx.ours.ReadWriteBucket(name), h.tx.usual.ReadWriteBucket(name)}
	path := string(name)
	for {
		h.same("bucket "+path, say(b.ours == nil), say(b.usual == nil))
		if b.ours == nil {
			return nil
		}
		if h.r.IntN(2) == 0 {
			return &b
		}
		name = h.name()
		path += "/" + string(name)
		if b.usual.NestedReadWriteBucket(name) == nil && h.r.IntN(2) == 0 {
			h.same("bucket "+path, say(b.ours.NestedReadWriteBucket(name) == nil), say(true))
			return &b
		}
		b = pair[walletdb.ReadWriteBucket]{b.ours.NestedReadWriteBucket(name), b.usual.NestedReadWriteBucket(name)}
	}
}

// step makes a random call.
func (h *history) step() {
	name, n := h.name(), h.r.IntN(100)
	value := []byte(strings.Repeat("v", h.r.IntN(3)) + strconv.Itoa(n))[h.r.IntN(2):]
	if n < 15 {
		top := name[:1]
		if n < 3 {
			h.same("delete top "+string(top), say(h.tx.ours.DeleteTopLevelBucket(top)),
				say(h.tx.usual.DeleteTopLevelBucket(top)))
			return
		}
		_, err := h.tx.ours.CreateTopLevelBucket(top)
		_, usual := h.tx.usual.CreateTopLevelBucket(top)
		h.same("create top "+string(top), say(err), say(usual))
		return
	}
	b := h.bucket()
	if b == nil {
		return
	}
	switch {
	case n < 35:
		h.same("put", say(b.ours.Put(name, value)), say(b.usual.Put(name, value)))
	case n < 40:
		h.same("get", say(b.ours.Get(name)), say(b.usual.Get(name)))
	case n < 50:
		h.same("delete", say(b.ours.Delete(name)), say(b.usual.Delete(name)))
	case n < 57:
		_, err := b.ours.CreateBucket(name)
		_, usual := b.usual.CreateBucket(name)
		h.same("create", say(err), say(usual))
	case n < 62:
		_, err := b.ours.CreateBucketIfNotExists(name)
		_, usual := b.usual.CreateBucketIfNotExists(name)
		h.same("create if", say(err), say(usual))
	case n < 66:
		h.same("delete bucket", say(b.ours.DeleteNestedBucket(name)), say(b.usual.DeleteNestedBucket(name)))
	case n < 70:
		h.sequence(b, uint64(n))
	case n < 72:
		h.refused(b)
	default:
		h.cursor(b)
	}
}

func (h *history) sequence(b *pair[walletdb.ReadWriteBucket], n uint64) {
	if h.r.IntN(3) == 0 {
		h.same("set sequence", say(b.ours.SetSequence(n)), say(b.usual.SetSequence(n)))
	}
	next, err := b.ours.NextSequence()
	usual, usualErr := b.usual.NextSequence()
	h.same("sequence", say(b.ours.Sequence(), next, err), say(b.usual.Sequence(), usual, usualErr))
}

// refused makes calls that are wrong.
func (h *history) refused(b *pair[walletdb.ReadWriteBucket]) {
	long := make([]byte, maxKeySize+1)
	h.same("put no key", say(b.ours.Put(nil, nil)), say(b.usual.Put(nil, nil)))
	h.same("put long key", say(b.ours.Put(long, nil)), say(b.usual.Put(long, nil)))
	h.same("get long key", say(b.ours.Get(long)), say(b.usual.Get(long)))
	h.same("delete long key", say(b.ours.Delete(long)), say(b.usual.Delete(long)))
	_, err := b.ours.CreateBucket([]byte{})
	_, usual := b.usual.CreateBucket([]byte{})
	h.same("create no name", say(err), say(usual))
	h.same("delete no bucket", say(b.ours.DeleteNestedBucket(long)), say(b.usual.DeleteNestedBucket(long)))
}

// cursor goes to and fro. bbolt's must not be moved after Delete, but put somewhere.
func (h *history) cursor(b *pair[walletdb.ReadWriteBucket]) {
	c := pair[walletdb.ReadWriteCursor]{b.ours.ReadWriteCursor(), b.usual.ReadWriteCursor()}
	placed := false
	var at []byte // where bbolt's is
	for range h.r.IntN(12) {
		var k, v, usualK, usualV []byte
		n := h.r.IntN(12)
		what := fmt.Sprint("cursor ", n)
		switch {
		case n < 1:
			k, v = c.ours.First()
			usualK, usualV = c.usual.First()
		case n < 2:
			k, v = c.ours.Last()
			usualK, usualV = c.usual.Last()
		case n < 4:
			name := h.name()
			k, v = c.ours.Seek(name)
			usualK, usualV = c.usual.Seek(name)
			what += string(name)
			placed = usualK != nil
		case n < 7:
			k, v = c.ours.Next()
			usualK, usualV = c.usual.Next()
		case n < 10:
			k, v = c.ours.Prev()
			usualK, usualV = c.usual.Prev()
		case !placed:
			continue
		default:
			err, usual := c.ours.Delete(), c.usual.Delete()
			h.same("cursor delete", say(err), say(usual))
			if err != nil {
				continue
			}
			usualK, usualV = c.usual.Seek(at)
			if n == 11 {
				usualK, usualV = c.usual.Prev()
				k, v = c.ours.Prev()
			} else {
				k, v = c.ours.Next()
			}
			placed = usualK != nil
		}
		h.same(what, say(k, v), say(usualK, usualV))
		if n == 11 && k == nil {
			return // ours is where the first entry was, bbolt's on the next one
		}
		if usualK != nil {
			at, placed = slices.Clone(usualK), true
		}
		if k != nil {
			k[0] ^= 1 // it is a copy
		}
	}
}

// TestModel makes the same random calls of a database of ours and of bbolt's, whose answers must be the same.
func TestModel(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		o := &kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10}
		ours, err := Create(filepath.Join(dir, "ours"), o)
		require.NoError(t, err)
		usual, err := walletdb.Create("bdb", filepath.Join(dir, "usual"), true, time.Minute)
		require.NoError(t, err)
		for range 25 {
			runTransaction(t, r, ours, usual)
			require.Equal(t, dump(t, usual), dump(t, ours))
			store := ours.(*db).store
			switch r.IntN(8) {
			case 0:
				require.NoError(t, store.Flush(t.Context()))
			case 1:
				require.NoError(t, store.Compact(t.Context(), nil, nil))
			case 2:
				require.NoError(t, ours.Close())
				ours, err = Open(filepath.Join(dir, "ours"), o)
				require.NoError(t, err)
			}
		}
		require.NoError(t, ours.Close())
		require.NoError(t, usual.Close())
	}
}

func runTransaction(t *testing.T, r *rand.Rand, ours, usual walletdb.DB) {
	h := &history{t: t, r: r}
	readOnly := r.IntN(6) == 0
	begin := func(d walletdb.DB) walletdb.ReadWriteTx {
		if readOnly {
			tx, err := d.BeginReadTx()
			require.NoError(t, err)
			return tx.(walletdb.ReadWriteTx)
		}
		tx, err := d.BeginReadWriteTx()
		require.NoError(t, err)
		return tx
	}
	h.tx = pair[walletdb.ReadWriteTx]{begin(ours), begin(usual)}
	committed := pair[int]{}
	h.tx.ours.OnCommit(func() { committed.ours++ })
	h.tx.usual.OnCommit(func() { committed.usual++ })
	for range r.IntN(120) {
		h.step()
	}
	require.Equal(t, dumpTx(t, h.tx.usual), dumpTx(t, h.tx.ours))
	if r.IntN(3) > 0 {
		h.same("commit", say(h.tx.ours.Commit()), say(h.tx.usual.Commit()))
	}
	h.same("rollback", say(h.tx.ours.Rollback()), say(h.tx.usual.Rollback()))
	h.same("rollback again", say(h.tx.ours.Rollback()), say(h.tx.usual.Rollback()))
	h.same("commit again", say(h.tx.ours.Commit()), say(h.tx.usual.Commit()))
	require.Equal(t, committed.usual, committed.ours)
}
