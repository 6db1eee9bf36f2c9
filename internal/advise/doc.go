// Package advise predicts what the lookups and scans of a store would cost under other settings,
// and recommends some. It opens nothing: a caller describes the files of a store, the lookups and
// scans, and the blocks that each leads to, and gets numbers.
//
//	store      the files, and the settings in force
//	trace      what was asked, and which blocks that leads to
//	readtrace  what a lookup trace says was asked
//	setting    another filter, budget or cache, and what its filters take and let pass
//	cost       what an operation takes, in counts and nanoseconds
//	prices     nanoseconds of a probe and of a block, measured or given
//	replay     which blocks a cache of some size would have had
//	predict    the cost of a setting
//	blocks     the store with data blocks of another size
//	layout     the sorted runs that another style of compaction would have
//	front      settings that no other one beats at their memory
//	advice     all of it, with one recommendation and what cannot be known
//
// A lookup asks the sorted runs one after the other until one has the key. The index in memory
// names the block without a read. So the path of each lookup is known: the files with bounds that
// include the key, a block of each, and the file that has it. That block is read with any filters;
// each of the others is read if its filter errs. Theory has that rate (filterpolicy.Expected). The
// rest is a cache, which is replayed.
package advise
