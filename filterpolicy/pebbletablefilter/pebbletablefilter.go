package pebbletablefilter

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/keyfilter"
)

// An Adapter makes policies P and decoders D, the types of one version of Pebble. It
// is safe for concurrent use, and so is what it makes, except that a writer is for one goroutine.
type Adapter[P, D any] struct {
	policy  func(filterpolicy.Policy) P
	decoder func(keyfilter.Decoder) D
}

// New takes the types of a Pebble from the method expressions TableFilterPolicy.NewWriter
// and TableFilterDecoder.Family, neither of which it calls. An error says that
// the interfaces have other methods than this package knows.
func New[P, W, D any, F ~string](_ func(P) W, _ func(D) F) (*Adapter[P, D], error) {
	const unlike = "pebbletablefilter: %T is no %s of this Pebble: its %s has other methods than %s"
	if _, ok := any(writer[F]{}).(W); !ok {
		return nil, fmt.Errorf(unlike, writer[F]{}, "writer", "TableFilterWriter", "AddKey and Finish")
	}
	if _, ok := any(policy[W, F]{}).(P); !ok {
		return nil, fmt.Errorf(unlike, policy[W, F]{}, "policy", "TableFilterPolicy", "Name and NewWriter")
	}
	if _, ok := any(decoder[F]{}).(D); !ok {
		return nil, fmt.Errorf(unlike, decoder[F]{}, "decoder", "TableFilterDecoder", "Family and MayContain")
	}
	return &Adapter[P, D]{
		policy:  func(p filterpolicy.Policy) P { return any(policy[W, F]{p}).(P) },
		decoder: func(d keyfilter.Decoder) D { return any(decoder[F]{d}).(D) },
	}, nil
}

// Policy returns p as a policy of Pebble. Tables of the policy "none", and of any policy that does
// not come from filterpolicy.Parse, get no filter.
func (a *Adapter[P, D]) Policy(p filterpolicy.Policy) P { return a.policy(p) }

// Decoders returns a decoder for each family, whichever of them has a policy at present.
func (a *Adapter[P, D]) Decoders() []D {
	var all []D
	for _, d := range keyfilter.Decoders() {
		all = append(all, a.decoder(d))
	}
	return all
}

// A policy is ours with Pebble's writer W, and family F for the writer to name.
type policy[W any, F ~string] struct{ of filterpolicy.Policy }

func (p policy[W, F]) Name() string { return keyfilter.Prefix + p.of.String() }

func (p policy[W, F]) NewWriter() W {
	k, ok := keyfilter.New(p.of)
	if !ok {
		return any(writer[F]{}).(W)
	}
	return any(writer[F]{of: k.NewWriter(), family: F(k.Name())}).(W)
}

// A writer makes one table's filter, none if it has no family.
type writer[F ~string] struct {
	of     keyfilter.Writer
	family F
}

func (w writer[F]) AddKey(key []byte) {
	if w.family != "" {
		w.of.AddKey(key)
	}
}

func (w writer[F]) Finish() (data []byte, family F, ok bool) {
	if w.family == "" {
		return nil, "", false
	}
	if data, ok = w.of.Build(nil); !ok {
		return nil, "", false
	}
	return data, w.family, true
}

type decoder[F ~string] struct{ of keyfilter.Decoder }

func (d decoder[F]) Family() F { return F(d.of.Name()) }

func (d decoder[F]) MayContain(filter, key []byte) bool { return d.of.MayContain(filter, key) }
