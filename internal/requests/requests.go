// Package requests has the kinds of requests to an object store, and what is counted of them. It knows no object store,
// so that the figures of a store can have them.
package requests

import "fmt"

// A Kind is a kind of request.
type Kind uint8

// The kinds of requests.
const (
	Get Kind = iota
	Put
	PutIfAbsent
	List
	Delete

	NumKinds = 5 // the number of kinds
)

// String returns the kind in lower case, such as put-if-absent.
func (k Kind) String() string {
	names := [NumKinds]string{"get", "put", "put-if-absent", "list", "delete"}
	if k >= NumKinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return names[k]
}

// A Count is what was counted of one kind of request.
type Count struct {
	Calls     int64 // of the method of objstore.Store
	Requests  int64 // that were sent and are billed: tries, hedges, pages of listings, parts
	Bytes     int64 // of objects, received or sent, in all requests
	Retries   int64 // requests that repeat one that failed
	Hedges    int64 // requests that race with one that is slow
	Throttled int64 // requests refused for coming too fast
	Unknown   int64 // calls that failed with objstore.ErrUnknown
	Failed    int64 // calls that failed, without those due to the contents: io.EOF, ErrNotExist, ErrExists
}

// Plus returns the sum of c and times d.
func (c Count) Plus(d Count, times int64) Count {
	c.Calls += times * d.Calls
	c.Requests += times * d.Requests
	c.Bytes += times * d.Bytes
	c.Retries += times * d.Retries
	c.Hedges += times * d.Hedges
	c.Throttled += times * d.Throttled
	c.Unknown += times * d.Unknown
	c.Failed += times * d.Failed
	return c
}

// Counts are the counts of all kinds, indexed by [Kind].
type Counts [NumKinds]Count

// Minus returns what was counted since an earlier snapshot.
func (c Counts) Minus(earlier Counts) Counts {
	for k := range c {
		c[k] = c[k].Plus(earlier[k], -1)
	}
	return c
}

// Total returns the sum over all kinds.
func (c Counts) Total() (total Count) {
	for _, count := range c {
		total = total.Plus(count, 1)
	}
	return total
}
