// Package advice is kvbench advise: it describes a store and a lookup trace to package
// internal/advise, and holds what that predicts against copies of the store with other settings.
//
//	store    what a store in a directory has, and where its lookups lead
//	asked    the lookups of a trace
//	prices   what probes and blocks take on this machine
//	copy     the same sorted runs with other filters
//	measure  what the lookups read in a store
//	verify   predictions beside that
//	run      all of it
package advice
