package base

// A Sample takes items out of a sequence of unknown length: every one at first, every second one when there are too
// many, every fourth one, and so on. The choice depends only on the order of the sequence.
type Sample[T any] struct {
	Taken  []T
	Count  uint64 // of all items
	stride uint64 // one of this number is taken
	passed uint64 // since the last one
}

// Pick counts an item, and reports whether the caller must append it to Taken, which has most items at most then.
func (s *Sample[T]) Pick(most int) bool {
	s.Count++
	if s.passed++; s.passed < s.stride {
		return false
	}
	s.passed = 0
	if len(s.Taken) == most {
		for i := range most / 2 {
			s.Taken[i] = s.Taken[2*i+1]
		}
		s.Taken = s.Taken[:most/2]
		s.stride = max(2*s.stride, 2)
	}
	return true
}
