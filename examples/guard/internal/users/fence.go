package users

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrLate says that a statement reached the database after its deadline, and wrote nothing.
var ErrLate = errors.New("users: the database got a statement after its deadline")

// maxReading is how long a reading of the database's clock serves: clocks drift apart by less than a
// millisecond in that time.
const maxReading = 10 * time.Second

// A reading is what the database's clock said before a time of this process.
type reading struct {
	database time.Time
	received time.Time
}

// deadline returns a context's deadline by the database's clock, as a stamp. It is early by up to the
// time that reading the clock took.
//
// A statement carries its deadline because a context only ends the wait for the answer: a network
// may hold the statement, and deliver it when nobody expects the row any more.
func (s *Store) deadline(ctx context.Context) (int64, error) {
	ends, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64, nil
	}
	r := s.clock.Load()
	if r == nil || time.Since(r.received) > maxReading {
		var at int64
		if err := s.db.QueryRowContext(ctx, `SELECT `+s.dialect.now).Scan(&at); err != nil {
			return 0, fmt.Errorf("users: read the database's clock: %w", err)
		}
		r = &reading{time.UnixMicro(at), time.Now()}
		s.clock.Store(r)
	}
	return stamp(r.database.Add(ends.Sub(r.received))), nil
}

// insert executes a statement that inserts a row before the stamp of its last argument, and reports
// whether it did: not if the row was there.
func (s *Store) insert(ctx context.Context, statement string, args ...any) (bool, error) {
	deadline, err := s.deadline(ctx)
	if err != nil {
		return false, err
	}
	inserted, err := s.change(ctx, statement, append(args, deadline)...)
	if err != nil || inserted {
		return inserted, err
	}
	late := false
	if err := s.db.QueryRowContext(ctx, `SELECT `+s.dialect.now+` >= $1`, deadline).Scan(&late); err != nil {
		return false, fmt.Errorf("users: read the database's clock: %w", err)
	}
	if late {
		return false, ErrLate
	}
	return false, nil
}
