package remote

import (
	"fmt"
	"strings"
)

// An author is who wrote a sorted file: a writer of a branch. The nonce, which is random, tells it from a writer with
// the same epoch of a copy of the object store: so no two sorted files have the same name, wherever they are.
type author struct {
	site  site
	epoch uint64
	nonce uint64
}

// object returns the key of a sorted file.
func (o author) object(num uint64) string {
	return fmt.Sprintf("%s%06d-%d-%016x.sst", o.site.tables(), num, o.epoch, o.nonce)
}

// parseTable is the inverse of object, for the sorted files of one site.
func (s site) parseTable(key string) (num uint64, o author, ok bool) {
	name, ok := strings.CutPrefix(key, s.tables())
	o.site = s
	if !ok {
		return 0, author{}, false
	}
	if _, err := fmt.Sscanf(name, "%d-%d-%x.sst", &num, &o.epoch, &o.nonce); err != nil || o.object(num) != key {
		return 0, author{}, false
	}
	return num, o, true
}
