package cutkeys

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// A reference is the filter as its layout defines it: every key's code cut to a string of bits.
type reference struct {
	f    *Filter
	cuts []string
}

// bitsOf returns the code of what is behind the prefix in a key, without the zeros that follow.
func (r *reference) bitsOf(rest []byte) string {
	var code strings.Builder
	for _, b := range rest {
		l := r.f.alphabet[b]
		for i := range l.len() {
			code.WriteByte('0' + byte(l.code()>>(63-i)&1))
		}
		if l&unknown != 0 {
			break
		}
	}
	return code.String()
}

// bit returns a bit of a code, behind which there are zeros.
func bit(code string, i int) byte {
	if i < len(code) {
		return code[i]
	}
	return '0'
}

func commonBits(a, b string) int {
	n := 0
	for n < max(len(a), len(b)) && bit(a, n) == bit(b, n) {
		n++
	}
	return n
}

func newReference(f *Filter, keys [][]byte) *reference {
	r := &reference{f: f}
	var codes []string
	for _, key := range keys {
		codes = append(codes, r.bitsOf(key[len(f.prefix):]))
	}
	for i, code := range codes {
		length := 0
		if i > 0 {
			length = commonBits(codes[i-1], code)
		}
		if i+1 < len(codes) {
			length = max(length, commonBits(code, codes[i+1]))
		}
		for length += 1 + f.extra; len(code) < length; {
			code += "0"
		}
		r.cuts = append(r.cuts, code[:length])
	}
	return r
}

// contains says whether the range meets the interval of a cut key.
func (r *reference) contains(lo, hi []byte) bool {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return false
	}
	low, where := r.f.behindPrefix(lo)
	if where == over {
		return false
	}
	from, to := r.bitsOf(low), ""
	bounded := hi != nil
	if bounded {
		high, where := r.f.behindPrefix(hi)
		if where == under || where == amid && len(high) == 0 { // no key is below the prefix
			return false
		}
		bounded, to = where == amid, r.bitsOf(high)
	}
	for _, cut := range r.cuts {
		n := commonBits(from, cut)
		endsBefore := n < len(cut) && bit(from, n) > bit(cut, n)
		m := commonBits(cut, to)
		beginsBelow := m < max(len(cut), len(to)) && bit(cut, m) < bit(to, m)
		if !endsBefore && (!bounded || beginsBelow || n >= len(cut)) {
			return true
		}
	}
	return false
}

// The filter answers what its layout defines, true and false.
func TestAnswersAreThoseOfTheCutKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	denied, passed, rounds := 0, 0, scale.Count(100, 300)
	for round := range rounds {
		letters := []string{"ab", "\x00\x01\xfe\xff", "abcdefghijklmnop", "\x00\xff"}[round%4]
		run := []int{0, 0, 40, 150}[r.IntN(4)]
		draw := func() []byte {
			key := make([]byte, r.IntN(9))
			for i := range key {
				key[i] = letters[r.IntN(len(letters))]
			}
			return append(bytes.Repeat([]byte(letters[:1]), r.IntN(2)*run), key...)
		}
		var keys [][]byte
		for range 1 + r.IntN(300) {
			keys = append(keys, draw())
		}
		slices.SortFunc(keys, bytes.Compare)
		keys = slices.CompactFunc(keys, bytes.Equal)
		b := Policy{uint8(round % (maxExtra + 1))}.NewBuilder()
		for _, key := range keys {
			b.AddKey(key)
		}
		data, ok := b.Finish(nil)
		require.True(t, ok)
		f, err := Decode(data)
		require.NoError(t, err)
		ref := newReference(f, keys)
		for range 300 {
			lo, hi := draw(), draw()
			switch r.IntN(6) {
			case 0, 1:
				hi = append(slices.Clone(lo), byte(r.Uint32()))
			case 2:
				lo, hi = nil, append([]byte{}, f.prefix...)
			}
			want := ref.contains(lo, hi)
			require.Equal(t, want, f.MayContainRange(lo, hi), "m=%d, [%q, %q) of %q", f.extra, lo, hi, keys)
			if want {
				passed++
			} else {
				denied++
			}
		}
	}
	require.Greater(t, denied, 33*rounds)
	require.Greater(t, passed, 33*rounds)
}
