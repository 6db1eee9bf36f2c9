package conformance

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// specsOf holds, for each family that writes bytes, a usual spec and then others of
// another layout.
var specsOf = map[string][]string{
	"bloom":    {"bloom:10"},
	"blocked":  {"blocked:10", "blocked:32"},
	"cuckoo":   {"cuckoo:12", "cuckoo:32,8", "cuckoo:12,4,semisort"},
	"ribbon":   {"ribbon:7", "ribbon:6.72"},
	"gcs":      {"gcs:7", "gcs:6.644"},
	"quotient": {"quotient:7"},
	"xor":      {"xor:8", "xor:9"},
	"fuse":     {"fuse:8", "fuse:9,4"},
}

// eachFamily calls f with the specs of each family that writes bytes; a family that
// specsOf does not know fails the test.
func eachFamily(t *testing.T, f func(t *testing.T, name string, specs []string)) {
	t.Helper()
	for _, name := range filterpolicy.Families() {
		if name != none.Name {
			require.NotEmpty(t, specsOf[name], "specsOf lacks %s", name)
			t.Run(name, func(t *testing.T) { f(t, name, specsOf[name]) })
		}
	}
}

// eachSpec calls f with all specs of specsOf.
func eachSpec(t *testing.T, f func(t *testing.T, spec string)) {
	t.Helper()
	eachFamily(t, func(t *testing.T, _ string, specs []string) {
		for _, spec := range specs {
			t.Run(spec, func(t *testing.T) { f(t, spec) })
		}
	})
}

// The bytes of every family are held by golden files in its own package, which its own
// tests compare with what it writes. Here they are read: what was written once is
// found by the reader of today.
func TestGoldenFilesAreRead(t *testing.T) {
	require.Contains(t, filterpolicy.Families(), none.Name)
	require.NoDirExists(t, goldenPath(none.Name, "."), "it writes nothing")
	eachFamily(t, func(t *testing.T, name string, specs []string) {
		files, err := filepath.Glob(goldenPath(name, name+"-*.golden"))
		require.NoError(t, err)
		require.Contains(t, files, goldenPath(name, strings.ReplaceAll(specs[0], ":", "-")+".golden"))
		for _, path := range files {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for n, data := range goldens(t, string(text)) {
				f, err := filterpolicy.Decode(name, data)
				require.NoError(t, err, "%s, %d keys", path, n)
				probe, ok := filterpolicy.Probe(name)
				require.True(t, ok)
				for i := range uint64(n) {
					h := Good(1).At(i)
					require.True(t, f.MayContainHash(h) && probe(data, h), "%s, key %d of %d", path, i, n)
				}
			}
		}
	})
}

var goldenHeading = regexp.MustCompile(`^\S+, (\d+) keys, (\d+) bytes\n$`)

// goldens returns the filters of a golden file by their number of keys.
func goldens(t *testing.T, text string) map[int][]byte {
	t.Helper()
	all, sizes, n := map[int][]byte{}, map[int]string{}, 0
	for line := range strings.Lines(text) {
		if heading := goldenHeading.FindStringSubmatch(line); heading != nil {
			var err error
			n, err = strconv.Atoi(heading[1])
			require.NoError(t, err)
			sizes[n] = heading[2]
			continue
		}
		dump, _, _ := strings.Cut(line[len("00000000"):], "|")
		bytes, err := hex.DecodeString(strings.Join(strings.Fields(dump), ""))
		require.NoError(t, err, line)
		all[n] = append(all[n], bytes...)
	}
	require.Len(t, all, 4, "0, 1, 2 and 100 keys")
	for n, data := range all {
		require.Equal(t, sizes[n], strconv.Itoa(len(data)))
	}
	return all
}
