// Package config is what Redis keeps of a set: what the set was asked for, the shape that follows, and its generations.
package config

import (
	"bytes"
	"cmp"
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

// A Config is what Redis keeps of a set under sk:{NAME}, as JSON. What programs must agree about is written out, so
// that programs of different versions agree.
type Config struct {
	Version int     `json:"version"`
	Dropped bool    `json:"dropped,omitempty"`
	Asked   Request `json:"asked,omitzero"`

	Seed       []byte         `json:"seed,omitempty"` // 16 bytes, or none: xxhash64
	Partitions int            `json:"partitions,omitempty"`
	Layers     []layout.Layer `json:"layers,omitempty"` // of blocked lines

	Table cuckootable.Shape `json:"table,omitzero"` // of a cuckoo set

	Generation string `json:"generation,omitempty"` // in use
	Building   string `json:"building,omitempty"`   // gets adds, answers nothing
	Retiring   string `json:"retiring,omitempty"`   // gets adds, for processes that still ask it

	Wanted int   `json:"wanted,omitempty"` // keys that the next load of a cuckoo set makes room for, if they are more
	Next   *Size `json:"next,omitempty"`   // of the generation that is built, if it is another
	Former *Size `json:"former,omitempty"` // of the one that retires

	Grace time.Duration `json:"grace,omitempty"` // the longest Options.Grace that a program was given

	Encoded []byte `json:"-"` // what it was decoded from
}

// A Request is what a constructor was asked for.
type Request struct {
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

func (r Request) String() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// The kinds of sets.
const (
	KindBlocked = "blocked"
	KindWindows = "windows"
	KindCuckoo  = "cuckoo"
)

// Version is that of configurations; a reader refuses another.
const Version = 1

const (
	maxConfigLen   = 16 << 10
	seedLen        = 16
	maxPartitions  = 1 << 24
	generationLen  = 10
	generationText = "abcdefghijklmnopqrstuvwxyz234567"
)

// NewGeneration returns a name that no other generation has.
func NewGeneration() string {
	var name [generationLen]byte
	_, _ = rand.Read(name[:])
	for i, b := range name {
		name[i] = generationText[b%32]
	}
	return string(name[:])
}

// New returns the configuration that a request leads to, without a generation.
func New(r Request) (cfg *Config, err error) {
	cfg = &Config{Version: Version}
	if r.Kind == KindCuckoo {
		r.ShardBytes = cmp.Or(r.ShardBytes, cuckootable.DefaultSize)
		cfg.Table, err = cuckootable.NewShape(uint64(max(0, r.Keys)), r.Rate, r.ShardBytes, r.Partitions)
		cfg.Partitions = int(cfg.Table.Shards)
	} else {
		r.ShardBytes = cmp.Or(r.ShardBytes, DefaultShard)
		cfg.Partitions, cfg.Layers, err = shapes(r)
	}
	if err != nil {
		return nil, fmt.Errorf("redisfilter: %w", err)
	}
	if cfg.Asked = r; !r.PublicHash {
		cfg.Seed = make([]byte, seedLen)
		_, _ = rand.Read(cfg.Seed) // never fails
	}
	return cfg, cfg.Check()
}

// Decode returns the configuration of some bytes, or says why they are none.
func Decode(data []byte) (*Config, error) {
	if len(data) > maxConfigLen {
		return nil, fmt.Errorf("%d bytes are too many for a configuration", len(data))
	}
	c := &Config{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the configuration")
	}
	if c.Version != Version {
		return nil, fmt.Errorf("version %d is not known: use a newer release", c.Version)
	}
	if c.Dropped {
		return &Config{Version: Version, Dropped: true, Encoded: data}, nil
	}
	c.Encoded = data
	return c, c.Check()
}

// Check refuses what no program writes.
func (c *Config) Check() error {
	if len(c.Seed) != 0 && len(c.Seed) != seedLen {
		return fmt.Errorf("a seed has %d bytes, not %d", seedLen, len(c.Seed))
	}
	all := c.Generations()
	for i, g := range all {
		if !validGeneration(g) || slices.Contains(all[:i], g) {
			return fmt.Errorf("%q is no generation, or is two", g)
		}
	}
	for _, s := range []*Size{nil, c.Next, c.Former} {
		shape := c.sized(s)
		if differs := c.Asked.Unlike(shape.Asked); differs != "" {
			return fmt.Errorf("a generation cannot differ in %s", differs)
		}
		if err := shape.checkShape(); err != nil {
			return err
		}
	}
	return nil
}

// checkShape refuses what the generation in use cannot look like.
func (c *Config) checkShape() error {
	if c.Partitions < 1 || c.Partitions > min(maxPartitions, max(c.Asked.Keys, c.Asked.Partitions)) {
		return fmt.Errorf("%d partitions cannot be", c.Partitions) // nor may a program reserve memory for them
	}
	switch c.Asked.Kind {
	case KindBlocked, KindWindows:
		if err := checkLayers(c.Layers); err != nil {
			return err
		}
		if lines := c.Layers[0].Lines; int64(c.Partitions)*int64(lines-1) > int64(c.Asked.Keys) {
			return fmt.Errorf("%d partitions of %d lines for %d keys cannot be", c.Partitions, lines, c.Asked.Keys)
		}
		return nil
	case KindCuckoo:
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

// Encode returns the configuration as it is kept in Redis.
func (c *Config) Encode() []byte {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	return data
}

// SameShape reports whether a key has the same place under both.
func (c *Config) SameShape(o *Config) bool {
	return c.Asked == o.Asked && bytes.Equal(c.Seed, o.Seed) && c.Partitions == o.Partitions &&
		slices.Equal(c.Layers, o.Layers) && c.Table == o.Table
}

// Generations returns those that exist, the one in use first.
func (c *Config) Generations() (all []string) {
	for _, g := range []string{c.Generation, c.Building, c.Retiring} {
		if g != "" {
			all = append(all, g)
		}
	}
	return all
}

// Hasher hashes keys. SipHash-2-4 under a secret key (J.-P. Aumasson and D. J. Bernstein, 2012) lets no program find
// keys that collide unless it knows the seed.
type Hasher struct {
	secret bool
	k0, k1 uint64
}

// Hasher returns what hashes the keys of the set.
func (c *Config) Hasher() Hasher {
	if len(c.Seed) != seedLen {
		return Hasher{}
	}
	return Hasher{true, binary.LittleEndian.Uint64(c.Seed), binary.LittleEndian.Uint64(c.Seed[8:])}
}

// Hash is what the set knows of a key.
func (h Hasher) Hash(key []byte) uint64 {
	if !h.secret {
		return xxhash.Sum64(key)
	}
	return siphash.Hash(h.k0, h.k1, key)
}
