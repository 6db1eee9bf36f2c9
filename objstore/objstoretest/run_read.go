package objstoretest

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/siftkv/siftkv/objstore"
)

var readChecks = []check{
	{"Ranges", ranges},
	{"RangesOfAnEmptyObject", rangesOfEmpty},
	{"ShortBuffer", shortBuffer},
	{"EmptyBuffer", emptyBuffer},
	{"ReadsOfWhatIsNotThere", notThere},
	{"LargeObjects", largeObjects},
}

// noise returns n bytes that have no pattern, and are not to be changed.
func noise(n int) []byte { return allNoise()[:n:n] }

var allNoise = sync.OnceValue(func() []byte {
	p := make([]byte, 18<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p) // which never fails
	return p
})

func ranges(t *testing.T, s objstore.Store) {
	body := []byte("0123456789")
	put(t, s, "dir/object", body)
	for _, off := range []int64{-11, -10, -9, -2, -1, 0, 1, 5, 9, 10, 11, 1 << 40, math.MaxInt64 - 20} {
		for _, room := range []int{1, 5, 9, 10, 11, 12} {
			if off >= -int64(room) {
				wantRange(t, s, "dir/object", body, off, room)
			}
		}
	}
}

// wantRange compares GetRange with the definition.
func wantRange(t *testing.T, s objstore.Store, key string, body []byte, off int64, room int) {
	t.Helper()
	size := int64(len(body))
	from, end := min(off, size), size
	if off < 0 {
		from = max(size+off, 0)
	} else if off < size {
		end = min(size, off+int64(room))
	}
	want, wantErr := body[from:end], error(nil)
	if len(want) < room {
		wantErr = io.EOF
	}
	p := bytes.Repeat([]byte{0xee}, room)
	n, err := s.GetRange(t.Context(), key, off, p)
	if n != len(want) || !isItself(err, wantErr) || !bytes.Equal(p[:n], want) {
		t.Errorf("%d bytes from %d of %d on: read %d (right: %t), %v; want %d, %v", room, off, size, n,
			bytes.Equal(p[:min(n, len(want))], want), err, len(want), wantErr)
	}
}

// isItself compares errors by identity: loops around GetRange end with io.EOF itself, as those around io.ReaderAt do.
func isItself(err, want error) bool { return err == want } //nolint:errorlint // a wrapped one is wrong

func rangesOfEmpty(t *testing.T, s objstore.Store) {
	put(t, s, "dir/put", nil)
	wantErr(t, s.PutIfAbsent(t.Context(), "dir/created", nil), nil)
	for _, key := range []string{"dir/put", "dir/created"} {
		for _, off := range []int64{-1, 0, 1} {
			wantRange(t, s, key, nil, off, 1)
		}
		wantErr(t, s.PutIfAbsent(t.Context(), key, []byte("x")), objstore.ErrExists)
		wantBody(t, s, key, nil)
	}
}

func shortBuffer(t *testing.T, s objstore.Store) {
	put(t, s, "object", []byte("0123456789"))
	for _, off := range []int64{-5, -11, math.MinInt64} {
		n, err := s.GetRange(t.Context(), "object", off, make([]byte, 4))
		if n != 0 || !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("the last %d bytes into 4: %d, %v; want io.ErrShortBuffer", -off, n, err)
		}
	}
}

func emptyBuffer(t *testing.T, s objstore.Store) {
	put(t, s, "object", []byte("0123456789"))
	for _, key := range []string{"object", "absent"} {
		for _, off := range []int64{0, 5, 10, 11} {
			if n, err := s.GetRange(t.Context(), key, off, nil); n != 0 || err != nil {
				t.Errorf("no bytes of %s from %d on: %d, %v; want 0, nil", key, off, n, err)
			}
		}
	}
}

func notThere(t *testing.T, s objstore.Store) {
	put(t, s, "dir/object", []byte("x"))
	for _, key := range []string{"absent", "dir/absent", "absent/absent", "dir/objec", "dir/object2", "dir"} {
		wantAbsent(t, s, key)
		for _, off := range []int64{-1, 1 << 40} {
			_, err := s.GetRange(t.Context(), key, off, make([]byte, 1))
			wantErr(t, err, objstore.ErrNotExist)
		}
	}
}

func largeObjects(t *testing.T, s objstore.Store) {
	const mib = 1 << 20
	body := noise(17*mib + 12345)
	put(t, s, "large", body)
	wantBody(t, s, "large", body)
	got, err := objstore.ReadAll(t.Context(), s, "large", 1)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("read bit by bit: %d bytes, %v", len(got), err)
	}
	size := int64(len(body))
	for _, off := range []int64{5*mib - 1, 8*mib - 1, 16*mib - 7, size - 3, size - mib, -10, -mib} {
		wantRange(t, s, "large", body, off, mib)
	}
	wantErr(t, s.PutIfAbsent(t.Context(), "created", body[:6*mib]), nil)
	wantBody(t, s, "created", body[:6*mib])
}
