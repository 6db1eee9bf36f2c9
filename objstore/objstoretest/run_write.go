package objstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/objstore"
)

var writeChecks = []check{
	{"PutReplacesWhole", putReplaces},
	{"PutAppearsWhole", putAppearsWhole},
	{"PutThatCannotReadShowsNothing", putCannotRead},
	{"PutIfAbsentKeepsTheFirst", keepsFirst},
	{"OneOfRacingCreatesWins", func(t *testing.T, s objstore.Store) { raceCreates(t, s) }},
	{"CreatesBesideDeletes", createsBesideDeletes},
	{"PutWhoseContextEnds", putContextEnds},
	{"SlicesAreTheCallers", slicesAreCallers},
	{"Deletes", deletes},
	{"CheckConditional", passesCheck},
}

func putReplaces(t *testing.T, s objstore.Store) {
	for _, body := range []string{"first and longest", "second", "", "third"} {
		put(t, s, "dir/object", []byte(body))
		wantBody(t, s, "dir/object", []byte(body))
	}
	wantKeys(t, s, "", "", []string{"dir/object"})
}

func putAppearsWhole(t *testing.T, s objstore.Store) {
	const size, rounds, writers = 64 << 10, 10, 3
	ctx := t.Context()
	put(t, s, "object", bytes.Repeat([]byte{0}, size))
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				body := bytes.Repeat([]byte{byte(w*rounds + i)}, size)
				if err := s.Put(ctx, "object", bytes.NewReader(body), size); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			p := make([]byte, size+1)
			for !done.Load() {
				n, err := s.GetRange(ctx, "object", 0, p)
				if n != size || !isItself(err, io.EOF) || bytes.Count(p[:n], p[:1]) != size {
					t.Errorf("read %d bytes, %v, %d of which are like the first", n, err, bytes.Count(p[:n], p[:1]))
					return
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
}

var errUnreadable = errors.New("unreadable")

// A failingReader fails at an offset, or when it is used after it was closed.
type failingReader struct {
	io.ReaderAt
	failAt int64
	closed atomic.Bool
	misuse atomic.Bool
}

func (r *failingReader) ReadAt(p []byte, off int64) (int, error) {
	if r.closed.Load() {
		r.misuse.Store(true)
	}
	if off+int64(len(p)) > r.failAt {
		return 0, errUnreadable
	}
	return r.ReaderAt.ReadAt(p, off)
}

func putCannotRead(t *testing.T, s objstore.Store) {
	const mib = 1 << 20
	body := noise(9 * mib)
	for _, failAt := range []int64{0, 6 * mib, 9*mib - 1} {
		r := &failingReader{ReaderAt: bytes.NewReader(body), failAt: failAt}
		wantErr(t, s.Put(t.Context(), "object", r, int64(len(body))), errUnreadable)
		r.closed.Store(true)
		wantAbsent(t, s, "object")
		if r.misuse.Load() {
			t.Error("the reader was used after Put had returned")
		}
	}
	for _, size := range []int64{10, 10 * mib} {
		wantErr(t, s.Put(t.Context(), "object", bytes.NewReader(body[:5]), size), io.ErrUnexpectedEOF)
	}
	if err := s.Put(t.Context(), "object", bytes.NewReader(body), -1); err == nil {
		t.Error("an object of -1 bytes")
	}
	wantAbsent(t, s, "object")
	wantKeys(t, s, "", "", nil)
	wantErr(t, s.Put(t.Context(), "object", bytes.NewReader(body), 5), nil)
	wantBody(t, s, "object", body[:5])
}

func keepsFirst(t *testing.T, s objstore.Store) {
	wantErr(t, s.PutIfAbsent(t.Context(), "a/created", []byte("first")), nil)
	put(t, s, "a/put", []byte("first"))
	for _, key := range []string{"a/created", "a/put"} {
		for _, body := range []string{"second", "first", ""} {
			wantErr(t, s.PutIfAbsent(t.Context(), key, []byte(body)), objstore.ErrExists)
			wantBody(t, s, key, []byte("first"))
		}
	}
	wantErr(t, s.Delete(t.Context(), "a/created"), nil)
	wantErr(t, s.PutIfAbsent(t.Context(), "a/created", []byte("again")), nil)
	wantBody(t, s, "a/created", []byte("again"))
	wantErr(t, objstore.Commit(t.Context(), s, "a/put", []byte("other")), objstore.ErrExists)
	wantErr(t, objstore.Commit(t.Context(), s, "a/committed", []byte("mine")), nil)
	wantBody(t, s, "a/committed", []byte("mine"))
}

// raceCreates lets eight writers, spread over the clients, create one key, in many rounds. A concurrent reader sees
// only the winner's content, from the first byte to the last.
func raceCreates(t *testing.T, clients ...objstore.Store) {
	const rounds, writers = 20, 8
	ctx := t.Context()
	room := make([]byte, 1<<16)
	for round := range rounds {
		key := fmt.Sprintf("manifest/%020d", round)
		var bodies [writers][]byte
		var errs [writers]error
		var seen int
		var seenErr error
		var writing, reading sync.WaitGroup
		var written atomic.Bool
		start := make(chan struct{})
		for w := range writers {
			bodies[w] = bytes.Repeat(fmt.Appendf(nil, "%d of %d;", w, round), 100+200*w)
			writing.Go(func() {
				<-start
				errs[w] = objstore.Commit(ctx, clients[w%len(clients)], key, bodies[w])
			})
		}
		reading.Go(func() {
			<-start
			for last := false; !last; last = last || !errors.Is(seenErr, objstore.ErrNotExist) {
				last = written.Load()
				seen, seenErr = clients[len(clients)-1].GetRange(ctx, key, 0, room)
			}
		})
		close(start)
		writing.Wait()
		written.Store(true)
		reading.Wait()
		winner := slices.Index(errs[:], nil)
		if winner < 0 {
			t.Fatalf("no call created %q: %v", key, errs)
		}
		for w, err := range errs {
			if w != winner {
				wantErr(t, err, objstore.ErrExists)
			}
		}
		for _, s := range clients {
			wantBody(t, s, key, bodies[winner])
		}
		wantErr(t, seenErr, io.EOF)
		if !bytes.Equal(room[:seen], bodies[winner]) {
			t.Fatalf("during the race %d bytes %.20q were seen, of %d", seen, room[:seen], len(bodies[winner]))
		}
	}
}

// createsBesideDeletes lets writers create and delete one key: there is an object, or there is none, and no third.
func createsBesideDeletes(t *testing.T, s objstore.Store) {
	const rounds, writers = 20, 4
	var won atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range rounds {
				err := s.PutIfAbsent(t.Context(), "dir/object", []byte("x"))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, objstore.ErrExists) && !errors.Is(err, objstore.ErrUnknown) {
					t.Errorf("create during a delete: %v", err)
				}
				if err := s.Delete(t.Context(), "dir/object"); err != nil {
					t.Errorf("delete during a create: %v", err)
				}
			}
		})
	}
	all.Wait()
	if won.Load() == 0 {
		t.Error("no create succeeded")
	}
	wantAbsent(t, s, "dir/object")
}

// A cancelingReader ends a context when it reads an offset.
type cancelingReader struct {
	io.ReaderAt
	at     int64
	cancel context.CancelFunc
}

func (r cancelingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.at {
		r.cancel()
	}
	return r.ReaderAt.ReadAt(p, off)
}

func putContextEnds(t *testing.T, s objstore.Store) {
	body := noise(9 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Put(ctx, "object", cancelingReader{bytes.NewReader(body), 6 << 20, cancel}, int64(len(body)))
	wantErr(t, err, context.Canceled)
	if !errors.Is(err, objstore.ErrUnknown) {
		wantAbsent(t, s, "object")
		wantKeys(t, s, "", "", nil)
	}
	put(t, s, "object", body)
	wantBody(t, s, "object", body)
}

func slicesAreCallers(t *testing.T, s objstore.Store) {
	body := []byte("0123456789")
	p := bytes.Clone(body)
	put(t, s, "put", p)
	clear(p)
	wantBody(t, s, "put", body)

	copy(p, body)
	wantErr(t, s.PutIfAbsent(t.Context(), "created", p), nil)
	if !bytes.Equal(p, body) {
		t.Errorf("PutIfAbsent wrote to its body: %q", p)
	}
	clear(p)
	wantBody(t, s, "created", body)

	for _, key := range []string{"put", "created"} {
		if n, err := s.GetRange(t.Context(), key, 0, p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
		clear(p)
		wantBody(t, s, key, body)
	}
	backing := bytes.Repeat([]byte{0xee}, 20)
	if _, err := s.GetRange(t.Context(), "put", 0, backing[:4:12]); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(backing[4:], bytes.Repeat([]byte{0xee}, 16)) {
		t.Errorf("GetRange wrote behind its buffer: %q", backing)
	}
}

func deletes(t *testing.T, s objstore.Store) {
	for _, key := range []string{"absent", "dir/absent"} {
		wantErr(t, s.Delete(t.Context(), key), nil)
	}
	put(t, s, "dir/a", []byte("a"))
	put(t, s, "dir/b", []byte("b"))
	wantErr(t, s.Delete(t.Context(), "dir"), nil) // no object
	wantErr(t, s.Delete(t.Context(), "dir/a"), nil)
	wantAbsent(t, s, "dir/a")
	wantBody(t, s, "dir/b", []byte("b"))
	wantErr(t, s.Delete(t.Context(), "dir/a"), nil)
	wantErr(t, s.Delete(t.Context(), "dir/b"), nil)
	wantErr(t, s.Delete(t.Context(), "dir"), nil)
	wantKeys(t, s, "", "", nil)
	put(t, s, "dir/c", []byte("c"))
	wantKeys(t, s, "", "", []string{"dir/c"})
}

func passesCheck(t *testing.T, s objstore.Store) {
	put(t, s, "db/other", nil)
	for _, prefix := range []string{"", "db/"} {
		wantErr(t, objstore.CheckConditional(t.Context(), s, prefix), nil)
	}
	wantKeys(t, s, "", "", []string{"db/other"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, objstore.CheckConditional(ctx, s, ""), context.Canceled)
}
