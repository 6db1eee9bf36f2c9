package conformance

import (
	"bytes"
	"testing"

	"github.com/siftkv/siftkv/internal/hostile"
)

// readBound is what reading a stored set may allocate: the payload, once more for a family
// that builds its table anew, and maps.
var readBound = hostile.Bound{PerByte: 16, Fixed: 256 << 10}

// setHostileRounds is the number of random changes of each stored set.
const setHostileRounds = 300

// HostileSets changes stored sets as an adversary would, with length and checksum right again.
// Reading each is held against a bound, and so is using what was read: a set that grows
// makes another part, which may have growth times as many bytes as the stored set.
func HostileSets[P Set](t *testing.T, zero func() P, growth uint64, seeds ...[]byte) {
	t.Helper()
	read := 0
	for _, seed := range seeds {
		for mutant := range hostile.Mutants(seed, setHostileRounds) {
			if BoundedSet(t, ResealSet(mutant), zero, growth) {
				read++
			}
		}
	}
	if read == 0 {
		t.Fatal("no change was taken for a set: the mutants are too rough to find anything")
	}
}

// BoundedSet reads data into a set, and reports whether that is one; then it adds keys to it.
// Both are held against bounds.
func BoundedSet[P Set](tb testing.TB, data []byte, zero func() P, growth uint64) bool {
	tb.Helper()
	var err error
	var s P
	readBound.Require(tb, len(data), func() {
		s = zero()
		err = s.UnmarshalBinary(data)
	})
	readBound.Require(tb, len(data), func() {
		_, _ = zero().ReadFrom(bytes.NewReader(data))
	})
	if err != nil {
		return false
	}
	hostile.Bound{PerByte: growth, Fixed: 256 << 10}.Require(tb, len(data), func() {
		for i := range uint64(10) {
			s.ContainsHash(Hash(1, i))
			_ = Add(s, Hash(1, i)) // it may be full
		}
		_ = s.FalsePositiveRate()
	})
	return true
}
