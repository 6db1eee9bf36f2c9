package mirror

import (
	"context"

	"github.com/siftkv/siftkv/redisfilter/internal/copies"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// Tests look at what a mirror has.
type TableForTest = table

func (t *table) Generation() string        { return t.cfg.Generation }
func (t *table) Servers() []*copies.Server { return t.servers }
func (t *table) Slot(part int) int         { return t.slots[part] }

// Table returns the copies in use.
func Table(r *Mirror) *TableForTest { return r.table.Load() }

// Used returns the bytes of all copies.
func Used(r *Mirror) int64 { return r.budget.Used() }

// Tabulate returns the table that a poll allows which saw m.
func Tabulate(ctx context.Context, r *Mirror, m *nodes.Map) *TableForTest {
	return r.tabulate(ctx, r.set.View(), m)
}
