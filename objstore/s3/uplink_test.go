package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// A line is an HTTP client over a line of so many bytes per second, which the bodies of all requests share. What it
// sends passes a buffer of the system first. It accepts everything.
type line struct {
	rate  float64
	stuck chan struct{} // closed: nothing moves any more; nil: all does

	mu      sync.Mutex
	free    time.Time     // when the line will have sent what is on it
	sizes   []int64       // of parts
	busy    int           // parts under way
	most    int           // of them
	longest time.Duration // a small put took
}

// send takes n bytes onto the line and returns when the line will have sent them.
func (l *line) send(n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return l.free
}

// drain sends a body, which is at most a buffer ahead of the line.
func (l *line) drain(r *http.Request, buffer time.Duration) error {
	var sent time.Time
	for p := make([]byte, 32<<10); r.Body != nil; {
		n, err := r.Body.Read(p)
		sent = l.send(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := l.until(r, sent.Add(-buffer)); err != nil {
			return err
		}
	}
	return l.until(r, sent)
}

func (l *line) until(r *http.Request, when time.Time) error {
	select {
	case <-time.After(max(time.Until(when), 0)):
		return nil
	case <-l.stuck:
		<-r.Context().Done()
	case <-r.Context().Done():
	}
	return r.Context().Err()
}

// Do implements s3.HTTPClient.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).WroteHeaders()
	begun := time.Now()
	isPart := part(r)
	l.mu.Lock()
	if isPart {
		l.busy++
		l.most = max(l.most, l.busy)
		l.sizes = append(l.sizes, r.ContentLength)
	}
	l.mu.Unlock()
	err := l.drain(r, time.Duration(systemBuffers/2/l.rate*float64(time.Second)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if isPart {
		l.busy--
	} else if strings.HasSuffix(r.URL.Path, "/log") {
		l.longest = max(l.longest, time.Since(begun))
	}
	if err != nil {
		return nil, err
	}
	body := "<R><UploadId>1</UploadId></R>"
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Etag": {"x"}, "Content-Type": {"application/xml"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

func (l *line) open(t *testing.T, change func(*Options)) objstore.Store {
	o := Options{Bucket: "b", Tries: 1}
	change(&o)
	s, err := New(s3.New(s3.Options{
		Region: "r", HTTPClient: l, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}), o)
	require.NoError(t, err)
	return s
}

// An upload may take as long as the line needs, and after the first one the parts follow the line's speed.
func TestUploadsOverSlowLines(t *testing.T) {
	body := make([]byte, 64<<20)
	for _, c := range []struct {
		rate, most int
		part       int64
	}{{250_000, 1, minPartSize}, {1_000_000, 2, minPartSize}, {10_000_000, 4, 16 << 20}} {
		t.Run(fmt.Sprintf("%d bytes per second", c.rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{rate: float64(c.rate)}
				s := l.open(t, func(*Options) {})
				begun := time.Now()
				require.NoError(t, s.Put(t.Context(), "file", bytes.NewReader(body), int64(len(body))))
				took := time.Since(begun).Seconds()
				require.InEpsilon(t, float64(len(body))/l.rate, took, 0.01, "no part was sent twice")
				l.most, l.sizes = 0, nil

				done := make(chan error)
				go func() { done <- s.Put(t.Context(), "file", bytes.NewReader(body), int64(len(body))) }()
				for range 20 {
					time.Sleep(time.Second)
					require.NoError(t, s.PutIfAbsent(t.Context(), "log", make([]byte, 10<<10)))
				}
				require.NoError(t, <-done)
				require.Equal(t, c.most, l.most, "parts at once")
				require.Equal(t, c.part, l.sizes[0])
				t.Logf("the longest put of a small object beside it took %v", l.longest)
			})
		})
	}
}

// A line that stops is noticed, in an upload later than before it, since the system may still have parts of the body.
func TestLinesThatStop(t *testing.T) {
	for size, longest := range map[int]time.Duration{
		1000: 15 * time.Second, 8 << 20: (15 + 64) * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{rate: 1e6, stuck: make(chan struct{})}
			s := l.open(t, func(*Options) {})
			time.AfterFunc(time.Duration(size)*time.Second/4e6, func() { close(l.stuck) })
			begun := time.Now()
			err := s.Put(t.Context(), "file", bytes.NewReader(make([]byte, size)), int64(size))
			require.ErrorContains(t, err, "no reply from ")
			require.ErrorIs(t, err, objstore.ErrUnknown)
			require.LessOrEqual(t, time.Since(begun), longest+time.Duration(size+64<<10)*time.Second/1e6)
		})
	}
}

// Parts that end at once do not halve the speed.
func TestPartsThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &uplink{}
		for range 3 {
			u.begin()
			u.begin()
			time.Sleep(20 * time.Second)
			u.sent.Add(20 << 20)
			u.end()
			u.end()
			lanes, _ := u.parts(8, 16<<20)
			require.Equal(t, 3, lanes, "1 MiB/s")
		}
		u.begin()
		time.Sleep(time.Minute)
		u.end() // it failed
		lanes, _ := u.parts(8, 16<<20)
		require.Equal(t, 2, lanes, "a line that stood is slower")
	})
}
