package siftvault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/siftkv/siftkv/kv"
)

// A Backend keeps entries in a store, each under its key as it is and with its value as it is. An entry's
// SealWrap and ValueHash are not kept. It is safe for concurrent use.
type Backend struct{ db *kv.DB }

var _ physical.TransactionalLimits = (*Backend)(nil)

// Put stores an entry. A key of more than 65,535 bytes and a value of more than 256 MiB are refused with
// errors that have the words of physical.ErrKeyTooLarge and physical.ErrValueTooLarge.
func (b *Backend) Put(ctx context.Context, entry *physical.Entry) error {
	batch := b.db.NewBatch()
	if err := batch.Set([]byte(entry.Key), entry.Value); err != nil {
		return tooLarge(entry, err)
	}
	return batch.CommitContext(ctx, kv.Sync)
}

// Get returns the entry of a key, or nil if there is none.
func (b *Backend) Get(ctx context.Context, key string) (*physical.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return get(b.db, key)
}

// Delete removes the entry of a key. That there is none is no error.
func (b *Backend) Delete(ctx context.Context, key string) error {
	batch := b.db.NewBatch()
	_ = batch.Delete([]byte(key)) // a batch keeps its errors for Commit
	return batch.CommitContext(ctx, kv.Sync)
}

// List returns what follows the prefix in the keys that begin with it, up to and with the next slash, each
// once and in order. It takes one seek for each element that it returns, however many keys there are below.
func (b *Backend) List(ctx context.Context, prefix string) (names []string, err error) {
	it, err := b.db.NewIter(&kv.IterOptions{Prefix: []byte(prefix), KeysOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := string(it.Key()[len(prefix):])
		slash := strings.IndexByte(name, '/')
		if slash < 0 {
			names = append(names, name)
			ok = it.Next()
			continue
		}
		name = name[:slash+1]
		names = append(names, name)
		ok = it.SeekGE(kv.PrefixEnd([]byte(prefix + name))) // there is one: the name ends with a slash
	}
	return names, it.Error()
}

// Transaction has some operations take effect at one moment, in their order, or none of them. The values
// of those that get are read before any other takes effect, as Vault's own backends have it; if somebody
// else changes one meanwhile, the whole is done again. An entry to get that is not there is left as it is.
func (b *Backend) Transaction(ctx context.Context, txns []*physical.TxnEntry) error {
	for _, t := range txns {
		switch t.Operation {
		case physical.GetOperation, physical.PutOperation, physical.DeleteOperation:
		default:
			return fmt.Errorf("vault: a transaction has no operation %q: want get, put or delete", t.Operation)
		}
	}
	found := make([]*physical.Entry, len(txns))
	err := b.db.UpdateContext(ctx, func(tx *kv.Tx) (err error) {
		for i, t := range txns {
			if t.Operation == physical.GetOperation {
				if found[i], err = get(tx, t.Entry.Key); err != nil {
					return err
				}
			}
		}
		for _, t := range txns {
			switch t.Operation {
			case physical.PutOperation:
				if err := tx.Set([]byte(t.Entry.Key), t.Entry.Value); err != nil {
					return tooLarge(t.Entry, err)
				}
			case physical.DeleteOperation:
				if err := tx.Delete([]byte(t.Entry.Key)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, t := range txns {
		if found[i] != nil {
			t.Entry.Value = found[i].Value
		}
	}
	return nil
}

// TransactionLimits returns how many entries a transaction may have, and how many bytes: far below what
// the store takes at once, and far above what Vault assumes of a backend that does not say.
func (b *Backend) TransactionLimits() (maxEntries, maxSize int) { return 8192, 64 << 20 }

// Close closes the store. Operations that are under way end first; later ones fail.
func (b *Backend) Close() error { return b.db.Close() }

func get(r kv.Reader, key string) (*physical.Entry, error) {
	value, err := r.Get([]byte(key))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &physical.Entry{Key: key, Value: value}, nil
}

// tooLarge says which part of an entry was too large in the words that Vault looks for.
func tooLarge(entry *physical.Entry, err error) error {
	switch {
	case !errors.Is(err, kv.ErrTooLarge):
		return err
	case len(entry.Key) > kv.MaxKeySize:
		return fmt.Errorf("%s: %w", physical.ErrKeyTooLarge, err)
	default:
		return fmt.Errorf("%s: %w", physical.ErrValueTooLarge, err)
	}
}
