package redisfilter

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"

	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A config is what Redis keeps of a set under sk:{NAME}, as JSON. What programs must agree about is
// written out, so that programs of different versions agree.
type config struct {
	Version int     `json:"version"`
	Dropped bool    `json:"dropped,omitempty"`
	Asked   request `json:"asked,omitzero"`

	Seed       []byte         `json:"seed,omitempty"` // 16 bytes, or none: xxhash64
	Partitions int            `json:"partitions,omitempty"`
	Layers     []layout.Layer `json:"layers,omitempty"` // of blocked lines

	Table cuckootable.Shape `json:"table,omitzero"` // of a cuckoo set

	Generation string `json:"generation,omitempty"` // in use
	Building   string `json:"building,omitempty"`   // gets adds, answers nothing
	Retiring   string `json:"retiring,omitempty"`   // gets adds, for those who still ask it

	Wanted int   `json:"wanted,omitempty"` // keys that the next load of a cuckoo set makes room for, if they are more
	Next   *size `json:"next,omitempty"`   // of the generation that is built, if it is another
	Former *size `json:"former,omitempty"` // of the one that retires

	Grace time.Duration `json:"grace,omitempty"` // the longest Options.Grace that a program was given

	encoded []byte // what it was decoded from
}

// A request is what a constructor was asked for.
type request struct {
	Kind       string        `json:"kind"`
	Keys       int           `json:"keys"`
	Rate       float64       `json:"rate"`
	Growth     float64       `json:"growth,omitempty"`
	Partitions int           `json:"partitions,omitempty"`
	ShardBytes int           `json:"shard_bytes,omitempty"`
	PublicHash bool          `json:"public_hash,omitempty"`
	Period     time.Duration `json:"period,omitempty"` // of windows
	Keep       int           `json:"keep,omitempty"`   // windows that are asked
}

func (r request) String() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// The kinds of sets.
const (
	kindBlocked = "blocked"
	kindWindows = "windows"
	kindCuckoo  = "cuckoo"
)

const (
	configVersion  = 1
	maxConfigLen   = 16 << 10
	seedLen        = 16
	maxPartitions  = 1 << 24
	generationLen  = 10
	generationText = "abcdefghijklmnopqrstuvwxyz234567"
)

func newSeed() []byte {
	seed := make([]byte, seedLen)
	_, _ = rand.Read(seed) // never fails
	return seed
}

func newGeneration() string {
	var name [generationLen]byte
	_, _ = rand.Read(name[:])
	for i, b := range name {
		name[i] = generationText[b%32]
	}
	return string(name[:])
}

// decodeConfig returns the configuration of some bytes, or says why they are none.
func decodeConfig(data []byte) (*config, error) {
	if len(data) > maxConfigLen {
		return nil, fmt.Errorf("%d bytes are too many for a configuration", len(data))
	}
	c := &config{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the configuration")
	}
	if c.Version != configVersion {
		return nil, fmt.Errorf("version %d is not known: use a newer release", c.Version)
	}
	if c.Dropped {
		return &config{Version: configVersion, Dropped: true, encoded: data}, nil
	}
	c.encoded = data
	return c, c.check()
}

func (c *config) check() error {
	if len(c.Seed) != 0 && len(c.Seed) != seedLen {
		return fmt.Errorf("a seed has %d bytes, not %d", seedLen, len(c.Seed))
	}
	all := c.generations()
	for i, g := range all {
		if !validGeneration(g) || slices.Contains(all[:i], g) {
			return fmt.Errorf("%q is no generation, or is two", g)
		}
	}
	for _, s := range []*size{nil, c.Next, c.Former} {
		shape := c.sized(s)
		if differs := c.Asked.unlike(shape.Asked); differs != "" {
			return fmt.Errorf("a generation cannot differ in %s", differs)
		}
		if err := shape.checkShape(); err != nil {
			return err
		}
	}
	return nil
}

// checkShape refuses what the generation in use cannot look like.
func (c *config) checkShape() error {
	if c.Partitions < 1 || c.Partitions > min(maxPartitions, max(c.Asked.Keys, c.Asked.Partitions)) {
		return fmt.Errorf("%d partitions cannot be", c.Partitions) // nor may a program reserve memory for them
	}
	switch c.Asked.Kind {
	case kindBlocked, kindWindows:
		if err := checkLayers(c.Layers); err != nil {
			return err
		}
		if lines := c.Layers[0].Lines; int64(c.Partitions)*int64(lines-1) > int64(c.Asked.Keys) {
			return fmt.Errorf("%d partitions of %d lines for %d keys cannot be", c.Partitions, lines, c.Asked.Keys)
		}
		return nil
	case kindCuckoo:
		if uint64(c.Table.Shards) != uint64(c.Partitions) {
			return fmt.Errorf("%d partitions of %d shards cannot be", c.Partitions, c.Table.Shards)
		}
		return c.Table.Check()
	}
	return fmt.Errorf("kind %q is not known: use a newer release", c.Asked.Kind)
}

func validGeneration(g string) bool {
	for i := range len(g) {
		if bytes.IndexByte([]byte(generationText), g[i]) < 0 {
			return false
		}
	}
	return len(g) == generationLen
}

func (c *config) encode() []byte {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	return data
}

// sameShape reports whether a key has the same place under both.
func (c *config) sameShape(o *config) bool {
	return c.Asked == o.Asked && bytes.Equal(c.Seed, o.Seed) && c.Partitions == o.Partitions &&
		slices.Equal(c.Layers, o.Layers) && c.Table == o.Table
}

// generations returns those that exist, the one in use first.
func (c *config) generations() (all []string) {
	for _, g := range []string{c.Generation, c.Building, c.Retiring} {
		if g != "" {
			all = append(all, g)
		}
	}
	return all
}

// hasher hashes keys. SipHash-2-4 under a secret key (J.-P. Aumasson and D. J. Bernstein, 2012) lets
// nobody who does not know the seed find keys that collide.
type hasher struct {
	secret bool
	k0, k1 uint64
}

func (c *config) hasher() hasher {
	if len(c.Seed) != seedLen {
		return hasher{}
	}
	return hasher{true, binary.LittleEndian.Uint64(c.Seed), binary.LittleEndian.Uint64(c.Seed[8:])}
}

func (h hasher) hash(key []byte) uint64 {
	if !h.secret {
		return xxhash.Sum64(key)
	}
	return siphash.Hash(h.k0, h.k1, key)
}
