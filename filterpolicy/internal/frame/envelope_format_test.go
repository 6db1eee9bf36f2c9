package frame

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var envelope = Envelope{Family: Counting, Version: 3, Made: "counting.New"}

// keep makes a load function that keeps the payload in to.
func keep(to *[]byte) func([]byte) error {
	return func(payload []byte) error { *to = payload; return nil }
}

func TestEnvelopeIsWhatItsMethodsMake(t *testing.T) {
	parts := [][]byte{[]byte("pay"), []byte("load")}
	data, err := envelope.Append([]byte("before"), parts)
	require.NoError(t, err)
	require.Equal(t, "before"+string(sampleSet()), string(data))
	var buf bytes.Buffer
	n, err := envelope.Write(&buf, parts)
	require.NoError(t, err)
	require.Equal(t, int64(len(sampleSet())), n)
	require.Equal(t, sampleSet(), buf.Bytes())

	var got []byte
	data = sampleSet()
	require.NoError(t, envelope.Unmarshal(data, keep(&got)))
	clear(data)
	require.Equal(t, "payload", string(got), "load may keep what it is given")
	buf.WriteString("what follows")
	n, err = envelope.Read(&buf, keep(&got))
	require.NoError(t, err)
	require.Equal(t, int64(len(sampleSet())), n)
	require.Equal(t, "payload", string(got))
	require.Equal(t, "what follows", buf.String())
}

func TestEnvelopeRefusesZeroSets(t *testing.T) {
	data, err := envelope.Append([]byte("before"), nil)
	require.EqualError(t, err, "filterpolicy: a zero set cannot be written; make it with counting.New")
	require.Equal(t, "before", string(data))
	var buf bytes.Buffer
	n, err := envelope.Write(&buf, nil)
	require.ErrorContains(t, err, "counting.New")
	require.Zero(t, n)
	require.Zero(t, buf.Len())
}

func TestEnvelopeRefusesWhatItDoesNotRead(t *testing.T) {
	never := func([]byte) error { panic("load was given what had to be refused") }
	later := appendEnvelope(nil, Counting, 4, []byte("payload"))
	err := envelope.Unmarshal(later, never)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "version is 4; this program reads version 3")
	n, err := envelope.Read(bytes.NewReader(later), never)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, int64(len(later)), n)

	short := envelope
	short.MaxPayload = 6
	_, err = short.Read(bytes.NewReader(sampleSet()), never)
	require.ErrorContains(t, err, "more than the 6 that a filter may have here")
	require.ErrorIs(t, envelope.Unmarshal(nil, never), ErrCorrupt)
	_, err = envelope.Read(strings.NewReader(""), never)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestEnvelopeReturnsTheErrorOfLoad(t *testing.T) {
	unknown := errors.New("unknown")
	fail := func([]byte) error { return unknown }
	require.ErrorIs(t, envelope.Unmarshal(sampleSet(), fail), unknown)
	n, err := envelope.Read(bytes.NewReader(sampleSet()), fail)
	require.ErrorIs(t, err, unknown)
	require.Equal(t, int64(len(sampleSet())), n)
}
