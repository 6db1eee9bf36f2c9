package storecmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/doctor/repair"
	"github.com/siftkv/siftkv/kv"
)

// A store that has lost a blob file: verify says how much was in it, and a repair names each value.
func TestARepairNamesTheValuesOfALostBlobFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 100})
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%02d", i%30), make([]byte, 1000+i), kv.NoSync))
		if i == 29 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	names, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.Len(t, names, 2)
	require.NoError(t, os.Remove(names[0]))
	name := filepath.Base(names[0])

	status, out, _ := siftkv(t, "verify", dir)
	require.Equal(t, statusDamage, status)
	require.Contains(t, out, "damage: "+name+": a blob file is missing, in which tables have 30 values\n")
	list := filepath.Join(t.TempDir(), "list")
	status, out, _ = siftkv(t, "repair", dir, "--dry-run", "--lost", list)
	require.Equal(t, statusDamage, status)
	require.Contains(t, out, "lost: "+name+": values of a blob file that is missing: 20 values\n"+
		"    key key10: 1010 bytes at offset ")
	require.Contains(t, out, "; it shows nothing, and nothing older\n")
	require.Contains(t, out, "note: 10 values were lost that no read could see any more")
	require.Contains(t, out, "a repair would leave 2 tables with 40 entries and 1 blob files; levels by manifest\n")
	data, err := os.ReadFile(list)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	require.Len(t, lines, 30)
	for i, line := range lines {
		var v struct{ File, Key, Shows string }
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		require.Equal(t, name, v.File)
		require.Equal(t, fmt.Sprintf("key%02d", i), v.Key)
		require.Equal(t, i < 10, v.Shows == repair.ShowsNewer)
	}
	status, _, stderr := siftkv(t, "repair", dir, "--lost", list)
	require.Equal(t, statusError, status, "what is there is not overwritten")
	require.Contains(t, stderr, list)

	status, out, _ = siftkv(t, "repair", dir, "--json")
	require.Equal(t, statusDamage, status)
	var r struct {
		Blobs int
		Lost  []struct {
			File   string
			Writes int
			Values []struct{ Key string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Lost, 1)
	require.Len(t, r.Lost[0].Values, 20)
	require.Equal(t, "key10", r.Lost[0].Values[0].Key)
	require.Equal(t, 1, r.Blobs)
	ok(t, "verify", dir)
	status, _, _ = siftkv(t, "get", dir, "key10")
	require.Equal(t, statusNotFound, status)
	require.Len(t, strings.Split(ok(t, "scan", dir), "\n"), 11)
}
