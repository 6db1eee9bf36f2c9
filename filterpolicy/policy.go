package filterpolicy

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/internal/callback"
)

// Hash returns the hash under which filters know a key: xxhash64 with seed zero. It is part of the file format.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// A Policy is a family of filters with its parameters. Policies are equal (==) when
// their specs mean the same, and may be shared among goroutines.
type Policy interface {
	// Name returns the family's name on disk, which never changes. It does not tell
	// the parameters; the encoded filter does.
	Name() string

	// String returns the spec: Parse(p.String()) gives p back.
	String() string

	// NewBuilder returns an empty builder.
	NewBuilder() Builder
}

// A Decoder is a Policy of a family that this package does not have, such as one of an
// application's own. What is opened with it, by kv.Options.Filter or sstable.ReaderOptions.Filter,
// reads filters of its name with it; without it, files that have them are read as if they had none.
type Decoder interface {
	Policy

	// Decode returns a view of what a Builder of the policy has encoded, of any of its parameters.
	// It must be safe for any bytes. The caller does not change data while the filter is in use. A panic, or a
	// runtime.Goexit, is as an error: the file is read without its filter.
	Decode(data []byte) (Filter, error)
}

// A Builder makes the filters of one file after another. It is for one goroutine at a time. It
// keeps eight bytes per key until Finish, in chunks that builders share through a pool.
type Builder interface {
	// AddHash adds the hash of a key. A hash equal to the one before it is free.
	AddHash(h uint64)

	// Finish appends the encoded filter of the hashes added since the last Finish to dst and returns the result; the
	// builder is then empty and ready for the next file. The filter of no hashes says false to everything.
	//
	// ok is false if there will be no filter for this file; data is then dst. That is so always with the policy "none",
	// and with a family if its construction failed after a bounded number of attempts.
	Finish(dst []byte) (data []byte, ok bool)
}

// A Filter is a read-only view of an encoded filter. Any number of goroutines may use it.
type Filter interface {
	// MayContainHash reports whether a key with this hash may have been added. False is certain. It does not allocate.
	MayContainHash(h uint64) bool
}

var (
	// ErrUnknownFamily is matched by the error of Decode for a family that this
	// program does not have. The file is sound, and is read without its filter.
	ErrUnknownFamily = errors.New("filterpolicy: unknown family")

	// ErrCorrupt is matched by the error of Decode for bytes that are not a filter
	// of their family: cut short, damaged, or of a later version.
	ErrCorrupt = frame.ErrCorrupt
)

// Decode checks every byte of an encoded filter and returns a view of it. It copies
// nothing: the caller must not change data while the filter is in use. Any bytes
// are safe, at any alignment. An error matches ErrUnknownFamily or ErrCorrupt.
func Decode(name string, data []byte) (Filter, error) {
	if name == SaltedName {
		return decodeSalted(data)
	}
	f, ok := familyOf(name)
	if !ok {
		return nil, fmt.Errorf("%w %q; this program has %s", ErrUnknownFamily, name, usages())
	}
	filter, err := f.decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return filter, nil
}

// DecodeWith is Decode, but leaves a family that this package does not have to p if p is
// a Decoder of that name. p may be nil.
func DecodeWith(p Policy, name string, data []byte) (Filter, error) {
	d, ok := p.(Decoder)
	if _, known := familyOf(name); !ok || known || name == SaltedName {
		return Decode(name, data)
	}
	return ownFilter("Filter", d, d.Decode, name, data, Decode)
}

// ownFilter decodes a filter of a family that this package does not have: by a policy of the application's own if
// that has the name, or else by others. A function of the policy that panics, or calls runtime.Goexit, has failed.
func ownFilter[F any](option string, p interface{ Name() string }, decode func([]byte) (F, error), name string,
	data []byte, others func(string, []byte) (F, error)) (filter F, err error) {
	own := false
	err = callback.Do(option, func() (err error) {
		if own = p.Name() == name; own {
			filter, err = decode(data)
		}
		return err
	})
	switch {
	case err != nil:
		var none F
		return none, fmt.Errorf("%s: %w", name, err)
	case !own:
		return others(name, data)
	}
	return filter, nil
}

// Probe returns a family's function for a single probe of encoded bytes, and false if there is no
// such family. It is for engines that hand over the bytes with each lookup and verify a checksum of
// their own: the function checks the bytes' description but not their checksum. It is safe for any
// bytes, answers true for those that are no filter, and does not allocate.
func Probe(name string) (probe func(data []byte, h uint64) bool, ok bool) {
	f, ok := familyOf(name)
	return f.probe, ok
}

// Families returns the names on disk of all families, "none" first.
func Families() []string {
	return each(families, func(f family) string { return f.name })
}
