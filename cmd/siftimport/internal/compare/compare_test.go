package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// entriesOf is a store in memory.
type entriesOf []source.Entry

func (s entriesOf) Scan(r source.Range, visit source.Visitor) error {
	for _, e := range s {
		if bytes.Compare(e.Key, r.From) < 0 || r.To != nil && bytes.Compare(e.Key, r.To) >= 0 {
			continue
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
	return nil
}

// storeOf is entriesOf with the rest of a Store, which is not called.
type storeOf struct {
	source.Store
	entriesOf
}

func (s storeOf) Scan(r source.Range, visit source.Visitor) error { return s.entriesOf.Scan(r, visit) }

func some(n int) (s entriesOf) {
	for i := range n {
		s = append(s, source.Entry{Key: fmt.Appendf(nil, "%04d", i), Value: bytes.Repeat([]byte{byte(i)}, 500)})
	}
	s[n/2].Expiry = time.Unix(2_000_000_000, 0)
	return s
}

func whole(s Scanner) Input { return Input{Scanner: s, Ranges: []source.Range{{}}} }

// What is compared is the same however it is cut, and progress is told of all of it.
func TestSidesDoNotDependOnRanges(t *testing.T) {
	s := some(1000)
	cut := Input{Scanner: s, Ranges: []source.Range{{To: s[3].Key}, {From: s[3].Key, To: s[600].Key},
		{From: s[600].Key}}}
	done := make(chan source.Range, len(cut.Ranges))
	cut.Progress = func(r source.Range, key []byte) {
		if key == nil {
			done <- r
		}
	}
	for _, threads := range []int{1, 4} {
		sides, err := Read(t.Context(), threads, cut, whole(s))
		require.NoError(t, err)
		require.Equal(t, sides[1], sides[0])
		require.EqualValues(t, 1000, sides[0].Keys)
		require.EqualValues(t, 1000*504, sides[0].Bytes)
		for range cut.Ranges {
			require.Contains(t, cut.Ranges, <-done)
		}
	}
}

// What a store has is known from a reading of it, which may be of ranges at once.
func TestAReadingIsASide(t *testing.T) {
	s := some(1000)
	sides, err := Read(t.Context(), 1, whole(s))
	require.NoError(t, err)
	reading := &Reading{Store: storeOf{entriesOf: s}}
	var visits sync.WaitGroup
	for _, r := range []source.Range{{To: s[600].Key}, {From: s[600].Key}} {
		visits.Go(func() {
			assert.NoError(t, reading.Scan(r, func(e *source.Entry) error {
				e.Value = nil // the visitor's: what is summed up was read
				return nil
			}))
		})
	}
	visits.Wait()
	require.Equal(t, sides[0], reading.Side())
	broken := errors.New("broken")
	require.ErrorIs(t, reading.Scan(source.Range{}, func(*source.Entry) error { return broken }), broken)
}

// A key, a value or a moment of expiry that is another is found and named.
func TestDifferences(t *testing.T) {
	changes := map[string]func(s entriesOf) entriesOf{
		`only the source has key "0999"`: func(s entriesOf) entriesOf { return s[:999] },
		`only the source has key "0007"`: func(s entriesOf) entriesOf { return slices.Delete(s, 7, 8) },
		`the source has no key "0003x"`: func(s entriesOf) entriesOf {
			return slices.Insert(s, 4, source.Entry{Key: []byte("0003x")})
		},
		`the values of key "0008" differ`: func(s entriesOf) entriesOf {
			s[8].Value = []byte("v")
			return s
		},
		`the moments at which key "0500" expires differ`: func(s entriesOf) entriesOf {
			s[500].Expiry = time.Time{}
			return s
		},
		`the moments at which key "0501" expires differ`: func(s entriesOf) entriesOf {
			s[501].Expiry = time.Unix(1, 0)
			return s
		},
	}
	for want, change := range changes {
		other := change(some(1000))
		sides, err := Read(t.Context(), 2, whole(some(1000)), whole(other))
		require.NoError(t, err)
		require.NotEqual(t, sides[0], sides[1], want)
		where, err := Difference(t.Context(), some(1000), other)
		require.NoError(t, err)
		require.Equal(t, want, where)
	}
	where, err := Difference(t.Context(), some(10), some(10))
	require.NoError(t, err)
	require.Empty(t, where)
}

type failing struct{ error }

func (f failing) Scan(source.Range, source.Visitor) error { return f.error }

// The first error ends both sides, and is the one that is returned; so is that of the caller, who gives up.
func TestComparingEnds(t *testing.T) {
	broken := errors.New("broken")
	good, bad := whole(some(10)), whole(failing{broken})
	for _, inputs := range [][2]Input{{bad, good}, {good, bad}} {
		_, err := Read(t.Context(), 2, inputs[0], inputs[1])
		require.ErrorIs(t, err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(ctx, 2, whole(some(1000)), whole(some(1000)))
	require.ErrorIs(t, err, context.Canceled)

	s := some(10)
	s[3], s[4] = s[4], s[3]
	_, err = Read(t.Context(), 2, whole(s), whole(some(10)))
	require.ErrorIs(t, err, source.ErrDamaged)
}
