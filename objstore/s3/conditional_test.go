package s3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

func isUnknown(err error) bool { return errors.Is(err, objstore.ErrUnknown) }

func TestAReplyToACreateIsLost(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t)
	p.makes(on(objstore.PutIfAbsent, 1, p.lose))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "direct", []byte("mine")), objstore.ErrUnknown)
	require.EqualValues(t, 1, p.requests(objstore.PutIfAbsent), "it is not repeated behind the caller's back")

	p.makes(on(objstore.PutIfAbsent, 1, p.lose))
	require.NoError(t, objstore.Commit(t.Context(), s, "own", []byte("mine")))
	require.Equal(t, "mine", content(t, s, "own"))

	require.NoError(t, s.PutIfAbsent(t.Context(), "others", []byte("theirs")))
	p.makes(on(objstore.PutIfAbsent, 1, p.lose))
	require.ErrorIs(t, objstore.Commit(t.Context(), s, "others", []byte("mine")), objstore.ErrExists)
	require.Equal(t, "theirs", content(t, s, "others"))
}

func TestAConflictIsOfUnknownOutcome(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t)
	conflict := refuse(http.StatusConflict, "ConditionalRequestConflict")
	p.makes(on(objstore.PutIfAbsent, 1, conflict))
	err := s.PutIfAbsent(t.Context(), "k", nil)
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.NotErrorIs(t, err, objstore.ErrExists)

	p.makes(on(objstore.PutIfAbsent, 3, conflict))
	require.NoError(t, objstore.Commit(t.Context(), s, "k", []byte("nonce")))
}

// TestARefusalThatWasNone has a server whose refusal of a create is a lie: what comes after it finds the create's own
// object, or another's.
func TestARefusalThatWasNone(t *testing.T) {
	p := newProxy(t, newServer(t))
	lie := func(w http.ResponseWriter, r *http.Request) {
		p.forward.ServeHTTP(discard{http.Header{}}, r)
		refuse(http.StatusServiceUnavailable, "SlowDown")(w, r)
	}
	s := p.open(t)
	p.makes(on(objstore.PutIfAbsent, 1, lie))
	err := s.PutIfAbsent(t.Context(), "k", []byte("mine"))
	require.ErrorIs(t, err, objstore.ErrUnknown, "it may be another's with the same content")

	p.makes(on(objstore.PutIfAbsent, 1, lie))
	require.NoError(t, objstore.Commit(t.Context(), s, "own", []byte("mine")))

	p.makes(on(objstore.PutIfAbsent, 1, lie))
	err = s.PutIfAbsent(t.Context(), "k", []byte("another's"))
	require.ErrorIs(t, err, objstore.ErrExists)
	require.NotErrorIs(t, err, objstore.ErrUnknown)
	require.Equal(t, "mine", content(t, s, "k"))
}

// discard is a reply that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestTheCheckRefusesServersThatIgnoreConditions(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t)
	require.NoError(t, objstore.CheckConditional(t.Context(), s, "dir/"))
	client := p.client(t)
	p.makes(on(objstore.PutIfAbsent, 1000, func(w http.ResponseWriter, r *http.Request) {
		// The header is signed, so that it cannot just be left out.
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		_, err = client.PutObject(r.Context(), &s3.PutObjectInput{
			Bucket: &p.bucket, Key: &key, Body: bytes.NewReader(body),
		})
		assert.NoError(t, err)
		w.WriteHeader(http.StatusOK)
	}))
	err := objstore.CheckConditional(t.Context(), s, "dir/")
	require.ErrorIs(t, err, objstore.ErrUnconditional)
	for o, err := range s.List(t.Context(), "", "") {
		t.Errorf("the check has left %v (%v)", o, err)
	}
}
