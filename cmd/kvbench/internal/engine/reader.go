package engine

import "fmt"

// holdsNothing is part of readers that have nothing to release.
type holdsNothing struct{}

func (holdsNothing) Close() error { return nil }

// uncounted is part of readers of engines that keep no counters of lookups.
type uncounted struct{ holdsNothing }

// Counters has nothing to count.
func (uncounted) Counters() (Counters, error) {
	return Counters{Lookups: Unknown, MemtableAnswers: Unknown, Total: UnknownTally()}, nil
}

// onlyGet refuses every access but Get.
func onlyGet(engine string, access Access) error {
	if access != Get {
		return fmt.Errorf("%s: no access named %q", engine, access)
	}
	return nil
}
