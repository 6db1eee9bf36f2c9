package sstable

// BlockOf returns the number of the only data block that may hold key, and false if the key is
// after all of them. It asks the index and no filter, and reads no data block.
func (r *Reader) BlockOf(key []byte) (block int, ok bool, err error) {
	var p Probe
	loc, ok, err := r.locate(key, true, nil, &p)
	return loc.block, ok, err
}
