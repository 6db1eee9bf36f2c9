package storetest

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/siftkv/siftkv/objstore"
)

// A FrozenStore is an object store in memory of which copies can be taken while nothing in it changes. Nil is none.
type FrozenStore struct {
	objstore.Store
	changes sync.RWMutex // held for reading while an object changes
}

// NewFrozenStore returns an empty one.
func NewFrozenStore() *FrozenStore { return &FrozenStore{Store: objstore.NewMem()} }

// Put implements objstore.Store.
func (s *FrozenStore) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	s.changes.RLock()
	defer s.changes.RUnlock()
	return s.Store.Put(ctx, key, r, size)
}

// PutIfAbsent implements objstore.Store.
func (s *FrozenStore) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	s.changes.RLock()
	defer s.changes.RUnlock()
	return s.Store.PutIfAbsent(ctx, key, body)
}

// Delete implements objstore.Store.
func (s *FrozenStore) Delete(ctx context.Context, key string) error {
	s.changes.RLock()
	defer s.changes.RUnlock()
	return s.Store.Delete(ctx, key)
}

// Cut returns a copy as of the moment at which copyDisk copies a disk.
func (s *FrozenStore) Cut(copyDisk func()) *FrozenStore {
	if s == nil {
		copyDisk()
		return nil
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	copyDisk()
	clone, ctx := NewFrozenStore(), context.Background()
	for o, err := range s.List(ctx, "", "") {
		b := make([]byte, o.Size)
		if err == nil {
			_, err = s.GetRange(ctx, o.Key, 0, b)
		}
		if err == nil {
			err = clone.Put(ctx, o.Key, bytes.NewReader(b), o.Size)
		}
		if err != nil {
			panic(err) // a store in memory never fails
		}
	}
	return clone
}
