package s3

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestSource(t *testing.T) {
	body := []byte("0123456789")
	require.NoError(t, iotest.TestReader(&source{r: bytes.NewReader(body), off: 2, size: 5}, body[2:7]))

	s := &source{r: bytes.NewReader(body), off: 2, size: 9}
	_, err := io.ReadAll(s)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "there are only eight")
	require.ErrorIs(t, s.stop(), io.ErrUnexpectedEOF)

	s = &source{r: bytes.NewReader(body), size: 10}
	require.NoError(t, s.stop())
	_, err = s.Read(make([]byte, 1))
	require.ErrorIs(t, err, errStopped)
}

// watched notices reads of big after the call that it was given to.
type watched struct{ over, late *atomic.Bool }

func (w watched) ReadAt(p []byte, off int64) (int, error) {
	if w.over.Load() {
		w.late.Store(true)
	}
	return copy(p, big[off:]), nil
}

// TestWhatIsWrittenIsLeftAloneAfterwards has a server that answers before it has read a body, which the HTTP client
// is still sending.
func TestWhatIsWrittenIsLeftAloneAfterwards(t *testing.T) {
	s := says(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	var over, late [20]atomic.Bool
	for i := range over {
		require.Error(t, s.Put(t.Context(), "k", watched{&over[i], &late[i]}, int64(len(big))))
		over[i].Store(true)
	}
	for i := range late {
		require.False(t, late[i].Load())
	}
}
