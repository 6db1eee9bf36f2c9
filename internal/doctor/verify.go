// Package doctor looks at a store from outside, whole or damaged, with package survey:
// Verify checks one, and package repair makes a store of what is left of one.
package doctor

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/kv"
)

// Verify is survey.Verify of a store on the operating system's file system.
func Verify(ctx context.Context, dir string, o survey.Options) (*survey.Store, error) {
	return survey.Verify(ctx, dir, o, func() error {
		db, err := kv.Open(dir, &kv.Options{ReadOnly: true, CacheSize: -1})
		if o.BesideWriter && errors.Is(err, kv.ErrLocked) {
			db, err = kv.OpenReadOnly(dir, &kv.Options{CacheSize: -1})
		}
		if err == nil {
			err = db.Close()
		}
		return err
	})
}
