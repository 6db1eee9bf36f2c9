package survey

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/blob"
)

// The handles of a blob file are held against its records with two bits for each record.
func TestHandlesMeetTheirRecords(t *testing.T) {
	t.Parallel()
	const records = 1000
	key := func(i int) []byte { return fmt.Appendf(nil, "key%04d", i) }
	handle := func(i int) blob.Handle {
		return blob.Handle{File: 7, Ordinal: uint64(i), Offset: int64(32 + 100*i), Length: 100, Size: 80}
	}
	set := func() *handleSet {
		s := newHandleSet(records)
		for i := 0; i < records; i += 3 {
			require.True(t, s.add(key(i), handle(i)))
		}
		return s
	}
	require.LessOrEqual(t, uintptr(len(set().blocks))*unsafe.Sizeof(handleBlock{})*8, uintptr(2*(records+64)))
	require.False(t, set().add(key(9), handle(9)), "two entries have one record")
	for name, c := range map[string]struct {
		record      func(i int) (key []byte, h blob.Handle)
		first, last uint64
		ok          bool
	}{
		"all":        {func(i int) ([]byte, blob.Handle) { return key(i), handle(i) }, 0, 0, true},
		"one is not": {func(i int) ([]byte, blob.Handle) { return key(i), handle(i + i/300*10_000) }, 300, 318, false},
		"another key": {func(i int) ([]byte, blob.Handle) {
			if i == 999 {
				return key(998), handle(i)
			}
			return key(i), handle(i)
		}, 960, 999, false},
		"two keys are exchanged": {func(i int) ([]byte, blob.Handle) {
			switch i {
			case 3:
				return key(6), handle(i)
			case 6:
				return key(3), handle(i)
			}
			return key(i), handle(i)
		}, 0, 63, false},
	} {
		s := set()
		for i := range records {
			s.meet(c.record(i))
		}
		first, last, ok := s.left()
		require.Equal(t, []any{c.first, c.last, c.ok}, []any{first, last, ok}, name)
	}
	var none *handleSet
	none.meet(key(1), handle(1))
	_, _, ok := none.left()
	require.True(t, ok)
}
