package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
)

// LostDir is the directory, in the store's, that originals are moved to.
const LostDir = "lost"

// install puts the repaired store in force.
func (r *repairer) install() error {
	if r.o.Out != "" {
		for _, p := range r.pieces {
			if !p.kept {
				continue
			}
			name := manifest.FileName(manifest.FileTable, p.t.Num)
			if err := r.linkOrCopy(filepath.Join(r.dir, name), filepath.Join(r.target, name)); err != nil {
				return err
			}
		}
		if err := r.bringBlobs(); err != nil {
			return err
		}
		if err := r.writeManifest(); err != nil {
			return err
		}
		return r.out.settle()
	}
	if err := r.unchanged(); err != nil {
		return err // another process has written without the lock
	}
	// Each original gets its name in lost before the new manifest is in force: then the
	// store may remove what it does not list.
	aside, err := r.setAside(r.before)
	if err != nil {
		return err
	}
	if err := r.writeManifest(); err != nil {
		return err
	}
	if n, _, err := manifest.Readers(r.fs, r.dir); err != nil || n > 0 {
		return err // a reader has come meanwhile: the store removes the files in time
	}
	for _, name := range aside {
		if name == manifest.CurrentName {
			continue // the new one has taken its place
		}
		if err := r.fs.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.fs.SyncDir(r.dir)
}

// bringBlobs links or copies the blob files of the repaired store that are originals.
func (r *repairer) bringBlobs() error {
	for num := range r.referred() {
		b := r.blob(num)
		if b.found == nil {
			continue // a new one
		}
		if err := r.linkOrCopy(b.path, filepath.Join(r.target, b.name())); err != nil {
			return err
		}
	}
	return nil
}

// comesAndGoes reports whether a file only says which process has the store open.
func comesAndGoes(name string) bool {
	kind, _ := manifest.ParseFileName(name)
	return kind == manifest.FileLock || kind == manifest.FileReader || kind == manifest.FileConsumer
}

// staysInPlace are the kinds of files that a repair in place leaves as they are.
var staysInPlace = []manifest.FileKind{manifest.FileUnknown, manifest.FileTemp, manifest.FileOptions,
	manifest.FileBallast}

// isDamaged reports whether the survey has found damage in a file.
func (r *repairer) isDamaged(name string) bool {
	return slices.ContainsFunc(r.s.Damage, func(d survey.Damage) bool { return d.File == name })
}

// setAside gives a second name, in lost, to every original that the repaired store does
// not use, and returns their names.
func (r *repairer) setAside(names []string) ([]string, error) {
	var aside []string
	blobs := r.referred()
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		kept := kind == manifest.FileTable &&
			slices.ContainsFunc(r.pieces, func(p *piece) bool { return p.kept && p.t.Num == num }) ||
			kind == manifest.FileBlob && blobs[num]
		if kind == manifest.FileSlot && !r.isDamaged(name) {
			continue // it says that the slot is lost
		}
		if !kept && !slices.Contains(staysInPlace, kind) {
			aside = append(aside, name)
		}
	}
	if len(aside) == 0 {
		return nil, nil
	}
	lost := filepath.Join(r.dir, LostDir)
	r.written = append(r.written, lost) // a directory that is not empty stays
	if err := r.fs.MkdirAll(lost); err != nil {
		return nil, err
	}
	taken, err := r.fs.List(lost)
	if err != nil {
		return nil, err
	}
	for _, name := range aside {
		to := name
		for n := 2; slices.Contains(taken, to); n++ {
			to = fmt.Sprintf("%s.%d", name, n)
		}
		r.written = append(r.written, filepath.Join(lost, to))
		if err := r.linkOrCopy(filepath.Join(r.dir, name), filepath.Join(lost, to)); err != nil {
			return nil, err
		}
		r.moved(name, filepath.Join(LostDir, to))
	}
	return aside, errors.Join(r.fs.SyncDir(lost), r.fs.SyncDir(r.dir))
}

// moved notes where an original is now.
func (r *repairer) moved(name, to string) {
	i := slices.IndexFunc(r.report.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		action := Replaced
		if _, ok := manifest.ParseIngest(name); ok {
			action = LeftOut
		}
		r.report.file(name, action, "")
		i = len(r.report.Files) - 1
	}
	r.report.Files[i].MovedTo = to
}

// writeManifest describes the repaired store, durably. It copies what the old manifest
// said in addition to its lists.
func (r *repairer) writeManifest() error {
	e := &manifest.Edit{}
	last := uint64(0)
	if m := r.s.Manifest; m != nil {
		*e = m.First
		e.StoreID, last = m.StoreID, m.LastSeq
	}
	if e.StoreID == 0 {
		e.StoreID = rand.Uint64() | 1
	}
	for i := range r.s.Logs {
		last = max(last, r.s.Logs[i].LastSeq)
	}
	for _, p := range r.pieces {
		last = max(last, uint64(p.t.LargestSeq))
		e.Added = append(e.Added, manifest.AddedTable{Level: p.level, Run: p.run, Table: p.t})
		if p.t.Merges > 0 {
			e.Features |= manifest.FeatureMerge
		}
		if p.t.Expiring > 0 {
			e.Features |= manifest.FeatureTTL
		}
	}
	for _, num := range slices.Sorted(maps.Keys(r.referred())) {
		e.AddedBlobs = append(e.AddedBlobs, r.blob(num).info)
		e.Features |= manifest.FeatureSeparated
	}
	if e.Features&manifest.FeatureMerge != 0 {
		e.Merger = r.mergerName()
	}
	// No log will be replayed: all have smaller numbers.
	e.LogNum, e.NextFile, e.LastSeq = r.nextFile, r.nextFile+1, base.SeqNum(min(last, uint64(base.MaxSeqNum)))
	if err := r.to.SyncDir(r.target); err != nil {
		return err
	}
	if err := r.checkTarget(); err != nil {
		return err
	}
	m, err := manifest.Create(r.to, r.target, e.LogNum, e)
	if err != nil {
		r.keepIfInForce(e.LogNum)
		return err
	}
	r.written = nil
	return m.Close()
}

// keepIfInForce keeps the files of a manifest that may be in force, although putting it
// in force has failed. A manifest that CURRENT does not name never will be.
func (r *repairer) keepIfInForce(num uint64) {
	switch current, err := manifest.Current(r.to, r.target); {
	case err == nil && current != num, errors.Is(err, base.ErrCorruption), errors.Is(err, fs.ErrNotExist):
		temp := filepath.Join(r.target, manifest.CurrentName+vfs.TempSuffix)
		r.written = append(r.written, filepath.Join(r.target, manifest.FileName(manifest.FileManifest, num)), temp)
	default:
		r.written = nil
	}
}

// linkOrCopy gives a file of the damaged store a second name, or copies it where there are no links.
// Bytes that cannot be read are an error.
func (r *repairer) linkOrCopy(from, to string) error {
	if r.o.From == nil && r.to.Link(from, to) == nil {
		return nil
	}
	return vfs.CopyFile(r.to, to, r.fs, from, r.ctx.Err)
}
