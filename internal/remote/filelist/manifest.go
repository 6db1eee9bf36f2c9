package filelist

import (
	"path/filepath"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ReadManifest returns the numbers of the sorted files and blob files that a manifest needs, and that of the oldest
// log.
func ReadManifest(data []byte, num uint64) (live map[uint64]manifest.FileKind, oldest uint64, err error) {
	memory := vfs.NewMem()
	w, err := memory.Create(filepath.Join(".", manifest.FileName(manifest.FileManifest, num)))
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return nil, 0, err
	}
	tail, err := manifest.OpenTail(memory, ".", num)
	if err != nil {
		return nil, 0, err
	}
	there := map[manifest.DeletedTable]bool{}
	live = map[uint64]manifest.FileKind{}
	err = tail.Read(func(e *manifest.Edit) error {
		for _, t := range e.Deleted {
			delete(there, t)
		}
		for i := range e.Added {
			there[manifest.DeletedTable{Level: e.Added[i].Level, Num: e.Added[i].Table.Num}] = true
		}
		for i := range e.AddedBlobs {
			live[e.AddedBlobs[i].Num] = manifest.FileBlob
		}
		for _, num := range e.DeletedBlobs {
			delete(live, num)
		}
		oldest = max(oldest, e.LogNum)
		return nil
	})
	for t := range there {
		live[t.Num] = manifest.FileTable
	}
	return live, oldest, err
}
