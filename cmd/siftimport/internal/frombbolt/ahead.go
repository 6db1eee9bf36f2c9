package frombbolt

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// The pages of a bucket lie anywhere in the file: in the order of keys each is a read of its own, which waits. So the
// whole file is read in its own order beside a scan, if there is memory for it.

// readAhead brings a file into the page cache until it is all there or stop is closed.
func readAhead(path string, size int64, stop <-chan struct{}) {
	if size > memoryAvailable()/2 {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return // the scan says what is wrong
	}
	defer func() { _ = f.Close() }()
	for buf := make([]byte, 1<<20); ; {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := io.ReadFull(f, buf); err != nil {
			return
		}
	}
}

// memoryAvailable returns how many bytes Linux would give to a program that asks for them; 0 if that is not known.
func memoryAvailable() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib := int64(0)
			if _, err := fmt.Sscan(text, &kib); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
