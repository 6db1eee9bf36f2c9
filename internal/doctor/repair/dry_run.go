package repair

import "github.com/siftkv/siftkv/internal/vfs"

// A dry run writes what a repair writes, so that its report says the same. Tables that are read again are in memory
// meanwhile. It drops the bytes of blob files, and of tables in their final places.

// An unreadFS is a file system that drops the bytes of new files.
type unreadFS struct{ vfs.FS }

// Create implements vfs.FS. The file does not exist.
func (unreadFS) Create(string) (vfs.WriteFile, error) { return unreadFile{}, nil }

type unreadFile struct{}

func (unreadFile) Write(b []byte) (int, error) { return len(b), nil }
func (unreadFile) Sync() error                 { return nil }
func (unreadFile) Close() error                { return nil }

// writeUnread says that nothing reads the files that are created until end is called: a dry run keeps no byte of them.
func (r *repairer) writeUnread() (end func()) {
	stage := r.stage
	if r.o.DryRun {
		r.stage = unreadFS{stage}
	}
	return func() { r.stage = stage }
}
