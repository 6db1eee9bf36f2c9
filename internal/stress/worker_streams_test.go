package stress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// errSource is that of a reader that fails.
var errSource = errors.New("stress: the source of a value fails")

// A source is the reader of a value, which gives out a little at a time, and may fail or be too short.
type source struct {
	w    *worker
	left string
	end  error // after all; nil: more bytes follow that are not the value's
}

func (s *source) Read(b []byte) (int, error) {
	if s.left == "" && s.end != nil {
		return 0, s.end
	}
	if s.left == "" {
		s.left = "of the next one"
	}
	n := copy(b[:1+s.w.rng.IntN(len(b))], s.left)
	s.left = s.left[n:]
	return n, nil
}

// setReader writes the mark from a reader, which may fail: then nothing is written.
func (w *worker) setReader() *Finding {
	op := w.begin("SetReader", w.level())
	m := &op.writes[0]
	m.value += " " + w.value(op)
	src := &source{w: w, left: m.value, end: []error{nil, io.EOF}[w.rng.IntN(2)]}
	broken := w.rng.IntN(6) == 0
	if broken {
		src.left, src.end = m.value[:w.rng.IntN(len(m.value))], []error{errSource, io.EOF}[w.rng.IntN(2)]
	}
	ctx := context.Background()
	if w.r.want["context"] && w.rng.IntN(6) == 0 {
		c, cancel := context.WithTimeout(ctx, time.Duration(w.rng.IntN(3000))*time.Microsecond)
		defer cancel()
		ctx = c
	}
	set := func() error {
		return w.db.SetReader(ctx, []byte(m.key), int64(len(m.value)), src, writeOptions(op.level))
	}
	if !broken {
		return w.attempt(op, set)
	}
	w.space.submit(op)
	err := set()
	w.space.finish(op, refused, w.r.oracle.tick(), err)
	switch {
	case err == nil:
		return found("stream", "a value of %d bytes is taken, of which the reader had %d", len(m.value),
			len(m.value)-len(src.left))
	case errors.Is(err, errSource), errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return w.allow(err)
}

// A heldReader is a reader of a value, and what is left of it.
type heldReader struct {
	r    *kv.ValueReader
	key  string
	left string
}

// readSlowly makes a reader of a value, or reads some more.
func (w *worker) readSlowly() *Finding {
	if len(w.reads) < 3 && w.rng.IntN(2) == 0 {
		clock := w.r.oracle.clock
		clock.hold.RLock()
		defer clock.hold.RUnlock()
		key := w.key()
		want, there := w.space.current().get(key, clock.now())
		r, err := w.db.GetReader([]byte(key))
		switch {
		case errors.Is(err, kv.ErrNotFound) && !there:
			return nil
		case errors.Is(err, kv.ErrNotFound), err == nil && !there:
			return found("wrong read", "GetReader: %q is there: %v; and should be: %v", key, err == nil, there)
		case err != nil:
			return w.allow(err)
		}
		w.reads = append(w.reads, heldReader{r, key, want})
		return nil
	}
	if len(w.reads) == 0 {
		return nil
	}
	n := w.rng.IntN(len(w.reads))
	r := &w.reads[n]
	b := make([]byte, 1+w.rng.IntN(1<<w.rng.IntN(17)))
	got, err := io.ReadFull(r.r, b)
	ended := err != nil
	if errors.Is(err, io.ErrUnexpectedEOF) && got == len(r.left) || err == io.EOF {
		err = nil
	}
	var f *Finding
	if have := string(b[:got]); !strings.HasPrefix(r.left, have) || ended && err == nil && have != r.left {
		f = found("wrong read", "a reader of %q has %.60q (%d bytes, ended: %v) and should have %.60q (%d bytes)",
			r.key, have, got, ended, r.left, len(r.left))
	}
	r.left = strings.TrimPrefix(r.left, string(b[:got]))
	if ended || f != nil || w.rng.IntN(8) == 0 {
		f = cmpFinding(f, cmpFinding(w.allow(err), w.allow(r.r.Close())))
		w.reads = slices.Delete(w.reads, n, n+1)
	}
	return f
}

// compareStream reads a value that should be want by a reader.
func (w *worker) compareStream(r kv.Reader, key, want string) *Finding {
	s, err := r.GetReader([]byte(key))
	if errors.Is(err, kv.ErrNotFound) {
		return found("wrong read", "GetReader: %q is not found and should be %.60q", key, want)
	}
	if err != nil {
		return w.allow(err)
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(s)
	size := s.Size()
	if err = errors.Join(err, s.Close()); err != nil {
		return w.allow(err)
	}
	if b.String() != want || size != int64(len(want)) {
		return found("wrong read", "GetReader: %q is %.60q (%d bytes, %d read) and should be %.60q (%d bytes)", key,
			b.String(), size, b.Len(), want, len(want))
	}
	return nil
}
