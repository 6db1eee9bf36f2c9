package rangedel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpanClipsTombstones(t *testing.T) {
	ts := []Tombstone{{Start: []byte("a"), End: []byte("f"), Seq: 1}, {Start: []byte("c"), Seq: 2},
		{Start: []byte("a"), End: []byte("c"), Seq: 3}, {Start: []byte("h"), End: []byte("k"), Seq: 4}}
	require.Equal(t, ts, Span{}.Clip(nil, ts))
	middle := []Tombstone{
		{Start: []byte("c"), End: []byte("f"), Seq: 1}, {Start: []byte("c"), End: []byte("h"), Seq: 2},
	}
	require.Equal(t, middle, Span{Lo: []byte("c"), Hi: []byte("h")}.Clip(nil, ts))
	require.Equal(t, []Tombstone{{Start: []byte("i"), Seq: 2}, {Start: []byte("i"), End: []byte("k"), Seq: 4}},
		Span{Lo: []byte("i")}.Clip(nil, ts))
	require.Equal(t, []byte("a"), ts[0].Start, "the tombstones themselves stay")
}
