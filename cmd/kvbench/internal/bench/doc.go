// Package bench is the laboratory behind kvbench: it asks engines the same
// questions about the same keys and counts what each answer costs.
//
// The parts, from the bottom up; a package imports only those of lines above its own:
//
//	environ   the machine a result was taken on
//	keys      which keys exist, which absent keys lie between them, and the value of each
//	engine    stores under one interface: SiftKV, null, and its peers
//	measure   loads, streams of lookups, timed loops that check every answer, statistics
//	tidy      results as rows: a cell, a metric, a repetition, a value, a unit
//	cell      one experiment: settings in, a result out
//	ycsb, filters, traceinfo, compare
//	          experiments of their own: the workloads of YCSB, filters alone, what
//	          is in a trace, engines in processes of their own
//	readamp   what a lookup reads, by engine and filter
//	results   sets of cells: their files, tables of some settings, what differs between two
//	report, report/chart
//	          results as tables, CSV and benchstat text; as charts and a page
//	sweep     matrices of cells, resumable
//
// This package itself holds what they share: the errors that become exit statuses, and
// sizes as flags and reports have them.
package bench
