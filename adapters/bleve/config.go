package siftbleve

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

type config struct {
	path          string
	create        bool
	errorIfExists bool
	options       kv.Options
	writes        *kv.WriteOptions
}

// settings are the keys of a configuration; each sets its value, or says what it expected.
var settings = map[string]func(c *config, value any) error{
	"path":              func(c *config, v any) error { return set(&c.path, v) },
	"create_if_missing": func(c *config, v any) error { return set(&c.create, v) },
	"error_if_exists":   func(c *config, v any) error { return set(&c.errorIfExists, v) },
	"read_only":         func(c *config, v any) error { return set(&c.options.ReadOnly, v) },
	"in_memory":         func(c *config, v any) error { return set(&c.options.InMemory, v) },
	"nosync":            (*config).setNoSync,
	"filter":            func(c *config, v any) error { return parse(&c.options.Filter, v, filterpolicy.Parse) },
	"compression":       (*config).setCompression,
	"memory_limit":      func(c *config, v any) error { return setSize(&c.options.MemoryLimit, v) },
	"cache_size":        func(c *config, v any) error { return setSize(&c.options.CacheSize, v) },
	"memtable_size":     func(c *config, v any) error { return setSize(&c.options.MemtableSize, v) },
}

// parseConfig reads the map that bleve hands to a store. Bounds of sizes are kv.Open's affair.
func parseConfig(values map[string]any) (*config, error) {
	c := &config{create: true, writes: kv.Sync}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		apply, known := settings[key]
		if !known {
			return nil, fmt.Errorf("%w: there is no key %q: want %s", ErrConfig, key,
				strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := apply(c, values[key]); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, key, err)
		}
	}
	switch {
	case c.path == "" && !c.options.InMemory:
		return nil, fmt.Errorf("%w: path: want the directory of the store, or in_memory", ErrConfig)
	case c.path != "" && c.options.InMemory:
		return nil, fmt.Errorf("%w: path is %q and in_memory is set: want one of them", ErrConfig, c.path)
	case c.options.ReadOnly && c.errorIfExists:
		return nil, fmt.Errorf("%w: read_only and error_if_exists are set: want one of them", ErrConfig)
	}
	return c, nil
}

// set stores a value of the destination's type.
func set[T any](to *T, value any) error {
	v, ok := value.(T)
	if !ok {
		return fmt.Errorf("it is %v, a %T: want a %T", value, value, *to)
	}
	*to = v
	return nil
}

// setSize stores a whole number of any type that configurations come with.
func setSize(to *int64, value any) error {
	switch v := value.(type) {
	case int:
		*to = int64(v)
	case int32:
		*to = int64(v)
	case int64:
		*to = v
	case float64: // from JSON
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return fmt.Errorf("it is %v: want a whole number of bytes", v)
		}
		*to = int64(v)
	default:
		return fmt.Errorf("it is %v, a %T: want a number of bytes", value, value)
	}
	return nil
}

// parse stores what a function makes of a text.
func parse[T any](to *T, value any, from func(string) (T, error)) error {
	var text string
	if err := set(&text, value); err != nil {
		return err
	}
	parsed, err := from(text)
	if err != nil {
		return err
	}
	*to = parsed
	return nil
}

func (c *config) setNoSync(value any) error {
	var noSync bool
	if err := set(&noSync, value); err != nil {
		return err
	}
	if noSync {
		c.writes = kv.NoSync
	}
	return nil
}

func (c *config) setCompression(value any) error {
	return parse(&c.options.Compression, value, sstable.ParseCompression)
}

// checkExistence holds what is in the directory against what the configuration wants to be there. A directory
// with nothing in it has no store; of any other kv.Open finds out by itself.
func (c *config) checkExistence() error {
	if c.options.InMemory || c.create && !c.errorIfExists {
		return nil
	}
	entries, err := os.ReadDir(c.path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("bleve: siftkv: %w", err)
	case len(entries) == 0 && !c.create:
		return fmt.Errorf("%w in %s", ErrMissing, c.path)
	case len(entries) > 0 && c.errorIfExists:
		return fmt.Errorf("%w, or something else, in %s", ErrExists, c.path)
	}
	return nil
}
