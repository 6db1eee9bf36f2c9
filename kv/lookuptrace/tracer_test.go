package lookuptrace

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

func TestWrongTraceOptions(t *testing.T) {
	_, err := New(io.Discard, &Options{OneIn: -1})
	require.ErrorIs(t, err, base.ErrInvalidOptions)
	_, err = New(nil, nil)
	require.ErrorIs(t, err, base.ErrInvalidOptions)
}
