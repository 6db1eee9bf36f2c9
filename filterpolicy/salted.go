package filterpolicy

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A salted filter is one of another family for hashes that are mixed with a secret of its own. Hash is the same in all
// files everywhere. So an attacker that knows the keys of a file, or its family and a few gigabytes of hashes, can
// compute keys that pass its filter. Without the salt that does not help. Keys with the same hash as an existing key
// can be computed too; they still pass any filter.
//
// Encoded, it is the bytes of the other family's filter, from where these begin, then
//
//	name    the other family's name
//	length  of the name, one byte
//	salt    8 bytes, little endian, not zero
//
// It has a name on disk of its own, so that a program that does not know of salts reads the file as if
// it had no filter.

// SaltedName is the name on disk of filters with a salt.
const SaltedName = "salted"

const saltBytes = 8

// salted is the policy "salted:" followed by another's spec.
type salted struct{ of Policy }

func (salted) Name() string     { return SaltedName }
func (p salted) String() string { return SaltedName + ":" + p.of.String() }

func (p salted) NewBuilder() Builder {
	return &saltedBuilder{of: p.of.NewBuilder(), name: p.of.Name(), salt: newSalt()}
}

func (p salted) expected(keys int) (bitsPerKey, fpr float64) {
	e := Expected(p.of, keys)
	if keys > 0 {
		e.BitsPerKey += 8 * float64(saltBytes+1+len(p.of.Name())) / float64(keys)
	}
	return e.BitsPerKey, e.FPR
}

// parseSalted parses what follows "salted:".
func parseSalted(args string) (Policy, error) {
	const example = "salted:blocked:10"
	name, _, _ := strings.Cut(args, ":")
	if name == none.Name || name == SaltedName || name == "" {
		return nil, spec.Errorf(SaltedName+":"+args, example, "its form is salted:SPEC, of a filter without a salt")
	}
	p, err := Parse(args)
	if err != nil {
		return nil, err
	}
	return salted{p}, nil
}

// newSalt draws a secret; it is not zero.
func newSalt() uint64 {
	var b [saltBytes]byte
	for {
		_, _ = rand.Read(b[:]) // it never fails
		if salt := binary.LittleEndian.Uint64(b[:]); salt != 0 {
			return salt
		}
	}
}

// Salt returns a hash mixed with a secret: another one for each hash, which cannot be predicted without the secret
// (MurmurHash3's finalizer after an exclusive or).
func Salt(h, secret uint64) uint64 {
	h ^= secret
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// A saltedBuilder draws a salt for each filter.
type saltedBuilder struct {
	of   Builder
	name string
	salt uint64
}

func (b *saltedBuilder) AddHash(h uint64) { b.of.AddHash(Salt(h, b.salt)) }

func (b *saltedBuilder) Finish(dst []byte) (data []byte, ok bool) {
	data, ok = b.of.Finish(dst)
	if ok {
		data = append(append(data, b.name...), byte(len(b.name)))
		data = binary.LittleEndian.AppendUint64(data, b.salt)
	}
	b.salt = newSalt()
	return data, ok
}

// A SaltedFilter is a filter with a salt.
type SaltedFilter struct {
	Of     Filter // takes hashes that Salt has mixed with Secret
	Secret uint64
}

// MayContainHash is Filter's method. For many lookups, calling Salt and Of saves a call.
func (f *SaltedFilter) MayContainHash(h uint64) bool { return f.Of.MayContainHash(Salt(h, f.Secret)) }

func decodeSalted(data []byte) (Filter, error) {
	inner, name, secret, ok := cutSalted(data)
	if !ok || secret == 0 || name == SaltedName || name == none.Name {
		return nil, fmt.Errorf("%s: %w", SaltedName, frame.ErrCorrupt)
	}
	of, err := Decode(name, inner)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SaltedName, err)
	}
	return &SaltedFilter{of, secret}, nil
}

// cutSalted cuts the bytes of a salted filter: into those of the filter within, its family's name and the salt.
func cutSalted(data []byte) (inner []byte, name string, secret uint64, ok bool) {
	rest := len(data) - saltBytes - 1
	if rest < 0 || int(data[rest]) > rest {
		return nil, "", 0, false
	}
	end := rest - int(data[rest])
	return data[:end:end], string(data[end:rest]), binary.LittleEndian.Uint64(data[rest+1:]), true
}

// made reports whether a salted filter is of the family that p makes: its name on disk does not say so.
func (p salted) made(data []byte) bool {
	_, name, _, ok := cutSalted(data)
	return ok && name == p.of.Name()
}
