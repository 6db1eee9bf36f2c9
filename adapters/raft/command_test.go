package siftraft

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// A transcript is the writes that it was given, as text.
type transcript []string

func (w *transcript) Set(key, value []byte) error {
	*w = append(*w, fmt.Sprintf("set %q %q", key, value))
	return nil
}

func (w *transcript) Delete(key []byte) error {
	*w = append(*w, fmt.Sprintf("delete %q", key))
	return nil
}

func (w *transcript) DeleteRange(lo, hi []byte) error {
	*w = append(*w, fmt.Sprintf("delete %q (%t) to %q (%t)", lo, lo == nil, hi, hi == nil))
	return nil
}

func goldenCommand(t testing.TB) []byte {
	var c Command
	require.NoError(t, c.Set([]byte("key"), []byte("value")))
	require.NoError(t, c.Set(nil, nil))
	require.NoError(t, c.Delete([]byte("d")))
	require.NoError(t, c.DeleteRange([]byte("lo"), []byte("hi")))
	require.NoError(t, c.DeleteRange(nil, nil))
	require.NoError(t, c.DeleteRange([]byte{}, []byte{}))
	return c.Bytes()
}

const goldenCommandBytes = "01" + "01036b657905" + "76616c7565" + "010000" + "020164" + "03036c6f036869" + "030000" +
	"030101"

func TestGoldenCommand(t *testing.T) {
	require.Equal(t, goldenCommandBytes, hex.EncodeToString(goldenCommand(t)))
	data, err := hex.DecodeString(goldenCommandBytes)
	require.NoError(t, err)
	var got transcript
	require.NoError(t, applyCommand(&got, data))
	require.Equal(t, transcript{`set "key" "value"`, `set "" ""`, `delete "d"`, `delete "lo" (false) to "hi" (false)`,
		`delete "" (true) to "" (true)`, `delete "" (false) to "" (false)`}, got)
}

func TestAnEmptyCommandDoesNothing(t *testing.T) {
	var c Command
	var got transcript
	require.NoError(t, applyCommand(&got, c.Bytes()))
	require.Empty(t, got)
}

func TestNothingOfABrokenCommandIsApplied(t *testing.T) {
	whole := goldenCommand(t)
	boundaries := 0
	for n := range whole {
		var got transcript
		if err := applyCommand(&got, whole[:n]); err == nil {
			boundaries++ // it ends behind a write
			continue
		} else {
			require.ErrorIs(t, err, ErrCommand)
		}
		require.Empty(t, got, "%d bytes", n)
	}
	require.Equal(t, 6, boundaries)
	for _, data := range []string{"", "\x02", "\x01\x00", "\x01\x04\x00", "\x01\x02\x01d\x09"} {
		var got transcript
		require.ErrorIs(t, applyCommand(&got, []byte(data)), ErrCommand, "%q", data)
		require.Empty(t, got)
	}
}

func TestACommandRefusesWhatNoStoreTakes(t *testing.T) {
	var c Command
	require.NoError(t, c.Set([]byte("a"), []byte("b")))
	before := string(c.Bytes())
	long, huge := make([]byte, kv.MaxKeySize+1), make([]byte, kv.MaxValueSize+1) // never touched: they cost no memory
	for i, err := range []error{
		c.Set(long, nil), c.Delete(long), c.DeleteRange(long, nil), c.DeleteRange(nil, long), c.Set([]byte("k"), huge),
		c.Set([]byte("k"), huge[:kv.MaxValueSize]), // with the rest it is too large a command
	} {
		require.ErrorIs(t, err, kv.ErrTooLarge, "%d", i)
	}
	require.ErrorIs(t, c.Set([]byte(AppliedKey), nil), ErrCommand)
	require.ErrorIs(t, c.Delete([]byte(AppliedKey)), ErrCommand)
	require.NoError(t, c.DeleteRange([]byte(AppliedKey), nil), "a range may have it: it is written again")
	require.True(t, strings.HasPrefix(string(c.Bytes()), before))
	var got transcript
	require.NoError(t, applyCommand(&got, c.Bytes()))
	require.Len(t, got, 2)
}

// A command that no Command has made is refused by every node alike.
func TestAForeignCommandIsHeldToTheSameLimits(t *testing.T) {
	for name, writes := range map[string][]byte{
		"a key":         appendBytes(appendBytes([]byte{commandFormat, opSet}, make([]byte, kv.MaxKeySize+1)), nil),
		"a deleted key": appendBytes([]byte{commandFormat, opDelete}, make([]byte, kv.MaxKeySize+1)),
		"a bound":       appendBound([]byte{commandFormat, opDeleteRange, 0}, make([]byte, kv.MaxKeySize+1)),
		"the FSM's key": appendBytes(appendBytes([]byte{commandFormat, opSet}, []byte(AppliedKey)), nil),
		"many writes": append([]byte{commandFormat},
			strings.Repeat("\x02\x00", MaxCommandSize/writeCost+1)...),
	} {
		var got transcript
		require.ErrorIs(t, applyCommand(&got, writes), ErrCommand, name)
		require.Empty(t, got, name)
	}
}

func TestResetLeavesTheBytesAlone(t *testing.T) {
	var c Command
	require.NoError(t, c.Set([]byte("a"), []byte("1")))
	first := c.Bytes()
	before := string(first)
	c.Reset()
	require.NoError(t, c.Set([]byte("b"), []byte("2")))
	require.Equal(t, before, string(first))
	require.NotEqual(t, before, string(c.Bytes()))
}

func FuzzCommand(f *testing.F) {
	f.Add(goldenCommand(f))
	f.Add([]byte{commandFormat})
	f.Add([]byte{commandFormat, opSet, 0x80})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again transcript
		err := applyCommand(&got, data)
		if err != nil {
			require.ErrorIs(t, err, ErrCommand)
			require.Empty(t, got)
			return
		}
		var c Command
		require.NoError(t, replay(data, &c))
		require.LessOrEqual(t, len(c.Bytes()), len(data), "numbers have one shortest form")
		require.NoError(t, applyCommand(&again, c.Bytes()))
		require.Equal(t, got, again)
	})
}
