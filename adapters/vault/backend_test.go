package siftvault_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/stretchr/testify/require"

	siftvault "github.com/siftkv/siftkv/adapters/vault"
	"github.com/siftkv/siftkv/kv"
)

func open(tb testing.TB, dir string) *siftvault.Backend {
	tb.Helper()
	b, err := siftvault.New(map[string]string{"path": dir}, hclog.NewNullLogger())
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, b.(*siftvault.Backend).Close()) })
	return b.(*siftvault.Backend)
}

// The host's own suite.
func TestBackendOfTheHostsSuite(t *testing.T) { physical.ExerciseBackend(t, open(t, t.TempDir())) }

func TestListPrefixOfTheHostsSuite(t *testing.T) {
	physical.ExerciseBackend_ListPrefix(t, open(t, t.TempDir()))
}

func TestTransactionsOfTheHostsSuite(t *testing.T) {
	physical.ExerciseTransactionalBackend(t, open(t, t.TempDir()))
}

// The view and the cache of Vault work on it as on any backend.
func TestViewsOfTheHostsSuite(t *testing.T) {
	b := open(t, t.TempDir())
	view := physical.NewView(b, "mount/")
	physical.ExerciseBackend(t, view)
	physical.ExerciseBackend_ListPrefix(t, view)
	physical.ExerciseBackend(t, physical.NewStorageEncoding(b))
}

var operations = []physical.Operation{physical.PutOperation, physical.DeleteOperation, physical.GetOperation}

// Any operations give the answers of Vault's own backend in memory, which never fails.
func TestAgreesWithVaultsOwn(t *testing.T) {
	ctx := t.Context()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 15))
		ours := open(t, t.TempDir())
		theirs, err := inmem.NewTransactionalInmem(nil, hclog.NewNullLogger())
		require.NoError(t, err)
		key := func() string {
			parts := make([]string, 1+rng.IntN(3))
			for i := range parts {
				parts[i] = []string{"a", "b", "a0", "a-", "ä", "\xff", "~"}[rng.IntN(7)]
			}
			return strings.Join(parts, "/")
		}
		entry := func(n int) *physical.Entry {
			return &physical.Entry{Key: key(), Value: fmt.Appendf(nil, "%d", n)}
		}
		for n := range 300 {
			switch rng.IntN(6) {
			case 0, 1:
				e := entry(n)
				require.NoError(t, errors.Join(ours.Put(ctx, e), theirs.Put(ctx, e)))
			case 2:
				k := key()
				require.NoError(t, errors.Join(ours.Delete(ctx, k), theirs.Delete(ctx, k)))
			case 3:
				prefix := key()
				switch rng.IntN(3) {
				case 0:
					prefix += "/"
				case 1:
					prefix = ""
				}
				requireSameList(t, ours, theirs, prefix)
			case 4:
				k := key()
				want, err := theirs.Get(ctx, k)
				require.NoError(t, err)
				got, err := ours.Get(ctx, k)
				require.NoError(t, err)
				require.Equal(t, want, got)
			case 5:
				var a, b []*physical.TxnEntry
				for i := range 1 + rng.IntN(5) {
					op := operations[rng.IntN(len(operations))]
					e := entry(n*10 + i)
					if op == physical.GetOperation {
						e.Value = nil
					}
					other := *e
					a = append(a, &physical.TxnEntry{Operation: op, Entry: e})
					b = append(b, &physical.TxnEntry{Operation: op, Entry: &other})
				}
				require.NoError(t, ours.Transaction(ctx, a))
				require.NoError(t, theirs.(physical.Transactional).Transaction(ctx, b))
				require.Equal(t, b, a, "what the gets found, too")
			}
		}
		requireSameList(t, ours, theirs, "")
	}
}

func requireSameList(t *testing.T, ours, theirs physical.Backend, prefix string) {
	t.Helper()
	want, err := theirs.List(t.Context(), prefix)
	require.NoError(t, err)
	got, err := ours.List(t.Context(), prefix)
	require.NoError(t, err)
	slices.Sort(want)
	require.True(t, slices.IsSorted(got))
	require.Equal(t, slices.Compact(want), slices.Clip(got), "%q", prefix)
}

// A transaction of which one operation is refused changes nothing.
func TestATransactionIsWholeOrNotAtAll(t *testing.T) {
	ctx, b := t.Context(), open(t, t.TempDir())
	put := func(key string, value []byte) *physical.TxnEntry {
		return &physical.TxnEntry{Operation: physical.PutOperation, Entry: &physical.Entry{Key: key, Value: value}}
	}
	long := strings.Repeat("k", kv.MaxKeySize+1)
	err := b.Transaction(ctx, []*physical.TxnEntry{put("a", nil), put(long, nil)})
	require.ErrorContains(t, err, physical.ErrKeyTooLarge)
	require.ErrorContains(t, b.Put(ctx, &physical.Entry{Key: long}), physical.ErrKeyTooLarge)
	err = b.Put(ctx, &physical.Entry{Key: "a", Value: make([]byte, kv.MaxValueSize+1)})
	require.ErrorContains(t, err, physical.ErrValueTooLarge)
	list := &physical.TxnEntry{Operation: physical.ListOperation, Entry: &physical.Entry{}}
	err = b.Transaction(ctx, []*physical.TxnEntry{put("a", nil), list})
	require.ErrorContains(t, err, `"list"`)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, b.Transaction(canceled, []*physical.TxnEntry{put("a", nil)}), context.Canceled)
	require.ErrorIs(t, b.Put(canceled, &physical.Entry{Key: "a"}), context.Canceled)
	_, err = b.Get(canceled, "a")
	require.ErrorIs(t, err, context.Canceled)
	names, err := b.List(ctx, "")
	require.NoError(t, err)
	require.Empty(t, names)
}

// Counters that several goroutines raise by transactions that read them lose no step: a transaction whose
// reads have changed is done again.
func TestTransactionsAreSerializable(t *testing.T) {
	ctx, b := t.Context(), open(t, t.TempDir())
	require.NoError(t, b.Put(ctx, &physical.Entry{Key: "a", Value: []byte("0")}))
	const goroutines, rounds = 4, 25
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for n := range rounds {
				next := &physical.Entry{Key: "copy", Value: fmt.Appendf(nil, "%d-%d", g, n)}
				seen := &physical.Entry{Key: "a"}
				if err := b.Transaction(ctx, []*physical.TxnEntry{
					{Operation: physical.GetOperation, Entry: seen},
					{Operation: physical.PutOperation, Entry: &physical.Entry{Key: "a", Value: next.Value}},
					{Operation: physical.PutOperation, Entry: next},
				}); err != nil || len(seen.Value) == 0 {
					t.Errorf("%v, read %q", err, seen.Value)
				}
			}
		})
	}
	group.Wait()
	a, err := b.Get(ctx, "a")
	require.NoError(t, err)
	last, err := b.Get(ctx, "copy")
	require.NoError(t, err)
	require.Equal(t, a.Value, last.Value)
}

func TestWrongConfigurations(t *testing.T) {
	for _, c := range []struct {
		conf map[string]string
		says string
	}{
		{nil, `"path"`},
		{map[string]string{"path": t.TempDir(), "MemoryLimt": "64MiB"}, "MemoryLimt"},
		{map[string]string{"path": t.TempDir(), "MemoryLimit": "lots"}, "MemoryLimit"},
		{map[string]string{"path": t.TempDir(), "MemoryLimit": "1"}, "MemoryLimit"},
		{map[string]string{"path": t.TempDir(), "InMemory": "true"}, "InMemory"},
		{map[string]string{"path": t.TempDir(), "ReadOnly": "true"}, "ReadOnly"},
	} {
		_, err := siftvault.New(c.conf, nil)
		require.ErrorContains(t, err, c.says)
	}
	dir := t.TempDir()
	open(t, dir)
	_, err := siftvault.New(map[string]string{"path": dir}, nil)
	require.ErrorIs(t, err, kv.ErrLocked)
}

const writer = "SIFTKV_VAULT_WRITER"

// A backend without an option about memory has that of a small store. Any of these options leaves the others as a
// store has them without options.
func TestBackendsAreSmallByDefault(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string // the options about memory that are set
	}{
		{"Compression", "zstd", []string{"MemoryLimit = 32MiB", "MemtableSize = 2MiB"}},
		{"MemoryLimit", "64MiB", []string{"MemoryLimit = 64MiB"}},
		{"CacheSize", "8MiB", []string{"CacheSize = 8MiB"}},
		{"MemtableSize", "8MiB", []string{"MemtableSize = 8MiB"}},
		{"MaxMemtables", "16", []string{"MaxMemtables = 16"}},
	} {
		dir := t.TempDir()
		b, err := siftvault.New(map[string]string{"path": dir, c.name: c.value}, nil)
		require.NoError(t, err)
		require.NoError(t, b.(*siftvault.Backend).Close())
		text, err := os.ReadFile(filepath.Join(dir, "SIFTKV-OPTIONS"))
		require.NoError(t, err)
		memory := regexp.MustCompile(`(?m)^(MemoryLimit|CacheSize|MemtableSize|MaxMemtables) = .*$`)
		require.Equal(t, c.want, memory.FindAllString(string(text), -1))
	}
}

// A process that is killed has lost none of the writes that it was told of.
func TestAcknowledgedWritesOutliveTheirProcess(t *testing.T) {
	if dir := os.Getenv(writer); dir != "" {
		writeUntilKilled(t, dir)
	}
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), writer+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var n int
		for want := 50 * (round + 1); n < want; {
			_, err := fmt.Fscanln(out, &n)
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		b, err := siftvault.New(map[string]string{"path": filepath.Join(dir, "store")}, nil)
		require.NoError(t, err)
		for i := range n + 1 {
			e, err := b.Get(t.Context(), fmt.Sprintf("n/%d", i))
			require.NoError(t, err)
			require.NotNil(t, e, "%d of %d", i, n)
		}
		require.NoError(t, b.(*siftvault.Backend).Close())
	}
}

func writeUntilKilled(t *testing.T, dir string) {
	b := open(t, filepath.Join(dir, "store"))
	for n := 0; ; n++ {
		require.NoError(t, b.Put(t.Context(), &physical.Entry{Key: fmt.Sprintf("n/%d", n)}))
		fmt.Println(n)
	}
}
