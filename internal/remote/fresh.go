package remote

import "sync"

// A table is opened right after it was written. Its end, with the filter and the index, is still in memory, and need
// not be fetched.

// mostFreshEnd bounds what is kept of a file, in bytes: the end of a table has a fiftieth of it, of tiny entries a
// tenth.
const mostFreshEnd = 8 << 20

// freshEnds are the ends of files that were written lately. Each is there until a read reached the file's end, or the
// files after it have taken its memory.
type freshEnds struct {
	mu   sync.Mutex
	most int64
	size int64
	ends []freshEnd // the oldest first
}

type freshEnd struct {
	name string
	from int64 // offset of data in the file
	data []byte
}

// add takes over data, the end of a file beginning at offset from.
func (k *freshEnds) add(name string, from int64, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, freshEnd{name, from, data})
	k.size += int64(len(data))
	for k.size > k.most {
		k.remove(0)
	}
}

// readAt fills p if the bytes are there. A read up to the end of the file is the last of it.
func (k *freshEnds) readAt(name string, p []byte, off int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.find(name)
	if i < 0 || off < k.ends[i].from {
		return false
	}
	end := k.ends[i]
	n := copy(p, end.data[min(off-end.from, int64(len(end.data))):])
	if off-end.from+int64(n) == int64(len(end.data)) {
		k.remove(i)
	}
	return n == len(p)
}

func (k *freshEnds) drop(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := k.find(name); i >= 0 {
		k.remove(i)
	}
}

func (k *freshEnds) find(name string) int {
	for i := range k.ends {
		if k.ends[i].name == name {
			return i
		}
	}
	return -1
}

func (k *freshEnds) remove(i int) {
	k.size -= int64(len(k.ends[i].data))
	last := len(k.ends) - 1
	copy(k.ends[i:], k.ends[i+1:])
	k.ends[last] = freshEnd{}
	k.ends = k.ends[:last]
}
