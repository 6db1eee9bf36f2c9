package sstable

// Cuts returns up to n keys, in order, that cut the file's blocks into parts of about the same
// size: none is before the first key, and each is a bound between two blocks. It reads leaves
// of a partitioned index where it has to, and no data.
func (r *Reader) Cuts(n int) (keys [][]byte, err error) {
	n = min(n, r.dataCount-1)
	var memo leafMemo
	var p Probe
	for i := range n {
		block := (i+1)*r.dataCount/(n+1) - 1
		key, err := r.appendSeparator(nil, block, false, &memo, &p)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
