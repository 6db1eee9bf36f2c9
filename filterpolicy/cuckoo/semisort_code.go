package cuckoo

// There are 3876 ways to choose four values of four bits in ascending order, a <= b
// <= c <= d. Their codes are their ranks by d, then c, then b, then a, which is
//
//	code = C(a,1) + C(b+1,2) + C(c+2,3) + C(d+3,4)
//
// in binomial coefficients: the combinatorial number system. The codes from 3876 to
// 4095 stand for nothing.

const (
	nibbleBits = 4
	nibbleMask = 1<<nibbleBits - 1
	codeBits   = 12
	codes      = 3876
)

// codeOf returns the code of four values in ascending order, each below 16.
func codeOf(a, b, c, d uint64) uint64 {
	return a + b*(b+1)/2 + c*(c+1)*(c+2)/6 + d*(d+1)*(d+2)*(d+3)/24
}

// nibbles is the inverse of codeOf: the four values of each code, a in the lowest
// bits. It has an entry, zero, for codes that stand for nothing too, so that
// twelve bits never index past it.
var nibbles = func() (all [1 << codeBits]uint16) {
	for d := range uint64(1 << nibbleBits) {
		for c := range d + 1 {
			for b := range c + 1 {
				for a := range b + 1 {
					all[codeOf(a, b, c, d)] = uint16(a | b<<4 | c<<8 | d<<12)
				}
			}
		}
	}
	return all
}()
