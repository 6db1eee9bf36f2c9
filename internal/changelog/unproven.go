package changelog

import (
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// unproven are the ends of records that are not known to be durable, in order, and the last writes up to there.
type unproven []struct {
	end  int64
	last base.SeqNum
}

// maxUnproven bounds their number. Beyond it the newest takes the place of the one before: a mark that is between
// them proves less than it could.
const maxUnproven = 4096

func (u *unproven) add(end int64, last base.SeqNum) {
	n := len(*u)
	if n == 0 || (*u)[n-1].end < end && n < maxUnproven {
		*u = append(*u, make(unproven, 1)...)
		n++
	}
	(*u)[n-1].end, (*u)[n-1].last = end, last
}

// prove takes what ends at offset to or before it, and returns the last write up to there; 0: there is none.
func (u *unproven) prove(to int64) (last base.SeqNum) {
	n := sort.Search(len(*u), func(i int) bool { return (*u)[i].end > to })
	if n > 0 {
		last = (*u)[n-1].last
		*u = slices.Delete(*u, 0, n)
	}
	return last
}
