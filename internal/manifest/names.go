package manifest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A FileKind is a kind of file in a store's directory.
type FileKind uint8

// The kinds of files, and their names.
const (
	FileUnknown  FileKind = iota // not a file of the store
	FileTable                    // 000012.sst
	FileWAL                      // 000011.wal
	FileManifest                 // MANIFEST-000010
	FileCurrent                  // CURRENT
	FileLock                     // LOCK
	FileTemp                     // *.tmp: being written, worthless after a crash
	FileRestore                  // RESTORE: what a restore has done
	FileReader                   // READER-4711-1: the registration of a reader
	FileIngest                   // INGEST-000020-000022: the numbers of an ingest that is under way
	FileOptions                  // SIFTKV-OPTIONS: what the store was last opened with
	FileBlob                     // 000014.blob
	FileBallast                  // BALLAST: bytes that mean nothing, and keep room on the disk
	FileKept                     // 000013.kept: for slots, a copy of logs, or a file that is obsolete otherwise
	FileSlot                     // SLOT-name: how far the consumer of a slot is
	FileConsumer                 // CONSUMER-name: is locked by the consumer of a slot
)

// Names of the files that have no number.
const (
	CurrentName = "CURRENT"
	LockName    = "LOCK"
	RestoreName = "RESTORE"
	OptionsName = "SIFTKV-OPTIONS"
	BallastName = "BALLAST"
	tempSuffix  = vfs.TempSuffix

	readerPrefix = "READER-"
	ingestPrefix = "INGEST-"
	slotPrefix   = "SLOT-"

	consumerPrefix = "CONSUMER-"
)

// Path returns the name of a numbered file of a store in dir.
func Path(dir string, kind FileKind, num uint64) string {
	return filepath.Join(dir, FileName(kind, num))
}

// affixes are what the names of numbered files have in addition to digits.
var affixes = [FileConsumer + 1]struct{ before, after string }{FileTable: {"", ".sst"}, FileWAL: {"", ".wal"},
	FileManifest: {"MANIFEST-", ""}, FileBlob: {"", ".blob"}, FileKept: {"", ".kept"}}

// FileName returns the base name of a file of a kind whose files have numbers.
func FileName(kind FileKind, num uint64) string {
	digits := strconv.FormatUint(num, 10) // Open makes each file's name: fmt would take its time
	return affixes[kind].before + "00000"[min(len(digits)-1, 5):] + digits + affixes[kind].after
}

// An Ingest is the numbers of the tables of one ingest. An empty file of its name is made before the first of these
// tables, and removed after the manifest lists them all, or they are gone. A table that it names and no manifest lists
// is part of an ingest that a crash interrupted.
type Ingest struct{ First, Last uint64 }

// FileName returns the base name of the file.
func (i Ingest) FileName() string { return fmt.Sprintf("%s%06d-%06d", ingestPrefix, i.First, i.Last) }

// Has reports whether a table's number is one of the ingest's.
func (i Ingest) Has(num uint64) bool { return i.First <= num && num <= i.Last }

// ParseIngest is the inverse of Ingest.FileName.
func ParseIngest(name string) (i Ingest, ok bool) {
	digits, ok := strings.CutPrefix(name, ingestPrefix)
	if !ok {
		return i, false
	}
	first, last, _ := strings.Cut(digits, "-")
	for to, from := range map[*uint64]string{&i.First: first, &i.Last: last} {
		var err error
		if *to, err = strconv.ParseUint(from, 10, 64); err != nil {
			return Ingest{}, false
		}
	}
	return i, i.FileName() == name && i.First <= i.Last
}

// First is the number of a new store's manifest.
const First = 1

// ParseFileName is the inverse of FileName. Temporary files and registrations have no number, an ingest has its last.
func ParseFileName(name string) (kind FileKind, num uint64) {
	for kind, a := range affixes {
		digits, ok := strings.CutPrefix(name, a.before)
		if digits, of := strings.CutSuffix(digits, a.after); ok && of && len(a.before)+len(a.after) > 0 {
			return numbered(FileKind(kind), digits)
		}
	}
	if ingest, ok := ParseIngest(name); ok {
		return FileIngest, ingest.Last
	}
	if ids, ok := strings.CutPrefix(name, readerPrefix); ok && isReader(ids) {
		return FileReader, 0
	}
	if slot, ok := strings.CutPrefix(name, slotPrefix); ok {
		if of, temp := strings.CutSuffix(slot, tempSuffix); temp && IsSlotName(of) {
			return FileTemp, 0
		} else if IsSlotName(slot) {
			return FileSlot, 0
		}
	}
	if slot, ok := strings.CutPrefix(name, consumerPrefix); ok && IsSlotName(slot) {
		return FileConsumer, 0
	}
	switch name {
	case CurrentName:
		return FileCurrent, 0
	case LockName:
		return FileLock, 0
	case RestoreName:
		return FileRestore, 0
	case OptionsName:
		return FileOptions, 0
	case BallastName:
		return FileBallast, 0
	case CurrentName + tempSuffix, RestoreName + tempSuffix, OptionsName + tempSuffix:
		return FileTemp, 0
	}
	return FileUnknown, 0
}

// Numbers returns the numbers, from a number on, of those files of a directory that are of a kind, in order.
func Numbers(names []string, kind FileKind, from uint64) (nums []uint64) {
	for _, name := range names {
		if k, num := ParseFileName(name); k == kind && num >= from {
			nums = append(nums, num)
		}
	}
	slices.Sort(nums)
	return nums
}

// isReader reports whether ids are those in a registration's name: two numbers.
func isReader(ids string) bool {
	pid, n, _ := strings.Cut(ids, "-")
	for _, digits := range []string{pid, n} {
		num, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || strconv.FormatUint(num, 10) != digits {
			return false
		}
	}
	return true
}

// maxSlotName bounds the name of a slot, in bytes.
const maxSlotName = 64

// IsSlotName reports whether a slot can have a name: 1 to 64 lower-case letters, digits, '-' and '_'.
func IsSlotName(name string) bool {
	return len(name) > 0 && len(name) <= maxSlotName &&
		strings.IndexFunc(name, func(r rune) bool { return !strings.ContainsRune(slotLetters, r) }) < 0
}

const slotLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// SlotName returns the base name of the file of a slot.
func SlotName(slot string) string { return slotPrefix + slot }

// ConsumerName returns the base name of the file that the consumer of a slot locks.
func ConsumerName(slot string) string { return consumerPrefix + slot }

// SlotOf returns the name of the slot that a file with this base name is of.
func SlotOf(file string) string {
	return strings.TrimPrefix(strings.TrimPrefix(file, slotPrefix), consumerPrefix)
}

func numbered(kind FileKind, digits string) (FileKind, uint64) {
	num, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) < 6 || len(digits) > 6 && digits[0] == '0' {
		return FileUnknown, 0 // 7.sst and +00007.sst are not the store's
	}
	return kind, num
}
