package keys

import "math"

// Theta is the skew that YCSB uses everywhere.
const Theta = 0.99

// A Zipf draws ranks below n, rank r with a probability proportional to
// 1/(r+1)^theta, by the method of Gray et al., "Quickly generating billion-record
// synthetic databases", SIGMOD 1994, which YCSB uses. It is immutable.
type Zipf struct {
	n                 float64
	zetaN, alpha, eta float64
	second            float64 // 1 + 0.5^theta
}

// NewZipf returns the distribution over n ranks, n at least 1, of skew theta,
// 0 < theta < 1.
func NewZipf(n int, theta float64) *Zipf {
	z := &Zipf{n: float64(n), zetaN: zeta(n, theta), alpha: 1 / (1 - theta), second: 1 + math.Pow(0.5, theta)}
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - z.second/z.zetaN)
	return z
}

// zeta returns the sum of 1/i^theta for i up to n: the first terms one by one, the
// others by the formula of Euler and Maclaurin, which leaves an error below 1e-12.
func zeta(n int, theta float64) float64 {
	const exact = 1000
	sum := 0.0
	for i := 1; i <= min(n, exact); i++ {
		sum += math.Pow(float64(i), -theta)
	}
	if n <= exact {
		return sum
	}
	a, b := float64(exact), float64(n)
	f := func(x float64) float64 { return math.Pow(x, -theta) }
	d := func(x float64) float64 { return -theta * math.Pow(x, -theta-1) }
	integral := (math.Pow(b, 1-theta) - math.Pow(a, 1-theta)) / (1 - theta)
	return sum + integral + (f(b)-f(a))/2 + (d(b)-d(a))/12
}

// Draw returns the rank that belongs to u, 0 <= u < 1.
func (z *Zipf) Draw(u float64) int {
	uz := u * z.zetaN
	switch {
	case uz < 1:
		return 0
	case uz < z.second:
		return min(1, int(z.n)-1)
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}

// A Random is SplitMix64: fast, seeded, without allocation.
type Random struct{ state uint64 }

// NewRandom returns the numbers of one pass of a seed.
func NewRandom(seed, pass uint64) *Random { return &Random{Mix(seed) ^ Mix(pass+1)<<1} }

// Next returns 64 bits.
func (r *Random) Next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return Mix(r.state)
}

// Float returns a number in [0, 1).
func (r *Random) Float() float64 { return float64(r.Next()>>11) / (1 << 53) }

// Below returns a number in [0, n).
func (r *Random) Below(n int) int { return int(r.Next() % uint64(n)) }
