// Package branch keeps the branches and checkpoints of a store in an object store: it makes, lists and drops them, next
// to any writer, and deletes what writers have left behind. docs/adr/0024 has the order of puts, reads and deletions
// that keeps every needed file.
package branch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
)

// The state of a branch is the newest entry of a sequence with the branch's name. So concurrent changes happen one
// after the other, and the second fails. The sequence has no fences and nothing is deleted: 150 bytes for each change.
//
// The body of an entry is
//
//	uvarint  the format's version, 1
//	uvarint  1 there, 2 it may be dropped, 3 dropped, and its objects are being deleted, 4 gone
//	bytes    the branch prefix
//	uvarint  when it was made, microseconds since 1970 UTC
//	bytes    the name of the branch that it was made from; empty for the main branch
//	bytes    the name of the checkpoint that it was made from, if there was one
//
// where bytes are preceded by their length.
type branch struct {
	state   branchState
	prefix  filelist.BranchPrefix
	created time.Time
	parent  string
	from    string

	slot  uint64 // of the entry; 0 if there never was such a branch
	store uint64
}

type branchState uint64

const (
	branchThere    branchState = iota + 1
	branchDropping             // a drop checks whether others need its files
	branchDropped              // it cannot be opened any more
	branchGone                 // nothing of it is left
)

// Version is the newest version of the format of a branch's state.
const Version = 1

// Errors about branches and checkpoints, to be matched with errors.Is.
var (
	// ErrExists says that the name is taken.
	ErrExists = errors.New("siftkv: the name is taken")

	// ErrInUse says that others need files of the branch.
	ErrInUse = errors.New("siftkv: the branch is in use")
)

// Missing returns the error for a branch or a checkpoint that is not there. It matches base.ErrNotExist, and does not
// match fs.ErrNotExist: the store takes that for a file that another process removed, and reads again.
func Missing(format string, args ...any) error { return missingError{fmt.Errorf(format, args...)} }

type missingError struct{ cause error }

func (e missingError) Error() string { return base.ErrNotExist.Error() + ": " + e.cause.Error() }

func (e missingError) Is(target error) bool { return target == base.ErrNotExist }

func (e missingError) Unwrap() error { return e.cause }

func (b *branch) encode() []byte {
	dst := binary.AppendUvarint(nil, Version)
	dst = binary.AppendUvarint(dst, uint64(b.state))
	dst = appendBytes(dst, string(b.prefix))
	dst = binary.AppendUvarint(dst, uint64(b.created.UnixMicro()))
	return appendBytes(appendBytes(dst, b.parent), b.from)
}

func appendBytes(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func decodeBranch(b []byte, key string) (got branch, err error) {
	d := base.Decoder{Rest: b}
	if version := d.Uvarint(); version != Version && !d.Bad {
		return got, fmt.Errorf("%s: %w: a branch has version %d", key, manifest.ErrNewerFormat, version)
	}
	got.state, got.prefix = branchState(d.Uvarint()), filelist.BranchPrefix(d.Bytes())
	got.created = time.UnixMicro(int64(d.Uvarint()))
	got.parent, got.from = string(d.Bytes()), string(d.Bytes())
	if !d.Done() || got.state == 0 || got.state > branchGone || got.prefix == "" || !got.prefix.Valid() {
		return got, base.Corruptf(key, sequence.HeaderSize, "what became of a branch is malformed")
	}
	return got, nil
}

func (f *Set) registryOf(name string) *sequence.Sequence {
	return sequence.New(f.store, "branch/"+name+"@", sequence.Options{Patience: f.patience})
}

// branch returns the newest state of the branch with a name, also if listings lag. It is a LIST and two GET.
func (f *Set) branch(ctx context.Context, name string) (b branch, err error) {
	s := f.registryOf(name)
	newest, err := s.Newest(ctx)
	if err != nil {
		return branch{}, err
	}
	for newest.Slot = max(newest.Slot, 1); ; {
		e, err := s.Get(ctx, newest.Slot+1)
		if sequence.IsMissing(err) {
			break
		}
		if err != nil {
			return branch{}, err
		}
		newest = e
	}
	if newest.Slot == 1 {
		return branch{}, nil
	}
	return f.decodeBranch(s, newest)
}

func (f *Set) decodeBranch(s *sequence.Sequence, e sequence.Entry) (branch, error) {
	b, err := decodeBranch(e.Body, s.Key(e.Slot))
	b.slot, b.store = e.Slot, e.Store
	return b, err
}

// change puts b as the state after found; won is false if another change came first. It is a PUT.
func (f *Set) change(ctx context.Context, name string, found, b branch) (now branch, won bool, err error) {
	// Slot 1 stays free: the epoch of an entry that is no fence is less than its slot.
	b.slot = max(found.slot, 1) + 1
	won, err = f.registryOf(name).CreateData(ctx, b.slot, b.store, b.encode())
	return b, won, err
}

// Locate returns where a branch is, and the number of its store, 0 if that is not known. Of the main branch it sends
// no request.
func (f *Set) Locate(ctx context.Context, name string) (at filelist.BranchPrefix, store uint64, err error) {
	if name == "" {
		return "", 0, nil
	}
	if err := filelist.CheckName(name); err != nil {
		return "", 0, err
	}
	b, err := f.branch(ctx, name)
	if err != nil {
		return "", 0, err
	}
	if b.state != branchThere && b.state != branchDropping {
		return "", 0, Missing("no branch is called %q", name)
	}
	return b.prefix, b.store, nil
}

// An Info describes a branch.
type Info struct {
	Name       string // empty for the main branch
	Parent     string // the branch that it was made from
	Checkpoint string // and the checkpoint, if it was one
	Created    time.Time
	Unfinished bool // it cannot be opened: Clone has not finished it
}

// Branches returns all branches except the main one, by name. It is a LIST for a thousand changes of branches, and a
// GET and a LIST for each name.
func Branches(ctx context.Context, o Options) (all []Info, err error) {
	f := NewSet(o)
	last := ""
	for o, err := range f.store.List(ctx, "branch/", "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list branches: %w", err)
		}
		name, _, ok := strings.Cut(strings.TrimPrefix(o.Key, "branch/"), "@")
		if !ok || filelist.CheckName(name) != nil || name == last {
			continue
		}
		s := f.registryOf(name)
		slot, ok := s.SlotOf(o.Key) // the newest comes first
		if !ok {
			continue
		}
		e, err := s.Get(ctx, slot)
		if err != nil {
			return nil, err
		}
		last = name
		b, err := f.decodeBranch(s, e)
		if err != nil {
			return nil, err
		}
		if b.state == branchThere || b.state == branchDropping {
			v, err := f.Sequence(b.prefix, b.store).Tail(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, Info{name, b.parent, b.from, b.created, v.Data == 0})
		}
	}
	// The keys have another order: a suffix follows each name.
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
