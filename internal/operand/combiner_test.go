package operand

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// A merger for tests returns what fn returns.
type testMerger struct {
	fn func(key, older, newer []byte) ([]byte, error)
}

func (testMerger) Name() string { return "test" }

func (m testMerger) Merge(key, older, newer []byte) ([]byte, error) { return m.fn(key, older, newer) }

func slices(values ...string) (all [][]byte) {
	for _, v := range values {
		all = append(all, []byte(v))
	}
	return all
}

// An entry is shorter than what a reader can get.
func TestLimits(t *testing.T) {
	c := Combiner{Merger: Append{}, Name: appendName, MaxEntry: 3, MaxValue: 4}
	v, err := c.EntryFunc()([]byte("k"), slices("ab", "c"))
	require.NoError(t, err)
	require.Equal(t, "abc", string(v))
	for values, want := range map[[2]string]error{{"ab", "cd"}: nil, {"ab", "cde"}: base.ErrTooLarge} {
		_, err := c.Entry([]byte("k"), slices(values[:]...))
		require.ErrorIs(t, err, base.ErrTooLarge)
		require.ErrorIs(t, err, ErrFailed)
		_, err = c.Value([]byte("k"), slices(values[:]...))
		require.ErrorIs(t, err, want)
	}
}

func TestFailures(t *testing.T) {
	none := Combiner{Name: "other"}
	require.Nil(t, none.EntryFunc())
	_, err := none.Value([]byte("k"), slices("a"))
	require.ErrorIs(t, err, ErrNoMerger)
	require.ErrorContains(t, err, `"other"`)

	cause := errors.New("cause")
	for _, fn := range []func(key, older, newer []byte) ([]byte, error){
		func(_, _, _ []byte) ([]byte, error) { return nil, cause },
		func(_, _, _ []byte) ([]byte, error) { panic(cause) },
	} {
		c := Combiner{Merger: testMerger{fn}, Name: "test", MaxValue: 100}
		v, err := c.Value([]byte("k"), slices("a", "b"))
		require.Nil(t, v)
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok)
		require.Equal(t, "k", string(e.Key))
		require.ErrorContains(t, err, "cause")
	}
}

// A merger may return newer: it is not overwritten by what the merger does with the result.
func TestNewerIsNotOverwritten(t *testing.T) {
	c := Combiner{MaxValue: 100, Merger: testMerger{func(_, older, newer []byte) ([]byte, error) {
		for i := range older {
			older[i] = 'x'
		}
		return newer, nil
	}}}
	values := slices("a", "b", "c")
	v, err := c.Value([]byte("k"), values)
	require.NoError(t, err)
	require.Equal(t, "c", string(v))
	require.Equal(t, slices("a", "b", "c"), values)
	v[0] = 'y'
	require.Equal(t, slices("a", "b", "c"), values)
}

func TestCheck(t *testing.T) {
	c := Combiner{Merger: Int64Add{}}
	require.NoError(t, c.Check([]byte("k"), AppendInt64(nil, 1)))
	require.ErrorIs(t, c.Check([]byte("k"), []byte("1")), ErrFailed)
	c.Merger = Append{}
	require.NoError(t, c.Check([]byte("k"), []byte("1")))
}
