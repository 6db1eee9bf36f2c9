package remote

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/objstore"
)

// A position is an entry whose body is its text, and the newest claim has the right to put the next.
func TestGoldenPositionsOfASlot(t *testing.T) {
	mem, ctx := objstore.NewMem(), t.Context()
	fsOf := func(store uint64) *FS {
		f := NewFS(branchOptions(mem, ""))
		f.seq.Adopt(store)
		return f
	}
	first, second, writer := fsOf(7).Positions("s"), fsOf(7).Positions("s"), fsOf(7).Positions("s")
	newest, err := writer.Claim(ctx, false)
	require.NoError(t, err)
	require.Empty(t, newest)
	require.NoError(t, writer.Put(ctx, "nothing was claimed"))
	_, err = first.Claim(ctx, true)
	require.NoError(t, err)
	var told []string
	failed := errors.New("the text was not taken")
	take := func(text string) error {
		if told = append(told, text); len(told) == 1 {
			return failed
		}
		return nil
	}
	require.NoError(t, first.Put(ctx, "one"))
	require.ErrorIs(t, writer.Newest(ctx, take), failed)
	require.NoError(t, writer.Newest(ctx, take))
	require.NoError(t, first.Put(ctx, "two"))
	require.NoError(t, writer.Newest(ctx, take))
	require.NoError(t, writer.Newest(ctx, take))
	require.Equal(t, []string{"one", "one", "two"}, told)
	newest, err = second.Claim(ctx, true)
	require.NoError(t, err)
	require.Equal(t, "two", newest)
	require.ErrorIs(t, first.Put(ctx, "late"), base.ErrFenced)
	require.NoError(t, second.Put(ctx, "three"))

	var keys bytes.Buffer
	for o, err := range mem.List(ctx, "", "") {
		require.NoError(t, err)
		keys.WriteString(o.Key + "\n")
	}
	s := sequence.New(mem, "slot/s/", sequence.Options{})
	text := "siftkv slot=s history=1234 acked=4711"
	object := s.Encode(sequence.Entry{Store: 7, Slot: 2, Epoch: 1, Body: base.SealLine(text)})
	golden.File(t, "testdata/positions.golden", keys.String()+hex.Dump(object))

	data := append(bytes.Clone(object), 0)
	require.NoError(t, mem.Put(ctx, s.Key(5), bytes.NewReader(data), int64(len(data))))
	require.ErrorIs(t, writer.Newest(ctx, take), base.ErrCorruption)
	_, err = writer.Claim(ctx, false)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, writer.Put(ctx, "four"))
}
