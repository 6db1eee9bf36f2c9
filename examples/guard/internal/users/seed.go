package users

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// MaxSeed is the highest identifier that Seed gives. Sign-ups get higher ones.
const MaxSeed = 1 << 31

// SeedName is the name that Seed gives to a user.
func SeedName(id int64) string { return fmt.Sprintf("user%d", id) }

// Seed adds those of the users 1 to n, at most MaxSeed, that are missing, and
// returns how many it added. It tells no filter: load the filters afterwards.
func (s *Store) Seed(ctx context.Context, n int) (added int64, err error) {
	var have int
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM users WHERE id <= $1`, n).Scan(&have); err != nil {
		return 0, fmt.Errorf("users: count the first %d users: %w", n, err)
	}
	if have >= n {
		return 0, nil
	}
	const insert = `WITH RECURSIVE seed (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seed WHERE i < $1)
		INSERT INTO users (id, name, written_at)
		SELECT i, 'user' || CAST(i AS TEXT), CAST($2 AS BIGINT) FROM seed WHERE true ON CONFLICT DO NOTHING`
	err = s.transaction(ctx, nil, s.dialect.unlimited, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, insert, n, stamp(time.Now()))
		if err != nil {
			return err
		}
		added, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("users: seed %d users: %w", n, err)
	}
	return added, nil
}
