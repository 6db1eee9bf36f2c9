package kv

import (
	"math/rand/v2"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A CrashDisk is a file system in memory whose power can be cut and whose calls can
// fail, for tests of packages that are above this one.
type CrashDisk struct {
	mem   *crashfs.Disk
	fault vfstest.FaultFS
}

// NewCrashDisk returns an empty file system. It calls before, one at a time, before
// every call that changes something.
func NewCrashDisk(before func()) *CrashDisk {
	d := &CrashDisk{mem: crashfs.NewDisk()}
	d.fault.FS = crashfs.New(d.mem, func() error { before(); return nil })
	return d
}

// Cut returns what a power cut at this moment leaves.
func (d *CrashDisk) Cut(rng *rand.Rand) vfs.FS {
	return crashfs.New(d.mem.Cut(rng), nothing)
}

// Fail makes calls fail that change the disk, as refuse says of the method and the bytes
// to write: half of them are written. Nil ends it.
func (d *CrashDisk) Fail(refuse func(op string, bytes int) error) {
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

// Room lets so many bytes more be written: then the disk is full.
func (d *CrashDisk) Room(bytes int) { d.fault.Set(vfstest.Quota(bytes)) }

// FS returns the file system.
func (d *CrashDisk) FS() vfs.FS { return &d.fault }

// OnDisk puts a store on a file system. Manifests are replaced often, and a store that
// has failed tries to resume at once.
func (o *Options) OnDisk(fs vfs.FS) *Options {
	o.harness.FS, o.harness.MaxManifestSize, o.harness.Backoff = fs, 2000, quickBackoff
	return o
}
