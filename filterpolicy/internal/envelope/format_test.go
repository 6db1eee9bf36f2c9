package envelope

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var format = Format{Family: Counting, Version: 3, Made: "counting.New"}

// keep makes a load function that keeps the payload in to.
func keep(to *[]byte) func([]byte) error {
	return func(payload []byte) error { *to = payload; return nil }
}

func TestFormatIsAnEnvelope(t *testing.T) {
	parts := [][]byte{[]byte("pay"), []byte("load")}
	data, err := format.Append([]byte("before"), parts)
	require.NoError(t, err)
	require.Equal(t, "before"+string(sample()), string(data))
	var buf bytes.Buffer
	n, err := format.Write(&buf, parts)
	require.NoError(t, err)
	require.Equal(t, int64(len(sample())), n)
	require.Equal(t, sample(), buf.Bytes())

	var got []byte
	data = sample()
	require.NoError(t, format.Unmarshal(data, keep(&got)))
	clear(data)
	require.Equal(t, "payload", string(got), "load may keep what it is given")
	buf.WriteString("what follows")
	n, err = format.Read(&buf, keep(&got))
	require.NoError(t, err)
	require.Equal(t, int64(len(sample())), n)
	require.Equal(t, "payload", string(got))
	require.Equal(t, "what follows", buf.String())
}

func TestFormatRefusesZeroSets(t *testing.T) {
	data, err := format.Append([]byte("before"), nil)
	require.EqualError(t, err, "filterpolicy: a zero set cannot be written; make it with counting.New")
	require.Equal(t, "before", string(data))
	var buf bytes.Buffer
	n, err := format.Write(&buf, nil)
	require.ErrorContains(t, err, "counting.New")
	require.Zero(t, n)
	require.Zero(t, buf.Len())
}

func TestFormatRefusesWhatItDoesNotRead(t *testing.T) {
	never := func([]byte) error { panic("load was given what had to be refused") }
	later := Append(nil, Counting, 4, []byte("payload"))
	err := format.Unmarshal(later, never)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "version is 4; this program reads version 3")
	n, err := format.Read(bytes.NewReader(later), never)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, int64(len(later)), n)

	short := format
	short.MaxPayload = 6
	_, err = short.Read(bytes.NewReader(sample()), never)
	require.ErrorContains(t, err, "more than the 6 that a filter may have here")
	require.ErrorIs(t, format.Unmarshal(nil, never), ErrCorrupt)
	_, err = format.Read(strings.NewReader(""), never)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestFormatReturnsTheErrorOfLoad(t *testing.T) {
	unknown := errors.New("unknown")
	fail := func([]byte) error { return unknown }
	require.ErrorIs(t, format.Unmarshal(sample(), fail), unknown)
	n, err := format.Read(bytes.NewReader(sample()), fail)
	require.ErrorIs(t, err, unknown)
	require.Equal(t, int64(len(sample())), n)
}
