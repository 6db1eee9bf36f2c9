package users

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// Margin is how much earlier than asked a scan begins. It covers the time between
// a row's stamp and its commit, and clocks that differ: a statement lasts two
// seconds at most, and clocks of one service that differ by more than the rest are
// a fault that other things suffer from first.
const Margin = time.Minute

// batch is how many keys a scan hands over at once.
const batch = 1000

// IDKey is a user's identifier as a key of filters.
func IDKey(id int64) []byte { return strconv.AppendInt(nil, id, 10) }

// NameKey is a user's name as a key of filters.
func NameKey(name string) []byte { return []byte(name) }

// IDs calls add with the identifier of every user that was committed since a time,
// or of all if it is zero. It and its siblings are sources of filters.
func (s *Store) IDs(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
	return s.scan(ctx, `SELECT CAST(id AS TEXT) FROM users WHERE written_at >= $1`, since, add)
}

// Names is IDs for names.
func (s *Store) Names(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
	return s.scan(ctx, `SELECT name FROM users WHERE written_at >= $1`, since, add)
}

// BannedIDs is IDs for the black list.
func (s *Store) BannedIDs(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
	return s.scan(ctx, `SELECT CAST(id AS TEXT) FROM banned WHERE written_at >= $1`, since, add)
}

// scan streams the query's rows: they are never all in memory.
func (s *Store) scan(ctx context.Context, query string, since time.Time, add func(keys ...[]byte) error) error {
	from := int64(0)
	if !since.IsZero() {
		from = stamp(since.Add(-Margin))
	}
	err := s.transaction(ctx, &sql.TxOptions{ReadOnly: true}, s.dialect.unlimited, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, query, from)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		keys := make([][]byte, 0, batch)
		for rows.Next() {
			var key []byte
			if err := rows.Scan(&key); err != nil {
				return err
			}
			if keys = append(keys, key); len(keys) < batch {
				continue
			}
			if err := add(keys...); err != nil {
				return fmt.Errorf("hand keys over: %w", err)
			}
			keys = make([][]byte, 0, batch) // add may keep what it got
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return add(keys...)
	})
	if err != nil {
		return fmt.Errorf("users: %s: %w", query, err)
	}
	return nil
}
