package kv

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/storetest"
)

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{
		"a": "b", "ab": "ac", "a\xff": "b", "a\xff\xff": "b", "\x00": "\x01", "\xfe\xff": "\xff", "a\x00": "a\x01",
	} {
		require.Equal(t, want, string(PrefixEnd([]byte(prefix))), "%q", prefix)
	}
	for _, prefix := range []string{"", "\xff", "\xff\xff\xff"} {
		require.Nil(t, PrefixEnd([]byte(prefix)), "%q", prefix)
	}
	require.Nil(t, PrefixEnd(nil))
	prefix := append(make([]byte, 0, 10), "ab"...)
	end := PrefixEnd(prefix)
	require.Equal(t, "ab", string(prefix), "the prefix stays")
	prefix[0] = 'x'
	require.Equal(t, "ac", string(end))
}

// All that begins with a prefix is before its end, and all else from the prefix on is not.
func TestPrefixEndIsTheFirstKeyPast(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		bytesOf := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 4)
		prefix, key := bytesOf.Draw(t, "prefix"), bytesOf.Draw(t, "key")
		end := PrefixEnd(prefix)
		within := bytes.Compare(key, prefix) >= 0 && (end == nil || bytes.Compare(key, end) < 0)
		require.Equal(t, bytes.HasPrefix(key, prefix), within)
	})
}

// A prefix together with bounds is what all of them allow, whatever was in the iterator's buffers before.
func TestAllWithinAPrefix(t *testing.T) {
	db := openMem(t, &Options{Prefix: mustParsePrefix("fixed:1"), BlockSize: 64})
	alphabet := []string{"", "\x00", "a", "\xfe", "\xff"}
	var keys []string
	for _, a := range alphabet {
		for _, b := range alphabet {
			for _, c := range alphabet {
				keys = append(keys, a+b+c)
			}
		}
	}
	m := storetest.Model{}
	for i, k := range keys {
		set(t, db, k, k)
		m.Set(k, k)
		if i%40 == 0 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	bounds := append([][]byte{nil}, []byte(""), []byte("a"), []byte("a\xff"), []byte("\xff"), []byte("\xff\xff"))
	for _, prefix := range append(bounds, []byte("a\x00"), []byte("\xfe"), []byte("\xff\xff\xff\xff"), []byte("b")) {
		for _, lo := range bounds {
			for _, hi := range bounds {
				var want []byte
				for _, k := range m.Keys() {
					if strings.HasPrefix(k, string(prefix)) && k >= string(lo) && (hi == nil || k < string(hi)) {
						want = fmt.Appendf(want, "%q ", k)
					}
				}
				o := &IterOptions{Prefix: prefix, LowerBound: lo, UpperBound: hi}
				var err error
				var got []byte
				back := ""
				for k := range db.All(o, &err) {
					got = fmt.Appendf(got, "%q ", k)
				}
				require.NoError(t, err)
				for k := range db.Backward(o, &err) {
					back = fmt.Sprintf("%q ", k) + back
				}
				require.NoError(t, err)
				require.Equal(t, string(want), string(got), "prefix %q, bounds %q and %q", prefix, lo, hi)
				require.Equal(t, string(want), back, "prefix %q, bounds %q and %q", prefix, lo, hi)
			}
		}
	}
}

// The prefix is copied, and so is what becomes of it.
func TestAPrefixIsCopied(t *testing.T) {
	db := openMem(t, nil)
	for _, k := range []string{"a", "b1", "b2", "c"} {
		set(t, db, k, "")
	}
	prefix := []byte("b")
	it, err := db.NewIter(&IterOptions{Prefix: prefix})
	require.NoError(t, err)
	prefix[0] = 'c'
	require.True(t, it.SeekGE(nil))
	require.Equal(t, "b1", string(it.Key()))
	require.True(t, it.SeekLT([]byte("z")))
	require.Equal(t, "b2", string(it.Key()))
	require.False(t, it.Next())
	require.NoError(t, it.Close())
}

// Scans within a prefix pass over the files whose filters deny it.
func TestAllWithinAPrefixPassesOverFiles(t *testing.T) {
	db := openMem(t, &Options{L0CompactionThreshold: 100, Prefix: mustParsePrefix("delimiter:/"),
		Filter: mustParse("blocked:16")})
	const users, files = 100, 5
	for f := range files {
		for u := f; u < users; u += files {
			set(t, db, fmt.Sprintf("user%03d/item", u), "")
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	var err error
	for u := range users {
		n := 0
		for k := range db.All(&IterOptions{Prefix: fmt.Appendf(nil, "user%03d/", u)}, &err) {
			require.Equal(t, fmt.Sprintf("user%03d/item", u), string(k))
			n++
		}
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	m := db.Metrics()
	require.Greater(t, m.PrefixChecks, uint64(users*(files-2)))
	require.Greater(t, m.PrefixNegatives, m.PrefixChecks*7/10)
	// A prefix longer than that of its keys, and bounds within it, allow it too; a shorter one does not.
	for range db.All(&IterOptions{Prefix: []byte("user001/it"), UpperBound: []byte("user001/iz")}, &err) {
	}
	longer := db.Metrics().PrefixChecks
	require.Greater(t, longer, m.PrefixChecks)
	for range db.All(&IterOptions{Prefix: []byte("user00")}, &err) {
	}
	require.NoError(t, err)
	require.Equal(t, longer, db.Metrics().PrefixChecks)
}
