package kv

import (
	"errors"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/version"
)

// snapshotEdit describes the whole store, at version v.
func (d *DB) snapshotEdit(v *version.Version) *manifest.Edit {
	e := &manifest.Edit{StoreID: d.storeID, NextFile: d.nextFile.Load(), LogNum: d.logNum, LastSeq: v.LastSeq}
	v.Describe(e)
	d.describeFeatures(e)
	return e
}

// maxManifestSize: a manifest is replaced by a snapshot of the store when it is larger than
// this, and has twice the size that it began with. A snapshot has as many tables as the store.
// So it costs no more than the edits before it, however large the store is.
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
	if err := d.appendEdit(base, e); err != nil {
		d.orphan(e, d.manifest.Torn())
		return d.fail(brokenManifest, writingManifest, err)
	}
	// To open a table may ask filters. The edit is made, whatever they do: a read that needs the table opens it then.
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

// appendEdit appends an edit to the manifest of the store at version v. If it finds no room, it does so in a manifest
// that takes the other's place, with the room of the ballast. What the other has of the edit is not known. The caller
// holds manifestMu.
func (d *DB) appendEdit(v *version.Version, e *manifest.Edit) error {
	if err := d.verifyDirectory(); err != nil {
		return err
	}
	err := d.manifest.Append(e)
	if err == nil || !d.lacksSpace(err) {
		return err
	}
	if err := d.newManifest(v); err != nil {
		return err
	}
	return d.manifest.Append(e)
}

// closeManifest ends the manifest with the number of the last write in the logs and tables. Writes that are missing on
// the next start were not lost to a crash. The manifest stays without an end if something went wrong before, and in an
// object store if nothing has changed since Open.
func (d *DB) closeManifest(err error) error {
	if err != nil || d.failure != nil || d.unchanged() {
		return errors.Join(err, d.manifest.Abandon())
	}
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		objects.PublishWhole()
	}
	err = d.manifest.Append(&manifest.Edit{Closed: d.seq()})
	return errors.Join(err, d.manifest.Close())
}

// rotateManifest starts a new manifest. If that fails, so does the store; the edits
// of the old one stand. The caller holds manifestMu.
func (d *DB) rotateManifest(v *version.Version) {
	if err := d.newManifest(v); err != nil {
		_ = d.fail(brokenManifest, writingManifest, err) // writers get the error
	}
}

// newManifest puts a manifest in force that describes the store at version v, and closes the one before it. If it
// finds no room, it tries again with that of the ballast. The caller holds manifestMu.
func (d *DB) newManifest(v *version.Version) error {
	next, err := d.createManifest(v)
	if err != nil && d.lacksSpace(err) {
		next, err = d.createManifest(v)
	}
	if err != nil {
		return err
	}
	old := d.manifest
	d.manifest = next
	name := d.path(manifest.FileManifest, old.Num())
	if err := old.Close(); err != nil {
		// Nothing is lost: the store is described by its successor.
		d.log.Warn("a replaced manifest could not be closed", "file", name, "error", err)
	}
	for _, name := range append(d.resumer.orphans, name) {
		d.cleaner.File(name)
	}
	d.resumer.orphans = nil
	return nil
}

// createManifest is manifest.Create for the store at version v, under a new number.
func (d *DB) createManifest(v *version.Version) (*manifest.Log, error) {
	num := d.newFileNum()
	m, err := manifest.Create(d.fs, d.dir, num, d.snapshotEdit(v))
	if err != nil { // it may be in force for all we know
		d.resumer.orphans = append(d.resumer.orphans, d.path(manifest.FileManifest, num))
	}
	return m, err
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
