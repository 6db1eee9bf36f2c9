package values

// Memory returns how many bytes the values have in memory.
func (b *ReadBatch) Memory() (n int) {
	if b.window != nil {
		n = cap(*b.window)
	}
	for i := range b.Reads {
		n += cap(b.Reads[i].Value)
	}
	return n
}
