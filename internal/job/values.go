package job

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// separation says which values go into blob files in a job that writes to a level.
func (e *Env) separation(v *version.Version, level int) tablemeta.Separation {
	return tablemeta.Separation{From: e.SeparateFrom, TargetSize: e.Sizes.NewBlobSize(v),
		Compression: e.Sizes.Compression[level], ID: func(num uint64) uint64 { return e.Values.ID(v, num) }}
}

// readForOperands returns a function that reads separated values of a version, to be combined with operands. It leaves
// a value unread that is longer than MaxMerged.
func (e *Env) readForOperands(v *version.Version) func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
	return func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
		h, _, err := blob.HandleOf(k.Kind(), value)
		switch {
		case err != nil:
			return dst, err
		case h.Size > e.MaxMerged:
			return dst, iterator.ErrStaysApart
		}
		return e.Values.Append(dst, v, k.User, h)
	}
}
