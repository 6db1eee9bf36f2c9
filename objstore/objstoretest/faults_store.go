package objstoretest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"slices"

	"github.com/siftkv/siftkv/objstore"
)

// GetRange implements [objstore.Store].
func (f *Faults) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	call, fault, err := f.begin(ctx, objstore.Get, key, int64(len(p)))
	if err != nil {
		return 0, err
	}
	n, err := f.s.GetRange(ctx, key, off, p)
	if lost := f.end(fault); lost != nil {
		return 0, call.failure(lost)
	}
	if fault.Corrupt && n > 0 {
		bit := call.Rand.IntN(8 * n)
		p[bit/8] ^= 1 << (bit % 8)
	}
	if fault.Truncate && n > 0 {
		return n / 2, call.failure(io.ErrUnexpectedEOF)
	}
	return n, err
}

// Put implements [objstore.Store].
func (f *Faults) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	body, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return &objstore.Error{Op: objstore.Put, Key: key, Err: err}
	}
	return f.write(ctx, objstore.Put, key, size, func(ctx context.Context) error {
		return f.s.Put(ctx, key, bytes.NewReader(body), size)
	})
}

// PutIfAbsent implements [objstore.Store].
func (f *Faults) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	body = bytes.Clone(body) // a late call may outlive the caller's
	return f.write(ctx, objstore.PutIfAbsent, key, int64(len(body)), func(ctx context.Context) error {
		return f.s.PutIfAbsent(ctx, key, body)
	})
}

// Delete implements [objstore.Store].
func (f *Faults) Delete(ctx context.Context, key string) error {
	return f.write(ctx, objstore.Delete, key, 0, func(ctx context.Context) error { return f.s.Delete(ctx, key) })
}

func (f *Faults) write(ctx context.Context, kind objstore.Kind, key string, size int64,
	perform func(context.Context) error) error {
	call, fault, err := f.begin(ctx, kind, key, size)
	if err != nil {
		return err
	}
	if fault.Outcome == Late {
		f.mu.Lock()
		f.late = append(f.late, func() error { return perform(context.WithoutCancel(ctx)) })
		f.mu.Unlock()
	} else {
		err = perform(ctx)
	}
	if lost := f.end(fault); lost != nil {
		return call.failure(lost)
	}
	if fault.Outcome != Performed {
		return call.failure(ErrInjected)
	}
	return err
}

// List implements [objstore.Store].
func (f *Faults) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		call, fault, err := f.begin(ctx, objstore.List, prefix, 0)
		if err != nil {
			yield(objstore.Object{}, err)
			return
		}
		listing := f.s.List(ctx, prefix, after)
		if fault.Stale > 0 {
			listing = f.stale(ctx, listing, fault.Stale)
		}
		if lost := f.end(fault); lost != nil {
			yield(objstore.Object{}, call.failure(lost))
			return
		}
		for o, err := range listing {
			if lost := f.reachable(); lost != nil {
				yield(objstore.Object{}, call.failure(lost))
				return
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// stale leaves the newest n objects of the whole store out of a listing. Of objects of one time, those with greater
// keys are newer.
func (f *Faults) stale(ctx context.Context, listing iter.Seq2[objstore.Object, error],
	n int) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		var all []objstore.Object
		for o, err := range f.s.List(ctx, "", "") {
			if err != nil {
				yield(o, err)
				return
			}
			all = append(all, o)
		}
		slices.SortFunc(all, func(a, b objstore.Object) int {
			return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(b.Key, a.Key))
		})
		hidden := map[string]bool{}
		for _, o := range all[:min(n, len(all))] {
			hidden[o.Key] = true
		}
		for o, err := range listing {
			if !hidden[o.Key] && !yield(o, err) {
				return
			}
		}
	}
}

// Close implements [objstore.Store].
func (f *Faults) Close() error { return f.s.Close() }
