package godatastore

import (
	"context"
	"path"
	"slices"

	"github.com/ipfs/go-datastore/query"

	"github.com/siftkv/siftkv/kv"
)

// results answers a query. What the order of the keys and the bounds of an iterator can do they do:
// prefixes, and orders that begin with the key; a value is only read if it is returned, or if a filter or
// an order may look at it. Any other order sorts all entries in memory.
func results(ctx context.Context, from reads, q query.Query) (query.Results, error) {
	from.lock()
	it, err := from.of.NewIter(&kv.IterOptions{Prefix: prefixOf(q.Prefix), KeysOnly: !needsValues(q)})
	from.unlock()
	if err != nil {
		return nil, err
	}
	backward, inOrder := keyOrder(q.Orders)
	c := &cursor{ctx: ctx, from: from, it: it, q: q, backward: backward}
	r := query.ResultsFromIterator(q, query.Iterator{Next: c.next, Close: c.close})
	if inOrder {
		c.offset, c.limit, c.strip = q.Offset, q.Limit, q.KeysOnly
		return r, nil
	}
	return query.NaiveLimit(query.NaiveOffset(stripped(q, query.NaiveOrder(r, q.Orders...)), q.Offset), q.Limit), nil
}

// prefixOf returns the bytes that the keys begin with which a query's prefix selects: strict children of
// the path that it names, or all keys.
func prefixOf(prefix string) []byte {
	if prefix = path.Clean("/" + prefix); prefix == "/" {
		return nil
	}
	return []byte(prefix + "/")
}

// keyOrder reports whether the orders are that of the keys, which decides before all that follow it, and
// in which direction.
func keyOrder(orders []query.Order) (backward, ok bool) {
	if len(orders) == 0 {
		return false, true
	}
	switch orders[0].(type) {
	case query.OrderByKey, *query.OrderByKey:
		return false, true
	case query.OrderByKeyDescending, *query.OrderByKeyDescending:
		return true, true
	default:
		return false, false
	}
}

// needsValues reports whether anything of a query looks at values.
func needsValues(q query.Query) bool {
	_, inOrder := keyOrder(q.Orders)
	return !q.KeysOnly || !inOrder || slices.ContainsFunc(q.Filters, func(f query.Filter) bool {
		switch f.(type) {
		case query.FilterKeyCompare, *query.FilterKeyCompare, query.FilterKeyPrefix, *query.FilterKeyPrefix:
			return false
		default:
			return true
		}
	})
}

// stripped takes from a query's entries the values that it did not ask for.
func stripped(q query.Query, r query.Results) query.Results {
	if !q.KeysOnly {
		return r
	}
	return query.ResultsFromIterator(q, query.Iterator{
		Next: func() (query.Result, bool) {
			next, ok := r.NextSync()
			next.Value = nil
			return next, ok
		},
		Close: r.Close,
	})
}

// A cursor walks the entries of a query, for one goroutine at a time: the caller's, or one that the host starts
// for the channel of query.Results. It gives its iterator back when it has ended, in whatever way.
type cursor struct {
	ctx           context.Context
	from          reads
	it            *kv.Iterator
	q             query.Query
	backward      bool
	begun, ended  bool
	offset, limit int  // of those that the filters let pass; a limit of 0 is none
	strip         bool // the values, once the filters have seen them
}

func (c *cursor) next() (query.Result, bool) {
	for !c.ended {
		if err := c.ctx.Err(); err != nil {
			_ = c.close()
			return query.Result{Error: err}, true
		}
		e, ok, err := c.advance()
		if !ok {
			_ = c.close() // of an error that is err
			return query.Result{Error: err}, err != nil
		}
		if slices.ContainsFunc(c.q.Filters, func(f query.Filter) bool { return !f.Filter(e) }) {
			continue
		}
		if c.offset > 0 {
			c.offset--
			continue
		}
		if c.limit > 0 {
			if c.limit--; c.limit == 0 {
				_ = c.close()
			}
		}
		if c.strip {
			e.Value = nil
		}
		return query.Result{Entry: e}, true
	}
	return query.Result{}, false
}

// advance returns the next entry, and whether there is one, or what went wrong. No code of the host's runs in it: a
// filter may read the transaction.
func (c *cursor) advance() (e query.Entry, ok bool, err error) {
	c.from.lock()
	defer c.from.unlock()
	if !c.step() {
		return e, false, c.it.Error()
	}
	return c.entry(), true, nil
}

func (c *cursor) step() bool {
	switch {
	case !c.begun && c.backward:
		c.begun = true
		return c.it.Last()
	case !c.begun:
		c.begun = true
		return c.it.First()
	case c.backward:
		return c.it.Prev()
	default:
		return c.it.Next()
	}
}

func (c *cursor) entry() query.Entry {
	e := query.Entry{Key: string(c.it.Key()), Value: slices.Clone(c.it.Value()), Size: -1}
	if c.q.ReturnsSizes || !c.q.KeysOnly {
		e.Size = c.it.ValueSize()
	}
	if c.q.ReturnExpirations {
		e.Expiration = c.it.Expiry()
	}
	return e
}

func (c *cursor) close() error {
	c.ended = true
	c.from.lock()
	defer c.from.unlock()
	return c.it.Close()
}
