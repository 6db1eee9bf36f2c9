package iterator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

type entry struct {
	key   base.InternalKey
	value []byte
}

// A merger combines values of a key.
type merger = func(key []byte, values [][]byte) ([]byte, error)

// joined returns a merger that puts a separator between values.
func joined(separator string) merger {
	return func(_ []byte, values [][]byte) ([]byte, error) { return bytes.Join(values, []byte(separator)), nil }
}

func failing([]byte, [][]byte) ([]byte, error) { return nil, errors.New("no") }

// An entryIter is sorted entries as a sequence. Values are gone with the next move, as those
// of tables are.
type entryIter struct {
	entries []entry
	at      int
	value   []byte
	err     error // at the end
}

func (i *entryIter) to(n int) bool {
	for at := range i.value {
		i.value[at] = '?'
	}
	i.at = n
	if i.Valid() && i.entries[n].value != nil {
		i.value = append(i.value[:0], i.entries[n].value...)
	}
	return i.Valid()
}

func (i *entryIter) First() bool           { return i.to(0) }
func (i *entryIter) Last() bool            { return i.to(len(i.entries) - 1) }
func (i *entryIter) Next() bool            { return i.to(i.at + 1) }
func (i *entryIter) Prev() bool            { return i.to(i.at - 1) }
func (i *entryIter) Valid() bool           { return i.at >= 0 && i.at < len(i.entries) }
func (i *entryIter) Key() base.InternalKey { return i.entries[i.at].key }
func (i *entryIter) Value() []byte         { return i.value[:len(i.entries[i.at].value)] }
func (i *entryIter) SeekGE(k base.InternalKey) bool {
	n, _ := slices.BinarySearchFunc(i.entries, k,
		func(e entry, k base.InternalKey) int { return base.Compare(e.key, k) })
	return i.to(n)
}
func (i *entryIter) SeekLT(k base.InternalKey) bool { i.SeekGE(k); return i.Prev() }
func (i *entryIter) Error() error {
	if i.at >= len(i.entries) {
		return i.err
	}
	return nil
}

// pass is one compaction of entries.
type pass struct {
	entries   []entry
	tombs     []rangedel.Tombstone
	snapshots []base.SeqNum
	bottom    bool
	merger    merger
	now       uint64
}

func (p *pass) run() (out []entry, c *Compaction) {
	c = NewCompaction([]Iter{&entryIter{entries: p.entries}}, p.tombs, CompactionOptions{
		Snapshots: p.snapshots, Bottom: func([]byte) bool { return p.bottom },
		BottomSpan: func(_, _ []byte) bool { return p.bottom }, MergeOperands: p.merger, Now: p.now,
		ReadSeparated: func(dst []byte, _ base.InternalKey, value []byte) ([]byte, error) {
			if string(value) == "damaged" {
				return dst, errors.New("damaged")
			}
			return append(append(dst, "value of "...), value...), nil
		},
	})
	for ok := c.First(); ok; ok = c.Next() {
		out = append(out, entry{c.Key.Clone(), slices.Clone(c.Value)})
	}
	return out, c
}

func parse(t *testing.T, text string) (e entry) {
	t.Helper()
	var key, kind, value string
	var seq base.SeqNum
	_, err := fmt.Sscanf(text, "%1s#%d %s %s", &key, &seq, &kind, &value)
	if err != nil && value != "" {
		require.NoError(t, err)
	}
	kinds := map[string]base.Kind{"set": base.KindSet, "del": base.KindDelete, "merge": base.KindMerge,
		"ttl": base.KindSetTTL, "blob": base.KindSetSeparated, "ttlblob": base.KindSetTTLSeparated}
	k, ok := kinds[kind]
	require.True(t, ok, text)
	e = entry{key: base.MakeKey([]byte(key), seq, k), value: []byte(value)}
	if k.Expires() {
		e.value = append(base.AppendExpiry(nil, 1000), value...)
	}
	return e
}

func show(entries []entry) (lines []string) {
	names := map[base.Kind]string{base.KindSet: "set", base.KindDelete: "del", base.KindMerge: "merge",
		base.KindSetTTL: "ttl", base.KindSetSeparated: "blob", base.KindSetTTLSeparated: "ttlblob"}
	for _, e := range entries {
		v := string(e.value)
		if e.key.Kind().Expires() {
			v = v[base.ExpirySize:]
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s#%d %s %s", e.key.User, e.key.SeqNum(),
			names[e.key.Kind()], v)))
	}
	return lines
}

// What becomes of one key's versions. Snapshots cut the stripes; expiring values end
// at 1000.
func TestCompactionOfOperands(t *testing.T) {
	type seqs = []base.SeqNum
	for name, c := range map[string]struct {
		in        []string
		tomb      base.SeqNum // of a range tombstone over the key
		snapshots seqs
		bottom    bool
		none      bool // there is no merger
		fails     bool // the merger fails
		now       uint64
		want      []string
	}{
		"partly, with older ones below": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 merge a"},
			want: []string{"k#9 merge a,b,c"}},
		"a value, with nothing below": {in: []string{"k#9 merge c", "k#8 merge b"}, bottom: true,
			want: []string{"k#0 set b,c"}},
		"one alone at the bottom": {in: []string{"k#9 merge c"}, bottom: true, want: []string{"k#0 set c"}},
		"one alone above":         {in: []string{"k#9 merge c"}, want: []string{"k#9 merge c"}},
		"onto a value": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 set a", "k#6 set x"},
			want: []string{"k#9 set a,b,c"}},
		"onto a tombstone": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 del", "k#6 set x"},
			want: []string{"k#9 set b,c"}},
		"under a value": {in: []string{"k#9 set v", "k#8 merge b", "k#7 merge a"},
			want: []string{"k#9 set v"}},
		"under a tombstone": {in: []string{"k#9 del", "k#8 merge b"}, bottom: true},
		"a stripe each": {in: []string{"k#9 merge d", "k#8 merge c", "k#5 merge b", "k#4 merge a", "k#2 set v"},
			snapshots: seqs{3, 6},
			want:      []string{"k#9 merge c,d", "k#5 merge a,b", "k#2 set v"}},
		"a stripe each at the bottom": {in: []string{"k#9 merge d", "k#8 merge c", "k#2 merge b", "k#1 merge a"},
			snapshots: seqs{6}, bottom: true,
			want: []string{"k#9 merge c,d", "k#0 set a,b"}},
		"a young stripe alone at the bottom": {in: []string{"k#9 merge d", "k#8 merge c"}, snapshots: seqs{6},
			bottom: true, want: []string{"k#9 set c,d"}},
		"a range tombstone between": {in: []string{"k#9 merge d", "k#8 merge c", "k#5 merge b", "k#4 set a"},
			tomb: 6, want: []string{"k#9 set c,d"}},
		"a range tombstone in an older stripe": {in: []string{"k#9 merge d", "k#5 merge c", "k#3 merge b",
			"k#2 set a"}, tomb: 4, snapshots: seqs{6}, bottom: true,
			want: []string{"k#9 merge d", "k#0 set c"}},
		"a range tombstone over all": {in: []string{"k#5 merge b", "k#4 merge a"}, tomb: 6},
		"a range tombstone of a younger stripe": {in: []string{"k#5 merge b", "k#4 merge a"}, tomb: 8,
			snapshots: seqs{6},
			want:      []string{"k#5 merge a,b"}},
		"over a value that will expire": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 ttl a", "k#6 set x"},
			bottom: true, now: 999,
			want: []string{"k#9 merge b,c", "k#0 ttl a"}},
		"over one that has expired": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 ttl a", "k#6 set x"}, now: 1000,
			want: []string{"k#9 set b,c"}},
		"expired, above others":  {in: []string{"k#7 ttl a", "k#6 set x"}, now: 1000, want: []string{"k#7 del"}},
		"expired, at the bottom": {in: []string{"k#7 ttl a", "k#6 set x"}, now: 1000, bottom: true},
		"expired, for a snapshot": {in: []string{"k#7 ttl a", "k#5 ttl x", "k#4 set y"}, now: 1000, bottom: true,
			snapshots: seqs{6}, want: []string{"k#7 del"}},
		"not expired": {in: []string{"k#7 ttl a", "k#6 set x"}, now: 999, bottom: true,
			want: []string{"k#0 ttl a"}},
		"separated values": {in: []string{"k#9 blob h", "k#8 set x", "l#7 blob i", "m#3 ttlblob j"}, bottom: true,
			now: 999, want: []string{"k#0 blob h", "l#0 blob i", "m#0 ttlblob j"}},
		"separated values, expired": {in: []string{"k#9 ttlblob h", "k#8 set x"}, now: 1000, want: []string{"k#9 del"}},
		"onto a separated value": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 blob h", "k#6 set x"},
			want: []string{"k#9 set value of h,b,c"}},
		"over a separated value that will expire": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 ttlblob h"},
			now: 999, want: []string{"k#9 merge b,c", "k#7 ttlblob h"}},
		"over a separated value that has expired": {in: []string{"k#9 merge c", "k#7 ttlblob h"}, now: 1000,
			want: []string{"k#9 set c"}},
		"no merger over a separated value": {in: []string{"k#9 merge c", "k#7 blob h", "k#6 set x"}, none: true,
			bottom: true, want: []string{"k#9 merge c", "k#0 blob h"}},
		"no merger": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 set a", "k#6 set x"},
			none: true, bottom: true, want: []string{"k#9 merge c", "k#8 merge b", "k#7 set a"}},
		"the merger fails": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 set a", "k#6 set x", "l#1 set y"},
			fails: true, bottom: true,
			want: []string{"k#9 merge c", "k#8 merge b", "k#7 set a", "l#0 set y"}},
		"the merger fails over a blob value": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 blob h", "k#6 set x",
			"l#1 set y"}, fails: true, bottom: true,
			want: []string{"k#9 merge c", "k#8 merge b", "k#7 blob h", "l#0 set y"}},
		"the merger fails over a tombstone": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 del", "k#6 set x"},
			fails: true,
			want:  []string{"k#9 merge c", "k#8 merge b", "k#7 del"}},
		"the merger fails over one that has expired": {in: []string{"k#9 merge c", "k#8 merge b", "k#7 ttl v",
			"k#6 set x"}, fails: true, now: 1000,
			want: []string{"k#9 merge c", "k#8 merge b", "k#7 del"}},
		"one key after the other": {in: []string{"a#3 merge a", "b#9 merge y", "b#8 merge x", "c#1 set c",
			"d#7 merge z"}, bottom: true,
			want: []string{"a#0 set a", "b#0 set x,y", "c#0 set c", "d#0 set z"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pass{snapshots: c.snapshots, bottom: c.bottom, merger: joined(","), now: c.now}
			switch {
			case c.none:
				p.merger = nil
			case c.fails:
				p.merger = failing
			}
			for _, text := range c.in {
				p.entries = append(p.entries, parse(t, text))
			}
			if c.tomb > 0 {
				p.tombs = []rangedel.Tombstone{{Start: []byte("a"), End: []byte("z"), Seq: c.tomb}}
			}
			out, it := p.run()
			require.Equal(t, c.want, show(out))
			require.Equal(t, c.fails, it.Stats.MergeError != nil)
			require.Equal(t, c.fails, it.Stats.MergeFailures > 0)
		})
	}
}

// read returns what a reader at seq sees of a key in entries that go down into below.
func (p *pass) read(entries []entry, tombs *rangedel.Set, key string, seq base.SeqNum, below string) string {
	cover := tombs.Cover([]byte(key), seq)
	var parts []string
	for _, e := range entries {
		if string(e.key.User) != key || e.key.SeqNum() > seq {
			continue
		}
		if e.key.SeqNum() < cover {
			return strings.Join(parts, ",")
		}
		switch e.key.Kind() {
		case base.KindMerge:
			parts = append([]string{string(e.value)}, parts...)
			continue
		case base.KindSet:
			parts = append([]string{string(e.value)}, parts...)
		case base.KindSetTTL:
			if v, live, _ := base.Unexpired(e.value, p.now); live {
				parts = append([]string{string(v)}, parts...)
			}
		}
		return strings.Join(parts, ",")
	}
	if cover == 0 && below != "" && !p.bottom {
		parts = append([]string{below}, parts...)
	}
	return strings.Join(parts, ",")
}

// Every snapshot, and the present, sees the same of the output as of the input, now
// and at every later time; and again of what a second pass makes of that.
func TestCompactionKeepsWhatReadersSee(t *testing.T) {
	for seed := range uint64(scale.Count(300, 1000)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := &pass{bottom: rng.IntN(2) == 0, merger: joined(","), now: uint64(rng.IntN(8))}
		if rng.IntN(6) == 0 {
			p.merger = nil
		}
		for _, key := range []string{"a", "b", "c"} {
			for seq := base.SeqNum(40); seq > 0; seq-- {
				if rng.IntN(4) > 0 {
					continue
				}
				e := entry{value: fmt.Appendf(nil, "%s%d", key, seq)}
				kind := []base.Kind{base.KindMerge, base.KindMerge, base.KindMerge, base.KindSet, base.KindDelete,
					base.KindSetTTL}[rng.IntN(6)]
				switch kind {
				case base.KindDelete:
					e.value = nil
				case base.KindSetTTL:
					e.value = append(base.AppendExpiry(nil, uint64(rng.IntN(10))), e.value...)
				}
				e.key = base.MakeKey([]byte(key), seq, kind)
				p.entries = append(p.entries, e)
			}
		}
		for range rng.IntN(3) {
			lo := rng.IntN(3)
			p.tombs = append(p.tombs, rangedel.Tombstone{Start: []byte("abc"[lo : lo+1]),
				End: []byte("bcd"[lo+rng.IntN(3-lo):][:1]), Seq: base.SeqNum(rng.IntN(40))})
		}
		for range rng.IntN(4) {
			p.snapshots = append(p.snapshots, base.SeqNum(rng.IntN(41)))
		}
		slices.Sort(p.snapshots)
		p.snapshots = slices.Compact(p.snapshots)
		first := *p
		for range 2 {
			out, c := p.run()
			require.True(t, slices.IsSortedFunc(out, func(a, b entry) int { return base.Compare(a.key, b.key) }),
				"seed %d", seed)
			for now := p.now; p.now < now+4; p.now++ {
				for _, seq := range append(slices.Clone(p.snapshots), base.MaxSeqNum) {
					for _, key := range []string{"a", "b", "c"} {
						want := p.read(first.entries, rangedel.NewSet(first.tombs), key, seq, "below")
						require.Equal(t, want, p.read(out, c.Kept, key, seq, "below"),
							"seed %d, key %s at %d, time %d\nin %q\nout %q", seed, key, seq, p.now, show(p.entries),
							show(out))
					}
				}
			}
			p.now -= 4
			p.entries, p.tombs = out, c.Kept.Clip(nil, nil, nil)
		}
	}
}

// A chain that is too long for memory is combined in pieces.
func TestLongChainsAreCut(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine merges operands")
	p := &pass{merger: joined("")}
	for i := range 5 {
		v := slices.Repeat([]byte{byte('e' - i)}, maxChainBytes/2+1)
		p.entries = append(p.entries, entry{base.MakeKey([]byte("k"), base.SeqNum(9-i), base.KindMerge), v})
	}
	p.entries = append(p.entries, entry{base.MakeKey([]byte("k"), 1, base.KindSet), []byte("v")})
	out, _ := p.run()
	require.Len(t, out, 3)
	require.Equal(t, []base.Kind{base.KindMerge, base.KindMerge, base.KindSet},
		[]base.Kind{out[0].key.Kind(), out[1].key.Kind(), out[2].key.Kind()})
	for range 5 {
		p.entries = out
		out, _ = p.run()
	}
	require.Len(t, out, 1)
	require.Len(t, out[0].value, 5*(maxChainBytes/2+1)+1)
	require.Equal(t, "vaa", string(out[0].value[:3]))
}

// What was read before the input failed is not given out as if it were all there is.
func TestAChainThatCannotBeReadToItsEnd(t *testing.T) {
	boom := errors.New("disk")
	in := &entryIter{entries: []entry{parse(t, "k#9 merge b")}, err: boom}
	c := NewCompaction([]Iter{in}, nil, CompactionOptions{Bottom: func([]byte) bool { return true },
		BottomSpan: func(_, _ []byte) bool { return true }, MergeOperands: joined(",")})
	require.False(t, c.First())
	require.ErrorIs(t, c.in.Error(), boom)
}

// Operands stay over a value that cannot be read: who reads the key is told.
func TestOperandsOverADamagedSeparatedValueStay(t *testing.T) {
	p := &pass{merger: joined(","), entries: []entry{parse(t, "k#9 merge c"), parse(t, "k#8 merge b"),
		parse(t, "k#7 blob damaged"), parse(t, "k#6 set x")}}
	out, c := p.run()
	require.Equal(t, []string{"k#9 merge b,c", "k#7 blob damaged"}, show(out))
	require.ErrorContains(t, c.Stats.MergeError, "damaged")
	require.EqualValues(t, 1, c.Stats.MergeFailures)
	require.NoError(t, c.Err())
}
