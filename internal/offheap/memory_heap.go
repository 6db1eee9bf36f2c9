//go:build !unix

package offheap

// reserve takes nothing: the region is in the heap.
func reserve(int64) (mem, mapping []byte) { return nil, nil }

func reserveHuge(size int64) (mem, mapping []byte) { return make([]byte, size), nil }
func unreserve([]byte)                             {}
func discard([]byte)                               {}
