package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// Options are the settings of a repair. The zero value repairs in place.
type Options struct {
	// DryRun finds out what a repair would do and lose, and writes nothing. Tables that
	// would be salvaged are in memory meanwhile.
	DryRun bool
	// Out is a directory, not there or empty, that gets the repaired store. The original is left as
	// it is; whole tables are linked where that is possible. After an error the directory is as
	// before. The next repair removes what a killed one has left there. Pieces of files that the
	// device cannot read count as damaged; a repair in place refuses them, and any other file that
	// it may not read.
	Out string
	// From, if set, has the damaged store's directory as it was at one moment, in place of the operating system's
	// file system. There must be an Out, unless this is a dry run.
	From vfs.FS
	// LostValue, if set, is told each value of a blob file that is lost, while the repair goes on. The report lists
	// them too, up to a bound. An error ends the repair.
	LostValue func(v LostValue) error
	// Progress, if set, is told about the files of each phase.
	Progress func(phase string, done, total int)

	fs vfs.FS // tests: the file system
}

// Run repairs the store in dir. No writer may have it open; in a repair in place no reader may either, as its files
// would go. If nothing is damaged and there is no other directory to write to, it does nothing. The repaired store has
// been opened and verified when Run returns without an error.
//
// Both directories are those that were opened, even if they are renamed later. If the one that the repaired store is in
// is moved, the error matches vfs.ErrMoved.
func Run(ctx context.Context, dir string, o Options) (rep *Report, err error) {
	r := &repairer{ctx: ctx, name: dir, o: o, onDisk: o.fs == nil && o.From == nil}
	if o.Progress == nil {
		r.o.Progress = func(string, int, int) {}
	}
	defer func() { err = errors.Join(err, r.closeDirectories()) }()
	if err := r.openDirectories(dir); err != nil {
		return nil, err
	}
	if err := r.examine(); err != nil {
		return nil, err
	}
	if !r.report.Needed && o.Out == "" {
		return r.report, nil
	}
	if err := r.locked(); err != nil {
		return nil, err
	}
	if err := r.directory.Check(); err != nil && (o.DryRun || o.Out != "") {
		r.report.note("%v; this is about the one that was opened as %s", err, dir)
	}
	if o.DryRun || o.fs != nil {
		return r.report, nil
	}
	return r.report, r.verify()
}

func (r *repairer) verify() error {
	if err := r.checkTarget(); err != nil {
		return err
	}
	if err := kv.Verify(r.ctx, r.target, io.Discard); err != nil {
		return fmt.Errorf("the repaired store in %s does not verify: %w", r.target, err)
	}
	return r.checkTarget()
}

type repairer struct {
	ctx    context.Context
	name   string // of the damaged store's directory, as the caller has it
	o      Options
	onDisk bool // the file system is the operating system's

	fs        vfs.FS // has the damaged store's directory open
	dir       string
	directory *vfs.Directory

	to              vfs.FS // has the repaired store's directory open
	target          string
	targetDirectory *vfs.Directory
	out             *outDir // nil: the store is repaired in place

	before []string // the names in dir, from before the survey
	s      *survey.Store
	report *Report
	pieces []*piece

	rescued besideLogs // of flushes that the manifest does not list

	blobs       map[uint64]*blobFile  // by number
	copies      map[uint64]recordCopy // of values that are lost, by writeSum
	tablesLost  int                   // or parts of some
	lostTables  []*lostTable
	record      []byte                          // of readable
	logEnds     map[uint64]uint64               // by blob file, the last write that counts of the log with its handles
	replacedIn  map[uint64]bool                 // blob files of tables that are gone and may have been compacted
	logged      map[base.SeqNum]batchrepr.Entry // values in logs that count for nothing
	listed      int                             // lost values in the report
	listedBytes int                             // of their keys

	stage    vfs.FS // where new tables are written, and in which directory
	stageDir string
	nextFile uint64
	written  []string // paths in stage
}

// A piece is a table of the repaired store: one of the original's, or a new one.
type piece struct {
	level int    // -1: not decided
	run   uint64 // of the level
	t     manifest.Table
	fs    vfs.FS
	path  string
	from  []string // names of the originals that its entries come from
	kept  bool     // it is an original
	// checked says that the survey has held its handles against the blob files.
	checked bool
}

// age returns the number of the file that the table comes from: its writes are no newer if it is written again.
func (p *piece) age() (num uint64) {
	for _, name := range p.from {
		kind, n := manifest.ParseFileName(name)
		if kind == manifest.FileWAL {
			return p.t.Num
		}
		num = max(num, n)
	}
	return cmp.Or(num, p.t.Num)
}

func (r *repairer) examine() (err error) {
	o := survey.Options{FS: r.fs, Deep: true, Progress: r.o.Progress, ReadAround: r.o.Out != ""}
	before, listErr := r.fs.List(r.dir)
	if r.onDisk {
		r.s, err = doctor.Verify(r.ctx, r.dir, o)
	} else {
		r.s, err = survey.Take(r.ctx, r.dir, o)
	}
	if err = cmp.Or(err, listErr); err != nil {
		return err
	}
	r.before = slices.DeleteFunc(before, comesAndGoes)
	r.report = &Report{
		Dir: keytext.Name(r.name), Out: keytext.Name(r.o.Out), DryRun: r.o.DryRun, Needed: len(r.s.Damage) > 0,
		Damage: append([]survey.Damage{}, r.s.Damage...), Notes: append([]string{}, r.s.Notes...), Files: []File{},
		Lost: []Loss{},
	}
	return nil
}

// locked does the work under the store's lock.
func (r *repairer) locked() (err error) {
	mode := vfs.Exclusive
	if r.o.DryRun || r.o.Out != "" {
		mode = vfs.Shared
	}
	lock, err := survey.Lock(r.fs, r.dir, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := r.unchanged(); err != nil {
		return err
	}
	if mode == vfs.Exclusive {
		if err := r.refuseReaders(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			r.abort()
		}
	}()
	if r.out != nil && !r.o.DryRun {
		if err := r.out.begin(); err != nil {
			return err
		}
		r.to, r.targetDirectory = r.out.fs, r.out.directory
	}
	r.nextFile = r.s.NextFile
	r.stage, r.stageDir = r.to, r.target
	if r.o.DryRun {
		r.stage = vfs.NewMem()
		r.stageDir = string(filepath.Separator) + "stage"
		if err := r.stage.MkdirAll(r.stageDir); err != nil {
			return err
		}
	}
	if err := r.rebuild(); err != nil {
		return err
	}
	if r.o.DryRun {
		return nil
	}
	return r.install()
}

// unchanged returns an error unless the store's directory has the same names as before
// the survey, except those of new tables. A writer that has opened the store since, while
// the lock was free, has left others.
func (r *repairer) unchanged() error {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(r.written, filepath.Join(r.dir, name)) || comesAndGoes(name)
	})
	if !slices.Equal(names, r.before) {
		return fmt.Errorf("siftkv: repair: the files of %s have changed meanwhile: make sure that no program has the "+
			"store open, and run again", r.dir)
	}
	return nil
}

// refuseReaders returns an error if the store has registered readers.
func (r *repairer) refuseReaders() error {
	n, _, err := manifest.Readers(r.fs, r.dir)
	if err != nil || n == 0 {
		return err
	}
	return fmt.Errorf("siftkv: repair: %w: processes that read it next to its writer, each with a file "+
		"READER-<process id>-<number> in %s: %d; end them, or repair into another directory",
		kv.ErrLocked, r.dir, n)
}

// listOfFiles is the file of the loss that a manifest means that cannot be trusted.
const listOfFiles = "MANIFEST"

// rebuild decides on the tables of the repaired store, and writes the new ones.
func (r *repairer) rebuild() error {
	trusted := r.s.Trusted()
	r.findBlobs()
	if err := r.tables(); err != nil {
		return err
	}
	if err := r.logs(); err != nil {
		return err
	}
	if len(r.blobs) > 0 { // it has values in blob files, or had
		if err := r.values(); err != nil {
			return err
		}
	}
	r.report.Levels = "manifest"
	if !trusted {
		r.report.lose(Loss{File: listOfFiles, What: "which files there were is not known: those that are missing " +
			"are not reported one by one", Possible: true})
	}
	if !trusted || !r.ordered() {
		r.report.Levels = "sequence numbers"
		r.report.note("the manifest cannot be trusted: if a crash had left files behind that the store no longer " +
			"used, older values or deleted keys may be back")
		if n := r.unordered(); n > 0 {
			r.report.note("%d files have sequence number 0 throughout, and no manifest lists them: they are of "+
				"the last level, or were ingested; what they have counts as older than all else", n)
		}
		if err := r.place(); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(r.s.Tables, func(t survey.Table) bool { return r.s.Unfinished(&t) }) {
		r.report.note("tables of an ingest that a crash broke off are left out, all of them: ingest the files " +
			"again, if the call had not returned they never counted")
	}
	r.reportBlobs()
	if slots := r.slots(); len(slots) > 0 {
		r.report.note("these slots are lost: drop them, and make them again: %s", strings.Join(slots, ", "))
	}
	for _, p := range r.pieces {
		r.report.Tables++
		r.report.Entries += p.t.Entries
		for _, name := range p.from {
			i := slices.IndexFunc(r.report.Files, func(f File) bool { return f.Name == name })
			if i >= 0 && !p.kept {
				r.report.Files[i].Into = append(r.report.Files[i].Into, manifest.FileName(manifest.FileTable, p.t.Num))
			}
		}
	}
	return nil
}

// slots returns the names of the slots of the store.
func (r *repairer) slots() (slots []string) {
	for _, name := range r.before {
		if kind, _ := manifest.ParseFileName(name); kind == manifest.FileSlot {
			slots = append(slots, manifest.SlotOf(name))
		}
	}
	return slots
}

// unordered returns how many tables only the manifest could have placed in history.
func (r *repairer) unordered() (n int) {
	for i := range r.s.Tables {
		t := &r.s.Tables[i]
		if t.Listing == nil && t.Holds == "" && t.Info != nil && t.Info.LargestSeq == 0 && !r.s.Obsolete(t) &&
			!r.s.Unfinished(t) {
			n++
		}
	}
	return n
}

// abort removes what was written: nothing refers to it.
func (r *repairer) abort() {
	for _, path := range slices.Backward(r.written) {
		_ = r.stage.Remove(path) // a later repair, or the store, removes what stays
	}
	if r.out != nil && !r.o.DryRun {
		r.out.abort()
	}
}
