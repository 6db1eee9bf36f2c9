package measure

// A PageCache says what was done about the page cache before lookups.
type PageCache struct {
	Dropped bool `json:"dropped"` // the system was asked to drop the files
	// of the files, still in the page cache after it; -1: cannot be told
	Left       int64  `json:"left_bytes"`
	Impossible string `json:"impossible,omitempty"` // why the files were not dropped
}
