package stress

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// A heldSnapshot is a snapshot, and what its worker's keys were when it was taken.
type heldSnapshot struct {
	s     *kv.Snapshot
	cells cells
}

// A heldIterator walks the worker's keys, some steps at a time.
type heldIterator struct {
	it    *kv.Iterator
	cells cells
	last  string // the key that it came to; empty: none
	done  bool
}

// compareMark holds the mark, as a reader sees it, against what was acknowledged.
func (w *worker) compareMark(r kv.Reader) *Finding {
	return w.compare(r, w.space.current(), w.space.markKey())
}

// compare looks a key up.
func (w *worker) compare(r kv.Reader, c cells, key string) *Finding {
	clock := w.r.oracle.clock
	clock.hold.RLock()
	defer clock.hold.RUnlock()
	want, there := c.get(key, clock.now())
	got, err := r.Get([]byte(key))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if there {
			return found("wrong read", "%q is not found and should be %.60q", key, want)
		}
		return nil
	case err != nil:
		return w.allow(err)
	case !there:
		return found("wrong read", "%q is %.60q and should not be there", key, got)
	case string(got) != want:
		return found("wrong read", "%q is %.60q and should be %.60q", key, got, want)
	}
	if w.r.want["streams"] && w.rng.IntN(4) == 0 {
		if f := w.compareStream(r, key, want); f != nil {
			return f
		}
	}
	return w.compareSize(r, c, key, len(want))
}

// compareSize asks for the size of a value, which should be so many bytes, and for its end.
func (w *worker) compareSize(r kv.Reader, c cells, key string, want int) *Finding {
	size, err := r.GetSize([]byte(key))
	switch {
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return w.allow(err)
	case err != nil || size != want:
		return found("wrong read", "GetSize: %q is %d, %v and should be %d", key, size, err, want)
	}
	expiry, err := r.(loopReader).Expiry([]byte(key))
	switch {
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return w.allow(err)
	case err != nil || !expiry.Equal(c.expiry(key)):
		return found("wrong read", "Expiry: %q is %v, %v and should be %v", key, expiry, err, c.expiry(key))
	}
	return nil
}

// A loopReader is a DB, a Snapshot or a Tx.
type loopReader interface {
	kv.Reader
	Expiry(key []byte) (time.Time, error)
	All(o *kv.IterOptions, err *error) iter.Seq2[[]byte, []byte]
	Backward(o *kv.IterOptions, err *error) iter.Seq2[[]byte, []byte]
}

// get looks keys up one by one, and the mark.
func (w *worker) get() *Finding {
	for range 4 {
		if f := w.compare(w.db, w.space.current(), w.key()); f != nil {
			return f
		}
	}
	return w.compareMark(w.db)
}

// multiGet looks many keys up at once.
func (w *worker) multiGet() *Finding {
	clock := w.r.oracle.clock
	clock.hold.RLock()
	defer clock.hold.RUnlock()
	keys := [][]byte{[]byte(w.space.markKey())}
	for range w.rng.IntN(20) {
		keys = append(keys, []byte(w.key()))
	}
	values, err := w.db.MultiGet(keys)
	if err != nil {
		return w.allow(err)
	}
	for i, k := range keys {
		want, there := w.space.current().get(string(k), clock.now())
		if there != (values[i] != nil) || want != string(values[i]) {
			return found("wrong read", "MultiGet: %q is %.60q (there: %v) and should be %.60q (%v)", k, values[i],
				values[i] != nil, want, there)
		}
	}
	return nil
}

// readTx reads several keys in a read-only transaction.
func (w *worker) readTx() *Finding {
	var f *Finding
	err := w.db.View(func(tx *kv.Tx) error {
		for range 3 {
			if f = w.compare(tx, w.space.current(), w.key()); f != nil {
				return nil
			}
		}
		f = w.compareMark(tx)
		return nil
	})
	if f != nil {
		return f
	}
	return w.allow(err)
}

// scan reads all of the worker's keys, one way or the other.
func (w *worker) scan() *Finding {
	clock := w.r.oracle.clock
	clock.hold.RLock()
	defer clock.hold.RUnlock()
	got, err := readAll(w.db, w.space.prefix, w.rng.IntN(2) == 0)
	if err != nil {
		return w.allow(err)
	}
	if diff := difference(w.space.current().at(clock.now()), got); diff != "" {
		return found("wrong read", "a scan: %s", diff)
	}
	return w.scanKeys(w.db, slices.Sorted(maps.Keys(got)))
}

// scanKeys goes through a reader's keys without values, one way or the other, and may leave the loop early.
func (w *worker) scanKeys(r loopReader, want []string) *Finding {
	var err error
	o := &kv.IterOptions{Prefix: []byte(w.space.prefix), KeysOnly: true}
	seq := r.All(o, &err)
	if w.rng.IntN(2) == 0 {
		seq = r.Backward(o, &err)
		slices.Reverse(want)
	}
	most, n := 1+w.rng.IntN(2*len(want)+1), 0
	for k, v := range seq {
		if n >= len(want) || string(k) != want[n] || v != nil {
			return found("wrong read", "a scan of keys: %d is %q, with a value of %d bytes, of %d keys", n, k, len(v),
				len(want))
		}
		if n++; n == most {
			break
		}
	}
	if err == nil && n != min(most, len(want)) {
		return found("wrong read", "a scan of keys ended after %d of %d", n, len(want))
	}
	return w.allow(err)
}

// readAll reads all keys with a prefix.
func readAll(r kv.Reader, prefix string, backward bool) (c content, err error) {
	o := &kv.IterOptions{}
	if prefix != "" {
		o.LowerBound, o.UpperBound = []byte(prefix), []byte(prefix+"\xff")
	}
	it, err := r.NewIter(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	start, move := it.First, it.Next
	if backward {
		start, move = it.Last, it.Prev
	}
	c = content{}
	last := ""
	for ok := start(); ok; ok = move() {
		k := string(it.Key())
		if _, twice := c[k]; twice || last != "" && (k < last) != backward {
			return nil, fmt.Errorf("stress: an iterator comes to %q after %q", k, last)
		}
		c[k], last = string(it.Value()), k
	}
	return c, it.Error()
}

// snapshot takes a snapshot, reads from one, or closes one.
func (w *worker) snapshot() *Finding {
	switch {
	case len(w.snaps) == 0 || len(w.snaps) < 3 && w.rng.IntN(2) == 0:
		w.snaps = append(w.snaps, heldSnapshot{w.db.NewSnapshot(), w.space.clone()})
		return nil
	case w.rng.IntN(4) == 0:
		i := w.rng.IntN(len(w.snaps))
		s := w.snaps[i].s
		w.snaps = slices.Delete(w.snaps, i, i+1)
		return w.allow(s.Close())
	}
	s := w.snaps[w.rng.IntN(len(w.snaps))]
	if w.rng.IntN(3) > 0 {
		return w.compare(s.s, s.cells, w.key())
	}
	clock := w.r.oracle.clock
	clock.hold.RLock()
	defer clock.hold.RUnlock()
	got, err := readAll(s.s, w.space.prefix, w.rng.IntN(2) == 0)
	if err != nil {
		return w.allow(err)
	}
	if diff := difference(s.cells.at(clock.now()), got); diff != "" {
		return found("wrong read", "a scan of a snapshot: %s", diff)
	}
	return w.scanKeys(s.s, slices.Sorted(maps.Keys(got)))
}

// iterate opens an iterator, or moves one on.
func (w *worker) iterate() *Finding {
	if len(w.iters) < 2 && w.rng.IntN(2) == 0 {
		it, err := w.db.NewIter(&kv.IterOptions{LowerBound: []byte(w.space.prefix),
			UpperBound: []byte(w.space.prefix + "\xff")})
		if err != nil {
			return w.allow(err)
		}
		w.iters = append(w.iters, heldIterator{it: it, cells: w.space.clone()})
		return nil
	}
	if len(w.iters) == 0 {
		return nil
	}
	n := w.rng.IntN(len(w.iters))
	i := &w.iters[n]
	f := i.move(w, 1+w.rng.IntN(10))
	if f != nil || i.done {
		f = cmpFinding(f, w.allow(i.it.Close()))
		w.iters = slices.Delete(w.iters, n, n+1)
	}
	return f
}

func cmpFinding(a, b *Finding) *Finding {
	if a != nil {
		return a
	}
	return b
}

// move goes on by some steps and compares what the iterator comes to. What has expired
// meanwhile, the iterator passes over.
func (i *heldIterator) move(w *worker, steps int) *Finding {
	clock := w.r.oracle.clock
	clock.hold.RLock()
	defer clock.hold.RUnlock()
	want := i.cells.at(clock.now())
	keys := slices.Sorted(maps.Keys(want))
	for range steps {
		next, there := slices.BinarySearch(keys, i.last)
		if there {
			next++
		}
		ok := i.it.Next
		if i.last == "" {
			ok = i.it.First
		}
		switch on := ok(); {
		case i.it.Error() != nil:
			i.done = true
			return w.allow(i.it.Error())
		case on != (next < len(keys)):
			return found("wrong read", "an iterator past %q is on an entry: %v; and should be: %v", i.last, on, !on)
		case !on:
			i.done = true
			return nil
		case string(i.it.Key()) != keys[next] || string(i.it.Value()) != want[keys[next]]:
			return found("wrong read", "an iterator came to %q: %.60q after %q and should have come to %q: %.60q",
				i.it.Key(), i.it.Value(), i.last, keys[next], want[keys[next]])
		}
		i.last = keys[next]
	}
	return nil
}

// release gives back what the worker holds.
func (w *worker) release() {
	for _, i := range w.iters {
		_ = i.it.Close()
	}
	for _, s := range w.snaps {
		_ = s.s.Close()
	}
	for _, r := range w.reads {
		_ = r.r.Close()
	}
	w.view.close()
	w.iters, w.snaps, w.reads, w.view = nil, nil, nil, view{}
}
