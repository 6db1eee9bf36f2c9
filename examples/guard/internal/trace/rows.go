package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"

	"github.com/siftkv/siftkv/kv"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/users"
)

// profileSize is what a row has beside the name, in bytes: an address, hashes of passwords, times.
const profileSize = 160

// rows are the service's tables in a store:
//
//	user/ID      NAME\n and the rest of the row
//	name/NAME    ID
//	banned/ID
type rows struct{ db *kv.DB }

var _ guard.Store = rows{}

func userKey(id int64) []byte    { return append([]byte("user/"), users.IDKey(id)...) }
func nameKey(name string) []byte { return append([]byte("name/"), users.NameKey(name)...) }
func banKey(id int64) []byte     { return append([]byte("banned/"), users.IDKey(id)...) }

// seed writes the users 1 to n, who came in any order.
func seed(db *kv.DB, n int, seed uint64) error {
	b := db.NewBatch()
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(n) {
		u := users.User{ID: int64(i) + 1, Name: users.SeedName(int64(i) + 1)}
		if err := put(b, u); err != nil {
			return err
		}
		if b.Len() >= 1000 {
			if err := b.Commit(kv.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return b.Commit(kv.NoSync)
}

// put writes the row of a user and its place in the index of names.
func put(w interface{ Set(key, value []byte) error }, u users.User) error {
	profile := make([]byte, profileSize)
	_, _ = rand.NewChaCha8([32]byte(append(users.IDKey(u.ID), profile[:32]...))).Read(profile) // it never fails
	return errors.Join(
		w.Set(userKey(u.ID), append(append([]byte(u.Name), '\n'), profile...)),
		w.Set(nameKey(u.Name), users.IDKey(u.ID)),
	)
}

func (r rows) Ping(context.Context) error { return nil }

func (r rows) Name(_ context.Context, id int64) (string, bool, error) {
	row, err := r.db.Get(userKey(id))
	if errors.Is(err, kv.ErrNotFound) {
		return "", false, nil
	}
	name, _, _ := bytes.Cut(row, []byte{'\n'})
	return string(name), err == nil, err
}

func (r rows) Taken(_ context.Context, name string) (bool, error) { return r.db.Has(nameKey(name)) }
func (r rows) Banned(_ context.Context, id int64) (bool, error)   { return r.db.Has(banKey(id)) }

func (r rows) Insert(_ context.Context, u users.User) (inserted bool, err error) {
	err = r.db.Update(func(tx *kv.Tx) error {
		named, err := tx.Has(nameKey(u.Name))
		if err != nil {
			return err
		}
		there, err := tx.Has(userKey(u.ID))
		if err != nil || named || there {
			return err
		}
		inserted = true
		return put(tx, u)
	})
	return inserted && err == nil, err
}

func (r rows) Ban(_ context.Context, id int64) (bool, error) {
	return r.change(banKey(id), false, func(tx *kv.Tx) error { return tx.Set(banKey(id), nil) })
}

func (r rows) Unban(_ context.Context, id int64) (bool, error) {
	return r.change(banKey(id), true, func(tx *kv.Tx) error { return tx.Delete(banKey(id)) })
}

// change calls f if a key is there, or is not, as asked, and reports whether it did.
func (r rows) change(key []byte, there bool, f func(*kv.Tx) error) (changed bool, err error) {
	err = r.db.Update(func(tx *kv.Tx) error {
		has, err := tx.Has(key)
		if changed = err == nil && has == there; changed {
			err = f(tx)
		}
		return err
	})
	return changed && err == nil, err
}
