package remote

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A site is where the objects of a branch are. The main branch has the keys of a store without branches. Any other has
// a site of its own, its name and a random number, which is never used again. So a late writer of a dropped branch
// never touches a new branch of the same name. The site of the main branch is empty.
type site string

// siteDigits are those of the number at the end of a site, with the dash before it.
const siteDigits = 17

func newSite(name string, number uint64) site { return site(fmt.Sprintf("%s-%016x", name, number)) }

// prefix begins the keys of all objects of a branch, except its checkpoints and its entry in the list of branches.
func (s site) prefix() string {
	if s == "" {
		return ""
	}
	return "data/" + string(s) + "/"
}

// files begins the keys of sorted files and blob files. They have one beginning, so that one listing shows both.
func (s site) files() string { return s.prefix() + "sst/" }

// checkpoints begins the keys of checkpoints.
func (s site) checkpoints() string {
	if s == "" {
		return "checkpoint/main/" // no other site has this name, which has no number
	}
	return "checkpoint/" + string(s) + "/"
}

// branch returns the name of the branch.
func (s site) branch() string { return string(s[:max(len(s)-siteDigits, 0)]) }

// number returns the number at the end; 0 for the main branch.
func (s site) number() uint64 {
	n, _ := strconv.ParseUint(string(s[max(len(s)-siteDigits+1, 0):]), 16, 64)
	return n
}

// check reports whether s is a site that newSite returns.
func (s site) check() bool {
	if s == "" {
		return true
	}
	if len(s) <= siteDigits || checkName(s.branch()) != nil {
		return false
	}
	return s == newSite(s.branch(), s.number())
}

// ErrInvalidName is matched by errors about names of branches and checkpoints.
var ErrInvalidName = errors.New("siftkv: invalid name")

// maxName bounds names of branches and checkpoints, in bytes: with a suffix they are parts of keys.
const maxName = 48

// checkName returns an error that matches ErrInvalidName unless name can be that of a branch or a checkpoint.
func checkName(name string) error {
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
