package storecmd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/survey/shape"
	"github.com/siftkv/siftkv/kv"
)

// pictured makes a store with several runs and files, without a filter in a part of them.
func pictured(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	random := rand.NewChaCha8([32]byte{})
	for round, spec := range []string{"blocked:10", "none", "blocked:10"} {
		policy, err := filterpolicy.Parse(spec)
		require.NoError(t, err)
		db, err := kv.Open(dir, &kv.Options{Filter: policy, SeparateFrom: 1000, L0CompactionThreshold: 50,
			TargetFileSize: 64 << 10})
		require.NoError(t, err)
		for i := range 3000 >> (2 * round) {
			value := make([]byte, 50+1000*(i%100/99))
			_, _ = random.Read(value)
			require.NoError(t, db.Set(fmt.Appendf(nil, "key/%05d/<b>", i), value, kv.Async))
		}
		require.NoError(t, db.Flush(t.Context()))
		if round == 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		require.NoError(t, db.Close())
	}
	return dir
}

func TestAPictureOfAStore(t *testing.T) {
	t.Parallel()
	dir := pictured(t)
	name := filepath.Join(t.TempDir(), "store.html")
	require.Equal(t, ok(t, "stats", dir), ok(t, "stats", dir, "--html", name, "--key", "key/02000/<b>"))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	page := string(data)
	require.NotContains(t, page, "<b>key", "what a store says is escaped")
	require.NotContains(t, page, "/<b>")
	require.NotContains(t, page, "ZgotmplZ", "every value is right where it is")
	for _, file := range regexp.MustCompile(`\d{6}\.(sst|blob)`).FindAllString(ok(t, "stats", dir, "--files"), -1) {
		require.Contains(t, page, file)
	}
	for _, part := range []string{"<b>L0</b>", "<b>L6</b>", "2 runs", "blocked:10, lets 0.", "no filter", "0.9",
		"The lookup of key/02000/&lt;b&gt; passes ", `class="read`, "and has a version of the key, 1 block",
		"Blob files", "values live", "Filter = blocked:10"} {
		require.Contains(t, page, part)
	}
	require.NotContains(t, page, "http", "it needs no network")

	standard := ok(t, "stats", dir, "--html", "-", "--key-format", "hex")
	require.True(t, strings.HasPrefix(standard, "<!doctype html>"))
	require.NotContains(t, standard, "Lookup of")
	for _, args := range [][]string{{"--key", "a"}, {"--html", t.TempDir()}, {"--html", "-", "--key", `"a`}} {
		status, _, stderr := siftkv(t, append([]string{"stats", dir}, args...)...)
		require.Equal(t, statusUsage, status, stderr)
	}
}

func TestAPictureOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	ok(t, "put", dir, "a", "1", "--create")
	page := ok(t, "stats", dir, "--html", "-", "--key", "a")
	require.Contains(t, page, "The store has no sorted files.")
	require.Contains(t, page, "memtable")
	require.NotContains(t, page, "<h2>Levels")
	require.NotContains(t, page, "<h2>Blob files")
}

// A filter that is damaged is not drawn as none. A run of many files is as wide as one of few.
func TestAPictureOfADamagedFilterAndOfManyFiles(t *testing.T) {
	t.Parallel()
	dir := pictured(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	var dump struct {
		Data struct {
			Bytes uint64 `json:"data_bytes"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, "dump-sstable", files[0], "--no-entries", "--json")), &dump))
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	data[dump.Data.Bytes+10] ^= 1 // the filter is behind the data
	require.NoError(t, os.WriteFile(files[0], data, 0o600))
	page := ok(t, "stats", dir, "--html", "-")
	require.Contains(t, page, "<b>Damage:</b> "+filepath.Base(files[0]))
	require.Contains(t, page, "blocked:10, which cannot be asked")
	require.Contains(t, page, `class=" unasked"`)
	require.NotContains(t, page, "thin\"")

	many := statsReport{Stats: &shape.Stats{Levels: []shape.Level{{Level: 6}}}}
	for i := range 1000 {
		many.Files = append(many.Files, fileStats{Name: strconv.Itoa(i), Level: 6, Bytes: 1})
	}
	var out strings.Builder
	require.NoError(t, many.writePage(&out, keyformat.Text, nil))
	require.Equal(t, 1000, strings.Count(out.String(), `class=" bare thin" style="width:0.100%"`))
}
