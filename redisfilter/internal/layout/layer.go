package layout

import (
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

// A Layer is how the keys of one layer of one partition lie in Redis: in Shards values of Lines lines each.
type Layer struct {
	Keys   int `json:"keys"` // of a partition, until the next layer is made
	Shards int `json:"shards"`
	Lines  int `json:"lines"` // of a shard
	Probes int `json:"probes"`
}

// MaxKeys is the number of keys that a set can be made for.
const MaxKeys = 1 << 36

// Len returns the bytes of a shard.
func (l Layer) Len() int { return HeaderLen + l.Lines*blocked.LineLen }

// Place returns the shard of a layer, and the line in it, of a key that is within the partition as blocked's Split
// says.
func (l Layer) Place(within uint64) (shard, line int) {
	at, _ := bits.Mul64(within, uint64(l.Shards*l.Lines))
	return int(at) / l.Lines, int(at) % l.Lines
}

// KeysOf estimates the keys of a shard of l from the number of its bits that are set, without marks. It inverts the
// expected share of set bits. Keys fall into lines at random, and probes into a line's bits.
func (l Layer) KeysOf(ones int) float64 {
	fill := float64(ones) / float64(l.Lines*MarkPosition)
	if fill >= 1 {
		return MaxKeys
	}
	perKey := -math.Expm1(float64(l.Probes)*math.Log1p(-1.0/MarkPosition)) / float64(l.Lines)
	return min(MaxKeys, math.Log1p(-fill)/math.Log1p(-perKey))
}

// Early and EarlyShare are how many keys before its capacity, and which part of them, a shard is full.
const (
	Early      = 32
	EarlyShare = 16
)

// Full reports whether a shard has as many keys as it was made for. A few fewer count as well: not every add looks,
// and some are under way.
func (l Layer) Full(ones int) bool {
	keys := float64(l.Keys) / float64(l.Shards)
	return l.KeysOf(ones) >= keys-min(Early, keys/EarlyShare)
}

// Looks reports whether the add of a hash asks how full the shard is: one in 32, more of small shards.
func (l Layer) Looks(hash uint64) bool {
	every := min(32, max(1, l.Keys/l.Shards/32))
	return hash%uint64(every) == 0
}
