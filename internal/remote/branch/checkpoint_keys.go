package branch

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// A checkpoint is two objects: a state under a key with a random number, which is never used again; and a second
// object, which says that all files of the state are kept:
//
//	checkpoint/SITE/NAME@0123456789abcdef
//	checkpoint/SITE/NAME@0123456789abcdef-ok
//
// A checkpoint without a second object is unfinished: it is being made, or its creator died, or it was dropped while
// branches that were made from it need it. A pin is what a branch needs of others. It has no name, no second object,
// and the number of the checkpoint that the branch was made from, or else one of its own.

const confirmedSuffix = "-ok"

func stateKey(at filelist.BranchPrefix, name string, number uint64) string {
	return fmt.Sprintf("%s%s@%016x", at.Checkpoints(), name, number)
}

// A checkpointKey is what the key of a checkpoint's object says.
type checkpointKey struct {
	prefix    filelist.BranchPrefix
	Name      string // empty: a pin
	Number    uint64
	Confirmed bool // it is the second object
}

// parseCheckpoint is the inverse of stateKey, for both objects of a checkpoint.
func parseCheckpoint(key string) (k checkpointKey, ok bool) {
	rest, ok := strings.CutPrefix(key, "checkpoint/")
	dir, rest, found := strings.Cut(rest, "/")
	rest, k.Confirmed = strings.CutSuffix(rest, confirmedSuffix)
	name, digits, split := strings.Cut(rest, "@")
	number, err := strconv.ParseUint(digits, 16, 64)
	if k.prefix = filelist.BranchPrefix(dir); dir == "main" {
		k.prefix = ""
	}
	k.Name, k.Number = name, number
	if !ok || !found || !split || err != nil || !k.prefix.Valid() || name != "" && filelist.CheckName(name) != nil {
		return k, false
	}
	want := stateKey(k.prefix, name, number)
	if k.Confirmed {
		want += confirmedSuffix
	}
	return k, key == want
}

// A Checkpoint is what a listing shows of a checkpoint.
type Checkpoint struct {
	checkpointKey
	key  string // of the state
	size int64  // of the object
}

// Checkpoints returns the checkpoints with a key prefix, in key order, and which of them are confirmed. It is one LIST
// for a thousand objects.
func (f *Set) Checkpoints(ctx context.Context, prefix string) (found []Checkpoint, err error) {
	for o, err := range f.store.List(ctx, prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list %s: %w", prefix, err)
		}
		k, ok := parseCheckpoint(o.Key)
		switch last := len(found) - 1; {
		case ok && !k.Confirmed:
			found = append(found, Checkpoint{k, o.Key, o.Size})
		case ok && last >= 0 && found[last].key+confirmedSuffix == o.Key:
			found[last].Confirmed = true // its key directly follows that of the state
		}
	}
	return found, nil
}
