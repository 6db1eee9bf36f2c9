// Package lookuptrace writes and reads lookup traces: which keys an application asked
// a store for, when, and whether they were there.
//
//	format    the bytes of a trace
//	recorder  takes lookups from many goroutines without ever making one wait
//	reader    gives them back, and tells a trace that was cut from one that is damaged
package lookuptrace
