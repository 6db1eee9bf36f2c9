package survey

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Verify checks all of the store in dir: the manifest, every log, every byte of
// every table, and that open, which opens it read-only and closes it again, succeeds. Its
// faults are the result's Damage. It takes the store's lock as a reader does.
func Verify(ctx context.Context, dir string, o Options, open func() error) (s *Store, err error) {
	o.Deep = true
	if o.FS == nil {
		o.FS = vfs.OS
	}
	lock, err := Lock(o.FS, dir, vfs.Shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if s, err = Take(ctx, dir, o); err != nil || len(s.Damage) > 0 {
		return s, err
	}
	if err = open(); errors.Is(err, base.ErrCorruption) {
		s.Damage = damageOf(".", err)
		return s, nil
	}
	return s, err
}
