package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// TestBodiesGoUpAsTheyAre looks at what a server gets: no framing, no checksums that it may not know, a signed hash.
func TestBodiesGoUpAsTheyAre(t *testing.T) {
	body := strings.Repeat("body ", 1000)
	hash := sha256.Sum256([]byte(body))
	s := says(t, func(_ http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			name = strings.ToLower(name)
			assert.False(t, strings.HasPrefix(name, "x-amz-checksum") ||
				strings.HasPrefix(name, "x-amz-sdk-checksum") ||
				name == "x-amz-trailer" || name == "content-encoding", "%s has the header %s", r.Method, name)
		}
		if r.Method == http.MethodPut {
			got, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.Equal(t, body, string(got))
			assert.Equal(t, hex.EncodeToString(hash[:]), r.Header.Get("X-Amz-Content-Sha256"))
			assert.Contains(t, r.Header.Get("Authorization"), "x-amz-content-sha256")
		}
	})
	put(t, s, "k", body)
	require.NoError(t, s.PutIfAbsent(t.Context(), "k", []byte(body)))
	_, err := s.GetRange(t.Context(), "k", 0, make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

func TestDeleteOfWhatAServerDoesNotFind(t *testing.T) {
	s := says(t, refuse(http.StatusNotFound, "NoSuchKey"))
	require.NoError(t, s.Delete(t.Context(), "k"))
	s = says(t, refuse(http.StatusNotFound, "NoSuchBucket"))
	require.ErrorContains(t, s.Delete(t.Context(), "k"), "NoSuchBucket")
}

// TestWaitingForATurnEndsWithTheContext has no place left, and a context that ended after the call began.
func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	s := says(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	s.slots = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	c, err := s.begin(ctx, objstore.PutIfAbsent, "k")
	require.NoError(t, err)
	cancel()
	err = c.result(c.put(ctx, strings.NewReader(""), 0, nil))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, objstore.ErrUnknown, "it was never sent")
}
