package memtable

// Valid reports whether the iterator is on an entry.
func (it *Iter) Valid() bool { return it.n != nilNode }
