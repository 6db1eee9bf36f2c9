package kv

// SEPARATE_FROM=1 go test ./kv runs the tests with values of so many bytes apart, in blob files of
// 16 KiB, where a test does not say otherwise: those of histories, crashes, faults and full disks
// have to pass; some count files or sizes, or use what does not know blob files yet. With
// SEPARATE_AT_COMMIT=1 too, they go there when they are committed.
func init() {
	defaultSeparateFrom = envInt("SEPARATE_FROM", defaultSeparateFrom)
	defaultSeparateAtCommit = envInt("SEPARATE_AT_COMMIT", 0) > 0
}
