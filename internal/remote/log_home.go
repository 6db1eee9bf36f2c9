package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A logHome says where the logs that a list of files needs are.
type logHome struct {
	id    uint64   // of a directory on a machine's disk; 0: in the object store
	epoch uint64   // of the writer of the list
	place string   // what that writer calls the directory: for people
	logs  []uint64 // of the directory, in ascending order: those with records when the list was made
	ended []endedLog
}

// An endedLog is a directory, as a writer with an epoch had it, whose logs are not needed any more. Later lists of
// files keep it, because the directory may still have the logs: the process may have died before it removed them.
type endedLog struct{ id, epoch uint64 }

// mostEnded is how many of them, the last ones, a list of files remembers. For an older directory, the caller must set
// AbandonLog.
const mostEnded = 16

// end notes that no log in a directory is needed any more.
func (h *logHome) end(e endedLog) {
	if slices.Contains(h.ended, e) {
		return
	}
	h.ended = append(slices.Clone(h.ended[max(0, len(h.ended)-mostEnded+1):]), e)
}

// A homeFile is what a directory with logs says of itself: a file of one line of text,
//
//	siftkv-log format=1 id=0123456789abcdef store=0123456789abcdef epoch=3 crc=89abcdef
//
// The id is random, and replaced when logs do not continue those before. The epoch is that of the last writer that had
// the directory: lists of files of higher epochs are of others. The crc is the CRC-32C of all before " crc", bound to
// (0, 0), in hexadecimal.
type homeFile struct{ id, store, epoch uint64 }

const (
	homeName     = "LOG-HOME"
	homeLockName = "LOG-LOCK" // the cache in the same directory has LOCK
	homeVersion  = 1
	mostHome     = 4096 // bytes: many more than a home file has
)

func (h homeFile) encode() []byte {
	line := fmt.Sprintf("siftkv-log format=%d id=%016x store=%016x epoch=%d", homeVersion, h.id, h.store, h.epoch)
	return base.SealLine(line)
}

var errHome = errors.New("not a line that this store writes")

// decodeHome is the inverse of encode. It accepts nothing else.
func decodeHome(text []byte) (h homeFile, err error) {
	var version int
	line, ok := base.UnsealLine(string(text))
	if _, err := fmt.Sscanf(line, "siftkv-log format=%d ", &version); err != nil || !ok {
		return h, errHome
	}
	if version > homeVersion {
		return h, fmt.Errorf("%w: a directory of logs has version %d", manifest.ErrNewerFormat, version)
	}
	_, err = fmt.Sscanf(line, "siftkv-log format=1 id=%x store=%x epoch=%d", &h.id, &h.store, &h.epoch)
	if err != nil || string(h.encode()) != string(text) || h.id == 0 || h.store == 0 {
		return homeFile{}, errHome
	}
	return h, nil
}

var (
	// ErrLogElsewhere says that the log of the store is in a directory, and that this one is not it.
	ErrLogElsewhere = errors.New("siftkv: the store's log is on the disk of another machine, or in another directory")

	// ErrLogAbandoned says that the directory has logs that a later writer of the store has abandoned.
	ErrLogAbandoned = errors.New("siftkv: the directory has logs that a later writer has given up")
)

// A LogHomeError says where a store's log is. It matches ErrLogElsewhere or ErrLogAbandoned.
type LogHomeError struct {
	Err   error    // ErrLogElsewhere or ErrLogAbandoned
	Dir   string   // the directory that was given; "" if none was
	Place string   // where the log is, as its writer named it: a machine and a directory
	Logs  []string // of Dir: the abandoned logs
	What  string   // what Dir has instead
	Cause error    // why Dir cannot say what it is
}

// Error says what is missing, where it is, and what to do.
func (e *LogHomeError) Error() string {
	if errors.Is(e.Err, ErrLogAbandoned) {
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
func (e *LogHomeError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// An AbandonedLog is a log that was abandoned as the caller had asked.
type AbandonedLog struct {
	File   string // where it is kept, or was last seen
	Bytes  int64  // 0 if that is not known
	Reason string
}
