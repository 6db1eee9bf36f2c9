package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/redisfilter"
)

// The black list's filter must hold at least as many copies of a key as the table has rows. So each row that is
// written has its own Add before it, and each Remove follows a row that was deleted. A copy too many, left by a
// process that ended in between or by two bans at once, costs queries and nothing else.

// IsBanned reports whether a user is on the black list.
func (g *Guard) IsBanned(ctx context.Context, id int64) (bool, error) {
	maybe, err := g.maybe(ctx, g.Filters.Banned, &g.Counters.Banned, idKey(id))
	if err != nil || !maybe {
		return false, err
	}
	answer, err := g.rows.read(ctx, banKey(id), g.askBanned(id))
	return answer.found, err
}

// Ban puts a user on the black list. The ban is in force in all processes when Ban returns nil. Banning a user twice
// is no error.
func (g *Guard) Ban(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	already, err := g.rows.ask(ctx, g.askBanned(id))
	if err == nil && !already.found {
		if err = g.tell(ctx, func(ctx context.Context) error { return g.addCopy(ctx, id) }); err == nil {
			err = g.rows.statement(ctx, &g.Counters.Database.Writes, func(ctx context.Context) error {
				_, err := g.Store.Ban(ctx, id)
				return err
			})
		}
	}
	if err == nil {
		err = g.rows.tell(ctx, banKey(id), row{found: true})
	}
	if err != nil {
		return fmt.Errorf("ban %d: %w", id, err)
	}
	return nil
}

// addCopy adds a copy of a user to the filter.
func (g *Guard) addCopy(ctx context.Context, id int64) error {
	err := g.Filters.Banned.Add(ctx, idKey(id))
	switch {
	case errors.Is(err, redisfilter.ErrTooManyCopies): // one more is not needed
		return nil
	case errors.Is(err, redisfilter.ErrFull): // for some seconds: a larger filter is being loaded
		g.Counters.Banned.Full.Add(1)
		g.Logger.WarnContext(ctx, "the black list has no room for a ban until its next load", "user", id)
	}
	return err
}

// Unban takes a user off the black list. To do it twice is no error.
func (g *Guard) Unban(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	deleted := false
	err := g.rows.statement(ctx, &g.Counters.Database.Writes, func(ctx context.Context) (err error) {
		deleted, err = g.Store.Unban(ctx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("unban %d: %w", id, err)
	}
	told := g.rows.tell(ctx, banKey(id), row{})
	if deleted {
		g.removeCopy(ctx, id)
	}
	if told != nil {
		return fmt.Errorf("unban %d: %w", id, told)
	}
	return nil
}

// removeCopy takes one copy of a user out of the filter.
func (g *Guard) removeCopy(ctx context.Context, id int64) {
	ctx, cancel := context.WithTimeout(ctx, g.config.FilterTimeout)
	defer cancel()
	if _, err := g.Filters.Banned.Remove(ctx, idKey(id)); err != nil {
		g.Logger.WarnContext(ctx, "the black list's filter keeps a copy of a user who is not banned any more; "+
			"it costs a query every --null-ttl while the user asks", "user", id, "error", err)
	}
}

func (g *Guard) askBanned(id int64) query {
	return func(ctx context.Context) (string, bool, error) {
		banned, err := g.Store.Banned(ctx, id)
		return "", banned, err
	}
}
