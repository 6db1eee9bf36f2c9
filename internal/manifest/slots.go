package manifest

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Kept is what a store keeps for its slots: the history of its writes after number From, as far as it is in tables. The
// logs that recovery reads go on where it ends. In an edit it is a change: the parts that it adds, and a later From,
// which gives up the parts that end there. A history with another id is another one, and begins at From.
type Kept struct {
	History uint64 // a random number; 0: none is kept
	From    base.SeqNum
	Parts   []KeptPart // in order
}

// A KeptPart is a log whose writes are in tables, a copy of such logs, or an ingest.
type KeptPart struct {
	Log   uint64      // its number, or that of the copy; 0: an ingest
	Copy  bool        // it is the copy of logs that were not whole
	Last  base.SeqNum // the last write
	Bytes int64       // that it takes, files included
	Time  uint64      // when it was kept, in seconds since 1970 UTC
	Files []uint64    // of an ingest, its tables; of a log, the blob files that it has handles of
}

// Names returns the names of the files of a part.
func (p *KeptPart) Names() (names []string) {
	kind := FileTable
	if p.Log > 0 {
		kind = FileBlob
		names = append(names, p.LogName())
	}
	for _, num := range p.Files {
		names = append(names, FileName(kind, num))
	}
	return names
}

// OpenKept opens a file that a slot needs. When nothing else needs it, it is renamed: NNNNNN.kept, which a repair that
// has lost the manifest does not take for a file of the store.
func OpenKept(fsys vfs.FS, name string) (vfs.ReadFile, error) {
	f, err := fsys.Open(name)
	if num := KeptNum(name); errors.Is(err, fs.ErrNotExist) && num > 0 {
		if kept, err := fsys.Open(Path(filepath.Dir(name), FileKept, num)); !errors.Is(err, fs.ErrNotExist) {
			return kept, err
		}
	}
	return f, err
}

// LogName returns the name of the file of a log or of a copy.
func (p *KeptPart) LogName() string {
	if p.Copy {
		return FileName(FileKept, p.Log)
	}
	return FileName(FileWAL, p.Log)
}

// Has reports whether a file with this base name is one of the parts', by the name that it had in the store or the one
// that it has when nothing else needs it.
func (k *Kept) Has(name string) bool {
	kind, num := ParseFileName(name)
	return slices.ContainsFunc(k.Parts, func(p KeptPart) bool {
		renamed := kind == FileKept && (p.Log > 0 && p.Log == num || slices.Contains(p.Files, num))
		return renamed || slices.Contains(p.Names(), name)
	})
}

// KeptNum returns the number of a file that a slot may need; 0: none does. A file has one name or the other: see
// OpenKept.
func KeptNum(name string) uint64 {
	switch kind, num := ParseFileName(filepath.Base(name)); kind {
	case FileTable, FileWAL, FileBlob, FileKept:
		return num
	default:
		return 0
	}
}

// Apply makes the change that an edit describes. It shares no memory with the edit, nor with what k was before.
func (k *Kept) Apply(change *Kept) {
	if change.History != 0 && change.History != k.History {
		*k = Kept{History: change.History, From: change.From}
	}
	k.From = max(k.From, change.From)
	parts := slices.Concat(k.Parts, change.Parts)
	k.Parts = slices.DeleteFunc(parts, func(p KeptPart) bool { return p.Last <= k.From })
}

// After returns the first part with writes after number at, if there is one.
func (k *Kept) After(at base.SeqNum) (p KeptPart, ok bool) {
	i := sort.Search(len(k.Parts), func(i int) bool { return k.Parts[i].Last > at })
	if i == len(k.Parts) {
		return p, false
	}
	return k.Parts[i], true
}

// append appends what an edit says of them, field by field.
func (k *Kept) append(field func(tag uint64, body []byte)) {
	if k.History != 0 {
		field(tagHistory, appendUvarints(nil, k.History, uint64(k.From)))
	}
	for i := range k.Parts {
		p, tag, body := &k.Parts[i], uint64(tagKeptIngest), []byte(nil)
		if p.Log > 0 {
			tag, body = tagKeptLog, appendUvarints(nil, p.Log)
		}
		if p.Copy {
			tag = tagKeptCopy
		}
		body = appendUvarints(body, uint64(p.Last), uint64(p.Bytes), p.Time)
		field(tag, appendUvarints(body, p.Files...))
	}
}

// decode takes one of their fields in. Parts are of a history, and in order.
func (k *Kept) decode(tag uint64, d *decoder) {
	if tag == tagHistory {
		d.Bad = d.Bad || k.History != 0
		k.History, k.From = d.Uvarint(), base.SeqNum(d.Uvarint())
		d.Bad = d.Bad || k.History == 0
		return
	}
	p := KeptPart{}
	if tag != tagKeptIngest {
		p.Log, p.Copy = d.Uvarint(), tag == tagKeptCopy
		d.Bad = d.Bad || p.Log == 0
	}
	p.Last, p.Bytes, p.Time = base.SeqNum(d.Uvarint()), d.size(), d.Uvarint()
	for len(d.Rest) > 0 && !d.Bad {
		p.Files = append(p.Files, d.Uvarint())
	}
	n := len(k.Parts)
	d.Bad = d.Bad || p.Last > base.MaxSeqNum || n > 0 && p.Last <= k.Parts[n-1].Last
	d.Bad = d.Bad || tag == tagKeptIngest && len(p.Files) == 0
	k.Parts = append(k.Parts, p)
}
