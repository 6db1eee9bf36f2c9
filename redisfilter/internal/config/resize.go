package config

import (
	"cmp"

	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Programs that share a set may ask for different sizes, rates and shapes of it, as during a deploy. All use each
// generation in the shape that it was made in, and a load makes the next one in the shape that its own program asked
// for. What a key's hash depends on must be the same, since an add hashes once for all generations.

// Unlike returns the name of what programs that share a set must ask for alike and do not, "" for nothing.
func (r Request) Unlike(o Request) string {
	windows := r.Kind == KindWindows
	switch {
	case r.Kind != o.Kind:
		return "the kind of set"
	case r.PublicHash != o.PublicHash:
		return "PublicHash"
	case windows && r.Period != o.Period:
		return "Period"
	case windows && r.Keep != o.Keep:
		return "Keep"
	case windows && r != o: // windows have no loads that could change it
		return "the size, the rate or Growth"
	}
	return ""
}

// A Size is what generations of one set may differ in.
type Size struct {
	Keys       int               `json:"keys"`
	Asked      Request           `json:"asked,omitzero"` // absent: that of the configuration, for Keys
	Partitions int               `json:"partitions,omitempty"`
	Layers     []layout.Layer    `json:"layers,omitempty"`
	Table      cuckootable.Shape `json:"table,omitzero"` // which has the partitions of a cuckoo set
}

// Size returns the size of c as it is written in a configuration o.
func (c *Config) Size(o *Config) *Size {
	s := &Size{Keys: c.Asked.Keys, Layers: c.Layers, Table: c.Table}
	if s.Table == (cuckootable.Shape{}) {
		s.Partitions = c.Partitions
	}
	if o.Asked.resized(s.Keys) != c.Asked {
		s.Asked = c.Asked
	}
	return s
}

func (r Request) resized(keys int) Request {
	r.Keys = keys
	return r
}

// sized returns the configuration with another size, or itself for none.
func (c *Config) sized(s *Size) *Config {
	if s == nil {
		return c
	}
	other := *c
	other.Asked = cmp.Or(s.Asked, c.Asked.resized(s.Keys))
	other.Partitions, other.Layers, other.Table = cmp.Or(s.Partitions, int(s.Table.Shards)), s.Layers, s.Table
	return &other
}

// ShapeOf returns the configuration with the size of a generation.
func (c *Config) ShapeOf(generation string) *Config {
	switch generation {
	case c.Building:
		return c.sized(c.Next)
	case c.Retiring:
		return c.sized(c.Former)
	}
	return c
}

// ForNext returns the configuration with the size of the generation that the next load of a program makes that asked
// for r. A cuckoo set has room for as many keys as any program asked for.
func (c *Config) ForNext(r Request) (*Config, error) {
	if r.Kind == KindCuckoo {
		r.Keys = max(c.Asked.Keys, c.Wanted)
	}
	if r == c.Asked {
		return c, nil
	}
	made, err := New(r)
	if err != nil {
		return nil, err
	}
	return c.sized(made.Size(c)), nil
}

// Use takes the generation that was built into use.
func (c *Config) Use() {
	next, former := c.sized(c.Next), (*Size)(nil)
	if c.Next != nil {
		former = c.Size(next)
	}
	*c = *next
	c.Generation, c.Building, c.Retiring = c.Building, "", c.Generation
	c.Next, c.Former = nil, former
}

// Outgrown reports whether the next load makes the set larger.
func (c *Config) Outgrown() bool { return c.Wanted > c.Asked.Keys }
