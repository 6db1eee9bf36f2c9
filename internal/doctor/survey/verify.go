package survey

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// Verify checks all of the store in dir: the manifest, every log, every byte of
// every table, and that the store opens. Its faults are the result's Damage. It
// takes the store's lock as a reader does.
func Verify(ctx context.Context, dir string, o Options) (s *Store, err error) {
	o.Deep, o.FS = true, vfs.OS
	lock, err := Lock(o.FS, dir, vfs.Shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if s, err = Take(ctx, dir, o); err != nil || len(s.Damage) > 0 {
		return s, err
	}
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true, CacheSize: -1})
	if err == nil {
		return s, db.Close()
	}
	if !errors.Is(err, kv.ErrCorruption) {
		return nil, err
	}
	s.Damage = damageOf(".", err)
	return s, nil
}
