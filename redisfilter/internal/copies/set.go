package copies

import (
	"context"
	"log/slog"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// A Set is what a mirror needs of the set that it copies.
type Set interface {
	Add(ctx context.Context, key []byte) error
	AddNew(ctx context.Context, key []byte) (bool, error)
	Contains(ctx context.Context, key []byte) (bool, error)
	MAdd(ctx context.Context, keys [][]byte) error
	MAddNew(ctx context.Context, keys [][]byte) ([]bool, error)
	MContains(ctx context.Context, keys [][]byte) ([]bool, error)

	Inside() Inside
	View() SetView
}

// Inside is what of a set stays the same.
type Inside struct {
	Conn   *conn.Conn
	Name   string
	Logger *slog.Logger
}

// A SetView is what a process knows of a set. Every poll brings another.
type SetView struct {
	Config    *config.Config // nil if the set cannot be used
	Parts     *chain.Parts   // of the generation in use
	Trusted   map[string]bool
	Confirmed time.Time
	Err       error // why the last poll failed, or the set cannot be used
}
