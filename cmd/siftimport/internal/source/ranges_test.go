package source

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// keys is a store whose keys take ten bytes each, and are known in steps.
type keys struct {
	Store
	all      []string
	step     int
	together bool
}

func (k *keys) Parallel() bool { return k.together }
func (k *keys) Size() int64    { return int64(10 * len(k.all)) }
func (k *keys) Before(key []byte) int64 {
	if k.step == 0 {
		return -1
	}
	return int64(10 * (sort.SearchStrings(k.all, string(key)) / k.step * k.step))
}

// Ranges are next to each other, from the key that was asked for to the last, and of about the size that was.
func TestRanges(t *testing.T) {
	deep := string(bytes.Repeat([]byte("prefix"), 20))
	for _, form := range []string{"%04d", deep + "%04d", "%c\x00\x00\xff", "\xff\xff%05d", "a\x00\x00%d"} {
		s := &keys{step: 1, together: true}
		for i := range 1000 {
			s.all = append(s.all, fmt.Sprintf(form, i+1000))
		}
		slices.Sort(s.all)
		all := Ranges(s, nil, 2500)
		require.Len(t, all, 4, form)
		require.Nil(t, all[0].From)
		require.Nil(t, all[3].To)
		for i, r := range all[1:] {
			require.Equal(t, all[i].To, r.From)
			require.InDelta(t, 2500*(i+1), s.Before(r.From), 2500/slack, "%s %q", form, r.From)
		}
		from := []byte(s.all[300])
		rest := Ranges(s, from, 2500)
		require.Equal(t, append([]Range{{From: from, To: all[1].To}}, all[2:]...), rest, form)
	}
}

// Where a store cannot say where its keys are, or says it of many at once, ranges are fewer.
func TestRangesThatAreFewer(t *testing.T) {
	s := &keys{step: 500, together: true}
	for i := range 1000 {
		s.all = append(s.all, strconv.Itoa(i+1000))
	}
	all := Ranges(s, nil, 1000)
	require.Len(t, all, 2, "%q", all)
	require.Equal(t, all[0].To, all[1].From)
	require.Positive(t, bytes.Compare(all[1].From, []byte(s.all[499])))
	require.Negative(t, bytes.Compare(all[1].From, []byte(s.all[999])))
	for _, none := range []*keys{{all: s.all, together: true}, {all: s.all, step: 1}, {step: 1, together: true}} {
		require.Equal(t, []Range{{From: []byte("x")}}, Ranges(none, []byte("x"), 1000))
		require.Equal(t, []Range{{}}, Ranges(none, nil, 1000))
	}
}
