package users

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// schema is good for both databases. written_at is the writer's clock in
// microseconds, taken just before the statement.
var schema = []string{
	`CREATE TABLE IF NOT EXISTS users (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, written_at BIGINT NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS users_written_at ON users (written_at)`,
	`CREATE TABLE IF NOT EXISTS banned (id BIGINT PRIMARY KEY, written_at BIGINT NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS banned_written_at ON banned (written_at)`,
	`CREATE TABLE IF NOT EXISTS instance (one INTEGER PRIMARY KEY, name TEXT NOT NULL)`,
}

// dialect is what the two databases do differently: statements at the beginning of
// a transaction, empty where nothing has to be said, and how to read the clock.
type dialect struct {
	lockSchema string // makes processes that start together make the schema one after another
	unlimited  string // lifts the limit on a statement's time
	now        string // the clock in microseconds since 1970, while the statement is executed
}

var sqliteDialect = dialect{now: `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`}

// postgres locks the schema because IF NOT EXISTS alone does not keep PostgreSQL
// from errors about duplicate names. The number is any that nobody else uses.
var postgres = dialect{
	lockSchema: `SELECT pg_advisory_xact_lock(1397311572)`,
	unlimited:  `SET LOCAL statement_timeout = 0`,
	now:        `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`,
}

// OpenSQLite opens, and if need be creates, the database guard.db in a directory.
func OpenSQLite(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, "guard.db")
	options := url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)", "busy_timeout(2000)"},
		"_txlock": {"immediate"},
	}
	source := (&url.URL{Scheme: "file", Opaque: path, RawQuery: options.Encode()}).String()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		db, err := sql.Open("sqlite", source)
		if err != nil {
			return nil, fmt.Errorf("users: open %s: %w", path, err)
		}
		s, err := open(ctx, db, sqliteDialect)
		if err == nil {
			return s, nil
		}
		// Going over to WAL does not heed the busy timeout, when several processes do so at once.
		var e *sqlite.Error
		busy := errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
		if !busy || ctx.Err() != nil || time.Since(begun) > busyTime {
			return nil, fmt.Errorf("users: open %s: %w", path, err)
		}
	}
}

// busyTime is how long an opening waits for other processes that make the database.
const busyTime = 5 * time.Second

// OpenPostgres connects to PostgreSQL by a URL or a string of key=value pairs, with
// conns connections at most. The server ends a request's statement after timeout;
// seeds and the scans of sources take what they need.
func OpenPostgres(ctx context.Context, connect string, conns int, timeout time.Duration) (*Store, error) {
	config, err := pgx.ParseConfig(connect)
	if err != nil {
		return nil, fmt.Errorf("users: the address of PostgreSQL: %w", err) // pgx leaves the password out
	}
	config.RuntimeParams["statement_timeout"] = strconv.FormatInt(max(1, timeout.Milliseconds()), 10)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(time.Hour)
	s, err := open(ctx, db, postgres)
	if err != nil {
		return nil, fmt.Errorf("users: PostgreSQL at %s:%d, database %q: %w",
			config.Host, config.Port, config.Database, err)
	}
	return s, nil
}

// open makes the schema, and reads the name of the data or gives it one. It closes
// db if it fails.
func open(ctx context.Context, db *sql.DB, d dialect) (*Store, error) {
	s := &Store{db: db, dialect: d}
	err := s.transaction(ctx, nil, d.lockSchema, func(tx *sql.Tx) error {
		for _, statement := range schema {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		const name = `INSERT INTO instance (one, name) VALUES (1, $1) ON CONFLICT DO NOTHING`
		result, err := tx.ExecContext(ctx, name, strings.ToLower(rand.Text()[:10]))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		named, err := result.RowsAffected()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.fresh = named > 0
		return tx.QueryRowContext(ctx, `SELECT name FROM instance WHERE one = 1`).Scan(&s.instance)
	})
	if err != nil {
		_ = db.Close()
		return nil, err
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
