package sequencetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// RequireCost requires how many requests something needs, such as "get 1, list 2".
func RequireCost(t *testing.T, c *objstore.Counters, want string, do func()) {
	t.Helper()
	before := c.Snapshot()
	do()
	var got []string
	for kind, count := range c.Snapshot().Minus(before) {
		if count.Requests > 0 {
			got = append(got, fmt.Sprint(objstore.Kind(kind), " ", count.Requests))
		}
	}
	require.Equal(t, want, strings.Join(got, ", "))
}

// BeforePut returns a client of a store that does something before its n-th put.
func BeforePut(store objstore.Store, n int, do func()) *objstoretest.Faults {
	faults := objstoretest.NewFaults(store, 1)
	var puts atomic.Int64
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent {
			if puts.Add(1) == int64(n) {
				do()
			}
		}
		return objstoretest.Fault{}
	})
	return faults
}
