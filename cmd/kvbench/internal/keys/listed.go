package keys

import "bytes"

// listed is a source whose keys are in a set.
type listed struct {
	set             *set
	present, absent []uint32 // numbers in set, in the order of loading and of asking
	about           Description
}

func (l *listed) Present() int { return len(l.present) }

func (l *listed) Absent() int { return len(l.absent) }

// AppendPresent appends the i-th present key in load order.
func (l *listed) AppendPresent(dst []byte, i int) []byte {
	return append(dst, l.set.at(l.present[i])...)
}

// AppendAbsent appends the i-th absent key in random order.
func (l *listed) AppendAbsent(dst []byte, i int) []byte { return append(dst, l.set.at(l.absent[i])...) }

// Describe says where the keys come from and what was dropped.
func (l *listed) Describe() Description { return l.about }

// between returns what tells whether a key lies between two present ones.
func (l *listed) between() func(number uint32) bool {
	var low, high []byte
	for _, n := range l.present {
		key := l.set.at(n)
		if low == nil || bytes.Compare(key, low) < 0 {
			low = key
		}
		if high == nil || bytes.Compare(key, high) > 0 {
			high = key
		}
	}
	return func(n uint32) bool {
		key := l.set.at(n)
		return bytes.Compare(key, low) > 0 && bytes.Compare(key, high) < 0
	}
}

// shuffled returns numbers in the random order of a seed.
func shuffled(numbers []uint32, seed uint64) []uint32 {
	order, out := NewPermutation(len(numbers), seed), make([]uint32, len(numbers))
	for i := range out {
		out[i] = numbers[order.At(i)]
	}
	return out
}

// describe fills the numbers of the description.
func (l *listed) describe() {
	d, size := &l.about, 0
	d.Present, d.Absent = len(l.present), len(l.absent)
	for i, numbers := range [][]uint32{l.present, l.absent} {
		for j, number := range numbers {
			n := len(l.set.at(number))
			if d.MaxLen = max(d.MaxLen, n); i == 0 && j == 0 || n < d.MinLen {
				d.MinLen = n
			}
			if i == 0 {
				size += n
			}
		}
	}
	if d.Present > 0 {
		d.MeanLen = float64(size) / float64(d.Present)
	}
}
