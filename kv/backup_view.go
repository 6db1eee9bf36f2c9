package kv

import (
	"errors"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// writeView is Backup of a store that takes no writes: nothing is flushed.
func (b *backupJob) writeView(w io.Writer) (BackupMark, error) {
	s, _, now := b.d.present.enter(0) // its tables stay, as far as its writer keeps them
	if s == nil {
		return BackupMark{b.Since}, ErrClosed
	}
	defer s.release(0)
	b.FS = b.d.copySource(s.version)
	b.addFiles(s.version)
	added, err := b.addMemtables(s, now)
	if err != nil {
		return BackupMark{b.Since}, err
	}
	b.Store = &manifest.Edit{StoreID: b.d.storeID, LastSeq: now, Features: s.version.Features()}
	s.version.Describe(b.Store)
	(&job.Output{Tables: added}).AddTo(b.Store, 0, 0)
	b.addUnlisted(s.imms)
	for i := range added {
		b.Store.Features |= featuresOf(&added[i])
	}
	for i := range b.Store.Added {
		b.Store.NextFile = max(b.Store.NextFile, b.Store.Added[i].Table.Num+1)
	}
	for i := range b.Store.AddedBlobs {
		b.Store.NextFile = max(b.Store.NextFile, b.Store.AddedBlobs[i].Num+1)
	}
	if b.Store.Features&manifest.FeatureMerge != 0 {
		b.Store.Merger = s.operands.Name
	}
	m, err := b.Write(w)
	return BackupMark{m}, err
}

// featuresOf returns the features of a store that has the table.
func featuresOf(t *manifest.Table) (f manifest.Features) {
	if t.Merges > 0 {
		f |= manifest.FeatureMerge
	}
	if t.Expiring > 0 {
		f |= manifest.FeatureTTL
	}
	return f
}

// addMemtables adds the writes in the memtables of a state, up to a sequence number, to a backup as a table of level
// 0. The table gets the number of the last log, which the writer never gives to a table.
func (b *backupJob) addMemtables(s *readState, limit base.SeqNum) ([]manifest.Table, error) {
	mems := slices.Clone(s.imms)
	slices.Reverse(mems)
	if mems = slices.DeleteFunc(mems, (*memTable).Empty); len(mems) == 0 {
		return nil, nil
	}
	memory := vfs.NewMem()
	if err := memory.MkdirAll(b.d.dir); err != nil {
		return nil, err
	}
	env, j := b.d.jobEnv(s.operands), job.Flush{Version: s.version, Memtables: mems, Limit: limit}
	env.FS, env.NewNum, env.Stop = memory, func() uint64 { return mems[len(mems)-1].Log }, nil
	out, err := j.Do(env)
	out.Stats.CountIn(&b.d.counters, b.d.log)
	for _, t := range out.Tables {
		b.Sources = append(b.Sources, backup.Source{Sent: sentTable(&t), FS: memory})
	}
	return out.Tables, err
}

// addUnlisted adds the blob files of memtables to which the tables of a backup refer, and which no version lists.
func (b *backupJob) addUnlisted(mems []*memTable) {
	listed := len(b.Store.AddedBlobs)
	values.List(b.Store, mems)
	for i := range b.Store.AddedBlobs[listed:] {
		f := &version.Blob{BlobFile: b.Store.AddedBlobs[listed+i]}
		b.Store.Features |= manifest.FeatureSeparated
		b.Sources = append(b.Sources, backup.Source{Sent: sentBlob(&f.BlobFile), Verify: func(each func() error) error {
			return errors.Join(f.Verify(&b.d.values.Blobs, each), f.Close())
		}})
	}
}
