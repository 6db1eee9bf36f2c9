package branch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/objstore"
)

// saveTries bounds the tries to save a state when the branch removes one of its files meanwhile.
const saveTries = 100

// CreateCheckpoint saves the state of a branch as it is in the object store, under a name, next to any writer. The
// error matches ErrExists if the name is taken.
//
// The proof that no collector deletes a file of it is in docs/adr/0024. It is two LIST, two PUT, and what reading the
// state needs: another LIST, a GET or two, and a GET for each entry of the log.
func CreateCheckpoint(ctx context.Context, o Options, name string) (objectdir.Checkpoint, error) {
	f, info := NewSet(o), objectdir.Checkpoint{Name: name, Created: time.Now()}
	if err := filelist.CheckName(name); err != nil {
		return info, err
	}
	at, store, err := f.Locate(ctx, o.Branch)
	if err != nil {
		return info, err
	}
	if _, err := f.FindCheckpoint(ctx, at, name); !errors.Is(err, base.ErrNotExist) {
		if err == nil {
			err = taken(name)
		}
		return info, err
	}
	save := saving{f: f, from: f.Sequence(at, store), prefix: at, to: at, name: name, created: info.Created}
	key, now, err := save.run(ctx)
	if err != nil {
		return info, err
	}
	info.Bytes = now.size()
	if err := f.put(ctx, key+confirmedSuffix, []byte(key)); err != nil {
		return info, err // it may be there: the state has to stay
	}
	if err := f.onlyOne(ctx, at, name, key); err != nil {
		return info, err
	}
	return info, nil
}

func taken(name string) error { return fmt.Errorf("%w: there is a checkpoint %q", ErrExists, name) }

// onlyOne makes sure that no other checkpoint was made under the name at the same time: each would see the other. Then
// it deletes this one, except a state that a branch was made from meanwhile: see release.
func (f *Set) onlyOne(ctx context.Context, at filelist.BranchPrefix, name, key string) error {
	found, err := f.Checkpoints(ctx, at.Checkpoints()+name+"@")
	if err != nil {
		return err
	}
	for _, other := range found {
		if other.Confirmed && other.key != key {
			err = taken(name)
		}
	}
	if err == nil {
		return nil
	}
	if failed := f.remove(ctx, key+confirmedSuffix); failed != nil {
		return errors.Join(err, failed)
	}
	k, _ := parseCheckpoint(key)
	_, failed := f.release(ctx, []uint64{k.Number}, "")
	return errors.Join(err, failed)
}

// A saving is a snapshot that is being put.
type saving struct {
	f       *Set
	from    *sequence.Sequence    // of the branch
	prefix  filelist.BranchPrefix // where the branch is
	to      filelist.BranchPrefix // that the checkpoint belongs to
	name    string                // empty: a pin, which has no logs
	created time.Time
	now     *Snapshot // the state, if it was read already
}

// run saves the state of the branch as it is now. When it returns without an error, no collector deletes a file
// of it, as long as the object with the key is there.
func (s *saving) run(ctx context.Context) (key string, now *Snapshot, err error) {
	for range saveTries {
		if now, s.now = s.now, nil; now == nil {
			if now, err = ReadSnapshot(ctx, s.from); err != nil {
				return "", nil, err
			}
		}
		if key, err = s.put(ctx, now, sequence.RandomID()); err != nil {
			return "", nil, err
		}
		live, err := needsAll(ctx, s.from, now)
		if err == nil && live {
			return key, now, nil
		}
		if failed := s.f.remove(context.WithoutCancel(ctx), key); err != nil || failed != nil {
			return "", nil, errors.Join(err, failed)
		}
	}
	return "", nil, errors.New("siftkv: the branch gives up its files faster than they can be saved")
}

func (s *saving) put(ctx context.Context, state *Snapshot, number uint64) (key string, err error) {
	if s.name == "" {
		state = &Snapshot{List: state.List}
	}
	key = stateKey(s.to, s.name, number)
	return key, s.f.put(ctx, key, state.Encode(key, Header{Store: s.from.Store(), Number: number,
		branch: s.prefix.Number(), created: s.created}))
}

// FindCheckpoint finds one that is finished. It is a LIST. The error matches base.ErrNotExist if there is none.
func (f *Set) FindCheckpoint(ctx context.Context, at filelist.BranchPrefix, name string) (Checkpoint, error) {
	if err := filelist.CheckName(name); err != nil {
		return Checkpoint{}, err
	}
	found, err := f.Checkpoints(ctx, at.Checkpoints()+name+"@")
	if err != nil {
		return Checkpoint{}, err
	}
	for _, c := range found {
		if c.Confirmed {
			return c, nil
		}
	}
	return Checkpoint{}, Missing("no checkpoint is called %q", name)
}

// maxRead is how many bytes of a checkpoint one request reads at most.
const maxRead = 64 << 20

// ReadCheckpoint reads a checkpoint. It is a GET.
func (f *Set) ReadCheckpoint(ctx context.Context, c Checkpoint) (s *Snapshot, h Header, err error) {
	err = twice(func() error {
		b, err := f.get(ctx, c.key, int(min(c.size, maxRead)))
		if errors.Is(err, objstore.ErrNotExist) {
			return Missing("the checkpoint %q was dropped: %w", c.Name, err)
		}
		if err == nil {
			s, h, err = decodeSnapshot(b, c.key)
		}
		return err
	})
	return s, h, err
}

// Checkpoints returns those of a branch, by name. It is a LIST for a thousand objects, and a GET for each checkpoint.
func Checkpoints(ctx context.Context, o Options) (all []objectdir.Checkpoint, err error) {
	f := NewSet(o)
	at, _, err := f.Locate(ctx, o.Branch)
	if err != nil {
		return nil, err
	}
	found, err := f.Checkpoints(ctx, at.Checkpoints())
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if c.Name == "" {
			continue
		}
		h, err := f.head(ctx, c.key)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // it was dropped
		}
		if err != nil {
			return nil, err
		}
		all = append(all, objectdir.Checkpoint{Name: c.Name, Created: h.created, Bytes: h.size,
			Unfinished: !c.Confirmed})
	}
	slices.SortStableFunc(all, func(a, b objectdir.Checkpoint) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (f *Set) head(ctx context.Context, key string) (h Header, err error) {
	err = twice(func() error {
		b, err := f.getStart(ctx, key, headerSize)
		if err == nil {
			h, err = decodeHeader(b, key)
		}
		return err
	})
	return h, err
}

// DropCheckpoint makes a checkpoint of a branch impossible to open. It also deletes it, unless a branch that was made
// from it needs its files; then that branch's writer deletes it in the end. Unfinished checkpoints of the same name are
// treated alike. Sorted files are deleted by their branch's writer, when nothing else needs them. The error matches
// base.ErrNotExist if there is nothing of that name. It is two LIST, and two DELETE.
func DropCheckpoint(ctx context.Context, o Options, name string) error {
	f := NewSet(o)
	if err := filelist.CheckName(name); err != nil {
		return err
	}
	at, _, err := f.Locate(ctx, o.Branch)
	if err != nil {
		return err
	}
	found, err := f.Checkpoints(ctx, at.Checkpoints()+name+"@")
	if err == nil && len(found) == 0 {
		err = Missing("no checkpoint is called %q", name)
	}
	var numbers []uint64
	for _, c := range found {
		if err == nil {
			err = f.remove(ctx, c.key+confirmedSuffix)
		}
		numbers = append(numbers, c.Number)
	}
	if err != nil {
		return err
	}
	_, err = f.release(ctx, numbers, "")
	return err
}

// release deletes those of the checkpoints that have no pin except the one with the key. It reports whether one stays
// for other pins. The caller has seen before that none can be opened any more. So each branch that was made from one
// had its pin by then, and the listing here shows it. It is a LIST.
func (f *Set) release(ctx context.Context, numbers []uint64, pin string) (stays bool, err error) {
	found, err := f.Checkpoints(ctx, "checkpoint/")
	needed := map[uint64]bool{}
	for _, c := range found {
		if c.Name == "" && c.key != pin || c.Confirmed {
			needed[c.Number] = true
		}
	}
	for _, c := range found {
		switch {
		case err != nil || c.Name == "" || !slices.Contains(numbers, c.Number):
		case needed[c.Number]:
			stays = true
		default:
			err = f.remove(ctx, c.key)
		}
	}
	return stays, err
}

// unpin deletes a pin, and with it the checkpoint that it was made from if that was dropped and nothing else needs it.
// The checkpoint goes first: if the call ends in between, the pin is left, and the next call finds both. A checkpoint
// that stays may be dropped meanwhile, or lose its last other pin to a call that still saw this one. So unpin looks
// again when this pin is gone. If that second look fails, the checkpoint stays until its name is dropped again. It is a
// DELETE and a LIST, and where there is such a checkpoint up to three LIST and a DELETE more.
func (f *Set) unpin(ctx context.Context, pin string) error {
	stays, err := f.releaseFrom(ctx, pin)
	if err == nil {
		err = f.remove(ctx, pin)
	}
	if err == nil && stays {
		_, err = f.releaseFrom(ctx, pin)
	}
	return err
}

// releaseFrom deletes the checkpoint that a pin was made from, if nothing but the pin needs it. It reports whether it
// stays. A first listing shows that it cannot be opened, and a second one, which begins then, the pins that need it.
func (f *Set) releaseFrom(ctx context.Context, pin string) (stays bool, err error) {
	k, _ := parseCheckpoint(pin)
	found, err := f.Checkpoints(ctx, "checkpoint/")
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(found, func(c Checkpoint) bool { return c.Number == k.Number && c.Name != "" })
	if at < 0 || found[at].Confirmed {
		return at >= 0, nil
	}
	return f.release(ctx, []uint64{k.Number}, pin)
}
