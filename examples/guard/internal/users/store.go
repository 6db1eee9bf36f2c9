// Package users is the service's database: users and the black list. It is the
// source of truth; filters and the cache hold what can be made again from it.
package users

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// User is one row.
type User struct {
	ID   int64 // positive
	Name string
}

// Store is a database. It may be used from many goroutines, and by many processes.
// It bounds nothing: whoever asks bounds how many ask at once.
type Store struct {
	db       *sql.DB
	dialect  dialect
	instance string
	fresh    bool
	clock    atomic.Pointer[reading]
}

// Instance names the data: a database made anew has another. What is derived from
// the data and kept elsewhere belongs under this name.
func (s *Store) Instance() string { return s.instance }

// Fresh reports whether the data began with this Store: nothing can have been
// derived from it.
func (s *Store) Fresh() bool { return s.fresh }

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("users: reach the database: %w", err)
	}
	return nil
}

// Close closes all connections.
func (s *Store) Close() error { return s.db.Close() }

// Name returns the name of a user, and whether there is such a user.
func (s *Store) Name(ctx context.Context, id int64) (string, bool, error) {
	return s.text(ctx, `SELECT name FROM users WHERE id = $1`, id)
}

// Taken reports whether a user has the name.
func (s *Store) Taken(ctx context.Context, name string) (bool, error) {
	_, found, err := s.text(ctx, `SELECT name FROM users WHERE name = $1`, name)
	return found, err
}

// Banned reports whether an identifier is on the black list.
func (s *Store) Banned(ctx context.Context, id int64) (bool, error) {
	_, found, err := s.text(ctx, `SELECT CAST(id AS TEXT) FROM banned WHERE id = $1`, id)
	return found, err
}

// Insert adds a user and reports whether it did: not if the name, or the
// identifier, is another's. The database executes it before the context's deadline
// or not at all: then the error is ErrLate.
func (s *Store) Insert(ctx context.Context, u User) (bool, error) {
	return s.insert(ctx, `INSERT INTO users (id, name, written_at)
		SELECT CAST($1 AS BIGINT), CAST($2 AS TEXT), CAST($3 AS BIGINT) WHERE `+s.dialect.now+` < $4
		ON CONFLICT DO NOTHING`, u.ID, u.Name, stamp(time.Now()))
}

// Ban puts an identifier on the black list and reports whether it was not there. It
// is executed before the context's deadline or not at all, as Insert is.
func (s *Store) Ban(ctx context.Context, id int64) (bool, error) {
	return s.insert(ctx, `INSERT INTO banned (id, written_at)
		SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT) WHERE `+s.dialect.now+` < $3
		ON CONFLICT DO NOTHING`, id, stamp(time.Now()))
}

// Unban takes an identifier off the black list and reports whether it was there.
func (s *Store) Unban(ctx context.Context, id int64) (bool, error) {
	return s.change(ctx, `DELETE FROM banned WHERE id = $1`, id)
}

func (s *Store) text(ctx context.Context, query string, arg any) (text string, found bool, err error) {
	err = s.db.QueryRowContext(ctx, query, arg).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("users: %s, for %v: %w", query, arg, err)
	}
	return text, true, nil
}

func (s *Store) change(ctx context.Context, statement string, args ...any) (bool, error) {
	result, err := s.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, fmt.Errorf("users: %s, for %v: %w", statement, args[0], err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// stamp is a time as the database keeps it.
func stamp(t time.Time) int64 { return t.UnixMicro() }
