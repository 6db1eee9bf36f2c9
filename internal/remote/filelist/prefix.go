package filelist

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A BranchPrefix is where the objects of a branch are. The main branch has the keys of a store without branches. Any
// other has a prefix of its own, its name and a random number, which is never used again. So a late writer of a dropped
// branch never touches a new branch of the same name. The prefix of the main branch is empty.
type BranchPrefix string

// prefixDigits are those of the number at the end of a prefix, with the dash before it.
const prefixDigits = 17

// NewBranchPrefix returns the prefix of a branch with a name, and a random number.
func NewBranchPrefix(name string, number uint64) BranchPrefix {
	return BranchPrefix(fmt.Sprintf("%s-%016x", name, number))
}

// Objects begins the keys of all objects of a branch, except its checkpoints and its entry in the list of branches.
func (p BranchPrefix) Objects() string {
	if p == "" {
		return ""
	}
	return "data/" + string(p) + "/"
}

// Files begins the keys of sorted files and blob files. They have one beginning, so that one listing shows both.
func (p BranchPrefix) Files() string { return p.Objects() + "sst/" }

// Positions begins the keys of what consumers of a slot on other machines put.
func (p BranchPrefix) Positions(slot string) string { return p.Objects() + "slot/" + slot + "/" }

// Checkpoints begins the keys of checkpoints.
func (p BranchPrefix) Checkpoints() string {
	if p == "" {
		return "checkpoint/main/" // no other prefix has this name, which has no number
	}
	return "checkpoint/" + string(p) + "/"
}

// Branch returns the name of the branch.
func (p BranchPrefix) Branch() string { return string(p[:max(len(p)-prefixDigits, 0)]) }

// Number returns the number at the end; 0 for the main branch.
func (p BranchPrefix) Number() uint64 {
	n, _ := strconv.ParseUint(string(p[max(len(p)-prefixDigits+1, 0):]), 16, 64)
	return n
}

// Valid reports whether p is a prefix that NewBranchPrefix returns.
func (p BranchPrefix) Valid() bool {
	if p == "" {
		return true
	}
	if len(p) <= prefixDigits || CheckName(p.Branch()) != nil {
		return false
	}
	return p == NewBranchPrefix(p.Branch(), p.Number())
}

// ErrInvalidName is matched by errors about names of branches and checkpoints.
var ErrInvalidName = errors.New("siftkv: invalid name")

// maxName bounds names of branches and checkpoints, in bytes: with a suffix they are parts of keys.
const maxName = 48

// CheckName returns an error that matches ErrInvalidName unless name can be that of a branch or a checkpoint.
func CheckName(name string) error {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%w %q: it has %d bytes, not 1 to %d", ErrInvalidName, name, len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return !plain(r) && !strings.ContainsRune("-_.", r) }):
		return fmt.Errorf("%w %q: want ASCII letters, digits, and the characters \"-_.\"", ErrInvalidName, name)
	case !plain(rune(name[0])):
		return fmt.Errorf("%w %q: it begins with neither a letter nor a digit", ErrInvalidName, name)
	case strings.HasSuffix(name, "."):
		return fmt.Errorf("%w %q: it ends with a dot", ErrInvalidName, name)
	}
	return nil
}
