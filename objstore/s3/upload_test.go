package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// inParts makes uploads of more than 5 MiB go in parts.
func inParts(c *Config) { c.PartSize = minPartSize }

// big is what takes three parts.
var big = func() []byte {
	p := make([]byte, 2*minPartSize+12345)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(p)
	return p
}()

// leftovers returns how many uploads of a store's objects are neither complete nor aborted.
func leftovers(t *testing.T, s *store) int {
	reply, err := s.client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &s.Bucket})
	require.NoError(t, err)
	n := 0
	for _, upload := range reply.Uploads {
		if strings.HasPrefix(*upload.Key, s.Prefix) {
			n++
		}
	}
	return n
}

// nothing holds that a store has no object and no rest of an upload.
func nothing(t *testing.T, s *store) {
	for o, err := range s.List(t.Context(), "", "") {
		t.Errorf("there is %v (%v)", o, err)
	}
	require.Zero(t, leftovers(t, s), "uploads that were not aborted")
}

// part reports whether a request uploads a part, and complete whether it puts the parts together.
func part(r *http.Request) bool { return r.URL.Query().Has("partNumber") }
func complete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

// when returns a trouble for the first n requests that are such.
func when(such func(*http.Request) bool, n int64, then http.HandlerFunc) trouble {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64, pass http.Handler) {
		if such(r) && seen.Add(1) <= n {
			then(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}
}

func putBig(ctx context.Context, s objstore.Store, key string) error {
	return s.Put(ctx, key, bytes.NewReader(big), int64(len(big)))
}

func TestUploadsOutliveTroubles(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, trouble := range map[string]trouble{
		"reset":                when(part, 3, reset),
		"lost reply":           when(part, 3, p.lose),
		"slow down":            when(part, 5, refuse(http.StatusServiceUnavailable, "SlowDown")),
		"lost beginning":       on(objstore.Put, 1, p.lose),
		"slow down at the end": when(complete, 2, refuse(http.StatusServiceUnavailable, "SlowDown")),
	} {
		s := p.open(t, inParts)
		p.makes(trouble)
		require.NoError(t, putBig(t.Context(), s, "k"), name)
		require.True(t, content(t, s, "k") == string(big), name)
	}
}

func TestUploadsThatFailLeaveNothing(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, trouble := range map[string]trouble{
		"reset":     when(part, 1000, reset),
		"slow down": when(part, 1000, refuse(http.StatusServiceUnavailable, "SlowDown")),
		"forbidden": when(part, 1000, refuse(http.StatusForbidden, "AccessDenied")),
		"the end":   when(complete, 1000, refuse(http.StatusForbidden, "AccessDenied")),
	} {
		s := p.open(t, inParts)
		p.makes(trouble)
		err := putBig(t.Context(), s, "k")
		require.Error(t, err, name)
		require.NotErrorIs(t, err, objstore.ErrUnknown, "%s: it was never put together", name)
		require.NoError(t, s.Close())
		p.makes(nil)
		nothing(t, s.by(t, p.server))
	}
	s := p.open(t, inParts)
	p.makes(when(complete, 1000, p.lose))
	require.ErrorIs(t, putBig(t.Context(), s, "k"), objstore.ErrUnknown)
	p.makes(nil)
	require.True(t, content(t, s, "k") == string(big))
	require.Zero(t, leftovers(t, s))
}

func TestAnUploadWhoseContextEndsLeavesNothing(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t, inParts)
	ctx, cancel := context.WithCancel(t.Context())
	p.makes(when(part, 1000, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hang(w, r)
	}))
	err := putBig(ctx, s, "k")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, objstore.ErrUnknown)
	require.NoError(t, s.Close())
	p.makes(nil)
	nothing(t, s.by(t, p.server))
}

func TestAnUploadThatFailsAfterCloseLeavesNothing(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t, inParts)
	p.makes(func(w http.ResponseWriter, r *http.Request, kind objstore.Kind, nth int64, pass http.Handler) {
		switch {
		case part(r):
			assert.NoError(t, s.Close())
			refuse(http.StatusServiceUnavailable, "SlowDown")(w, r)
		case kind == objstore.Delete && nth == 1:
			refuse(http.StatusServiceUnavailable, "SlowDown")(w, r)
		default:
			pass.ServeHTTP(w, r)
		}
	})
	err := putBig(t.Context(), s, "k")
	require.ErrorIs(t, err, objstore.ErrClosed)
	require.NotErrorIs(t, err, objstore.ErrUnknown)
	p.makes(nil)
	nothing(t, s.by(t, p.server))
}

// failing reads big up to a byte, and fails there.
type failing struct{ at int64 }

var errDisk = errors.New("the disk is broken")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.at {
		return 0, errDisk
	}
	return copy(p, big[off:]), nil
}

func TestReadersThatFail(t *testing.T) {
	v := newServer(t)
	s := v.open(t, inParts)
	for _, size := range []int64{1000, minPartSize, int64(len(big))} {
		for _, r := range []io.ReaderAt{failing{size - 1}, bytes.NewReader(big[:size-1])} {
			err := s.Put(t.Context(), "k", r, size)
			require.Error(t, err)
			require.NotErrorIs(t, err, objstore.ErrUnknown)
			if _, ok := r.(failing); ok {
				require.ErrorIs(t, err, errDisk)
			} else {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			}
		}
	}
	require.NoError(t, s.Close())
	nothing(t, s.by(t, v))
}

// uploader is the variable that makes the program of the tests an uploader: it has the proxy's URL, bucket and prefix.
const uploader = "SIFTKV_TEST_UPLOADER"

// upload is what an uploader does; it does not come to its end.
func upload(to string) error {
	fields := strings.Fields(to)
	v := server{endpoint: fields[0], bucket: fields[1], own: fields[3] == "true"}
	c := v.config()
	c.Prefix, c.PartSize = fields[2], minPartSize
	s, err := Open(context.Background(), c)
	if err == nil {
		err = putBig(context.Background(), s, "k")
	}
	return errors.Join(err, errors.New("it was not killed"))
}

func TestAKilledUploaderLeavesNoObject(t *testing.T) {
	p := newProxy(t, newServer(t))
	for name, such := range map[string]func(*http.Request) bool{"in a part": part, "before the end": complete} {
		s := p.open(t, inParts)
		arrived := make(chan struct{}, 100)
		var parts atomic.Int64
		p.makes(func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64, pass http.Handler) {
			if such(r) && (!part(r) || parts.Add(1) > 1) {
				arrived <- struct{}{}
				hang(w, r)
				return
			}
			pass.ServeHTTP(w, r)
		})
		child := exec.Command(os.Args[0])
		own := "false"
		if p.own {
			own = "true"
		}
		child.Env = append(os.Environ(), uploader+"="+strings.Join([]string{p.endpoint, p.bucket, s.Prefix, own}, " "))
		require.NoError(t, child.Start())
		exited := make(chan error, 1)
		go func() { exited <- child.Wait() }()
		select {
		case err := <-exited:
			t.Fatalf("%s: the uploader ended: %v", name, err)
		case <-arrived:
		}
		require.NoError(t, child.Process.Kill())
		require.ErrorContains(t, <-exited, "killed")
		p.makes(nil)
		_, err := s.GetRange(t.Context(), "k", 0, make([]byte, 1))
		require.ErrorIs(t, err, objstore.ErrNotExist, name)
		for o, err := range s.List(t.Context(), "", "") {
			t.Errorf("%s: there is %v (%v)", name, o, err)
		}
		assert.Equal(t, 1, leftovers(t, s), "%s: for the bucket's rule to remove", name)
		require.NoError(t, putBig(t.Context(), s, "k"))
		require.True(t, content(t, s, "k") == string(big), name)
	}
}
