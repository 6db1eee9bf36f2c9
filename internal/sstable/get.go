package sstable

import (
	"runtime"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A FilterVerdict is what a file's filter said of a key.
type FilterVerdict uint8

// The verdicts.
const (
	Unfiltered FilterVerdict = iota // the file has no filter that could be asked
	Negative                        // the key is not in the file
	Maybe                           // the key may be in the file
	Remembered                      // the same, and the key is known not to be
)

// String returns the verdict in a word.
func (v FilterVerdict) String() string {
	return [...]string{"unfiltered", "negative", "maybe", "remembered"}[v%4]
}

// RulesOut reports whether the file need not be read.
func (v FilterVerdict) RulesOut() bool { return v == Negative || v == Remembered }

// A Probe is what one lookup did in one file.
type Probe struct {
	// SkipValue is the caller's: values need not be returned, those of operands aside.
	SkipValue bool
	// Skipped says that the value was left out: it has ValueSize bytes, and Expiry is that of a
	// base.KindSetTTL or base.KindSetTTLSeparated. A value in a blob file is not read for that.
	Skipped   bool
	ValueSize int
	Expiry    uint64

	// Wait is the caller's, if it is not nil: it is called before a read that the system cannot
	// serve from memory. Begun says that the system has begun to read (vfs.NowBegun).
	Wait func(begun bool)

	Filter              FilterVerdict
	IndexLookup         bool // the index was searched
	RuledOutByIndex     bool // and said that the key is after the last block
	KeyPresent          bool // some version of the key is in the file
	BlocksFromCache     int  // data blocks
	BlocksFromDisk      int
	IndexLeavesFromDisk int
	BytesFromDisk       int64 // as stored, trailers included
	BytesDecoded        int64 // of the blocks from disk, after decompression
}

// countRead counts a block from the file: its bytes there, with its trailer, and decoded.
func (p *Probe) countRead(kind blockKind, length, decoded int) {
	if kind == dataBlock {
		p.BlocksFromDisk++
	} else {
		p.IndexLeavesFromDisk++
	}
	p.BytesFromDisk += int64(length)
	p.BytesDecoded += int64(decoded)
}

// add adds what an iterator has read.
func (p *Probe) add(o *Probe) {
	p.BlocksFromCache += o.BlocksFromCache
	p.BlocksFromDisk += o.BlocksFromDisk
	p.IndexLeavesFromDisk += o.IndexLeavesFromDisk
	p.BytesFromDisk += o.BytesFromDisk
	p.BytesDecoded += o.BytesDecoded
}

// Find looks for the newest version of key at or below sequence number at, without range tombstones. It appends its
// value, if any, to dst; of a blob value, the entry's content (blob.HandleOf). Hash is filterpolicy.Hash(key): a caller
// that asks many files computes it once. Find adds what it did to p. Find allocates nothing if dst has room, unless
// versions of the key fill more than maxWalked blocks.
func (r *Reader) Find(dst, key []byte, hash uint64, at base.SeqNum, p *Probe) (value []byte, trailer base.Trailer,
	ok bool, err error) {
	if r.filter != nil {
		if !r.passesFilter(key, hash) {
			p.Filter = Negative
			return dst, 0, false, nil
		}
		if r.falsePositives.Remembers(key, hash) {
			p.Filter = Remembered
			return dst, 0, false, nil
		}
		p.Filter = Maybe
	}
	p.IndexLookup = true
	had := len(dst)
	loc, ok, err := r.locate(key, true, nil, p)
	if err != nil || !ok {
		p.RuledOutByIndex = err == nil
		return dst, 0, false, err
	}
	s := search{key: key, hash: hash, at: at}
	for blocks := 0; ; {
		var f found
		if dst, f, err = r.findIn(dst, loc, &s, p); err != nil {
			return dst[:had], 0, false, err
		}
		p.KeyPresent = p.KeyPresent || f.present
		// Versions of a key go on in the next block only if this one ends with some of them.
		if f.ok || !f.more || !f.present || loc.block+1 == r.dataCount {
			if !p.KeyPresent && p.Filter == Maybe {
				r.falsePositives.Remember(key, hash)
			}
			if r.seq > at {
				return dst[:had], 0, false, nil
			}
			if f.ok {
				f.trailer = r.lift(f.trailer)
			}
			return dst, f.trailer, f.ok, nil
		}
		if blocks++; blocks == maxWalked {
			loc, err = r.locateVersion(&s, p)
		} else {
			loc, err = r.locateBlock(loc.block+1, true, nil, p)
		}
		if err != nil {
			return dst[:had], 0, false, err
		}
	}
}

// maxWalked is how many blocks with versions of a key Find goes through before it searches.
const maxWalked = 3

// locateVersion returns the block with the newest version that a lookup can see, or any later one if there is none.
func (r *Reader) locateVersion(s *search, p *Probe) (location, error) {
	i := r.NewIter(IterOptions{})
	defer i.Release()
	if !i.SeekGE(base.SearchKey(s.key, s.at)) && i.Error() == nil {
		i.Last()
	}
	p.add(&i.Probe)
	return i.loc, i.Error()
}

// A search is what a lookup wants of a block.
type search struct {
	key  []byte
	hash uint64
	at   base.SeqNum
}

// in searches a block and appends the value to dst if the caller wants it. Found then aliases nothing.
func (s *search) in(data, dst []byte, p *Probe) ([]byte, found, error) {
	prefetchTail(data)
	f, err := viewBlock(data).find(s.key, s.hash, s.at)
	if err != nil {
		return dst, found{}, err
	}
	dst, f = f.copied(dst, p)
	return dst, f, nil
}

// copied appends the value to dst if the caller wants it. It returns f without the value, which aliases the block.
func (f found) copied(dst []byte, p *Probe) ([]byte, found) {
	if f.ok && (!p.SkipValue || !f.skip(p)) {
		dst = append(dst, f.value...)
	}
	f.value = nil
	return dst, f
}

// skip says in p what there is to say of a value that is left out. It reports false for one
// that is not: an operand, or an entry that is malformed.
func (f *found) skip(p *Probe) bool {
	size := len(f.value)
	switch f.trailer.Kind() {
	case base.KindSetTTL:
		expiry, value, ok := base.CutExpiry(f.value)
		if !ok {
			return false
		}
		p.Expiry, size = expiry, len(value)
	case base.KindSetSeparated, base.KindSetTTLSeparated:
		h, expiry, err := blob.HandleOf(f.trailer.Kind(), f.value)
		if err != nil {
			return false
		}
		p.Expiry, size = expiry, int(h.Size)
	case base.KindSet:
	default:
		return false
	}
	p.Skipped, p.ValueSize = true, size
	return true
}

// findIn searches the block at loc, wherever it is.
func (r *Reader) findIn(dst []byte, loc location, s *search, p *Probe) (out []byte, f found, err error) {
	if r.mapped != nil {
		if dst, f, ok, err := r.findMapped(dst, loc, s, p); ok || err != nil {
			return dst, f, r.blockError(loc, err)
		}
	}
	h, err := r.hold(dataBlock, loc, true, p)
	if err != nil {
		return dst, found{}, err
	}
	// The block's bytes are ours only until release.
	out, f, err = s.in(h.data, dst, p)
	h.release()
	runtime.KeepAlive(r)
	return out, f, r.blockError(loc, err)
}

// blockError says where the block is in which an entry was malformed.
func (r *Reader) blockError(loc location, err error) error {
	if err == errBlock { //nolint:errorlint // it is what find returns
		offset, _ := r.place(loc)
		return r.corrupt(int64(offset), dataBlock.String(), err)
	}
	return err
}

// passesFilter asks the filter for a key.
func (r *Reader) passesFilter(key []byte, hash uint64) bool {
	if !r.prefixOnly {
		return r.ask(hash)
	}
	prefix, ok := r.prefix.Prefix(key)
	return ok && r.ask(filterpolicy.Hash(prefix))
}

func (r *Reader) ask(hash uint64) bool {
	if r.salt != 0 {
		hash = filterpolicy.Salt(hash, r.salt)
	}
	maybe := r.filter.MayContainHash(hash)
	runtime.KeepAlive(r)
	return maybe
}

// HasPrefixFilter reports whether the filter holds the prefixes of the reader's extractor.
func (r *Reader) HasPrefixFilter() bool { return r.filter != nil && r.prefix != nil }

// MayContainPrefix reports whether the file may hold keys with a prefix, of which hash is
// filterpolicy.Hash: all files may of which HasPrefixFilter is false.
func (r *Reader) MayContainPrefix(hash uint64) bool {
	return !r.HasPrefixFilter() || r.ask(hash)
}
