package s3

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// says returns a store whose server gives one answer to everything.
func says(t *testing.T, answer http.HandlerFunc) *store {
	front := httptest.NewServer(answer)
	t.Cleanup(front.Close)
	v := server{endpoint: front.URL, bucket: "b", own: true}
	return v.open(t, func(c *Config) { c.Prefix = ""; c.Tries = 2 })
}

func TestRangesThatAreNotThoseAskedFor(t *testing.T) {
	for _, c := range []struct {
		off          int64
		room         int
		contentRange string
		body         string
		want         string // what is read; empty: none of it may be taken
		err          error
	}{
		{0, 4, "bytes 0-3/10", "0123", "0123", nil},
		{0, 4, "bytes 0-3/4", "0123", "0123", nil},
		{0, 9, "bytes 0-3/4", "0123", "0123", io.EOF},
		{-4, 9, "bytes 6-9/10", "6789", "6789", io.EOF},
		{-4, 4, "bytes 0-1/2", "01", "01", io.EOF},
		{0, 9, "", "0123", "0123", io.EOF}, // a whole object, as of a server that ignores ranges
		{0, 2, "", "0123", "01", nil},
		{-4, 4, "", "0123", "0123", nil},
		{-9, 9, "", "0123", "0123", io.EOF},
		{0, 4, "bytes 0-1/10", "01", "", nil}, // fewer than there are
		{0, 4, "bytes 1-4/10", "1234", "", nil},
		{2, 4, "bytes 0-3/10", "0123", "", nil},
		{0, 4, "bytes 0-9/10", "0123456789", "", nil},
		{-4, 4, "bytes 0-3/10", "0123", "", nil},
		{0, 4, "bytes 0-1/*", "01", "", nil},
		{0, 4, "nonsense", "0123", "", nil},
		{2, 4, "", "0123", "", nil},
		{-2, 4, "", "0123", "", nil},
	} {
		name := fmt.Sprintf("%+v", c)
		s := says(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(c.body)))
			if c.contentRange != "" {
				w.Header().Set("Content-Range", c.contentRange)
				w.WriteHeader(http.StatusPartialContent)
			}
			_, _ = io.WriteString(w, c.body)
		})
		p := make([]byte, c.room)
		n, err := s.GetRange(t.Context(), "k", c.off, p)
		if c.want == "" {
			require.Error(t, err, name)
			require.NotErrorIs(t, err, io.EOF, name)
			continue
		}
		require.Equal(t, c.err, err, name)
		require.Equal(t, c.want, string(p[:n]), name)
	}
}

// TestRepliesThatEndEarly has bodies whose end is marked as it should be, but that are shorter than the range.
func TestRepliesThatEndEarly(t *testing.T) {
	for _, body := range []string{"", "01"} {
		s := says(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-3/4")
			w.WriteHeader(http.StatusPartialContent)
			_ = http.NewResponseController(w).Flush() // no length
			_, _ = io.WriteString(w, body)
		})
		_, err := s.GetRange(t.Context(), "k", 0, make([]byte, 9))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NotErrorIs(t, err, io.EOF)
	}
}

func FuzzExpect(f *testing.F) {
	f.Add(int64(0), 10, "bytes 0-9/100", int64(10))
	f.Add(int64(-10), 10, "bytes 90-99/100", int64(10))
	f.Fuzz(func(t *testing.T, off int64, room int, contentRange string, length int64) {
		room, length = 1+(room&(1<<20-1)), length&math.MaxInt64
		if off < 0 {
			off = -1 - -(off+1)%int64(room) // so many bytes at the end have room
		}
		n, err := expect(off, room, contentRange, length)
		if n < 0 || n > room || err != nil && n != 0 {
			t.Fatalf("%d bytes for %d, and %v", n, room, err)
		}
	})
}

// page is a listing of some keys.
func page(encoding, next string, keys ...string) string {
	var body strings.Builder
	body.WriteString("<ListBucketResult>")
	for _, key := range keys {
		body.WriteString("<Contents><Key>" + key + "</Key><Size>1</Size></Contents>")
	}
	return body.String() + "<EncodingType>" + encoding + "</EncodingType>" +
		"<IsTruncated>" + strconv.FormatBool(next != "-") + "</IsTruncated>" +
		"<NextContinuationToken>" + next + "</NextContinuationToken></ListBucketResult>"
}

func TestListingsOfOtherServers(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want []string
		err  string
	}{
		"plain":          {page("", "-", "a", "b%41+c"), []string{"a", "b%41+c"}, ""},
		"encoded":        {page("url", "-", "a", "b%41+c", "%C3%A4"), []string{"a", "bA c", "ä"}, ""},
		"of others":      {page("url", "-", "a", "b%01", "c/", "d"), []string{"a", "d"}, ""},
		"not sorted":     {page("", "-", "b", "a"), []string{"b"}, "sort"},
		"twice":          {page("", "-", "a", "a"), []string{"a"}, "sort"},
		"badly encoded":  {page("url", "-", "a%zz"), nil, "URL-encoded"},
		"without a next": {page("", "", "a"), nil, "next"},
		"not XML":        {"<ListBucketResult><Contents>", nil, " "},
	} {
		s := says(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.page) })
		var got []string
		var failed error
		for o, err := range s.List(t.Context(), "", "") {
			require.NoError(t, failed, "an error ends the listing")
			if failed = err; err == nil {
				got = append(got, o.Key)
			}
		}
		require.Equal(t, c.want, got, name)
		if c.err == "" {
			require.NoError(t, failed, name)
		} else {
			require.ErrorContains(t, failed, c.err, name)
		}
	}
}

func TestListingsStartWhereTheyAreToldTo(t *testing.T) {
	s := says(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, page("", "-", "a", "b", "c"))
	})
	var got []string
	for o, err := range s.List(t.Context(), "", "a") {
		require.NoError(t, err)
		got = append(got, o.Key)
	}
	require.Equal(t, []string{"b", "c"}, got, "of a server that ignores start-after")
}

func TestAnswersThatAreNotS3s(t *testing.T) {
	s := says(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>no such page", http.StatusNotFound)
	})
	_, err := s.GetRange(t.Context(), "k", 0, make([]byte, 1))
	require.ErrorContains(t, err, "404")
	require.NotErrorIs(t, err, objstore.ErrNotExist, "a proxy's page says nothing of an object")
	require.Error(t, s.Delete(t.Context(), "k"))
}

// TestRequestsAtOnceAreBounded counts those that a server sees side by side.
func TestRequestsAtOnceAreBounded(t *testing.T) {
	const bound, calls = 3, 12
	arrived, leave := make(chan struct{}, calls), make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-leave
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(front.Close)
	v := server{endpoint: front.URL, bucket: "b", own: true}
	s := v.open(t, func(c *Config) { c.Requests = bound })
	done := make(chan error)
	for range calls {
		go func() { done <- s.Delete(t.Context(), "k") }()
	}
	for range bound {
		<-arrived
	}
	select {
	case <-arrived:
		t.Error("more requests than the bound allows")
	case <-time.After(20 * time.Millisecond): // in which a fourth would come, mostly
	}
	close(leave)
	for range calls {
		require.NoError(t, <-done)
	}
}

// TestRefusalsThatEndEarly has replies that say no and break off before they say why.
func TestRefusalsThatEndEarly(t *testing.T) {
	p := newProxy(t, newServer(t))
	s := p.open(t)
	p.makes(on(objstore.Get, 1, p.cut))
	_, err := s.GetRange(t.Context(), "absent", 0, make([]byte, 1))
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.NoError(t, s.PutIfAbsent(t.Context(), "k", nil))
	p.makes(on(objstore.PutIfAbsent, 1, p.cut))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrExists, "the status says it")
}
