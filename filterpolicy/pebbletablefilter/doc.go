// Package pebbletablefilter puts the filters of this module into a Pebble with the interfaces TableFilterPolicy and
// TableFilterDecoder, as on Pebble's main branch since December 2025. Releases up to v2.1.7 have a FilterPolicy; they
// are for the package pebblefilter.
//
// That Pebble has public names for the policy and the decoder but none for two types
// in their methods, the writer and the family, so that no type outside can spell the methods out.
// Type inference can: the types are taken from two method expressions,
// and this package imports no Pebble at all.
//
//	siftkv, err := pebbletablefilter.New(pebble.TableFilterPolicy.NewWriter, pebble.TableFilterDecoder.Family)
//	...
//	policy, err := filterpolicy.Parse("blocked:10")
//	...
//	opts.TableFilterDecoders = append(siftkv.Decoders(), tablefilters.Decoders...)
//	for i := range opts.Levels {
//		opts.Levels[i].TableFilterPolicy = func() pebble.TableFilterPolicy { return siftkv.Policy(policy) }
//	}
//
// Decoders are found by the family's name, "siftkv." and the name of ours, which is also what
// pebblefilter writes: tables change hands between the two. A decoder reads the filters of every
// spec of its family, so that the bits per key may change at any time; a table of a family
// without a decoder is read without its filter.
//
// A build that fails leaves the table without a filter, which these interfaces, other
// than those of v2.1.7, can say.
package pebbletablefilter
