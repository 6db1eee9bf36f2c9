package source

import "bytes"

// A Range is the keys from From on (nil: the first) and before To (nil: to the last).
type Range struct{ From, To []byte }

const (
	deepest = 256 // bytes of a key that ranges are cut at
	slack   = 8   // a range may be off by this part of its size
)

// Ranges cuts what a store has from a key on into ranges of about size bytes on disk, in order. It is one range for a
// store that is scanned by one goroutine only, and where all keys seem to be in one place. For the same store and size
// the ranges end at the same keys, whatever from is. It asks Before some hundred times for each range.
func Ranges(s Store, from []byte, size int64) []Range {
	all := []Range{{From: from}}
	if !s.Parallel() {
		return all
	}
	end := int64(0) // bytes before the end of the range before
	for at := size; at < s.Size()-size/2; at += size {
		key := keyAt(s, at, size/slack)
		before := s.Before(key)
		if before-end < size/2 || s.Size()-before < size/2 {
			continue
		}
		end = before
		if last := &all[len(all)-1]; bytes.Compare(key, last.From) > 0 {
			last.To = key
			all = append(all, Range{From: key})
		}
	}
	return all
}

// keyAt returns a key with about at bytes before it, byte by byte: each is the greatest with which that many are not
// exceeded. It need not be a key of the store. It is empty if there are more before the first.
func keyAt(s Store, at, slack int64) []byte {
	var key []byte
	for len(key) < deepest {
		low, high := 0, 256 // the byte is at least low, and below high
		key = append(key, 0)
		end := &key[len(key)-1]
		before := int64(0)
		for low+1 < high {
			mid := (low + high) / 2
			*end = byte(mid)
			switch n := s.Before(key); {
			case n < 0:
				return nil
			case n > at:
				high = mid
			default:
				low, before = mid, n
			}
		}
		*end = byte(low)
		if before > at-slack {
			break
		}
	}
	return bytes.TrimRight(key, "\x00")
}
