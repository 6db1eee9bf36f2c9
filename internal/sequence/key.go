package sequence

import (
	"fmt"
	"strconv"
	"strings"
)

// endOfSlots is more than any sequence will have: objects that claim such slots are ignored.
const endOfSlots = 1 << 62

// Key returns where a slot is. The first 16 digits are the slot's complement, so that listings, which ascend, begin
// with the newest; the number behind them is for people.
func (s *Sequence) Key(slot uint64) string { return fmt.Sprintf("%s%016x-%d", s.prefix, ^slot, slot) }

// SlotOf returns the slot that has a key.
func (s *Sequence) SlotOf(key string) (slot uint64, ok bool) {
	_, number, ok := strings.Cut(strings.TrimPrefix(key, s.prefix), "-")
	if !ok {
		return 0, false
	}
	slot, err := strconv.ParseUint(number, 10, 64)
	return slot, err == nil && slot > 0 && slot < endOfSlots && key == s.Key(slot)
}
