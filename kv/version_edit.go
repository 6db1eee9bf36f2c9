package kv

import (
	"errors"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// snapshotEdit describes the whole store, at version v. Its log is that of v if the caller holds the manifest's lock.
func (d *DB) snapshotEdit(v *version.Version) *manifest.Edit {
	d.mu.Lock()
	e := &manifest.Edit{StoreID: d.storeID, NextFile: d.nextFile.Load(), LogNum: d.logNum, LastSeq: v.LastSeq,
		Features: d.features &^ manifest.FeatureSlots}
	d.mu.Unlock()
	if e.Features&manifest.FeatureMerge != 0 {
		e.Merger = d.operands.Name
	}
	v.Describe(e)
	return e
}

// maxManifestSize is the size in bytes from which a manifest may be replaced.
const maxManifestSize = 4 << 20

// applyEdit makes an edit durable and then current. Edit is called with the locks held, so that it sees the version
// that its edit applies to. After an error of the disk the store takes no writes, and the tables that the edit adds are
// kept until it is certain that no manifest names them.
func (d *DB) applyEdit(edit func() *manifest.Edit, install func()) error {
	d.manifest.Lock()
	defer d.manifest.Unlock()
	d.slots.LearnBeforeEdit()
	d.mu.Lock()
	e := edit()
	d.slots.Change(e)
	d.current.DropBlobs(e)
	if len(e.AddedBlobs) > 0 {
		e.Features |= manifest.FeatureSeparated &^ d.features
	}
	base, failure, broken := d.current, d.failure, d.resumer.broken&brokenManifest != 0
	d.mu.Unlock()
	if broken {
		d.manifest.Orphan(e)
		return failure
	}

	next, err := base.Apply(e)
	if err != nil {
		return err // an error of this program; the disk is as it was
	}
	e.NextFile, e.LastSeq = d.nextFile.Load(), next.LastSeq
	if err := d.manifest.Write(base, e); err != nil {
		return d.fail(brokenManifest, writingManifest, err)
	}
	// To open a table may ask filters. The edit is made, whatever they do: a read that needs the table opens it then.
	callback.Log(d.log, callback.Do(callback.OfOptions, func() error {
		next.OpenTombstones(&d.tables, e)
		return nil
	}))
	d.mu.Lock()
	if e.LogNum > 0 {
		d.logNum = e.LogNum
	}
	d.features |= e.Features
	d.slots.Changed(e)
	d.installVersion(next)
	install()
	d.installState()
	d.mu.Unlock()
	d.slots.Report()
	if err := d.manifest.Rotate(next); err != nil {
		_ = d.fail(brokenManifest, writingManifest, err) // writers get the error, and the edit is made
	}
	return nil
}

// closeManifest ends the manifest with the number of the last write in the logs and tables. Writes that are missing on
// the next start were not lost to a crash. The manifest stays without an end if something went wrong before, and in an
// object store if nothing has changed since Open.
func closeManifest(d *DB, err error) error {
	if err != nil || d.failure != nil || d.objects.finish() {
		return errors.Join(err, d.manifest.Abandon())
	}
	err = d.manifest.Append(&manifest.Edit{Closed: d.seq()})
	return errors.Join(err, d.manifest.Close())
}
