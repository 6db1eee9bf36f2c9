package replay

import "fmt"

// A Mode says what to make of logs that are not whole; see kv.RecoveryMode.
type Mode uint8

// The modes.
const (
	PointInTime Mode = iota
	TolerateTornTail
	Absolute
	SkipCorrupt

	NumModes
)

func (m Mode) String() string {
	names := [NumModes]string{"PointInTime", "TolerateTornTail", "Absolute", "SkipCorrupt"}
	if m >= NumModes {
		return fmt.Sprintf("RecoveryMode(%d)", uint8(m))
	}
	return names[m]
}

// A Dropped describes what was dropped from a log.
type Dropped struct {
	File   string
	Offset int64 // where the dropped writes begin; 0: the whole log
	Bytes  int64 // of the log, up to the next record that was read
	Reason string
}
