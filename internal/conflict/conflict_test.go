package conflict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/readset"
	"github.com/siftkv/siftkv/internal/version"
)

// fill returns a memtable in which write 1 set a, write 2 set c, write 3 deleted e and write 4 deleted [m, p).
func fill(t *testing.T) *memtable.Memtable {
	t.Helper()
	m := memtable.New(1 << 16)
	for i, w := range []struct {
		kind       base.Kind
		key, value string
	}{
		{base.KindSet, "a", ""}, {base.KindSet, "c", ""}, {base.KindDelete, "e", ""},
		{base.KindRangeDelete, "m", string(rangedel.AppendEnd(nil, []byte("p")))},
	} {
		var b batchrepr.Writer
		b.Add(w.kind, []byte(w.key), []byte(w.value))
		require.NoError(t, m.Apply(b.Seal(base.SeqNum(i+1))))
	}
	return m
}

func TestCheck(t *testing.T) {
	t.Parallel()
	mem := fill(t)
	span := func(lo, hi string) *rangedel.Span {
		s := &rangedel.Span{Lo: []byte(lo), Hi: []byte(hi)}
		if hi == "" {
			s.Hi = nil
		}
		return s
	}
	for name, c := range map[string]struct {
		since base.SeqNum
		key   string
		span  *rangedel.Span
		want  string // of the error
	}{
		"a key that was set":           {since: 1, key: "c", want: `key "c"`},
		"a key that was set before":    {since: 2, key: "c"},
		"a key that was deleted":       {since: 2, key: "e", want: `key "e"`},
		"a key that is not there":      {since: 0, key: "b"},
		"a key in a range tombstone":   {since: 3, key: "n", want: `key "n"`},
		"a key after it":               {since: 3, key: "p"},
		"a range with a later write":   {since: 1, span: span("b", "d"), want: `at or after "b"`},
		"a range that ends before it":  {since: 1, span: span("a", "c")},
		"a range with a tombstone":     {since: 2, span: span("d", "f"), want: `at or after "d"`},
		"a range that meets a removal": {since: 3, span: span("o", ""), want: `at or after "o"`},
		"a range after all writes":     {since: 0, span: span("q", "")},
		"all keys, and nothing later":  {since: 4, span: span("", "")},
		"nothing":                      {since: 0},
	} {
		var read readset.Set
		if c.key != "" {
			read.AddKey([]byte(c.key))
		}
		if c.span != nil {
			read.AddSpan(*c.span)
		}
		err := InState(c.since, mem, nil, &version.Version{}, nil).Check(&read)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, Err, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// A memtable that is being flushed is asked only if its last write is later, or not known.
func TestOnlyMemtablesWithLaterWritesAreAsked(t *testing.T) {
	t.Parallel()
	mem, imm := memtable.New(1<<10), fill(t)
	for last, asked := range map[uint64]bool{0: true, 4: false, 5: true} {
		imm.LastSeq.Store(last)
		w := InState(4, mem, []*memtable.Memtable{imm}, &version.Version{}, nil)
		require.Equal(t, asked, len(w.Memtables) == 2, "the last write is %d", last)
	}
}
