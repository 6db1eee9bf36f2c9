package storecmd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// A prefix is bytes, whatever they mean as text, and none of its last bytes are lost.
func TestScanOfABinaryPrefix(t *testing.T) {
	dir := t.TempDir()
	db, err := kv.Open(dir, &kv.Options{Merger: kv.Append("")})
	require.NoError(t, err)
	for _, key := range []string{"a", "a\x7f", "a\x80", "a\x80x", "a\x81", "a\xff", "a\xff\xffx", "b"} {
		require.NoError(t, db.Set([]byte(key), []byte("v"), kv.NoSync))
	}
	require.NoError(t, db.Merge([]byte("a\x80"), []byte("w"), kv.NoSync))
	require.NoError(t, db.Close())
	for prefix, want := range map[string]string{
		"6180": "6180\n618078\n", "61ff": "61ff\n61ffff78\n", "61ffff": "61ffff78\n", "62": "62\n", "ff": "",
	} {
		require.Equal(t, want, ok(t, "scan", dir, "--key-format", "hex", "--keys-only", "--prefix", prefix), prefix)
	}
	require.Equal(t, "2\n", ok(t, "scan", dir, "--key-format", "hex", "--count", "--prefix", "6180", "--upper", "6181"))
	require.Equal(t, "6180\t7677\n618078\t76\n", ok(t, "scan", dir, "--key-format", "hex", "--prefix", "6180"))
}
