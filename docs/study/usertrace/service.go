package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/siftkv/siftkv/kv"
)

// A service is one process of the service. Its tables are:
//
//	user/ID      NAME\n and the rest of the row
//	name/NAME    ID
//	banned/ID
type service struct {
	db      *kv.DB
	random  *rand.Rand
	popular *rand.Zipf
	joined  int // sign-ups so far
}

func userKey(id uint64) []byte   { return fmt.Appendf(nil, "user/%d", id) }
func banKey(id uint64) []byte    { return fmt.Appendf(nil, "banned/%d", id) }
func nameKey(name string) []byte { return []byte("name/" + name) }

// user draws the identifier of a user.
func (s *service) user() uint64 { return 1 + s.popular.Uint64() }

// absentUser draws an identifier that no user has.
func (s *service) absentUser() uint64 { return absent + s.random.Uint64N(absent) }

// put writes the row of a user and its place in the index of names.
func (s *service) put(w interface{ Set(key, value []byte) error }, id uint64, name string) error {
	row := append([]byte(name), '\n')
	for range profileSize / 8 {
		row = fmt.Appendf(row, "%08x", s.random.Uint32())
	}
	return errors.Join(w.Set(userKey(id), row), w.Set(nameKey(name), fmt.Appendf(nil, "%d", id)))
}

// seed writes the users 1 to n, in any order.
func (s *service) seed(n int) error {
	b := s.db.NewBatch()
	for _, i := range s.random.Perm(n) {
		if err := s.put(b, uint64(i)+1, fmt.Sprintf("user%d", i+1)); err != nil {
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

// visit plays the visitor of a normal day who drew a number below 100.
func (s *service) visit(drawn int) error {
	switch {
	case drawn < 76:
		return s.find(s.user())
	case drawn < 78:
		return s.find(s.absentUser())
	case drawn < 84: // asks whether a user's name is taken
		id := s.user()
		return errors.Join(s.find(id), s.has(nameKey(fmt.Sprintf("user%d", id))))
	case drawn < 88: // asks for a name, signs up, and looks
		id, name, err := s.signUp(true)
		return errors.Join(err, s.find(id), s.has(nameKey(name)))
	case drawn < 98: // two pages of a feed, for each of which the user must exist
		id := s.user()
		return errors.Join(s.find(id), s.find(id))
	}
	return s.misbehave()
}

// signUp makes a user, who may ask before whether the name is taken.
func (s *service) signUp(asks bool) (id uint64, name string, err error) {
	s.joined++
	id, name = signedUp+s.random.Uint64N(1<<62), fmt.Sprintf("new-%d-%d", s.random.Uint32(), s.joined)
	if asks {
		err = s.has(nameKey(name))
	}
	err = errors.Join(err, s.has(nameKey(name))) // before the insert
	return id, name, errors.Join(err, s.db.Update(func(tx *kv.Tx) error {
		_, named := tx.Has(nameKey(name))
		_, there := tx.Has(userKey(id))
		return errors.Join(named, there, s.put(tx, id, name))
	}))
}

// misbehave plays a user who signs up, is banned, cannot be looked up, and is forgiven.
func (s *service) misbehave() error {
	id, _, err := s.signUp(false)
	ban := func(change func(*kv.Tx) error) error {
		return s.db.Update(func(tx *kv.Tx) error {
			_, err := tx.Has(banKey(id))
			return errors.Join(err, change(tx))
		})
	}
	return errors.Join(err,
		s.has(banKey(id)), // is it banned?
		s.has(banKey(id)), // before the ban
		ban(func(tx *kv.Tx) error { return tx.Set(banKey(id), nil) }),
		s.has(banKey(id)), s.has(banKey(id)), // is it banned? and the lookup that is refused
		ban(func(tx *kv.Tx) error { return tx.Delete(banKey(id)) }),
		s.find(id))
}

// find looks a user up: first in the black list, then in the table.
func (s *service) find(id uint64) error {
	if err := s.has(banKey(id)); err != nil {
		return err
	}
	if _, err := s.db.Get(userKey(id)); !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	return nil
}

func (s *service) has(key []byte) error {
	_, err := s.db.Has(key)
	return err
}
