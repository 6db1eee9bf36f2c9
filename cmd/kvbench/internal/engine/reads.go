package engine

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A ReadMeter is a store that counts the reads of its files, if Settings.CountReads is set.
type ReadMeter interface {
	// FileReads returns the reads since the store was opened; Unknown if it does not
	// count them.
	FileReads() Reads
}

// Reads are calls to the system that read a file, and what they read. One that finds its
// pages in memory is a read too.
type Reads struct {
	Calls Count `json:"calls"`
	Bytes Count `json:"bytes"`
}

// Minus returns what was read after q was taken and before r.
func (r Reads) Minus(q Reads) Reads { return Reads{r.Calls.Minus(q.Calls), r.Bytes.Minus(q.Bytes)} }

// Plus returns the sum.
func (r Reads) Plus(q Reads) Reads { return Reads{r.Calls.Plus(q.Calls), r.Bytes.Plus(q.Bytes)} }

// A readCounter adds reads up. A nil one counts nothing.
type readCounter struct{ calls, bytes atomic.Int64 }

// newReadCounter returns a counter if the settings want one.
func newReadCounter(s *Settings) *readCounter {
	if !s.CountReads {
		return nil
	}
	return &readCounter{}
}

func (c *readCounter) add(bytes int) {
	c.calls.Add(1)
	c.bytes.Add(int64(bytes))
}

// FileReads implements ReadMeter.
func (c *readCounter) FileReads() Reads {
	if c == nil {
		return Reads{Unknown, Unknown}
	}
	return Reads{Count(c.calls.Load()), Count(c.bytes.Load())}
}

// count makes a store of this project read through the counter.
func (c *readCounter) count(o *kv.Options) {
	if c != nil {
		*harness.Of(o) = harness.Harness{FS: countedFS{vfs.OS, c}}
	}
}

// countedFS is a file system whose reads are counted.
type countedFS struct {
	vfs.FS
	reads *readCounter
}

func (f countedFS) Open(name string) (vfs.ReadFile, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return countedFile{file, f.reads}, nil
}

// SyncFile is that of the file system below.
func (f countedFS) SyncFile(name string) error {
	if s, ok := f.FS.(vfs.FileSyncer); ok {
		return s.SyncFile(name)
	}
	return nil
}

type countedFile struct {
	vfs.ReadFile
	reads *readCounter
}

func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReadFile.ReadAt(p, off)
	f.reads.add(n)
	return n, err
}

// countPebble makes a store of Pebble read through the counter. What Pebble has the system
// read ahead is not counted, but the reads that find it are.
func (c *readCounter) countPebble(o *pebble.Options) {
	if c != nil {
		o.FS = pebbleFS{pebblevfs.Default, c}
	}
}

type pebbleFS struct {
	pebblevfs.FS
	reads *readCounter
}

func (f pebbleFS) Open(name string, options ...pebblevfs.OpenOption) (pebblevfs.File, error) {
	file, err := f.FS.Open(name, options...)
	if err != nil {
		return nil, err
	}
	return pebbleFile{file, f.reads}, nil
}

type pebbleFile struct {
	pebblevfs.File
	reads *readCounter
}

func (f pebbleFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.reads.add(n)
	return n, err
}

func (f pebbleFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.reads.add(n)
	return n, err
}
