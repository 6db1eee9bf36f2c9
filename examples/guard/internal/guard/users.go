package guard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/siftkv/siftkv/examples/guard/internal/users"
)

// User returns a user, ErrNotFound, or ErrBanned.
func (g *Guard) User(ctx context.Context, id int64) (users.User, error) {
	if banned, err := g.IsBanned(ctx, id); err != nil {
		return users.User{}, err
	} else if banned {
		return users.User{}, ErrBanned
	}
	maybe, err := g.filtered(ctx, g.Filters.Users, &g.Counters.Users, users.IDKey(id))
	if err != nil {
		return users.User{}, err
	}
	if !maybe {
		return users.User{}, ErrNotFound
	}
	answer, err := g.rows.read(ctx, userKey(id), func(ctx context.Context) (string, bool, error) {
		return g.Store.Name(ctx, id)
	})
	if err != nil {
		return users.User{}, err
	}
	if !answer.found {
		return users.User{}, ErrNotFound
	}
	return users.User{ID: id, Name: answer.value}, nil
}

// Taken reports whether a user has the name. Only sign-up decides: the name may
// be taken a moment later.
func (g *Guard) Taken(ctx context.Context, name string) (bool, error) {
	maybe, err := g.filtered(ctx, g.Filters.Names, &g.Counters.Names, users.NameKey(name))
	if err != nil || !maybe {
		return false, err
	}
	answer, err := g.rows.read(ctx, nameKey(name), func(ctx context.Context) (string, bool, error) {
		taken, err := g.Store.Taken(ctx, name)
		return "", taken, err
	})
	return answer.found, err
}

// SignUp makes a user of a name, or returns ErrTaken. The database's constraint
// decides between sign-ups of one name; the filter spares free names a query.
func (g *Guard) SignUp(ctx context.Context, name string) (users.User, error) {
	if taken, err := g.Taken(ctx, name); err != nil {
		return users.User{}, err
	} else if taken {
		return users.User{}, ErrTaken
	}
	u := users.User{ID: users.MaxSeed + 1 + rand.Int64N(1<<62), Name: name}
	ctx, cancel := context.WithTimeout(ctx, g.config.Timeout) // from the filters to the commit
	defer cancel()
	err := g.tell(ctx,
		func(ctx context.Context) error { return g.Filters.Users.Add(ctx, users.IDKey(u.ID)) },
		func(ctx context.Context) error { return g.Filters.Names.Add(ctx, users.NameKey(name)) },
	)
	if err != nil {
		return users.User{}, fmt.Errorf("sign up %q: %w", name, err)
	}
	inserted := false
	err = g.rows.statement(ctx, &g.Counters.Database.Inserts, func(ctx context.Context) (err error) {
		inserted, err = g.Store.Insert(ctx, u)
		return err
	})
	if err != nil {
		return users.User{}, fmt.Errorf("sign up %q: %w", name, err)
	}
	g.rows.put(ctx, nameKey(name), row{found: true})
	if !inserted {
		return users.User{}, ErrTaken
	}
	g.rows.put(ctx, userKey(u.ID), row{value: name, found: true})
	return u, nil
}

func userKey(id int64) string    { return "user:" + strconv.FormatInt(id, 10) }
func nameKey(name string) string { return "name:" + name }
func banKey(id int64) string     { return "ban:" + strconv.FormatInt(id, 10) }
