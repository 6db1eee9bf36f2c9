package load

import "sync"

// shown are the items that users were shown. It may be used from many goroutines.
type shown struct {
	mu    sync.Mutex
	pairs map[pair]struct{}
}

// A pair is a user and an item.
type pair struct{ user, item int64 }

// add notes items and reports whether the user was shown one of them before.
func (s *shown) add(user int64, items []int64) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pairs == nil {
		s.pairs = make(map[pair]struct{})
	}
	for _, item := range items {
		p := pair{user, item}
		if _, before := s.pairs[p]; before {
			again = true
		}
		s.pairs[p] = struct{}{}
	}
	return again
}
