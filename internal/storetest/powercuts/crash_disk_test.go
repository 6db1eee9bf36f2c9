package powercuts

import (
	"math/rand/v2"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A crashDisk is a file system in memory whose power can be cut and whose calls can
// fail.
type crashDisk struct {
	mem   *crashfs.Disk
	fault vfstest.FaultFS
}

// newCrashDisk returns an empty file system. It calls before, one at a time, before
// every call that changes something.
func newCrashDisk(before func()) *crashDisk {
	d := &crashDisk{mem: crashfs.NewDisk()}
	d.fault.FS = crashfs.New(d.mem, func() error { before(); return nil })
	return d
}

// Cut returns what a power cut at this moment leaves.
func (d *crashDisk) Cut(rng *rand.Rand) vfs.FS {
	return crashfs.New(d.mem.Cut(rng), storetest.Nothing)
}

// Fail makes calls fail that change the disk, as refuse says of the method and the bytes
// to write: half of them are written. Nil ends it.
func (d *crashDisk) Fail(refuse func(op string, bytes int) error) {
	if refuse == nil {
		d.fault.Set(nil)
		return
	}
	d.fault.Set(func(c vfstest.Call) (int, error) {
		if !c.Changes {
			return 0, nil
		}
		return c.Bytes / 2, refuse(c.Op, c.Bytes)
	})
}

// Room lets n more bytes be written: then the disk is full.
func (d *crashDisk) Room(n int) { d.fault.Set(vfstest.Quota(n)) }

// FS returns the file system.
func (d *crashDisk) FS() vfs.FS { return &d.fault }

// onDisk puts a store on a file system. Manifests are replaced often, and a store that
// has failed tries to resume at once.
func onDisk(o *kv.Options, fs vfs.FS) *kv.Options {
	h := harness.Of(o)
	h.FS, h.MaxManifestSize, h.Backoff = fs, 2000, storetest.Quick
	return o
}
