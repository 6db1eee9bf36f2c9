package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// mem is a Store that keeps objects in memory.
type mem struct {
	gate
	mu      sync.RWMutex
	keys    []string // sorted
	objects map[string]memObject
}

type memObject struct {
	data []byte // never written to
	time time.Time
}

// NewMem returns an empty store in memory. [Sub] with an empty prefix makes further clients of it, each of which
// can be closed. A write costs O(n) in the number of objects, a few microseconds for 100,000.
func NewMem() Store { return &mem{objects: map[string]memObject{}} }

func (m *mem) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if err := m.admit(ctx, Get, key); err != nil || len(p) == 0 {
		return 0, err
	}
	m.mu.RLock()
	o, ok := m.objects[key]
	m.mu.RUnlock()
	if !ok {
		return 0, wrap(Get, key, ErrNotExist)
	}
	from, n, err := span(int64(len(o.data)), off, p)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, wrap(Get, key, err)
	}
	return copy(p, o.data[from:from+int64(n)]), err
}

func (m *mem) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if err := m.admit(ctx, Put, key); err != nil {
		return err
	}
	var data bytes.Buffer
	if err := copyObject(ctx, &data, r, size); err != nil {
		return wrap(Put, key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, bytes.Clone(data.Bytes()))
	return nil
}

func (m *mem) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := m.admit(ctx, PutIfAbsent, key); err != nil {
		return err
	}
	data := bytes.Clone(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; ok {
		return wrap(PutIfAbsent, key, ErrExists)
	}
	m.put(key, data)
	return nil
}

// put takes over data. The lock is held.
func (m *mem) put(key string, data []byte) {
	if i, found := slices.BinarySearch(m.keys, key); !found {
		m.keys = slices.Insert(m.keys, i, key)
	}
	m.objects[key] = memObject{data, time.Now()}
}

// List implements [Store]. It holds no lock while the loop's body runs.
func (m *mem) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		at := after
		for {
			if err := m.admit(ctx, List, prefix); err != nil {
				yield(Object{}, err)
				return
			}
			o, ok := m.next(prefix, at)
			if !ok || !yield(o, nil) {
				return
			}
			at = o.Key
		}
	}
}

// next returns the first object with a prefix and a key greater than after.
func (m *mem) next(prefix, after string) (Object, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, found := slices.BinarySearch(m.keys, max(prefix, after))
	if found && m.keys[i] == after {
		i++
	}
	if i == len(m.keys) || !strings.HasPrefix(m.keys[i], prefix) {
		return Object{}, false
	}
	key := m.keys[i]
	o := m.objects[key]
	return Object{Key: key, Size: int64(len(o.data)), ModTime: o.time}, true
}

func (m *mem) Delete(ctx context.Context, key string) error {
	if err := m.admit(ctx, Delete, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, found := slices.BinarySearch(m.keys, key); found {
		m.keys = slices.Delete(m.keys, i, i+1)
		delete(m.objects, key)
	}
	return nil
}

// copyChunk is how many bytes are copied between two looks at the context.
const copyChunk = 1 << 20

func copyObject(ctx context.Context, w io.Writer, r io.ReaderAt, size int64) error {
	if size < 0 {
		return fmt.Errorf("an object of %d bytes", size)
	}
	buf := make([]byte, min(size, copyChunk))
	for off := int64(0); off < size; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := r.ReadAt(buf[:min(size-off, copyChunk)], off)
		if off += int64(n); errors.Is(err, io.EOF) && off < size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && off < size {
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}
