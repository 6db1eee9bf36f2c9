package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Damage is a place in a file that cannot be trusted.
type Damage struct {
	File   string `json:"file"`   // base name
	Offset int64  `json:"offset"` // in bytes; -1 if not known, or the file as a whole
	What   string `json:"what"`
}

func (d Damage) String() string {
	if d.Offset < 0 {
		return d.File + ": " + d.What
	}
	return fmt.Sprintf("%s at offset %d: %s", d.File, d.Offset, d.What)
}

// Options are the settings of a survey. The zero value is a good one.
type Options struct {
	// FS is the operating system's by default.
	FS vfs.FS
	// Deep reads every byte of every table. Otherwise tables are opened and no more.
	Deep bool
	// ReadAround takes what a device cannot read (EIO) for damage, and goes on after it.
	// It is for callers that leave the files as they are: another attempt may read them.
	ReadAround bool
	// ReadOn goes on to the next table after one that the file system cannot read. What
	// was found is returned with the errors.
	ReadOn bool
	// Progress, if set, is called before each file of a phase, and after the last.
	Progress func(phase string, done, total int)
	// BesideWriter makes Verify accept a store that a program writes to, as it is at one moment. Otherwise the error
	// matches vfs.ErrLocked.
	BesideWriter bool

	frozen bool // FS is a frozenFS: logs and the manifest end where they ended
}

// A File is a file with its size.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// A Store is what was found in a directory.
type Store struct {
	Dir      string
	Current  string    // name of the manifest that CURRENT names; empty if it is missing or damaged
	Manifest *Manifest // the one in force, or the best one left; nil if none can be read
	Tables   []Table   // on disk or listed by the manifest, by number
	Blobs    []Blob    // likewise
	Logs     []Log     // by number
	// MissingLogs are names of logs that must have been there.
	MissingLogs []string
	Ingests     []manifest.Ingest // that were under way
	Garbage     []File            // files of the store's kinds that nothing refers to any more
	NextFile    uint64            // no file has this number or a larger one

	Options *manifest.StoredOptions // what it was last opened with; nil: not known

	Damage []Damage
	Notes  []string // what a crash explains, and the like

	fs  vfs.FS
	ctx context.Context
	o   Options

	handles map[uint64]*handleSet // of a deep survey, by blob file: see noteHandle
}

// Take surveys the store in dir. It returns an error that matches base.ErrNotExist if there is none,
// base.ErrForeignDirectory if what is there is another program's, and base.ErrNewerFormat if a newer version wrote it.
// A file that the file system does not let be read is an error, and damage is none; what was found of tables and logs
// until then comes with the error. The caller holds the store's lock.
func Take(ctx context.Context, dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	s := &Store{Dir: dir, fs: o.FS, ctx: ctx, o: o, handles: map[uint64]*handleSet{}}
	names, err := s.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", base.ErrNotExist, dir)
	}
	if err != nil {
		return nil, err
	}
	s.number(names)
	if err := s.recognize(names); err != nil {
		return nil, err
	}
	if err := s.readManifests(names); err != nil {
		return nil, err
	}
	unread := s.readTables(names)
	if unread != nil && (ctx.Err() != nil || !o.ReadOn) {
		return s, unread
	}
	unread = errors.Join(unread, s.readBlobs(names))
	if unread != nil && (ctx.Err() != nil || !o.ReadOn) {
		return s, unread
	}
	s.handles = nil
	if err := errors.Join(unread, s.readLogs(names)); err != nil {
		return s, err
	}
	s.keepLogged()
	s.readOptions(names)
	s.judge()
	s.endHistory()
	if err := s.readKept(names); err != nil {
		return s, err
	}
	return s, s.findGarbage(names)
}

// readOptions reads what the store was last opened with. Nothing depends on it: what is wrong with it is no damage.
func (s *Store) readOptions(names []string) {
	if !slices.Contains(names, manifest.OptionsName) {
		return
	}
	o, err := manifest.Options(s.fs, s.Dir)
	if err != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("what the store was last opened with is not known: %v; "+
			"no data is lost, and opening it for writing replaces the file", err))
		return
	}
	s.Options = &o
}

// number notes the numbers of files, and the ingests that were under way.
func (s *Store) number(names []string) {
	for _, name := range names {
		_, num := manifest.ParseFileName(name)
		s.NextFile = max(s.NextFile, num+1)
		if ingest, ok := manifest.ParseIngest(name); ok {
			s.Ingests = append(s.Ingests, ingest)
		}
	}
}

func (s *Store) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *Store) damaged(file string, offset int64, format string, args ...any) {
	s.Damage = append(s.Damage, Damage{File: file, Offset: offset, What: fmt.Sprintf(format, args...)})
}

// damageOf turns an error, which may be several joined, into places.
func damageOf(file string, err error) []Damage {
	_, whole := err.(*base.CorruptionError) //nolint:errorlint // the outermost error, taken apart by hand
	if joined, ok := err.(interface{ Unwrap() []error }); ok && !whole {
		var all []Damage
		for _, e := range joined.Unwrap() {
			all = append(all, damageOf(file, e)...)
		}
		return all
	}
	ce, ok := errors.AsType[*base.CorruptionError](err)
	if !ok {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			file = filepath.Base(pe.Path)
		}
		return []Damage{{File: file, Offset: -1, What: err.Error()}}
	}
	d := Damage{File: filepath.Base(cmp.Or(ce.File, file)), Offset: ce.Offset, What: ce.What}
	if ce.Cause != nil {
		d.What += ": " + ce.Cause.Error()
	}
	return []Damage{d}
}

// findGarbage lists the files that a trusted manifest does not refer to. A file that a writer has just made may not be
// listed yet.
func (s *Store) findGarbage(names []string) error {
	if s.o.frozen {
		return nil
	}
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		garbage := false
		switch kind {
		case manifest.FileTemp, manifest.FileIngest:
			garbage = true
		case manifest.FileManifest:
			garbage = s.Manifest != nil && num != s.Manifest.Num
		case manifest.FileTable:
			i, ok := slices.BinarySearchFunc(s.Tables, num,
				func(t Table, n uint64) int { return cmp.Compare(t.Num, n) })
			garbage = ok && s.Obsolete(&s.Tables[i])
		case manifest.FileBlob:
			if s.Trusted() {
				_, listed := s.Manifest.Blobs[num]
				garbage = !listed &&
					!slices.ContainsFunc(s.Blobs, func(b Blob) bool { return b.Num == num && b.Logged })
			}
		case manifest.FileWAL:
			garbage = s.Manifest != nil && num < s.Manifest.LogNum
		case manifest.FileKept:
			garbage = s.Manifest != nil
		default:
		}
		if !garbage || s.Manifest != nil && s.Manifest.Slots.Has(name) {
			continue
		}
		size, err := s.fs.Stat(s.path(name))
		if err != nil && !s.aboutBytes(err) {
			return err
		}
		s.Garbage = append(s.Garbage, File{Name: name, Bytes: size})
	}
	return nil
}

// Obsolete reports whether the manifest proves that a table is not the store's any more, or never was.
func (s *Store) Obsolete(t *Table) bool {
	m := s.Manifest
	return m != nil && t.Present && t.Level < 0 && t.Holds == "" && (m.Trusted || m.Dead[t.Num]) && !s.Rescues(t)
}

// Unfinished reports whether a table is of an ingest that was under way, and that no
// manifest shows to have ended. The store has all tables of an ingest, or none.
func (s *Store) Unfinished(t *Table) bool {
	return t.Present && t.Level < 0 && slices.ContainsFunc(s.Ingests,
		func(i manifest.Ingest) bool { return i.Has(t.Num) })
}
