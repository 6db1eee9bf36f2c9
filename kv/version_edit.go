package kv

import (
	"errors"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// snapshotEdit describes the whole store, at version v.
func (d *DB) snapshotEdit(v *version.Version) *manifest.Edit {
	e := &manifest.Edit{StoreID: d.storeID, NextFile: d.nextFile.Load(), LogNum: d.logNum, LastSeq: v.LastSeq}
	v.Describe(e)
	d.describeFeatures(e)
	return e
}

// maxManifestSize is the size from which on a manifest is replaced by a snapshot of the
// store when it has twice the size that it began with: so a snapshot, which has as many tables
// as the store, costs no more than the edits before it, however large the store is.
const maxManifestSize = 4 << 20

// applyEdit makes an edit durable and then current. Edit is called with the
// locks held, so that it sees the version that its edit applies to. After an error
// of the disk the store takes no writes, and the tables that the edit adds are kept
// until it is certain that no manifest names them.
func (d *DB) applyEdit(edit func() *manifest.Edit, install func()) error {
	d.manifestMu.Lock()
	defer d.manifestMu.Unlock()
	d.mu.Lock()
	e := edit()
	d.current.DropBlobs(e)
	if len(e.AddedBlobs) > 0 {
		e.Features |= manifest.FeatureApart &^ d.features
	}
	base, failure, broken := d.current, d.failure, d.resumer.broken&brokenManifest != 0
	d.mu.Unlock()
	if broken {
		d.orphan(e, d.manifest.Torn())
		return failure
	}

	next, err := base.Apply(e)
	if err != nil {
		return err // an error of this program; the disk is as it was
	}
	e.NextFile, e.LastSeq = d.nextFile.Load(), next.LastSeq
	if err := d.appendEdit(e); err != nil {
		d.orphan(e, d.manifest.Torn())
		return d.fail(brokenManifest, writingManifest, err)
	}
	// To open a table may ask filters. The edit is made, whatever they do: who needs the table opens it then.
	_ = d.guard(func() error {
		next.OpenTombstones(&d.tables, e)
		return nil
	})
	d.mu.Lock()
	if e.LogNum > 0 {
		d.logNum = e.LogNum
	}
	d.features |= e.Features
	d.installVersion(next)
	install()
	d.installState()
	d.mu.Unlock()
	if d.manifest.Size() > max(d.opts.maxManifestSize, 2*d.manifest.SnapshotSize()) {
		d.rotateManifest(next)
	}
	return nil
}

// appendEdit appends an edit to the manifest. The caller holds manifestMu.
func (d *DB) appendEdit(e *manifest.Edit) error {
	if err := d.verifyDirectory(); err != nil {
		return err
	}
	return d.manifest.Append(e)
}

// closeManifest ends the manifest, which says how far the writes go that are in the
// logs and tables: what is missing on the next start was not lost to a crash. If
// something went wrong before, the manifest stays without an end. So it does if nobody else has seen it
// yet.
func (d *DB) closeManifest(err error) error {
	if err != nil || d.failure != nil || d.unchanged() {
		return errors.Join(err, d.manifest.Abandon())
	}
	err = d.manifest.Append(&manifest.Edit{Closed: d.seq()})
	return errors.Join(err, d.manifest.Close())
}

// rotateManifest starts a new manifest. If that fails, so does the store; the edits
// of the old one stand. The caller holds manifestMu.
func (d *DB) rotateManifest(v *version.Version) {
	old, num := d.manifest, d.newFileNum()
	next, err := manifest.Create(d.fs, d.dir, num, d.snapshotEdit(v))
	if err != nil {
		name := d.path(manifest.FileManifest, num)
		d.resumer.orphans = append(d.resumer.orphans, name) // it may be in force for all we know
		_ = d.fail(brokenManifest, writingManifest, err)    // writers are told
		return
	}
	d.manifest = next
	name := d.path(manifest.FileManifest, old.Num())
	if err := old.Close(); err != nil {
		// Nothing is lost: the store is described by its successor.
		d.log.Warn("a replaced manifest could not be closed", "file", name, "error", err)
	}
	d.cleaner.File(name)
}

// position returns where the store is in its history.
func (d *DB) position() manifest.Position {
	d.manifestMu.Lock()
	defer d.manifestMu.Unlock()
	if d.manifest == nil {
		return manifest.Position{}
	}
	return d.manifest.Position()
}
