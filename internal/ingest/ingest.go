// Package ingest brings sorted files that a program has written into a store's directory: linked or copied, checked,
// and described for the manifest. It knows the directory and nothing else of the store, which places the files and
// decides what becomes of them.
package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ErrNotIngestible is matched when a file is whole and cannot be taken b.
var ErrNotIngestible = errors.New("siftkv: the file cannot be ingested")

// Options say where the files go and what they must satisfy.
type Options struct {
	Source      vfs.FS // of the paths
	FS          vfs.FS // of the directory
	Dir         string
	Log         *slog.Logger
	Filter      filterpolicy.Policy
	Prefix      filterpolicy.Prefix
	RangeFilter filterpolicy.RangePolicy
	Copy        bool // even where the file could be linked
	SkipVerify  bool // of the blocks

	CheckEntry  func(key, value []byte) error // refuses what no write could have brought in
	Interrupted func() error                  // says why to stop; nil: go on
}

// A Batch is the files of one ingest. Call order: Bring, then Settle if the manifest
// lists the files; and TakeBack if it does not, and cannot.
type Batch struct {
	Options
	Files []File // those with anything in them, by key

	numbers   manifest.Ingest
	announced bool     // a file has the numbers in its name
	brought   []uint64 // numbers of the files in the directory
}

// A File is a file on its way into the store.
type File struct {
	Path  string // where it came from
	Table manifest.Table
}

// Bring gives the files at the paths numbers and names in the directory, which are then
// durable, as is what is in the files. It refuses files that overlap.
func (b *Batch) Bring(paths []string, numbers manifest.Ingest) error {
	if err := b.announce(numbers); err != nil {
		return err
	}
	for i, path := range paths {
		if err := b.bring(path, numbers.First+uint64(i)); err != nil {
			return err
		}
	}
	if err := b.sort(); err != nil || len(b.Files) == 0 {
		return err
	}
	return b.FS.SyncDir(b.Dir)
}

// sort puts the files into key order, and refuses files that overlap.
func (b *Batch) sort() error {
	slices.SortFunc(b.Files, func(a, b File) int { return bytes.Compare(a.Table.Smallest, b.Table.Smallest) })
	for i := 1; i < len(b.Files); i++ {
		older, newer := &b.Files[i-1], &b.Files[i]
		if !older.Table.Before(newer.Table.Smallest) {
			return fmt.Errorf("%w: %s and %s overlap at %.64q; ingest them one after the other, the older one first",
				ErrNotIngestible, older.Path, newer.Path, newer.Table.Smallest)
		}
	}
	return nil
}

// TakeBack removes the files that were brought in, and what tells of them.
func (b *Batch) TakeBack() {
	gone := true
	for _, num := range b.brought {
		name := b.path(num)
		if err := b.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.Log.Warn("a file that was not ingested could not be removed", "file", name, "error", err)
			gone = false
		}
	}
	if gone && b.FS.SyncDir(b.Dir) == nil {
		b.Settle()
	}
}

func (b *Batch) path(num uint64) string {
	return filepath.Join(b.Dir, manifest.FileName(manifest.FileTable, num))
}

// announce puts a file with the numbers in its name into the directory. If the manifest is lost after a crash, only
// that file distinguishes a part of an ingest from tables of the store.
func (b *Batch) announce(numbers manifest.Ingest) error {
	b.numbers = numbers
	f, err := b.FS.Create(filepath.Join(b.Dir, numbers.FileName()))
	if err != nil {
		return err
	}
	b.announced = true
	return errors.Join(f.Close(), b.FS.SyncDir(b.Dir))
}

// Settle removes the file of announce, durably. The ingested files must be in the manifest, or gone.
func (b *Batch) Settle() {
	if !b.announced {
		return
	}
	name := filepath.Join(b.Dir, b.numbers.FileName())
	err := b.FS.Remove(name)
	if err == nil {
		err = b.FS.SyncDir(b.Dir)
	}
	if err != nil {
		b.Log.Warn("the mark of an ingest that has ended could not be removed", "file", name, "error", err)
	}
}

// bring gives the file at path a number and a name in the store, and examines it
// there: what was checked is what the store has.
func (b *Batch) bring(path string, num uint64) error {
	if err := b.Interrupted(); err != nil {
		return err
	}
	b.brought = append(b.brought, num)
	name := b.path(num)
	linked, err := b.link(path, name)
	if err == nil && !linked {
		err = vfs.CopyFile(b.FS, name, b.Source, path, b.Interrupted)
	}
	if err != nil {
		return fmt.Errorf("siftkv: ingest %s: %w", path, err)
	}
	taken := len(b.Files)
	if err := b.examine(path, name, num); err != nil || len(b.Files) > taken {
		return err
	}
	return b.FS.Remove(name) // there is nothing in it
}

// link gives the file a second name and makes its bytes durable, or reports that it has to be copied.
func (b *Batch) link(path, name string) (linked bool, err error) {
	syncer, ok := b.FS.(vfs.FileSyncer)
	if !ok || b.Source != b.FS || b.Copy {
		return false, nil
	}
	if linked = b.FS.Link(path, name) == nil; !linked {
		return false, nil
	}
	if linked = syncer.SyncFile(name) == nil; !linked {
		err = b.FS.Remove(name) // or the copy would go into the original
	}
	return linked, err
}

// examine checks a file that was brought in and describes it. An empty one is left out. Errors name the file at path.
func (b *Batch) examine(path, name string, num uint64) (err error) {
	f, err := b.FS.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	var r *sstable.Reader
	if err == nil {
		r, err = sstable.NewReader(f, size,
			&sstable.ReaderOptions{Name: path, CacheSize: -1, Filter: b.Filter, Prefix: b.Prefix,
				RangeFilter: b.RangeFilter})
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	info, err := r.Info()
	if err != nil {
		return err
	}
	tombs := r.Tombstones().Clip(nil, nil, nil)
	if err := b.admit(path, info, tombs); err != nil {
		return err
	}
	if !b.SkipVerify {
		if err := b.verify(path, r); err != nil {
			return err
		}
	}
	if info.Entries+info.RangeDeletes > 0 {
		b.Files = append(b.Files, File{path, tablemeta.Of(num, info, tombs)})
	}
	return nil
}

// admit refuses a file by its properties and range tombstones.
func (b *Batch) admit(path string, info *sstable.FileInfo, tombs []rangedel.Tombstone) error {
	if info.LargestSeq != 0 {
		return fmt.Errorf("%w: %s has sequence numbers up to %d: it is a store's own file; write one with "+
			"sstable.Writer", ErrNotIngestible, path, info.LargestSeq)
	}
	if info.Merges > 0 {
		return fmt.Errorf("%w: %s has %d merge operands", ErrNotIngestible, path, info.Merges)
	}
	if info.Separated > 0 {
		return fmt.Errorf("%w: %s has %d values in blob files, which belong to its store: write a file that has the "+
			"values with sstable.Writer", ErrNotIngestible, path, info.Separated)
	}
	keys := [][]byte{info.Smallest, info.Largest}
	for _, t := range tombs {
		keys = append(keys, t.Start, t.End)
	}
	for _, k := range keys {
		if err := b.admitEntry(path, k, nil); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) verify(path string, r *sstable.Reader) error {
	var last []byte
	n := 0
	return r.VerifyEach(func(k base.InternalKey, value []byte) error {
		if n++; n%4096 == 0 {
			if err := b.Interrupted(); err != nil {
				return err
			}
		}
		if n > 1 && bytes.Equal(last, k.User) {
			return fmt.Errorf("%w: %s has %.64q twice", ErrNotIngestible, path, k.User)
		}
		switch k.Kind() {
		case base.KindSet, base.KindDelete:
		case base.KindSetTTL:
			_, value, _ = base.CutExpiry(value) // VerifyEach has seen that it has one
		default: // whatever the properties say
			return fmt.Errorf("%w: %s has an entry of kind %v under %.64q", ErrNotIngestible, path, k.Kind(), k.User)
		}
		last = append(last[:0], k.User...)
		return b.admitEntry(path, k.User, value)
	})
}

// admitEntry refuses keys and values that no write could have brought b.
func (b *Batch) admitEntry(path string, key, value []byte) error {
	if err := b.CheckEntry(key, value); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotIngestible, path, err)
	}
	return nil
}
