package rangedel

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

func TestSetAgainstEveryTombstone(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	key := func() []byte { return []byte{byte('a' + rng.IntN(12))} }
	for range scale.Count(500, 2000) {
		var ts []Tombstone
		for range rng.IntN(8) {
			tomb := Tombstone{Start: key(), End: key(), Seq: base.SeqNum(1 + rng.IntN(10))}
			if rng.IntN(6) == 0 {
				tomb.End = nil
			}
			if rng.IntN(6) == 0 {
				tomb.Start = [][]byte{nil, {}}[rng.IntN(2)]
			}
			ts = append(ts, tomb)
		}
		s := NewSet(ts)
		clipped := NewSet(s.Clip(nil, []byte("d"), []byte("h")))
		for c := byte('a'); c < 'n'; c++ {
			for at := base.SeqNum(0); at <= 11; at++ {
				var want base.SeqNum
				for _, tomb := range ts {
					in := bytes.Compare(tomb.Start, []byte{c}) <= 0 && CompareEnds(tomb.End, []byte{c}) > 0
					if in && tomb.Seq <= at {
						want = max(want, tomb.Seq)
					}
				}
				require.Equal(t, want, s.Cover([]byte{c}, at), "%v at %c#%d", ts, c, at)
				if c < 'd' || c >= 'h' {
					want = 0
				}
				require.Equal(t, want, clipped.Cover([]byte{c}, at))
			}
		}
		requireFragmentsInOrder(t, s)
		newest := NewSet(Newest(ts))
		require.LessOrEqual(t, len(Newest(ts)), 2*len(ts))
		again, err := FromFragments(s.Clip(nil, nil, nil))
		require.NoError(t, err)
		for c := byte('a'); c < 'n'; c++ {
			require.Equal(t, s.Cover([]byte{c}, base.MaxSeqNum), newest.Cover([]byte{c}, base.MaxSeqNum), "%v", ts)
			require.Equal(t, s.Cover([]byte{c}, 5), again.Cover([]byte{c}, 5))
		}
	}
}

func TestFromFragmentsRefusesWhatOverlaps(t *testing.T) {
	k := func(s string) []byte { return []byte(s) }
	for _, bad := range [][]Tombstone{
		{{Start: k("a"), End: k("c"), Seq: 1}, {Start: k("b"), End: k("d"), Seq: 2}},
		{{Start: k("a"), End: k("c"), Seq: 1}, {Start: k("a"), End: k("c"), Seq: 1}},
		{{Start: k("a"), End: k("c"), Seq: 1}, {Start: k("a"), End: k("c"), Seq: 2}},
		{{Start: k("a"), End: k("c"), Seq: 2}, {Start: k("a"), End: k("d"), Seq: 1}},
		{{Start: k("a"), Seq: 2}, {Start: k("b"), End: k("d"), Seq: 1}},
		{{Start: k("b"), End: k("b"), Seq: 2}},
	} {
		_, err := FromFragments(bad)
		require.Error(t, err, "%v", bad)
	}
}

func TestNewestOfNestedTombstonesIsSmall(t *testing.T) {
	var ts []Tombstone
	for i := range 20_000 {
		ts = append(ts, Tombstone{Start: nil, End: []byte{byte(i >> 8), byte(i)}, Seq: base.SeqNum(i + 1)})
	}
	require.Equal(t, 1, len(Newest(ts)), "the last covers all others")
	for i := range ts {
		ts[i].Seq = base.SeqNum(len(ts) - i)
	}
	require.Equal(t, len(ts), len(Newest(ts)), "each but the newest reaches past the one before")
}

func requireFragmentsInOrder(t *testing.T, s *Set) {
	t.Helper()
	for i := range s.Len() {
		f := s.At(i)
		require.False(t, f.Empty())
		if i == 0 {
			continue
		}
		last := s.At(i - 1)
		if bytes.Equal(last.Start, f.Start) {
			require.Equal(t, last.End, f.End)
			require.Greater(t, last.Seq, f.Seq)
			continue
		}
		require.NotNil(t, last.End)
		require.GreaterOrEqual(t, bytes.Compare(f.Start, last.End), 0)
	}
}

// A reader of any time finds what it sees of a range that was deleted again and again, between others.
func TestCoverOfADeepFragment(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, 2, 3, 7, 8, 9, 100} {
		k := func(key string) []byte { return []byte(key) }
		ts := []Tombstone{{Start: k("a"), End: k("b"), Seq: 1}, {Start: k("c"), End: k("d"), Seq: 1}}
		for i := range depth {
			ts = append(ts, Tombstone{Start: k("b"), End: k("c"), Seq: base.SeqNum(10 + 2*i)})
		}
		s := NewSet(ts)
		last := NewSet(ts[2:]) // nothing comes after the fragment
		for at := range base.SeqNum(12 + 2*depth) {
			want := base.SeqNum(0)
			if at >= 10 {
				want = min(at, base.SeqNum(8+2*depth)) &^ 1
			}
			require.Equal(t, want, s.Cover(k("b"), at), "depth %d, at %d", depth, at)
			require.Equal(t, want, last.Cover(k("bb"), at), "depth %d, at %d", depth, at)
		}
	}
}

func BenchmarkCoverOfLongAgo(b *testing.B) {
	for _, depth := range []int{1, 10_000} {
		var ts []Tombstone
		for i := range depth {
			ts = append(ts, Tombstone{Start: []byte("b"), End: []byte("c"), Seq: base.SeqNum(10 + i)})
		}
		s := NewSet(ts)
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			for b.Loop() {
				if s.Cover([]byte("b"), 10) != 10 {
					b.Fatal("not covered")
				}
			}
		})
	}
}

func TestSpanNamesTheFragment(t *testing.T) {
	s := fresh{NewSet([]Tombstone{{Start: []byte("b"), End: []byte("f"), Seq: 9}, {Start: []byte("d"), Seq: 4}})}
	start, end, seq := s.Span([]byte("e"), 8)
	require.Equal(t, "d", string(start))
	require.Equal(t, "f", string(end))
	require.EqualValues(t, 4, seq)
	_, end, seq = s.Span([]byte("z"), base.MaxSeqNum)
	require.Nil(t, end)
	require.EqualValues(t, 4, seq)
	require.True(t, NewSet(nil).Empty())
	require.Zero(t, NewSet(nil).Cover([]byte("x"), base.MaxSeqNum))
}

func TestEndRoundTrip(t *testing.T) {
	for _, end := range [][]byte{nil, {}, []byte("x"), {0, 1}} {
		got, err := DecodeEnd(AppendEnd(nil, end))
		require.NoError(t, err)
		require.Equal(t, end == nil, got == nil)
		require.True(t, bytes.Equal(end, got))
	}
	for _, bad := range [][]byte{nil, {2}, {0, 0}, []byte("xy")} {
		_, err := DecodeEnd(bad)
		require.Error(t, err)
	}
}

func TestNewestInAgainstEveryKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 7))
	bound := func() []byte {
		if rng.IntN(5) == 0 {
			return nil
		}
		return []byte{byte('a' + rng.IntN(12))}
	}
	for range scale.Count(500, 2000) {
		var ts []Tombstone
		for range rng.IntN(6) {
			ts = append(ts, Tombstone{Start: bound(), End: bound(), Seq: base.SeqNum(1 + rng.IntN(10))})
		}
		s := NewSet(ts)
		for range 20 {
			// Every bound is a key of one letter, so keys of at most one letter tell all
			// ranges apart.
			lo, hi := bound(), bound()
			want := base.SeqNum(0)
			for c := byte('a' - 1); c < 'n'; c++ {
				key := []byte{c}
				if c < 'a' {
					key = nil
				}
				if bytes.Compare(lo, key) <= 0 && CompareEnds(hi, append([]byte{}, key...)) > 0 {
					want = max(want, s.Cover(key, base.MaxSeqNum))
				}
			}
			require.Equal(t, want, s.NewestIn(lo, hi), "%v in [%q, %q)", ts, lo, hi)
		}
	}
	require.Zero(t, (*Set)(nil).NewestIn(nil, nil))
}
