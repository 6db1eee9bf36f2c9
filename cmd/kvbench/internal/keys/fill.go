package keys

import "encoding/binary"

// fillPass is the pass of a trace's seed that fillers are drawn by.
const fillPass = 0x66696c6c

// fillTries is how often a filler is made of two keys before it is given bytes of its
// own.
const fillTries = 32

// fill adds n keys that are not in the trace, among those that were found in it: each
// is the head of one key and the tail of another from the same place on, so it looks like
// them, shares prefixes with them and lies between them. Where so few keys were found, or
// so much alike, that this gives no new key, its last eight bytes are random.
func (t *Trace) fill(n int, found []bool, seed uint64) ([]bool, error) {
	var models []uint32
	for i, there := range found {
		if there {
			models = append(models, uint32(i))
		}
	}
	random := NewRandom(seed, fillPass)
	var key []byte
	for range n {
		for try := 0; ; try++ {
			head, tail := t.set.at(models[random.Below(len(models))]), t.set.at(models[random.Below(len(models))])
			cut := random.Below(len(head) + 1)
			key = append(append(key[:0], head[:cut]...), tail[min(cut, len(tail)):]...)
			if try >= fillTries {
				key = binary.BigEndian.AppendUint64(key[:max(0, len(key)-8)], random.Next())
			}
			added, err := t.set.add(key)
			if err != nil {
				return nil, err
			}
			if added {
				found = append(found, true)
				break
			}
		}
	}
	return found, nil
}
