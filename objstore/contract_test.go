package objstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func newMem(*testing.T) objstore.Store { return objstore.NewMem() }

func openDir(t *testing.T, name string) objstore.Store {
	t.Helper()
	s, err := objstore.OpenDir(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newDir(t *testing.T) objstore.Store { return openDir(t, t.TempDir()) }

// TestContract holds all that implements Store to its contract.
func TestContract(t *testing.T) {
	parts := map[string]bool{"sub of mem": true, "sub of dir": true, "all of mem": true}
	for name, open := range map[string]func(*testing.T) objstore.Store{
		"mem": newMem,
		"dir": newDir,
		"sub of mem": func(t *testing.T) objstore.Store {
			s := newMem(t)
			for _, key := range []string{"d", "db-/a", "db0", "db.", "e/x"} {
				_ = s.PutIfAbsent(t.Context(), key, nil) // what the part must not show
			}
			return objstore.Sub(s, "db")
		},
		"sub of dir": func(t *testing.T) objstore.Store { return objstore.Sub(newDir(t), "a/B/") },
		"all of mem": func(t *testing.T) objstore.Store { return objstore.Sub(newMem(t), "") },
		"counted": func(t *testing.T) objstore.Store {
			return objstore.WithCounters(newMem(t), new(objstore.Counters))
		},
		"faults": func(t *testing.T) objstore.Store { return objstoretest.NewFaults(newMem(t), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if parts[name] {
				scale.OneGoroutine(t, "a part adds a prefix to keys; the whole has its goroutines")
			}
			for range scale.Count(1, 3) {
				objstoretest.Run(t, open)
			}
		})
	}
}

// TestContractOfClients holds two clients of one store to it.
func TestContractOfClients(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (a, b objstore.Store){
		"mem": func(t *testing.T) (a, b objstore.Store) {
			s := newMem(t)
			return objstore.Sub(s, ""), objstore.Sub(s, "")
		},
		"dir": func(t *testing.T) (a, b objstore.Store) {
			dir := t.TempDir()
			return openDir(t, dir), openDir(t, dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range scale.Count(1, 3) {
				objstoretest.RunClients(t, open)
			}
		})
	}
}
