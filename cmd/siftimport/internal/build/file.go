package build

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/work"
	"github.com/siftkv/siftkv/sstable"
)

type job struct {
	name   string
	chunks chan *chunk // closed: that is all
	given  bool        // to a builder; the reader's
	done   chan struct{}
	file   work.File // when done
	err    error
}

// build builds files until there are no more.
func (r *run) build() {
	for j := range r.jobs {
		f, err := r.write(j)
		if err != nil {
			j.err = err
			r.fail(err)
			close(j.done)
			continue
		}
		go func() { // the next file is built while this one goes to the disk
			j.err = errors.Join(f.Sync(), f.Close())
			r.fail(j.err)
			close(j.done)
		}()
	}
}

// write writes a job's file, which it returns open.
func (r *run) write(j *job) (f *os.File, err error) {
	// The store gets a link to it, and has files that are their owner's alone.
	f, err = os.OpenFile(filepath.Join(r.dir.Path, j.name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	o := r.Writer
	w := sstable.NewWriter(f, &o)
	j.file.Name = j.name
	if err := r.fill(w, j); err != nil {
		return f, err
	}
	info, err := w.Finish()
	if err != nil {
		return f, err
	}
	j.file.Entries, j.file.Last, j.file.Size = int64(info.Entries), info.Largest, info.Size
	r.learn(&j.file)
	return f, nil
}

func (r *run) fill(w *sstable.Writer, j *job) error {
	set := func(key, value []byte, until time.Time) error {
		j.file.Bytes += int64(len(key) + len(value))
		return w.SetUntil(key, value, until)
	}
	for {
		select {
		case c, more := <-j.chunks:
			if !more {
				return r.ctx.Err()
			}
			if err := c.each(set); err != nil {
				return err
			}
			r.free.put(c)
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
	}
}

// record enters finished files into the directory, in the order of their keys, up to one that failed or was not begun.
func (r *run) record() {
	failed := false
	for _, p := range r.parts {
		for j := range p.order {
			<-j.done
			if failed = failed || j.err != nil; failed {
				continue
			}
			if err := r.dir.Add(j.file); err != nil {
				r.fail(err)
				failed = true
			}
		}
		failed = failed || !p.whole
	}
}
