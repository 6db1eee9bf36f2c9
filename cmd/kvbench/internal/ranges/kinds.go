package ranges

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A kind draws ranges of one kind; those that have a key are not used.
type kind struct {
	name string
	draw func(r *rand.Rand) (lo, hi []byte)
}

// nears are how near behind a key a range begins, as powers of two of the mean distance of two keys; 0 is anywhere.
var nears = []int{0, 4, 10, 20}

// numberKinds are ranges among keys that are random: from anywhere, or just behind a key, and of
// some units of the first eight bytes as a number, or of some of the mean distance of two keys.
func numberKinds(list [][]byte) []kind {
	gap := math.MaxUint64 / uint64(len(list))
	widths := []struct {
		name  string
		width uint64
	}{
		{"2 units", 2}, {"32 units", 32}, {"1,024 units", 1024}, {"1/100 gap", gap / 100}, {"1/10 gap", gap / 10},
		{"1 gap", gap},
	}
	var kinds []kind
	for _, near := range nears {
		for _, w := range widths {
			name := w.name + ", anywhere"
			if near > 0 {
				name = fmt.Sprintf("%s, within 2^-%d gap of a key", w.name, near)
			}
			kinds = append(kinds, kind{name, func(r *rand.Rand) (lo, hi []byte) {
				lo = randomBytes(r)
				if near > 0 {
					copy(lo, shifted(list[r.IntN(len(list))], 1+r.Uint64N(gap>>near)))
				}
				return lo, shifted(lo, w.width)
			}})
		}
	}
	return kinds
}

// shifted returns a key whose first eight bytes are a number that is higher by some, or the highest.
func shifted(key []byte, by uint64) []byte {
	out := bytes.Clone(key)
	x := binary.BigEndian.Uint64(out)
	binary.BigEndian.PutUint64(out, x+min(by, math.MaxUint64-x))
	return out
}

// nameKinds are ranges among names, some of which are absent: all that begins with an absent one, the range from it to
// the next name, and what lies just behind a name that is there.
func nameKinds(list, absent [][]byte) []kind {
	ordered := slices.Clone(absent)
	slices.SortFunc(ordered, bytes.Compare)
	pick := func(r *rand.Rand, of [][]byte) []byte { return of[r.IntN(len(of))] }
	return []kind{
		{"under an absent name", func(r *rand.Rand) (lo, hi []byte) {
			lo = pick(r, absent)
			return lo, append(bytes.Clone(lo), 0xff)
		}},
		{"from an absent name to the next absent one", func(r *rand.Rand) (lo, hi []byte) {
			i := r.IntN(len(ordered))
			return ordered[i], ordered[min(i+1, len(ordered)-1)]
		}},
		{"behind a name", func(r *rand.Rand) (lo, hi []byte) {
			lo = append(bytes.Clone(pick(r, list)), 0)
			return lo, append(bytes.Clone(lo), 0xff)
		}},
	}
}

// seriesKinds are ranges among readings: all of a user who has none, an empty second, and the time just behind a
// reading.
func seriesKinds(list [][]byte, users int) []kind {
	second := func(user, at, span int) (lo, hi []byte) { return reading(user, at), reading(user, at+span) }
	return []kind{
		{"all of an absent user", func(r *rand.Rand) (lo, hi []byte) {
			user := 2*r.IntN(users) + 1
			return reading(user, 0), reading(user+1, 0)
		}},
		{"an empty second", func(r *rand.Rand) (lo, hi []byte) {
			return second(2*r.IntN(users), seriesStart+r.IntN(2*perUser*minute), 1000)
		}},
		{"10 ms, within 10 ms behind a reading", func(r *rand.Rand) (lo, hi []byte) {
			var user, at int
			_, _ = fmt.Sscanf(string(list[r.IntN(len(list))]), "user%06d|%013d", &user, &at) // it was made so
			return second(user, at+1+r.IntN(10), 10)
		}},
	}
}
