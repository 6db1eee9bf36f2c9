// Package bench is the laboratory behind kvbench: it asks engines the same
// questions about the same keys and counts what each answer costs.
//
// The parts, from the bottom up:
//
//	keys      which keys exist, and which absent keys lie between them
//	values    the value of a key, computed from the key alone
//	engine    stores under one interface: SiftKV, null, and its peers
//	measure   streams of lookups, timed loops that check every answer, statistics
//	lookup    what a run of lookups cost, and the relations its counters keep
//	timeline  operations and background work over time
//	grow      trees of several levels that come out the same every time
//	environ   the machine a result was taken on
//	readamp   the read-amplification experiment: load, settle, look up, check
//	compare   workloads on several engines, each in a process of its own
//	scale     how cost grows with the number of keys
//	cell      one experiment: settings in, a result out
//	sweep     matrices of cells, resumable
//	results   the files of cells
//	diff      two sets of results
//	ycsb      the workloads of YCSB, and reads of absent keys
//	traceinfo what is in a lookup trace
//	inspect   a store as a lookup sees it
//	pagecache cold reads
//	report    results as tables, charts, a page and JSON
//	bytesize  sizes in flags and reports
//
// This package itself holds what they share: the errors that become exit
// statuses.
package bench
