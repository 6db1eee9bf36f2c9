package locallog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Location says where the logs that a list of files needs are.
type Location struct {
	ID    uint64   // of a directory on a machine's disk; 0: in the object store
	Epoch uint64   // of the writer of the list
	Place string   // what that writer calls the directory: for people
	Logs  []uint64 // of the directory, in ascending order: those with records when the list was made
	Ended []EndedLog
}

// An EndedLog is a directory, as a writer with an epoch had it, whose logs are not needed any more. Later lists of
// files keep it, because the directory may still have the logs: the process may have died before it removed them.
type EndedLog struct{ ID, Epoch uint64 }

// maxEnded is how many of them, the last ones, a list of files remembers. For an older directory, the caller must set
// AbandonLog.
const maxEnded = 16

// end notes that no log in a directory is needed any more.
func (h *Location) end(e EndedLog) {
	if slices.Contains(h.Ended, e) {
		return
	}
	h.Ended = append(slices.Clone(h.Ended[max(0, len(h.Ended)-maxEnded+1):]), e)
}

var (
	// ErrElsewhere says that the log of the store is in a directory, and that this one is not it.
	ErrElsewhere = errors.New("siftkv: the store's log is on the disk of another machine, or in another directory")

	// ErrAbandoned says that the directory has logs that a later writer of the store has abandoned.
	ErrAbandoned = errors.New("siftkv: the directory has logs that a later writer has given up")
)

// A LocationError says where a store's log is. It matches ErrElsewhere or ErrAbandoned.
type LocationError struct {
	Err   error    // ErrElsewhere or ErrAbandoned
	Dir   string   // the directory that was given; "" if none was
	Place string   // where the log is, as its writer named it: a machine and a directory
	Logs  []string // of Dir: the abandoned logs
	What  string   // what Dir has instead
	Cause error    // why Dir cannot say what it is
}

// Error says what is missing, where it is, and what to do.
func (e *LocationError) Error() string {
	if errors.Is(e.Err, ErrAbandoned) {
		return fmt.Sprintf("%v: %s has %s, %s; they can never go into the store any more. With Objects.AbandonLog "+
			"they are kept aside under other names, and the store goes on without them", e.Err, e.Dir,
			strings.Join(e.Logs, ", "), e.What)
	}
	s := fmt.Sprintf("%v: its last writer kept it in %q, and %s", e.Err, e.Place, e.What)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s + ". Open the store there: once it was closed, any machine opens it. Or set Objects.AbandonLog to " +
		"give up all writes since the last flush"
}

// Unwrap returns Err and Cause.
func (e *LocationError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// PlaceOf returns what a directory of this machine is called on others.
func PlaceOf(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return host + ":" + dir
}
