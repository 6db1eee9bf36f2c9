// Package scalable is the scalable Bloom filter: a row of Bloom filters, each larger than the one
// before it, for a set of unknown size.
//
// Choose it when keys are added without end, and a rate of false positives must
// hold all the same. If the number of keys is known within a factor of two, a
// bloom set of that size takes less memory and one filter's time.
//
// Source: P. S. Almeida, C. Baquero, N. Preguiça and D. Hutchison, "Scalable Bloom Filters", 2007.
// A new layer is made when the last one holds as many keys as it was made for. Layer i = 0, 1, 2...
// is made for the first capacity times growth^i keys, and for the rate
//
//	promised * (1 - tightening) * tightening^i
//
// A key is in the set if it is in any layer, so the set's rate is at most the sum of its layers'.
// That sum stays below the promised rate with any number of layers. No layer is made for less than
// 1e-12.
//
// A key that the set already has is not added again. Keys that are repeated
// therefore never make the set grow.
//
// Costs. Space, at 1 % with growth 2: 16 bits per key when eight layers are full, and twice that
// when the last one has just been made. With growth 10 it is 14 bits and up to ten times that.
// Asking for an absent key costs about two probes in each layer; adding costs that and a layer's
// probes. With blocked layers each layer costs one cache miss, and a tenth more bits; as low rates
// cost them dearly, layers that would be half again as large as classic ones are classic.
//
// Limits: keys cannot be removed, counted or listed, and two sets cannot be
// merged. The Add that makes a layer allocates it, and takes so much longer.
package scalable
