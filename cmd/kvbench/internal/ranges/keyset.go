package ranges

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// A keyset is keys in order, and the kinds of ranges that are asked for among them.
type keyset struct {
	name  string
	list  [][]byte
	kinds []kind
}

// generators make sets of n keys.
var generators = map[string]func(r *rand.Rand, n int) *keyset{
	"random": randomKeys, "names": nameKeys, "urls": urlKeys, "series": seriesKeys,
}

// Generated lists the sets of keys that are generated.
func Generated() []string { return []string{"random", "names", "urls", "series"} }

func (s *keyset) within(lo, hi []byte) bool {
	i, _ := slices.BinarySearchFunc(s.list, lo, bytes.Compare)
	return i < len(s.list) && bytes.Compare(s.list[i], hi) < 0
}

func (s *keyset) meanLen() float64 {
	size := 0
	for _, key := range s.list {
		size += len(key)
	}
	return float64(size) / float64(len(s.list))
}

// drawn returns the distinct keys among those of n draws, in order.
func drawn(n int, draw func() []byte) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = draw()
	}
	slices.SortFunc(list, bytes.Compare)
	return slices.CompactFunc(list, bytes.Equal)
}

const randomSize = 16

func randomKeys(r *rand.Rand, n int) *keyset {
	s := &keyset{name: "random", list: drawn(n, func() []byte { return randomBytes(r) })}
	s.kinds = numberKinds(s.list)
	return s
}

func randomBytes(r *rand.Rand) []byte {
	key := make([]byte, randomSize)
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	return key
}

// dealt makes a set of half of some keys, and asks for what is under the others.
func dealt(name string, n int, draw func() []byte) *keyset {
	all := drawn(2*n, draw)
	s := &keyset{name: name}
	var absent [][]byte
	for i, key := range all {
		if keys.Mix(uint64(i))&1 == 0 {
			s.list = append(s.list, key)
		} else {
			absent = append(absent, key)
		}
	}
	s.kinds = nameKinds(s.list, absent)
	return s
}

var syllables = []string{
	"py", "data", "lib", "test", "web", "auto", "fast", "micro", "sim", "net", "log", "core", "io", "kit", "ml", "api",
	"ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "wo", "xi", "yo",
	"za",
}

// name draws a name such as those of packages, some parts more often than others.
func name(r *rand.Rand) []byte {
	var out []byte
	for word := range 1 + r.IntN(3) {
		if word > 0 {
			out = append(out, '-')
		}
		for range 1 + r.IntN(3) {
			at := min(r.IntN(len(syllables)), r.IntN(len(syllables)))
			out = append(out, syllables[at]...)
		}
	}
	if r.IntN(4) == 0 {
		out = append(out, byte('0'+r.IntN(10)))
	}
	return out
}

func nameKeys(r *rand.Rand, n int) *keyset {
	return dealt("names", n, func() []byte { return name(r) })
}

func urlKeys(r *rand.Rand, n int) *keyset {
	hosts := drawn(max(2, n/100), func() []byte { return name(r) })
	return dealt("urls", n, func() []byte {
		host := hosts[min(r.IntN(len(hosts)), r.IntN(len(hosts)))]
		return fmt.Appendf(nil, "https://%s.example/%s/%d", host, name(r), r.IntN(1000))
	})
}

// Series are readings of users, about one a minute.
const (
	seriesStart = 1_700_000_000_000 // milliseconds since 1970
	minute      = 60_000
	perUser     = 500
)

func reading(user int, at int) []byte { return fmt.Appendf(nil, "user%06d|%013d", user, at) }

func seriesKeys(r *rand.Rand, n int) *keyset {
	users := max(1, n/perUser)
	s := &keyset{name: "series", list: drawn(n, func() []byte {
		return reading(2*r.IntN(users), seriesStart+minute*r.IntN(2*perUser)+r.IntN(minute))
	})}
	s.kinds = seriesKinds(s.list, users)
	return s
}

// fileKeys makes a set of the keys of a file, of which half are held out.
func fileKeys(path string, seed uint64) (*keyset, error) {
	source, err := keys.Open(keys.Request{Keys: path, MaxLen: 1 << 16, Seed: seed})
	if err != nil {
		return nil, err
	}
	s := &keyset{name: filepath.Base(path)}
	for i := range source.Present() {
		s.list = append(s.list, source.AppendPresent(nil, i))
	}
	slices.SortFunc(s.list, bytes.Compare)
	absent := make([][]byte, source.Absent())
	for i := range absent {
		absent[i] = source.AppendAbsent(nil, i)
	}
	s.kinds = nameKinds(s.list, absent)
	return s, nil
}

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

// seriesKinds are ranges among readings: all of a user that has none, an empty second, and the time just behind a
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
