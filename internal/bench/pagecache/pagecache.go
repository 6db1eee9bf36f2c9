// Package pagecache puts the files of a store out of the operating system's page
// cache, so that the next read of each block waits for the device, and says whether
// that worked.
package pagecache

// A State says what was done about the page cache before lookups.
type State struct {
	Dropped bool `json:"dropped"` // the system was asked to drop the files
	// of the files, still in the page cache after it; -1: cannot be told
	Left       int64  `json:"left_bytes"`
	Impossible string `json:"impossible,omitempty"` // why the files were not dropped
}
