package keys

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/property"
)

// all returns the keys of a source in load order and in asking order.
func all(s Source) (present, absent []string) {
	for i := range s.Present() {
		present = append(present, string(s.AppendPresent(nil, i)))
	}
	for i := range s.Absent() {
		absent = append(absent, string(s.AppendAbsent(nil, i)))
	}
	return present, absent
}

// requireGaps checks what every source promises: no key twice, none both
// present and absent, and every absent key between two present ones.
func requireGaps(t require.TestingT, present, absent []string) {
	sorted := slices.Sorted(slices.Values(present))
	require.Len(t, slices.Compact(slices.Clone(sorted)), len(present), "a present key twice")
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(absent))), len(absent), "an absent key twice")
	for _, key := range absent {
		at := sort.SearchStrings(sorted, key)
		require.Positive(t, at, "%q is below every present key", key)
		require.Less(t, at, len(sorted), "%q is above every present key", key)
		require.NotEqual(t, sorted[at], key, "both present and absent")
	}
}

func TestPermutationIsABijection(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097} {
		p := NewPermutation(n, 42)
		require.Equal(t, n, p.Len())
		seen := make([]bool, n)
		for i := range n {
			at := p.At(i)
			require.False(t, seen[at], "n=%d: %d twice", n, at)
			seen[at] = true
		}
	}
}

func TestPermutationShuffles(t *testing.T) {
	const n = 10_000
	a, b := NewPermutation(n, 1), NewPermutation(n, 2)
	fixed, same, rises := 0, 0, 0
	for i := range n {
		if a.At(i) == i {
			fixed++
		}
		if a.At(i) == b.At(i) {
			same++
		}
		if i > 0 && a.At(i) > a.At(i-1) {
			rises++
		}
	}
	// A random permutation has one fixed point and n/2 rises on average
	// (standard deviation sqrt(n/12) = 29); the bounds are five deviations.
	require.Less(t, fixed, 10)
	require.Less(t, same, 10)
	require.InDelta(t, n/2, rises, 150)
}

func TestGeneratedKeepsItsPromises(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 500).Draw(t, "n")
		size := rapid.IntRange(MinKeySize, 40).Draw(t, "size")
		seed := rapid.Uint64().Draw(t, "seed")
		g, err := NewGenerated(n, size, seed)
		require.NoError(t, err)
		present, absent := all(g)
		require.Len(t, present, n)
		require.Len(t, absent, n-1)
		requireGaps(t, present, absent)
		for _, key := range append(present, absent...) {
			require.Len(t, key, size)
		}
		again, err := NewGenerated(n, size, seed)
		require.NoError(t, err)
		p2, a2 := all(again)
		require.Equal(t, present, p2)
		require.Equal(t, absent, a2)
	})
}

func TestGeneratedInterleavesRanks(t *testing.T) {
	g, err := NewGenerated(1000, 16, 5)
	require.NoError(t, err)
	present, absent := all(g)
	merged := slices.Sorted(slices.Values(append(slices.Clone(present), absent...)))
	slices.Sort(present)
	for i, key := range present {
		require.Equal(t, key, merged[2*i], "present and absent keys alternate")
	}
	require.Less(t, merged[0][0], byte(4), "the keys spread over the whole space")
	require.Greater(t, merged[len(merged)-1][0], byte(251))
}

func TestGeneratedDependsOnSeed(t *testing.T) {
	a, err := NewGenerated(100, 16, 1)
	require.NoError(t, err)
	b, err := NewGenerated(100, 16, 2)
	require.NoError(t, err)
	pa, _ := all(a)
	pb, _ := all(b)
	require.NotEqual(t, pa, pb)
}

func TestGeneratedRefusesBadSizes(t *testing.T) {
	for _, tc := range []struct{ n, size int }{{0, 16}, {1, 16}, {-5, 16}, {MaxGenerated + 1, 16}, {10, 7},
		{10, MaxKeySize + 1}} {
		_, err := NewGenerated(tc.n, tc.size, 1)
		require.ErrorIs(t, err, bench.ErrUsage, "%+v", tc)
	}
}

// words returns n lines with the given end.
func words(n int, end string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "word-%04d%s", i*7919%n, end)
	}
	return text.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFileKeepsItsPromises(t *testing.T) {
	f, err := OpenFile(write(t, words(1000, "\n")), 100, 1)
	require.NoError(t, err)
	present, absent := all(f)
	requireGaps(t, present, absent)
	about := f.Describe()
	require.Equal(t, 1000, about.Lines)
	require.Equal(t, 1000, about.Present+about.Absent+about.Outside)
	require.InDelta(t, 500, about.Present, 80, "a fair split; five standard deviations")
	require.Equal(t, 9, about.MinLen)
	require.Equal(t, 9, about.MaxLen)
	require.InDelta(t, 9, about.MeanLen, 1e-9)
}

func TestFileFormsGiveTheSameKeys(t *testing.T) {
	text := words(500, "\n")
	want, err := OpenFile(write(t, text), 100, 9)
	require.NoError(t, err)
	wantPresent, wantAbsent := all(want)

	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())

	for name, other := range map[string]string{
		"gzip":             packed.String(),
		"CRLF":             words(500, "\r\n"),
		"no end":           strings.TrimSuffix(text, "\n"),
		"empty lines":      "\n\r\n" + strings.ReplaceAll(text, "\n", "\n\n"),
		"every line twice": text + text,
	} {
		f, err := OpenFile(write(t, other), 100, 9)
		require.NoError(t, err, name)
		present, absent := all(f)
		require.Equal(t, wantPresent, present, name)
		require.Equal(t, wantAbsent, absent, name)
	}
}

func TestFileCountsWhatItDrops(t *testing.T) {
	f, err := OpenFile(write(t, words(100, "\n")+"\n\r\n"+words(40, "\n")), 100, 3)
	require.NoError(t, err)
	about := f.Describe()
	require.Equal(t, 142, about.Lines)
	require.Equal(t, 2, about.Empty)
	require.Equal(t, 40-countNew(100, 40), about.Duplicates)
	require.Equal(t, 142, about.Present+about.Absent+about.Outside+about.Duplicates+about.Empty)
}

// wildLines returns lines as real files have them: URLs, some again, some of 2 KiB, some
// that are no UTF-8, blank ones, with both kinds of line ends.
func wildLines(n int) (text string, distinct map[string]bool, blank int) {
	var out strings.Builder
	distinct = map[string]bool{}
	for i := range n {
		line := fmt.Sprintf("https://example.org/%c/%d/ünïcode?q=%d", 'a'+i*7%26, i, i%3)
		switch i % 50 {
		case 7:
			line = fmt.Sprintf("https://example.org/%d/%s", i, strings.Repeat("x/", 1000))
		case 8:
			line = fmt.Sprintf("\xff\xfe\x00%c%d", 0x80|byte(i), i) + "\xc0"
		case 9:
			line = fmt.Sprintf("https://example.org/again/%d", i%300)
		case 10:
			line = ""
			blank++
		}
		if line != "" {
			distinct[line] = true
		}
		out.WriteString(line + []string{"\n", "\r\n"}[i%2])
	}
	return out.String(), distinct, blank
}

func TestARealFileIsTakenAsItIs(t *testing.T) {
	const n = 20_000
	text, distinct, blank := wildLines(n)
	f, err := OpenFile(write(t, text), 1<<16, 1)
	require.NoError(t, err)
	present, absent := all(f)
	requireGaps(t, present, absent)
	for _, key := range append(slices.Clone(present), absent...) {
		require.True(t, distinct[key], "%.80q are not the bytes of a line", key)
	}
	d := f.Describe()
	require.Equal(t, []int{n, blank, n - blank - len(distinct)}, []int{d.Lines, d.Empty, d.Duplicates})
	require.Equal(t, len(distinct), d.Present+d.Absent+d.Outside)
	require.Greater(t, d.Duplicates, n/60)
	require.Greater(t, d.MaxLen, 2000)
	// Half are held out, of long keys as of short ones; five standard deviations.
	long := func(keys []string) (n int) {
		for _, key := range keys {
			if len(key) > 2000 {
				n++
			}
		}
		return n
	}
	require.InDelta(t, d.Present, d.Absent, 5*math.Sqrt(float64(len(distinct))))
	require.InDelta(t, long(present), long(absent), 5*math.Sqrt(n/50))
	other, err := OpenFile(write(t, text), 1<<16, 2)
	require.NoError(t, err)
	p2, _ := all(other)
	require.NotEqual(t, slices.Sorted(slices.Values(present)), slices.Sorted(slices.Values(p2)),
		"another seed holds others out")
}

// countNew returns how many of words(small) are not among words(large).
func countNew(large, small int) int {
	seen := map[string]bool{}
	for w := range strings.FieldsSeq(words(large, "\n")) {
		seen[w] = true
	}
	fresh := 0
	for w := range strings.FieldsSeq(words(small, "\n")) {
		if !seen[w] {
			fresh++
			seen[w] = true
		}
	}
	return fresh
}

func TestFileErrorsSayWhatToDo(t *testing.T) {
	long := "a\nb\n" + strings.Repeat("x", 101) + "\nc\n"
	huge := "a\n" + strings.Repeat("x", 1<<17) + "\nc\n"
	for _, tc := range []struct{ name, path, want string }{
		{"missing", filepath.Join(t.TempDir(), "nothing"), "no such file"},
		{"directory", t.TempDir(), "is a directory"},
		{"empty", write(t, ""), "too few keys"},
		{"one key", write(t, strings.Repeat("only\n", 3)), "too few keys: 1 distinct lines"},
		{"long line", write(t, long), "line 3: longer than 100 bytes"},
		{"line past any buffer", write(t, huge), "line 2: longer than 100 bytes"},
	} {
		_, err := OpenFile(tc.path, 100, 1)
		require.ErrorContains(t, err, tc.want, tc.name)
		require.ErrorIs(t, err, bench.ErrUsage, tc.name)
	}
}

func TestFileLineOfExactlyTheLimit(t *testing.T) {
	limit := strings.Repeat("x", 100)
	for _, end := range []string{"\n", "\r\n", ""} {
		set, stats, err := readLines(strings.NewReader("a\n"+limit+end), 100)
		require.NoError(t, err)
		require.Equal(t, 2, stats.lines)
		require.Equal(t, limit, string(set.at(1)))
	}
}

func TestDamagedGzipIsNotUsage(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(words(5000, "\n")))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = OpenFile(write(t, packed.String()[:packed.Len()/2]), 100, 1)
	require.ErrorContains(t, err, "unexpected EOF")
	require.NotErrorIs(t, err, bench.ErrUsage)
}

func TestOpenTellsCountsFromPaths(t *testing.T) {
	s, err := Open(Request{Keys: "10", KeySize: 16, Seed: 1})
	require.NoError(t, err)
	require.Equal(t, "generated", s.Describe().Origin)
	require.Equal(t, 10, s.Present())

	path := write(t, words(50, "\n"))
	s, err = Open(Request{Keys: path, MaxLen: 100, Seed: 1})
	require.NoError(t, err)
	require.Equal(t, "file", s.Describe().Origin)
	require.Equal(t, path, s.Describe().Path)

	_, err = Open(Request{Keys: ""})
	require.ErrorIs(t, err, bench.ErrUsage)
}

func TestSetAgreesWithAMap(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching("[ab]{1,7}")).Draw(t, "lines")
		s, seen := newSet(), map[string]int{}
		for _, line := range lines {
			number, added := s.add([]byte(line))
			_, was := seen[line]
			require.Equal(t, !was, added)
			if !was {
				seen[line] = len(seen)
			}
			require.EqualValues(t, seen[line], number)
		}
		require.Equal(t, len(seen), s.len())
		for line, i := range seen {
			require.Equal(t, line, string(s.at(uint32(i))))
		}
	})
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), 10)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, 10)
	f.Add([]byte(strings.Repeat("z", 300)), 100)
	f.Fuzz(func(t *testing.T, data []byte, maxLen int) {
		maxLen = 1 + int(uint(maxLen)%1000)
		text, err := plain(bytes.NewReader(data))
		if err != nil {
			return
		}
		keys, stats, err := readLines(text, maxLen)
		if err != nil {
			return
		}
		require.Equal(t, stats.lines, keys.len()+stats.empty+stats.duplicates)
		for i := range keys.len() {
			key := keys.at(uint32(i))
			require.NotEmpty(t, key)
			require.LessOrEqual(t, len(key), maxLen)
			require.NotContains(t, string(key), "\n")
		}
	})
}

func BenchmarkGeneratedPresent(b *testing.B) {
	g, _ := NewGenerated(1_000_000, 16, 1)
	key, i := make([]byte, 0, 16), 0
	for b.Loop() {
		key = g.AppendPresent(key[:0], i)
		i = (i + 1) % g.Present()
	}
}
