// Package bench is the laboratory behind kvbench: it asks engines the same
// questions about the same keys and counts what each answer costs.
//
// The parts, from the bottom up; a package imports only those of lines above its own:
//
//	environ   the machine a result was taken on
//	keys      which keys exist, which absent keys lie between them, and the value of each
//	engine    stores under one interface: SiftKV, null, and its peers
//	measure   loads, streams of lookups, timed loops that check every answer, statistics
//	cell      one experiment: settings in, a result out
//	compare, ycsb, filters, inspect, traceinfo
//	          experiments of their own
//	readamp, scale, pivot, diff
//	          what is made of cells, and of comparisons
//	report    results as tables, charts, a page and JSON
//	results   the files of cells
//	sweep     matrices of cells, resumable
//
// This package itself holds what they share: the errors that become exit statuses, and
// sizes as flags and reports have them.
package bench
