// Package ribbon is a bumped ribbon filter: the fewest bits per key of all families.
//
// Choose it where memory binds and files live long: it takes 7.03 bits per key for a rate of 1/128, where a blocked
// filter takes more than 10. R is the result bits, and the rate is 2^-R. R may have decimals; a share of the filter
// then has one bit more than the rest, and "rate=0.01" stands for the least R with that rate or a lower one.
//
// Each key is a linear equation modulo 2 over 64 neighbouring slots, and a filter is a solution of all equations. Slots
// are fewer than keys: equations that find no slot, a twentieth of them, are bumped to the next, smaller layer, and two
// bits for each 128 slots tell a probe which. A probe of R bits reads 2 R neighbouring words, and an absent key is
// nearly always known after eight; one probe in twenty asks a second layer.
//
// Source: P. C. Dillinger, L. Hübschle-Schneider, P. Sanders and S. Walzer, "Fast Succinct
// Retrieval and Approximate Membership Using Ribbon", SEA 2022, with thresholds of two bits; the
// columns of the solution are interleaved, and the mixture of two widths is the one of P. C.
// Dillinger and S. Walzer, "Ribbon filter: practically smaller than Bloom and Xor", 2021.
//
// Costs. Space: 1.005 R bits per key and some 100 R bits for the last layer, so that files of 10 000 keys take 1.03 R.
// Decimals of R are not free: between two whole numbers the rate is up to 6 % above 2^-R. Build: linear, some eight
// times a blocked filter's; 30 bytes per key of memory until Finish, besides the filter itself.
//
// Duplicates cost nothing, in any order. If a last layer has no solution, as one in thousands, the
// build begins again with another seed, a bounded number of times; after that the builder declines.
//
// Limits: keys cannot be removed or listed. Filters of a few keys take two blocks of 64 slots.
package ribbon
