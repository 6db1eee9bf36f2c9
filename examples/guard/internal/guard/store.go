package guard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// ErrLate means that a statement reached the database after its deadline, and wrote nothing.
var ErrLate = errors.New("store: the database got a statement after its deadline")

// User is one row.
type User struct {
	ID   int64  `json:"id,string"` // positive
	Name string `json:"name"`
}

// Store is the database: users and the black list. It is the source of truth; filters and the cache hold what can be
// derived from it again. It is for any number of goroutines and processes, and bounds nothing: the gate does.
type Store struct {
	// Instance names the data: a new database has another. What is derived from the data belongs under this name.
	Instance string

	db      *sql.DB
	dialect dialect
}

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("store: reach the database: %w", err)
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

// Insert adds a user and reports whether it did: not if the name or the identifier is another's. The database executes
// it before the context's deadline or not at all: then the error is ErrLate.
func (s *Store) Insert(ctx context.Context, u User) (bool, error) {
	return s.insert(ctx, `INSERT INTO users (id, name, written_at)
		SELECT CAST($1 AS BIGINT), CAST($2 AS TEXT), CAST($3 AS BIGINT) WHERE `+s.dialect.now+` < $4
		ON CONFLICT DO NOTHING`, u.ID, u.Name, stamp(time.Now()))
}

// Ban puts an identifier on the black list and reports whether it was not there. It is executed before the context's
// deadline or not at all, as Insert is.
func (s *Store) Ban(ctx context.Context, id int64) (bool, error) {
	return s.insert(ctx, `INSERT INTO banned (id, written_at)
		SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT) WHERE `+s.dialect.now+` < $3
		ON CONFLICT DO NOTHING`, id, stamp(time.Now()))
}

// Unban takes an identifier off the black list and reports whether it was there.
func (s *Store) Unban(ctx context.Context, id int64) (bool, error) {
	return s.change(ctx, `DELETE FROM banned WHERE id = $1`, id)
}

// MaxSeed is the highest identifier that Seed gives. Sign-ups get higher ones.
const MaxSeed = 1 << 31

// Seed adds the users 1 to n, at most MaxSeed, to a table without users. Their names are user1, user2, and so on. It
// tells no filter: load the filters afterwards.
func (s *Store) Seed(ctx context.Context, n int) error {
	const insert = `WITH RECURSIVE seed (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seed WHERE i < $1)
		INSERT INTO users (id, name, written_at)
		SELECT i, 'user' || CAST(i AS TEXT), CAST($2 AS BIGINT) FROM seed
		WHERE NOT EXISTS (SELECT 1 FROM users) AND i <= $1 ON CONFLICT DO NOTHING`
	err := s.transaction(ctx, nil, s.dialect.unlimited, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert, n, stamp(time.Now()))
		return err
	})
	if err != nil {
		return fmt.Errorf("store: seed %d users: %w", n, err)
	}
	return nil
}

func (s *Store) text(ctx context.Context, query string, arg any) (text string, found bool, err error) {
	err = s.db.QueryRowContext(ctx, query, arg).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("store: %s, for %v: %w", query, arg, err)
	}
	return text, true, nil
}

// insert executes a statement that inserts a row before the time that is its last argument, and reports whether it did:
// not if the row was there. The time is the context's deadline by the database's clock, early by up to the time that
// reading the clock took.
//
// A statement carries its deadline because a context only ends the wait for the answer. The network may deliver the
// statement after its caller has given up.
func (s *Store) insert(ctx context.Context, statement string, args ...any) (bool, error) {
	deadline := int64(math.MaxInt64)
	if ends, ok := ctx.Deadline(); ok {
		if err := s.db.QueryRowContext(ctx, `SELECT `+s.dialect.now).Scan(&deadline); err != nil {
			return false, fmt.Errorf("store: read the database's clock: %w", err)
		}
		deadline += time.Until(ends).Microseconds()
	}
	inserted, err := s.change(ctx, statement, append(args, deadline)...)
	if err != nil || inserted {
		return inserted, err
	}
	late := false
	if err := s.db.QueryRowContext(ctx, `SELECT `+s.dialect.now+` >= $1`, deadline).Scan(&late); err != nil {
		return false, fmt.Errorf("store: read the database's clock: %w", err)
	}
	if late {
		return false, ErrLate
	}
	return false, nil
}

func (s *Store) change(ctx context.Context, statement string, args ...any) (bool, error) {
	result, err := s.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, fmt.Errorf("store: %s, for %v: %w", statement, args[0], err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// stamp is a time as the tables keep it.
func stamp(t time.Time) int64 { return t.UnixMicro() }

// idKey is a user's identifier as a key of filters.
func idKey(id int64) []byte { return strconv.AppendInt(nil, id, 10) }

const (
	// Margin is how much earlier than requested a scan begins. It covers the time between a row's stamp and its commit,
	// two seconds at most, and the difference of the clocks of a service.
	Margin = time.Minute
	batch  = 1000 // keys that a scan hands over at once
)

// IDs calls add with the identifier of each user that was committed since a time, and of all users if it is zero. IDs,
// Names and BannedIDs are sources of filters.
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

// scan streams the query's rows: memory holds one batch.
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
		return fmt.Errorf("store: %s: %w", query, err)
	}
	return nil
}

// schema serves both databases. written_at is the writer's clock in microseconds, just before the statement.
var schema = []string{
	`CREATE TABLE IF NOT EXISTS users (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, written_at BIGINT NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS users_written_at ON users (written_at)`,
	`CREATE TABLE IF NOT EXISTS banned (id BIGINT PRIMARY KEY, written_at BIGINT NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS banned_written_at ON banned (written_at)`,
	`CREATE TABLE IF NOT EXISTS instance (one INTEGER PRIMARY KEY, name TEXT NOT NULL)`,
}

// dialect is what the two databases do differently. An empty statement is not executed.
type dialect struct {
	lockSchema string // lets processes that start together make the schema one after another
	unlimited  string // lifts the limit on a statement's time
	now        string // the clock in microseconds since 1970, while the statement is executed
}

var sqlite = dialect{now: `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`}

// postgres locks the schema because IF NOT EXISTS alone does not keep PostgreSQL from errors about duplicate
// names. The number is arbitrary.
var postgres = dialect{
	lockSchema: `SELECT pg_advisory_xact_lock(1397311572)`,
	unlimited:  `SET LOCAL statement_timeout = 0`,
	now:        `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`,
}

// OpenSQLite opens, and creates if there is none, the database guard.db in a directory. Let one process
// create it before others open it.
func OpenSQLite(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, "guard.db")
	options := url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)", "busy_timeout(2000)"},
		"_txlock": {"immediate"},
	}
	source := (&url.URL{Scheme: "file", Opaque: path, RawQuery: options.Encode()}).String()
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, err)
	}
	return open(ctx, db, sqlite, path)
}

// OpenPostgres connects to PostgreSQL by a URL or a string of key=value pairs, with at most conns
// connections. The server ends a request's statement after timeout; seeds and the scans of sources have no
// limit.
func OpenPostgres(ctx context.Context, connect string, conns int, timeout time.Duration) (*Store, error) {
	config, err := pgx.ParseConfig(connect)
	if err != nil {
		return nil, fmt.Errorf("store: the address of PostgreSQL: %w", err) // pgx leaves the password out
	}
	config.RuntimeParams["statement_timeout"] = strconv.FormatInt(max(1, timeout.Milliseconds()), 10)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(time.Hour)
	where := fmt.Sprintf("PostgreSQL at %s:%d, database %q", config.Host, config.Port, config.Database)
	return open(ctx, db, postgres, where)
}

// open makes the schema, and names the data unless they have a name. It closes db if it fails.
func open(ctx context.Context, db *sql.DB, d dialect, where string) (*Store, error) {
	s := &Store{db: db, dialect: d}
	err := s.transaction(ctx, nil, d.lockSchema, func(tx *sql.Tx) error {
		for _, statement := range schema {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		const name = `INSERT INTO instance (one, name) VALUES (1, $1) ON CONFLICT DO NOTHING`
		if _, err := tx.ExecContext(ctx, name, strings.ToLower(rand.Text()[:10])); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return tx.QueryRowContext(ctx, `SELECT name FROM instance WHERE one = 1`).Scan(&s.Instance)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: open %s: %w", where, err), db.Close())
	}
	return s, nil
}

// transaction runs f between the statement first, unless it is empty, and a commit.
func (s *Store) transaction(ctx context.Context, o *sql.TxOptions, first string, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, o)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if first != "" {
		if _, err := tx.ExecContext(ctx, first); err != nil {
			return fmt.Errorf("%s: %w", first, err)
		}
	}
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
