package sstable

import (
	"errors"
	"io"

	"github.com/siftkv/siftkv/blockindex"
)

// A blockKind says what a block's bytes must be.
type blockKind uint8

const (
	dataBlock blockKind = iota
	indexLeaf
)

// loadBlock returns the decoded block of number n, which stands at offset and is
// length bytes long with its trailer: from the cache, or from the file, and then
// into the cache if fill is set. The bytes never change and stay valid.
func (r *Reader) loadBlock(kind blockKind, n int, offset uint64, length int, fill bool, p *Probe) ([]byte, error) {
	if b := r.slots[n].Get(); b != nil {
		if kind == dataBlock {
			p.BlocksFromCache++
		}
		return b.Data, nil
	}
	data, err := r.readBlock(r.file, kind, offset, length)
	if err != nil {
		return nil, err
	}
	if kind == dataBlock {
		p.BlocksFromDisk++
	} else {
		p.IndexLeavesFromDisk++
	}
	p.BytesFromDisk += int64(length)
	p.BytesDecoded += int64(len(data))
	if fill {
		return r.cache.Add(r.slotKey(n), &r.slots[n], data).Data, nil
	}
	return data, nil
}

// readBlock reads, checks and decompresses a block.
func (r *Reader) readBlock(f io.ReaderAt, kind blockKind, offset uint64, length int) ([]byte, error) {
	if r.closed.Load() {
		return nil, ErrClosed
	}
	buf := readBuffers.Get().(*[]byte)
	defer readBuffers.Put(buf)
	if cap(*buf) < length {
		*buf = make([]byte, length)
	}
	raw := (*buf)[:length]
	if err := readFull(f, raw, int64(offset)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, r.corrupt(int64(offset), kind.String()+": the file ends inside it", nil)
		}
		return nil, r.ioError(int64(offset), err)
	}
	stored, c, err := splitTrailer(raw, r.id, offset)
	if err != nil {
		return nil, r.corrupt(int64(offset), kind.String(), err)
	}
	data, err := decompress(stored, c)
	if err == nil {
		err = kind.check(data)
	}
	if err != nil {
		return nil, r.corrupt(int64(offset), kind.String(), err)
	}
	return data, nil
}

func (k blockKind) String() string {
	if k == indexLeaf {
		return "index leaf"
	}
	return "data block"
}

func (k blockKind) check(data []byte) error {
	if k == indexLeaf {
		_, err := blockindex.Decode(data)
		return err
	}
	return checkBlock(data)
}

// A location is a data block: its number and where it is.
type location struct {
	block  int
	offset uint64
	length int
	leaf   blockindex.Index // the index that names it, and where in it
	at     int
}

// locate returns the only data block that may hold key. It reports false if key
// is behind the last block.
func (r *Reader) locate(key []byte, fill bool, p *Probe) (loc location, ok bool, err error) {
	leaf := r.index
	if r.leafBlocks > 0 {
		i := r.index.Find(key)
		if i == r.index.Len() {
			return loc, false, nil
		}
		if leaf, err = r.loadLeaf(i, fill, p); err != nil {
			return loc, false, err
		}
	}
	at := leaf.Find(key)
	if at == leaf.Len() {
		return loc, false, nil
	}
	return locationIn(leaf, at), true, nil
}

func locationIn(leaf blockindex.Index, at int) location {
	offset, length := leaf.Block(at)
	return location{block: leaf.First() + at, offset: offset, length: length, leaf: leaf, at: at}
}

// locateBlock returns where data block n is.
func (r *Reader) locateBlock(n int, near location, fill bool, p *Probe) (location, error) {
	if at := n - near.leaf.First(); at >= 0 && at < near.leaf.Len() {
		return locationIn(near.leaf, at), nil
	}
	if r.leafBlocks == 0 {
		return locationIn(r.index, n), nil
	}
	leaf, err := r.loadLeaf(n/r.leafBlocks, fill, p)
	if err != nil {
		return location{}, err
	}
	return locationIn(leaf, n-leaf.First()), nil
}

// loadLeaf returns index leaf i. A leaf whose block numbers or place are not
// those that the top index promises would send lookups to wrong blocks.
func (r *Reader) loadLeaf(i int, fill bool, p *Probe) (blockindex.Index, error) {
	offset, length := r.index.Block(i)
	data, err := r.loadBlock(indexLeaf, r.dataCount+i, offset, length, fill, p)
	if err != nil {
		return blockindex.Index{}, err
	}
	leaf := blockindex.View(data)
	want := min(r.leafBlocks, r.dataCount-i*r.leafBlocks)
	if leaf.First() != i*r.leafBlocks || leaf.Len() != want || leaf.End() > r.props.DataBytes {
		return blockindex.Index{}, r.corrupt(int64(offset), "index leaf", errors.New("blocks do not match the properties"))
	}
	return leaf, nil
}
