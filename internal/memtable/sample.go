package memtable

// Sample calls f, in order, with the user keys of some entries and about the size that each takes in a file. It does so
// for n to about 4n entries, or for all if there are fewer. They are the nodes of an upper level of the list, which are
// there by chance. No Add may run meanwhile. The keys belong to the memtable.
func (m *Memtable) Sample(n int, f func(user []byte, size int64)) {
	level := 0
	for level+1 < int(m.height.Load()) && m.Len()>>(2*(level+1)) >= n {
		level++
	}
	at := linkAt(level)
	for n := loadLink(m.arena, head, at); n != nilNode; n = loadLink(m.arena, n, at) {
		if k := m.key(n); k.Kind() != KindFold {
			f(k.User, int64(len(k.User)+len(m.value(n))+tailSize))
		}
	}
}
