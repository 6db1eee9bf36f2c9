package batchrepr

import (
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Sink gets writes: it is what kv.Writer is.
type Sink interface {
	Set(key, value []byte) error
	SetUntil(key, value []byte, expiry time.Time) error
	Merge(key, operand []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

// Replay calls w for an entry whose value is not in a blob file.
func Replay(w Sink, e Entry) error {
	key := e.Key.User
	switch kind := e.Key.Kind(); kind {
	case base.KindSet:
		return w.Set(key, e.Value)
	case base.KindDelete:
		return w.Delete(key)
	case base.KindMerge:
		return w.Merge(key, e.Value)
	case base.KindSetTTL:
		expiry, value, _ := base.CutExpiry(e.Value) // the Reader has seen to it that there is one
		return w.SetUntil(key, value, time.UnixMicro(int64(expiry)))
	case base.KindRangeDelete:
		end, err := rangedel.DecodeEnd(e.Value)
		if err != nil {
			return err
		}
		return w.DeleteRange(key, end)
	default:
		return base.UnknownKind(key, kind)
	}
}
