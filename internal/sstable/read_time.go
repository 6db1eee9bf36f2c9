package sstable

import "time"

// TimeRead returns how long it takes to read a data block from the file, check and decode it, without the cache.
func (r *Reader) TimeRead(block int) (time.Duration, error) {
	var p Probe
	loc, err := r.locateBlock(block, false, nil, &p)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	h, err := r.holdFromFile(dataBlock, loc, false, &p)
	took := time.Since(begun)
	h.release()
	return took, err
}
