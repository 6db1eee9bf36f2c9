package blob

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
)

// Values come out of a span as they come alone, and a damaged one costs itself only.
func TestValuesInASpan(t *testing.T) {
	for _, kind := range []compression.Kind{compression.None, compression.Snappy} {
		vs := testValues(rand.New(rand.NewPCG(1, uint64(kind))))
		data, _ := writeValues(t, kind, vs)
		r := open(t, data)
		const from = headerSize
		span := data[from : len(data)-footerSize]
		damaged := len(vs) / 2
		span[vs[damaged].handle.Offset+vs[damaged].handle.Length-from-1] ^= 1
		var plain []byte
		var values [][]byte
		for i, v := range vs {
			value, rest, err := r.ValueIn(span, from, plain, v.key, v.handle)
			if i == damaged {
				require.ErrorIs(t, err, base.ErrCorruption)
				require.Equal(t, plain, rest)
				value = v.bytes
			} else {
				require.NoError(t, err)
			}
			plain, values = rest, append(values, value)
		}
		for i, v := range vs {
			require.True(t, bytes.Equal(v.bytes, values[i]), i)
		}
		last := vs[len(vs)-1]
		_, _, err := r.ValueIn(span[:len(span)-1], from, nil, last.key, last.handle)
		require.ErrorIs(t, err, base.ErrCorruption, "it ends after the span")
		_, _, err = r.ValueIn(span, from+1, nil, vs[0].key, vs[0].handle)
		require.ErrorIs(t, err, base.ErrCorruption, "it begins before the span")
		outside := last.handle
		outside.Offset += int64(len(data))
		require.False(t, r.Admits(outside))
		require.True(t, r.Admits(last.handle))
	}
}

// What AppendValue returns stays what it is while others are read.
func TestValuesHaveMemoryOfTheirOwn(t *testing.T) {
	vs := testValues(rand.New(rand.NewPCG(1, 1)))
	data, _ := writeValues(t, compression.Snappy, vs)
	r := open(t, data)
	var values [][]byte
	for _, v := range vs {
		value, err := r.AppendValue(nil, v.key, v.handle)
		require.NoError(t, err)
		values = append(values, value)
	}
	for i, v := range vs {
		require.True(t, bytes.Equal(v.bytes, values[i]), i)
	}
}

// A failingFile fails.
type failingFile struct{ io.ReaderAt }

func (failingFile) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the device failed") }

func TestASpanThatCannotBeRead(t *testing.T) {
	r, err := NewReader(failingFile{}, 1000, ReaderOptions{ID: testID})
	require.NoError(t, err)
	require.ErrorContains(t, r.ReadSpan(make([]byte, 10), 32), "the device failed")
}
