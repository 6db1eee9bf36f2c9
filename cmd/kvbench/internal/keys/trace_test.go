package keys

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// traceFile records lookups, of which those whose key ends with "!" find it, and
// returns the file.
func traceFile(t *testing.T, o lookuptrace.Options, lookups ...string) string {
	t.Helper()
	var out bytes.Buffer
	r, err := lookuptrace.NewRecorder(&out, o)
	require.NoError(t, err)
	for _, l := range lookups {
		key, found := bytes.CutSuffix([]byte(l), []byte("!"))
		r.Record(key, xxhash.Sum64(key), found, true)
	}
	require.NoError(t, r.Close())
	path := filepath.Join(t.TempDir(), "x.trace")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// replayed returns what a trace asked for, in order.
func replayed(s *Trace, present bool) []string {
	var out []string
	for _, i := range s.Asked(present) {
		if present {
			out = append(out, string(s.AppendPresent(nil, int(i))))
		} else {
			out = append(out, string(s.AppendAbsent(nil, int(i))))
		}
	}
	return out
}

func TestATraceIsASource(t *testing.T) {
	path := traceFile(t, lookuptrace.Options{Keys: true}, "m!", "a", "c!", "m!", "n", "x!", "c", "f", "z", "f")
	source, err := Open(Request{Keys: path, Seed: 3})
	require.NoError(t, err)
	s := source.(*Trace)
	present, absent := all(s)
	require.ElementsMatch(t, []string{"c", "m", "x"}, present)
	require.ElementsMatch(t, []string{"a", "f", "n", "z"}, absent)
	require.Equal(t, []string{"m", "c", "m", "x", "c"}, replayed(s, true), "in the order of time")
	require.Equal(t, []string{"a", "n", "f", "z", "f"}, replayed(s, false))
	d := s.Describe()
	require.Equal(t, "trace", d.Origin)
	require.Equal(t, []int{3, 4, 1, 1}, []int{d.Present, d.Absent, d.MinLen, d.MaxLen})
	require.Equal(t, []int{5, 5, 1, 2}, []int{d.Replay.Existing, d.Replay.Absent, d.Replay.Missed, d.Replay.Beyond},
		"a and z are beyond")
	require.False(t, d.Replay.Unfinished)

	again, err := OpenTrace(path, 0, 3)
	require.NoError(t, err)
	require.Equal(t, s, again)
	other, err := OpenTrace(path, 0, 4)
	require.NoError(t, err)
	require.Equal(t, replayed(s, true), replayed(other, true))
}

func TestHashesBecomeKeysOfTheirSize(t *testing.T) {
	long := string(bytes.Repeat([]byte("k"), 37))
	s, err := OpenTrace(traceFile(t, lookuptrace.Options{}, long+"!", "a", long+"!", "a", "b"), 0, 1)
	require.NoError(t, err)
	found, absent := replayed(s, true), replayed(s, false)
	require.Len(t, found[0], 37)
	require.Equal(t, found[0], found[1])
	require.NotContains(t, found[0], "kkk")
	require.Equal(t, absent[0], absent[1])
	require.NotEqual(t, absent[0], absent[2])
	require.Equal(t, 8, s.Describe().MinLen)
	require.True(t, s.Describe().Replay.Hashed)
}

func TestBadTraces(t *testing.T) {
	_, err := OpenTrace(traceFile(t, lookuptrace.Options{Keys: true}, "a", "b"), 0, 1)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "no key was found in 2 lookups")

	path := traceFile(t, lookuptrace.Options{Keys: true}, "a!", "b")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data[:len(data)-1], 0o600))
	s, err := OpenTrace(path, 0, 1)
	require.NoError(t, err)
	require.True(t, s.Describe().Replay.Unfinished)
	require.Equal(t, 1, s.Present())

	damaged := slices.Clone(data)
	damaged[len(damaged)-40] ^= 1
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	_, err = OpenTrace(path, 0, 1)
	require.ErrorIs(t, err, base.ErrCorruption)

	require.NoError(t, os.WriteFile(path, []byte("no trace"), 0o600))
	_, err = OpenTrace(path, 0, 1)
	require.ErrorIs(t, err, bench.ErrUsage)
}

func TestFillersLookLikeTheKeysOfTheTrace(t *testing.T) {
	var lookups []string
	for i := range 400 {
		lookups = append(lookups, fmt.Sprintf("user/%06d/profile!", 7919*i%1_000_000),
			fmt.Sprintf("user/%06d/absent", i))
	}
	path := traceFile(t, lookuptrace.Options{Keys: true}, lookups...)
	const n = 5000
	source, err := Open(Request{Keys: path, Fill: n, Seed: 3})
	require.NoError(t, err)
	s := source.(*Trace)
	present, absent := all(s)
	require.Len(t, present, 400+n)
	require.Len(t, absent, 400)
	require.Equal(t, n, s.Describe().Replay.Filled)
	asked := map[string]bool{}
	for _, key := range append(replayed(s, true), replayed(s, false)...) {
		asked[key] = true
	}
	require.Len(t, asked, 800, "a filler is no key of the trace")
	alike, seen := 0, map[string]bool{}
	for _, key := range append(slices.Clone(present), absent...) {
		require.False(t, seen[key], "%q twice", key)
		seen[key] = true
		if regexp.MustCompile(`^user/\d{6}/profile$`).MatchString(key) {
			alike++
		}
	}
	require.Greater(t, alike, 400+n*9/10, "most are made of two keys")
	mixed := slices.ContainsFunc(present[:200], func(key string) bool { return asked[key] }) &&
		slices.ContainsFunc(present[len(present)-200:], func(key string) bool { return asked[key] })
	require.True(t, mixed, "they are loaded among the others")

	bare, err := OpenTrace(path, 0, 3)
	require.NoError(t, err)
	require.Equal(t, replayed(bare, true), replayed(s, true))
	again, err := OpenTrace(path, n, 3)
	require.NoError(t, err)
	require.Equal(t, s, again)
}

func TestAFewKeysCanBeFilledUp(t *testing.T) {
	for _, o := range []lookuptrace.Options{{Keys: true}, {}} {
		s, err := OpenTrace(traceFile(t, o, "a!", "b", "a!"), 300, 1)
		require.NoError(t, err)
		present, absent := all(s)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(present))), 301)
		require.Len(t, absent, 1)
		require.NotContains(t, present, absent[0])
	}
}
